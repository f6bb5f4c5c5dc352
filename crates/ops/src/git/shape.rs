//! Whether a folder is a repository, by the names in it.
//!
//! git asks for `HEAD`, `objects` and `refs`. Here less is enough: a command can
//! move `HEAD` away, or all three, have `config` written, and move them back. Names that
//! other projects have too count only with what git alone puts into such files.

use super::config::is_configuration;
use super::obeyed::is_hook;
use super::{is, kind, list};
use rustix::fs::FileType;
use std::ffi::OsStr;
use std::path::Path;

/// What of a repository a folder has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each name is there or is not, whatever the others are"
)]
pub(super) struct Shape {
    /// `HEAD`, or what could be `HEAD` under another name, such as `HEAD.bak`.
    pub(super) head: bool,
    pub(super) objects: bool,
    pub(super) refs: bool,
    /// `commondir`: the rest lies in another folder.
    pub(super) common: bool,
    /// A file `config` or `config.worktree`.
    pub(super) config: bool,
    /// One of them looks like a configuration of git. Only checked where it matters.
    pub(super) git_config: bool,
    /// Something named `hooks` that could hold hooks.
    pub(super) hooks: bool,
    /// A hook that git would run.
    pub(super) hook: bool,
    /// What git puts beside `config` and never asks for: samples of hooks,
    /// `description`, `info`.
    pub(super) trimmings: bool,
}

/// What is asked for in a folder that cannot be listed.
const PARTS: [&str; 9] = [
    "HEAD",
    "objects",
    "refs",
    "commondir",
    "config",
    "config.worktree",
    "hooks",
    "description",
    "info",
];

/// Whether a folder has all that git asks for.
pub(super) fn is_whole(folder: &Path) -> bool {
    let has = |name: &str| kind(&folder.join(name)).is_some();
    let has_folder =
        |name: &str| kind(&super::real(&folder.join(name))) == Some(FileType::Directory);
    has("HEAD") && (has("commondir") || has_folder("objects") && has_folder("refs"))
}

impl Shape {
    pub(super) fn of(folder: &Path) -> Self {
        let mut shape = Self::default();
        match list(folder) {
            Some(entries) => {
                for entry in entries {
                    shape.see(&entry.file_name(), entry.file_type().ok().into());
                }
            }
            None => {
                for name in PARTS {
                    if let Some(kind) = kind(&folder.join(name)) {
                        shape.see(OsStr::new(name), kind.into());
                    }
                }
            }
        }
        shape.look_closer(folder);
        shape
    }

    /// Takes note of one name in the folder.
    pub(super) fn see(&mut self, name: &OsStr, kind: Kind) {
        let bytes = name.as_encoded_bytes();
        let is_folder = kind == Kind::Folder;
        match bytes.first() {
            Some(b'H' | b'h') => {
                self.head |= is_head(name) && !is_folder;
                self.hooks |= is(name, "hooks") && (is_folder || kind == Kind::Link);
            }
            Some(b'O' | b'o') => self.objects |= is(name, "objects"),
            Some(b'R' | b'r') => self.refs |= is(name, "refs"),
            Some(b'C' | b'c') => {
                self.common |= is(name, "commondir");
                // A folder of that name is none of git's.
                self.config |= !is_folder && (is(name, "config") || is(name, "config.worktree"));
            }
            Some(b'D' | b'd') => self.trimmings |= is(name, "description") && !is_folder,
            Some(b'I' | b'i') => self.trimmings |= is(name, "info") && is_folder,
            _ => {}
        }
    }

    /// Looks into `hooks` and `config` where that decides something.
    pub(super) fn look_closer(&mut self, folder: &Path) {
        self.look_for_hooks(folder);
        if is_log(folder) {
            // It always has `HEAD` and `refs`, which does not make it a repository.
            self.refs = false;
        }
        if self.config && !self.head && (self.objects || self.refs || self.trimmings) {
            self.git_config = ["config", "config.worktree"]
                .map(|name| folder.join(name))
                .iter()
                .any(|file| kind(file).is_some() && is_configuration(file));
        }
    }

    fn look_for_hooks(&mut self, folder: &Path) {
        if self.hooks {
            let Some(hooks) = list(&folder.join("hooks")) else {
                // Whatever is in there.
                self.hook = true;
                return;
            };
            for hook in hooks {
                let name = hook.file_name();
                let is_file = hook.file_type().is_ok_and(|kind| !kind.is_dir());
                self.hook |= is_file && is_hook(&name);
                self.trimmings |= is_file && is_sample(&name);
            }
        }
    }

    /// Whether git would obey something here, or would after one more file.
    pub(super) fn is_repository(self) -> bool {
        let rest = self.objects || self.refs;
        self.head && (rest || self.common || self.config || self.hooks)
            || rest && (self.git_config || self.hook)
            || self.objects && self.refs && self.config
            || self.git_config && self.trimmings
    }

    /// Whether any part of a repository is there.
    pub(super) fn has_part(self) -> bool {
        self.head || self.objects || self.refs || self.common
    }

    /// Whether something is there that git would obey.
    pub(super) fn has_control(self) -> bool {
        self.config || self.hook || self.common
    }

    /// How many of the three parts are there that git asks for.
    pub(super) fn parts(self) -> usize {
        usize::from(self.head)
            + usize::from(self.objects || self.common)
            + usize::from(self.refs || self.common)
    }
}

/// As much as matters of what has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    Link,
    Other,
}

impl From<Option<std::fs::FileType>> for Kind {
    fn from(kind: Option<std::fs::FileType>) -> Self {
        match kind {
            Some(kind) if kind.is_dir() => Self::Folder,
            Some(kind) if kind.is_symlink() => Self::Link,
            _ => Self::Other,
        }
    }
}

impl From<FileType> for Kind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

/// `pre-commit.sample` and the like, which git puts into a new repository.
fn is_sample(name: &OsStr) -> bool {
    name.as_encoded_bytes().ends_with(b".sample")
}

/// `HEAD` in any case, and `HEAD` with something behind it that is no letter.
fn is_head(name: &OsStr) -> bool {
    let rest = name.as_encoded_bytes().strip_prefix(b"HEAD");
    is(name, "HEAD")
        || rest
            .and_then(<[u8]>::first)
            .is_some_and(|next| !next.is_ascii_alphanumeric())
}

/// Whether a folder holds the reflogs of a repository.
fn is_log(folder: &Path) -> bool {
    let is_named = folder.file_name().is_some_and(|name| is(name, "logs"));
    is_named && folder.parent().is_some_and(is_whole)
}
