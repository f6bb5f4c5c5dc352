//! Whether a folder is a repository, by the names in it.
//!
//! git asks for `HEAD`, `objects` and `refs`. Here less is enough: a command can
//! move `HEAD` away, have `config` written, and move it back.

use super::{is, names};
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
    /// Something named `hooks` that could hold hooks.
    pub(super) hooks: bool,
    /// A hook that git would run.
    pub(super) hook: bool,
}

impl Shape {
    pub(super) fn of(folder: &Path) -> Self {
        let mut shape = Self::default();
        for entry in names(folder) {
            shape.see(&entry.file_name(), entry.file_type().ok());
        }
        shape.look_for_hook(folder);
        shape
    }

    /// Takes note of one name in the folder.
    pub(super) fn see(&mut self, name: &OsStr, kind: Option<std::fs::FileType>) {
        let bytes = name.as_encoded_bytes();
        let is_folder = kind.is_some_and(|kind| kind.is_dir());
        match bytes.first() {
            Some(b'H' | b'h') => {
                self.head |= is_head(name) && !is_folder;
                self.hooks |= is(name, "hooks") && (is_folder || is_link(kind));
            }
            Some(b'O' | b'o') => self.objects |= is(name, "objects"),
            Some(b'R' | b'r') => self.refs |= is(name, "refs"),
            Some(b'C' | b'c') => {
                self.common |= is(name, "commondir");
                // A folder of that name is none of git's.
                self.config |= !is_folder && (is(name, "config") || is(name, "config.worktree"));
            }
            _ => {}
        }
    }

    /// Looks into `hooks` where that decides something.
    pub(super) fn look_for_hook(&mut self, folder: &Path) {
        if self.hooks {
            self.hook = names(&folder.join("hooks")).iter().any(|hook| {
                is_hook_name(&hook.file_name()) && hook.file_type().is_ok_and(|kind| !kind.is_dir())
            });
        }
    }

    /// Whether git would obey something here, or would after one more file.
    pub(super) fn is_repository(self) -> bool {
        let rest = self.objects || self.refs;
        self.head && (rest || self.common || self.config || self.hooks)
            || rest && (self.config || self.hook)
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

fn is_link(kind: Option<std::fs::FileType>) -> bool {
    kind.is_some_and(|kind| kind.is_symlink())
}

/// `HEAD` in any case, and `HEAD` with something behind it that is no letter.
fn is_head(name: &OsStr) -> bool {
    let rest = name.as_encoded_bytes().strip_prefix(b"HEAD");
    is(name, "HEAD")
        || rest
            .and_then(<[u8]>::first)
            .is_some_and(|next| !next.is_ascii_alphanumeric())
}

/// Whether git could run something of that name in a folder of hooks: hooks have no
/// dot in their names, the samples and the sources of other programs do.
pub(super) fn is_hook_name(name: &OsStr) -> bool {
    !name.as_encoded_bytes().contains(&b'.')
}
