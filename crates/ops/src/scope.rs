//! Path checking: the only place that turns a string into a [`FilePath`].
//!
//! [`Scope::resolve`] finds the real path, following links itself as the kernel would (but
//! never those in `/proc` that lead to open objects). The rules are applied to that path:
//! protected paths first, then secret ones, then the roots of the mode. Then it is anchored
//! at the handle of its root, and the backend opens it below that handle without following
//! any link, so that a link which appears in between makes the call fail.

mod config;
pub mod filter;
mod links;
mod mode;
pub(crate) mod mounts;
mod protect;
mod root;
pub(crate) mod rules;
pub(crate) mod secret;
pub(crate) mod shut;
pub mod spelling;
pub(crate) mod temp;
#[cfg(test)]
mod tests;

pub use config::ScopeConfig;
pub use filter::PathFilter;
pub use links::links_on;
pub use mode::{FileRules, Mode, Reading, Writing};
pub use mounts::{MountPoint, Visibility};
pub use root::Root;
pub(crate) use root::{Identity, identity, identity_of, moved};
pub use secret::SECRET;
pub use temp::{PrivateTemp, ReplacesShared, SHARED as SHARED_TEMP};

use crate::{Error, Result};
use filter::AttachedFilter;
use links::Last;
use mounts::{Descent, Mounted, Mounts};
use rules::Guard;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Intended use of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read, list or search it.
    Read,
    /// Create or change it. The last link is followed.
    Write,
    /// Remove the name itself. The last link is not followed.
    Unlink,
}

/// The files that a session may use, and how.
#[derive(Debug, Clone)]
pub struct Scope {
    guard: Arc<Guard>,
    work_dir: PathBuf,
    home: Option<PathBuf>,
    /// Other scopes, each mounted at a path.
    mounts: Option<Arc<Mounts>>,
    /// The folder of commands, if a tree of several scopes does not contain it.
    commands_only: Option<PathBuf>,
    /// Paths that lead through links to a folder on the disk, each with its real path.
    called: Vec<(PathBuf, PathBuf)>,
}

impl Scope {
    /// Creates a scope over the local disk.
    ///
    /// # Errors
    /// The work folder or a root is not a directory that can be opened.
    pub fn disk(config: ScopeConfig) -> Result<Self> {
        let home = config.home.clone();
        let guard = Guard::build(config)?;
        let work_dir = guard.work_dir().to_owned();
        Ok(Self {
            guard: Arc::new(guard),
            work_dir,
            home,
            mounts: None,
            commands_only: None,
            called: Vec::new(),
        })
    }

    /// Creates a scope over a separate backend, limited to its root.
    #[must_use]
    pub fn detached() -> Self {
        Self {
            guard: Arc::new(Guard::detached()),
            work_dir: PathBuf::from("/"),
            home: None,
            mounts: None,
            commands_only: None,
            called: Vec::new(),
        }
    }

    /// Creates one tree from several scopes. `work_dir` is the folder of commands, which do
    /// not know that tree.
    #[must_use]
    pub fn mounted(points: Vec<MountPoint>, work_dir: PathBuf) -> Self {
        Self {
            work_dir,
            mounts: Some(Arc::new(Mounts::new(points))),
            ..Self::detached()
        }
    }

    /// Whether all paths lead to this machine's disk.
    #[must_use]
    pub fn is_on_disk(&self) -> bool {
        !self.guard.is_detached()
    }

    /// Returns the folder that relative paths start from, and in which commands run.
    #[must_use]
    pub fn work_dir(&self) -> &Path {
        &self.work_dir
    }

    /// Returns the real paths of the other folders with the same rights.
    #[must_use]
    pub fn roots(&self) -> Vec<PathBuf> {
        self.guard.more_roots()
    }

    /// Returns the folders on the disk that a tree of several scopes contains, with their
    /// paths in it.
    #[must_use]
    pub fn mounted_folders(&self) -> Vec<(PathBuf, PathBuf)> {
        self.mounts
            .as_ref()
            .map_or_else(Vec::new, |mounts| mounts.folders())
    }

    /// Returns the user's home folder, for toolsets that expand `~/`.
    #[must_use]
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Returns the rules in force.
    #[must_use]
    pub fn rules(&self) -> FileRules {
        self.guard.rules()
    }

    /// Checks `given` for `access`, and anchors it.
    ///
    /// # Errors
    /// [`Error::Protected`] before any other check, [`Error::NotAllowed`] if no rule allows
    /// it, [`Error::InvalidPath`] if it is not a valid path.
    pub fn resolve(&self, given: &str, access: Access) -> Result<FilePath> {
        self.resolve_as(given, Path::new(given), access)
    }

