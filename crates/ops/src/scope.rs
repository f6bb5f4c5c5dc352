//! Path checking: the only place that turns a string into a [`FilePath`].
//!
//! [`Scope::resolve`] finds the real path, following links itself as the kernel would (but
//! never those in `/proc` that lead to open objects). The rules judge that path: protected
//! places first, then secret ones, then the roots of the mode. Then it is anchored at the
//! handle of its root, and the backend opens it below that handle without following any link,
//! so that a link which appears in between makes the call fail instead of redirecting it.

pub mod closing;
mod links;
mod mode;
pub(crate) mod mounts;
mod place;
mod protect;
mod root;
pub(crate) mod rules;
pub mod spelling;
pub(crate) mod temp;
#[cfg(test)]
mod tests;

pub use closing::Closing;
pub use links::{links_on, shut_above, shut_folder};
pub use mode::{FileRules, Mode, Reading, Writing};
pub use mounts::{MountPoint, Seen};
pub use place::Places;
pub use root::Root;
pub(crate) use root::{Identity, identity, identity_of, moved};
pub use rules::SECRET;
pub use temp::{PrivateTemp, SHARED as SHARED_TEMP, Stands};

use crate::{Error, Result};
use closing::Lid;
use links::Last;
use mounts::{Descent, Mounted, Mounts};
use rules::Guard;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a path is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Look at it: read, list, search.
    Read,
    /// Create or change it. The last link is followed.
    Write,
    /// Take the name itself away. The last link is not followed.
    Unlink,
}

/// The files a session may touch, and how.
#[derive(Debug, Clone)]
pub struct Scope {
    guard: Arc<Guard>,
    work_dir: PathBuf,
    home: Option<PathBuf>,
    /// Other scopes that decide, each below a path of its own.
    mounts: Option<Arc<Mounts>>,
    /// The folder of commands, where no path of a tree of several scopes leads.
    commands_only: Option<PathBuf>,
    /// Paths that lead through links to a folder of the disk, each with its real path.
    called: Vec<(PathBuf, PathBuf)>,
}

impl Scope {
    /// A scope over the local disk.
    ///
    /// # Errors
    /// When the work folder or a root is not a directory that can be opened.
    pub fn disk(places: Places) -> Result<Self> {
        let home = places.home.clone();
        let guard = Guard::build(places)?;
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

    /// A scope over a backend of its own, with nothing beside its root.
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

    /// One tree of several scopes. `work_dir` is the folder of commands, which
    /// know nothing of that tree.
    #[must_use]
    pub fn mounted(points: Vec<MountPoint>, work_dir: PathBuf) -> Self {
        Self {
            work_dir,
            mounts: Some(Arc::new(Mounts::new(points))),
            ..Self::detached()
        }
    }

    /// Whether paths lead to this machine's disk and nowhere else.
    #[must_use]
    pub fn is_on_disk(&self) -> bool {
        !self.guard.is_detached()
    }

    /// The folder that relative paths start from, and commands.
    #[must_use]
    pub fn work_dir(&self) -> &Path {
        &self.work_dir
    }

    /// The other folders with its rights, as they really are.
    #[must_use]
    pub fn roots(&self) -> Vec<PathBuf> {
        self.guard.more_roots()
    }

    /// The folders of the disk that a tree of several scopes has, by their places in
    /// it.
    #[must_use]
    pub fn mounted_folders(&self) -> Vec<(PathBuf, PathBuf)> {
        self.mounts
            .as_ref()
            .map_or_else(Vec::new, |mounts| mounts.folders())
    }

    /// The person's home folder, for toolsets that expand `~/`.
    #[must_use]
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// The rules in force.
    #[must_use]
    pub fn rules(&self) -> FileRules {
        self.guard.rules()
    }

    /// Checks `given` for `access`, and anchors it.
    ///
    /// # Errors
    /// [`Error::Protected`] before anything else is said of the path,
    /// [`Error::NotAllowed`] when no rule admits it, [`Error::InvalidPath`]
    /// when it is no path.
    pub fn resolve(&self, given: &str, access: Access) -> Result<FilePath> {
        self.resolve_as(given, Path::new(given), access)
    }

    /// Like [`Scope::resolve`], for a toolset that expanded the path: errors
    /// name it as it was `given`, not as it was expanded.
    ///
    /// # Errors
    /// As [`Scope::resolve`].
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
            // Said only of a place that may be looked at.
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
        // A slash at the end means a folder.
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

    /// Where a path leads. What lies in a shared temp folder lies in the private
    /// one, whether it is named so or a link leads there.
    fn real(&self, absolute: &Path, last: Last) -> Result<links::Real, links::Problem> {
        let reading = self.guard.rules().reading;
        let moved = self.guard.moved(absolute);
        let mut wanted = moved.unwrap_or_else(|| absolute.to_owned());
        let mut aliases = Vec::new();
        for _ in 0..links::MAX_LINKS {
            // A root was made real when it was opened, so only what lies below it
            // is looked at.
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

    /// A real path as commands and the model call it.
    #[must_use]
    pub fn seen<'a>(&self, real: &'a Path) -> std::borrow::Cow<'a, Path> {
        let seen = match &self.mounts {
            Some(mounts) => mounts.seen(real),
            None => self.guard.seen(real),
        };
        match seen {
            Some(seen) => seen.into(),
            None => real.into(),
        }
    }
}

/// Where a path really is, every link followed; what is missing keeps its name.
#[must_use]
pub fn real(path: &Path) -> Option<PathBuf> {
    links::real_path(path, Last::Follow, Reading::Anywhere).ok()
}

/// Whether a folder is at a real path.
#[must_use]
pub fn is_folder(real: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, FileType, statat};
    statat(CWD, real, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_dir())
}

