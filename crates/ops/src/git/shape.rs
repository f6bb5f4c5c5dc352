//! Decides by the names in a folder whether it is a repository.
//!
//! git requires `HEAD`, `objects` and `refs`. Here less is enough: a command could move
//! `HEAD` away, or all three, have `config` written, and move them back. Names that other
//! projects also use count only if their content is typical of git.

use super::config::is_configuration;
use super::control_files::is_hook;
use super::{is, kind, list};
use rustix::fs::FileType;
use std::ffi::OsStr;
use std::path::Path;

/// Parts of a repository that a folder contains.
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
    /// `commondir`: the rest is in another folder.
    pub(super) common: bool,
    /// A file `config` or `config.worktree`.
    pub(super) config: bool,
    /// One of them looks like a git configuration. Only checked if it matters.
    pub(super) git_config: bool,
    /// Something named `hooks` that could contain hooks.
    pub(super) hooks: bool,
    /// A hook that git would run.
    pub(super) hook: bool,
    /// Files that git creates beside `config` but does not require: sample hooks,
    /// `description`, `info`.
    pub(super) trimmings: bool,
}

/// Names to look up in a folder that cannot be listed.
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

/// Whether a folder has everything that git requires.
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

    /// Records one name in the folder.
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
                // git does not read a folder of that name.
                self.config |= !is_folder && (is(name, "config") || is(name, "config.worktree"));
            }
            Some(b'D' | b'd') => self.trimmings |= is(name, "description") && !is_folder,
            Some(b'I' | b'i') => self.trimmings |= is(name, "info") && is_folder,
            _ => {}
        }
    }

    /// Looks into `hooks` and `config` if that makes a difference.
    pub(super) fn look_closer(&mut self, folder: &Path) {
        self.look_for_hooks(folder);
        if is_log(folder) {
            // A folder of reflogs always has `HEAD` and `refs`, but is not a repository.
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
                // It cannot be listed, so any name is possible.
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

    /// Whether git would obey something here, or would after one more file is added.
    pub(super) fn is_repository(self) -> bool {
        let rest = self.objects || self.refs;
        self.head && (rest || self.common || self.config || self.hooks)
            || rest && (self.git_config || self.hook)
            || self.objects && self.refs && self.config
            || self.git_config && self.trimmings
    }

    /// Whether any part of a repository exists.
    pub(super) fn has_part(self) -> bool {
        self.head || self.objects || self.refs || self.common
    }

    /// Whether something exists that git would obey.
    pub(super) fn has_control(self) -> bool {
        self.config || self.hook || self.common
    }

    /// Returns how many of the three required parts exist.
    pub(super) fn parts(self) -> usize {
        usize::from(self.head)
            + usize::from(self.objects || self.common)
            + usize::from(self.refs || self.common)
    }
}

/// Kind of a directory entry.
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

/// Whether this is a sample such as `pre-commit.sample`, which git creates in a new
/// repository.
fn is_sample(name: &OsStr) -> bool {
    name.as_encoded_bytes().ends_with(b".sample")
}

/// Whether this is `HEAD` in any case, optionally followed by a character that is not a
/// letter.
fn is_head(name: &OsStr) -> bool {
    let rest = name.as_encoded_bytes().strip_prefix(b"HEAD");
    is(name, "HEAD")
        || rest
            .and_then(<[u8]>::first)
            .is_some_and(|next| !next.is_ascii_alphanumeric())
}

/// Whether a folder contains the reflogs of a repository.
fn is_log(folder: &Path) -> bool {
    let is_named = folder.file_name().is_some_and(|name| is(name, "logs"));
    is_named && folder.parent().is_some_and(is_whole)
}