    /// Like [`Scope::resolve`], for a toolset that expanded the path: errors name it as it
    /// was `given`, not as it was expanded.
    ///
    /// # Errors
    /// Same as [`Scope::resolve`].
    pub fn resolve_as(&self, given: &str, path: &Path, access: Access) -> Result<FilePath> {
        plausible(given, path)?;
        if let Some(mounts) = &self.mounts {
            return mounts.resolve(given, path, access);
        }
        let absolute = self.work_dir.join(path);
        if self.guard.is_detached() {
            return Ok(self
                .guard
                .anchor_detached(given, &links::lexical(&absolute)));
        }
        let last = match access {
            Access::Read | Access::Write => Last::Follow,
            Access::Unlink => Last::Keep,
        };
        let real = match self.real(&absolute, last) {
            Ok(real) => real,
            Err(links::Problem::Magic) => return Err(self.guard.not_allowed(given, access)),
            // Reported only for a path that may be read.
            Err(links::Problem::Loop(place)) => {
                self.guard.admit(given, place, &[], access)?;
                let reason = "too many levels of symbolic links";
                return Err(Error::InvalidPath {
                    path: given.to_owned(),
                    reason,
                });
            }
        };
        let mut path = self.guard.admit(given, real.path, &real.aliases, access)?;
        path.was_there = real.met.is_some();
        path.was_file = real.met == Some(rustix::fs::FileType::RegularFile);
        // A trailing slash means a folder.
        if given.ends_with('/') && path.was_file {
            return Err(Error::NotADirectory {
                path: given.to_owned(),
            });
        }
        if given.ends_with('/') && access != Access::Read {
            return Err(Error::IsDirectory {
                path: given.to_owned(),
            });
        }
        Ok(path)
    }

    /// Resolves a path. A path in a shared temp folder, named directly or reached by a
    /// link, is redirected to the private one.
    fn real(&self, absolute: &Path, last: Last) -> Result<links::Real, links::Problem> {
        let reading = self.guard.rules().reading;
        let moved = self.guard.moved(absolute);
        let mut wanted = moved.unwrap_or_else(|| absolute.to_owned());
        let mut aliases = Vec::new();
        for _ in 0..links::MAX_LINKS {
            // A root is already real, so only the part below it is resolved.
            let (known, rest) = self.guard.known(&wanted);
            let mut real = links::real_below(known, rest, last, reading)?;
            aliases.append(&mut real.aliases);
            match self.guard.moved(&real.path) {
                Some(moved) => wanted = moved,
                None => return Ok(links::Real { aliases, ..real }),
            }
        }
        Err(links::Problem::Loop(wanted))
    }

    /// Returns a real path as commands and the model name it.
    #[must_use]
    pub fn visible_path<'a>(&self, real: &'a Path) -> std::borrow::Cow<'a, Path> {
        let seen = match &self.mounts {
            Some(mounts) => mounts.visible_path(real),
            None => self.guard.visible_path(real),
        };
        match seen {
            Some(seen) => seen.into(),
            None => real.into(),
        }
    }
}

/// Resolves all links in a path. Parts that do not exist are kept.
#[must_use]
pub fn real(path: &Path) -> Option<PathBuf> {
    links::real_path(path, Last::Follow, Reading::Anywhere).ok()
}

/// Whether a real path is a folder.
#[must_use]
pub fn is_folder(real: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, FileType, statat};
    statat(CWD, real, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_dir())
}

/// A checked path: real, allowed, anchored at an open root.
///
/// Only a [`Scope`] creates one. It stands for a name, not for an open file: what is there
/// may change, but a backend opens it without following any link.
#[derive(Debug, Clone)]
pub struct FilePath {
    given: String,
    real: PathBuf,
    below: PathBuf,
    root: Arc<Root>,
    guard: Arc<Guard>,
    /// Position in a tree of several scopes.
    mounted: Option<Mounted>,
    /// Rules for everything found from this path.
    filter: Option<AttachedFilter>,
    /// Whether anything existed when the path was checked, and whether it was a regular
    /// file.
    was_there: bool,
    was_file: bool,
}

impl FilePath {
    /// Returns the path as the caller wrote it, for messages.
    #[must_use]
    pub fn given(&self) -> &str {
        &self.given
    }

    /// Returns the absolute path with every link resolved. For a separate backend, the path
    /// from its root, starting with `/`.
    #[must_use]
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// Returns the path below its root; empty for the root itself.
    #[must_use]
    pub fn below(&self) -> &Path {
        &self.below
    }