/// A path that was checked: real, admitted, anchored at an open root.
///
/// Only a [`Scope`] makes one. It stands for a name, not for an open file: what
/// is there may change, but a backend opens it without following any link.
#[derive(Debug, Clone)]
pub struct FilePath {
    given: String,
    real: PathBuf,
    below: PathBuf,
    root: Arc<Root>,
    guard: Arc<Guard>,
    /// Where it lies in a tree of several scopes.
    mounted: Option<Mounted>,
    /// Who judges what is found from it.
    lid: Option<Lid>,
    /// What it was when it was checked: anything, and a regular file.
    was_there: bool,
    was_file: bool,
}

impl FilePath {
    /// The path as the caller wrote it, for messages.
    #[must_use]
    pub fn given(&self) -> &str {
        &self.given
    }

    /// The absolute path with every link resolved. For a backend of its own:
    /// the path from its root, beginning with `/`.
    #[must_use]
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// The path below its root; empty for the root itself.
    #[must_use]
    pub fn below(&self) -> &Path {
        &self.below
    }

    /// The root it is anchored at.
    #[must_use]
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// The path in the tree that the caller sees: the real one, unless several
    /// scopes make up one tree.
    #[must_use]
    pub fn place(&self) -> &Path {
        let mounted = self.mounted.as_ref();
        mounted.map_or(&self.real, |mounted| &mounted.place)
    }

    pub(crate) fn mounted(&self) -> Option<&Mounted> {
        self.mounted.as_ref()
    }

    /// Whether there was something when it was checked.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.was_there
    }

    /// Whether it was a regular file when it was checked: opening it will hardly
    /// be an effect, as opening a device can be.
    pub(crate) fn was_file(&self) -> bool {
        self.was_file
    }

    /// An entry of this directory, or `None` where the rules hide it.
    ///
    /// The name must be one that a listing of this very directory gave: a plain
    /// name, not a path.
    #[must_use]
    pub fn child(&self, name: &std::ffi::OsStr) -> Option<Self> {
        self.descendant(Path::new(name))
    }

    /// Something below this directory, or `None` where the rules hide it.
    #[must_use]
    pub fn descendant(&self, below: &Path) -> Option<Self> {
        let path = self.descend(below)?;
        let is_open = path.closed().is_none_or(|closed| closed.open_inside);
        is_open.then_some(path)
    }

    /// The same, whether it is closed or not.
    fn descend(&self, below: &Path) -> Option<Self> {
        let plain = below
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)));
        let mounted = match self.mounted.as_ref().map(|mounted| mounted.descend(below)) {
            None => None,
            Some(Descent::Inside(mounted)) => Some(mounted),
            Some(Descent::Elsewhere(path)) => {
                let path = path.filter(|_| plain);
                return path.map(|path| path.judged_like(self, below));
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
            lid: self.lid.as_ref().map(|lid| lid.descend(below)),
            was_there: false,
            was_file: false,
        })
    }

    /// Something below the same root, or `None` where the rules hide it: for
    /// what holds in a folder because of the folders above it.
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
            lid: None,
            was_there: false,
            was_file: false,
        };
        let mut path = top.descendant(below)?;
        path.mounted = self.mounted.as_ref().map(|mounted| mounted.at(below));
        Some(path)
    }

    /// Whether the rules hide anything in `folder`, an absolute path, or below:
    /// asked once, it spares a walk the question for every entry.
    pub(crate) fn hides_below(&self, folder: &Path) -> bool {
        self.guard.hides_below(folder)
    }

    /// Whether a link in this directory may be looked through: what lies out of
    /// reach is told by nothing, not even by being there.
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

    /// Whether the rules hide `real`, an absolute path met while walking.
    #[must_use]
    pub fn hides(&self, real: &Path) -> bool {
        self.guard.hides(real)
    }
}

/// Refuses what no file system could mean, before any of it is looked up.
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