    /// Returns the root at which it is anchored.
    #[must_use]
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Returns the path in the tree that the caller sees: the real one, unless several
    /// scopes make up one tree.
    #[must_use]
    pub fn virtual_path(&self) -> &Path {
        let mounted = self.mounted.as_ref();
        mounted.map_or(&self.real, |mounted| &mounted.place)
    }

    pub(crate) fn mounted(&self) -> Option<&Mounted> {
        self.mounted.as_ref()
    }

    /// Whether something existed when the path was checked.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.was_there
    }

    /// Whether it was a regular file when it was checked. Opening a device can have an
    /// effect; opening a file hardly does.
    pub(crate) fn was_file(&self) -> bool {
        self.was_file
    }

    /// Returns an entry of this directory, or `None` if the rules hide it.
    ///
    /// The name must come from a listing of this very directory: a plain name, not a path.
    #[must_use]
    pub fn child(&self, name: &std::ffi::OsStr) -> Option<Self> {
        self.descendant(Path::new(name))
    }

    /// Returns a path below this directory, or `None` if the rules hide it.
    #[must_use]
    pub fn descendant(&self, below: &Path) -> Option<Self> {
        let path = self.descend(below)?;
        let is_open = path.exclusion().is_none_or(|found| found.open_inside);
        is_open.then_some(path)
    }

    /// Like [`descendant`](Self::descendant), without checking the attached rules.
    fn descend(&self, below: &Path) -> Option<Self> {
        let plain = below
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)));
        let mounted = match self.mounted.as_ref().map(|mounted| mounted.descend(below)) {
            None => None,
            Some(Descent::Inside(mounted)) => Some(mounted),
            Some(Descent::Elsewhere(path)) => {
                let path = path.filter(|_| plain);
                return path.map(|path| path.with_filter_of(self, below));
            }
        };
        let real = self.real.join(below);
        if !plain || self.guard.hides(&real) {
            return None;
        }
        let given = if self.given == "." {
            below.to_string_lossy().into_owned()
        } else {
            Path::new(&self.given)
                .join(below)
                .to_string_lossy()
                .into_owned()
        };
        Some(Self {
            given,
            real,
            below: self.below.join(below),
            root: Arc::clone(&self.root),
            guard: Arc::clone(&self.guard),
            mounted,
            filter: self.filter.as_ref().map(|filter| filter.descend(below)),
            was_there: false,
            was_file: false,
        })
    }

    /// Returns a path below the same root, or `None` if the rules hide it. For files in
    /// parent folders that apply to a folder.
    pub(crate) fn in_same_root(&self, below: &Path) -> Option<Self> {
        let root = self.root.path().to_owned();
        let given = root.to_string_lossy().into_owned();
        let top = Self {
            given,
            real: root,
            below: PathBuf::new(),
            root: Arc::clone(&self.root),
            guard: Arc::clone(&self.guard),
            mounted: None,
            filter: None,
            was_there: false,
            was_file: false,
        };
        let mut path = top.descendant(below)?;
        path.mounted = self.mounted.as_ref().map(|mounted| mounted.at(below));
        Some(path)
    }

    /// Whether the rules hide anything in or below `folder`, an absolute path. Asked once
    /// per folder, so that a walk need not ask for every entry.
    pub(crate) fn hides_below(&self, folder: &Path) -> bool {
        self.guard.hides_below(folder)
    }

    /// Whether a link in this directory may be followed. Nothing is revealed about a target
    /// out of reach, not even whether it exists.
    pub(crate) fn sees_through(&self, link: &std::ffi::OsStr) -> bool {
        let real = links::real_below(
            &self.real,
            Path::new(link),
            Last::Follow,
            self.guard.rules().reading,
        );
        real.is_ok_and(|real| {
            self.guard
                .admit("", real.path, &real.aliases, Access::Read)
                .is_ok()
        })
    }

    /// Whether the rules hide `real`, an absolute path found by a walk.
    #[must_use]
    pub fn hides(&self, real: &Path) -> bool {
        self.guard.hides(real)
    }
}

/// Refuses paths that are invalid on every file system, before looking them up.
fn plausible(given: &str, path: &Path) -> Result<()> {
    let bytes = path.as_os_str().as_encoded_bytes();
    let reason = if bytes.is_empty() {
        "it is empty"
    } else if bytes.contains(&0) {
        "it contains a NUL character"
    } else if bytes.len() > 4095 {
        "it is longer than 4095 bytes"
    } else if path.components().any(|part| part.as_os_str().len() > 255) {
        "a part of it is longer than 255 bytes"
    } else {
        return Ok(());
    };
    let shown: String = given.chars().take(200).collect();
    Err(Error::InvalidPath {
        path: shown,
        reason,
    })
}
