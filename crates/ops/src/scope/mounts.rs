//! Several scopes as one tree, for `deepagents`.
//!
//! Each scope is mounted at a path. The longest mount point that matches is removed from a
//! path, the scope mounted there checks the rest, and the resulting [`FilePath`] remembers its
//! mount. The `Composite` backend follows that and does no routing of its own.

use super::spelling::{self, Misspelling};
use super::{Access, FilePath, Scope, Writing, links};
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A scope mounted at a path.
#[derive(Debug, Clone)]
pub struct MountPoint {
    /// Absolute path in the whole tree.
    pub at: PathBuf,
    /// The scope for everything below `at`. Its own root corresponds to `at`.
    pub scope: Scope,
    /// Whether listings and walks from above include it.
    pub visibility: Visibility,
}

impl MountPoint {
    /// Rewrites the hint of an error: in a tree of its own, no folder can be added.
    fn reworded(&self, error: Error, below: &Path, access: Access) -> Error {
        let Error::NotAllowed { path, remedy } = error else {
            return error;
        };
        let writes = access != Access::Read;
        let remedy = if writes && self.visibility == Visibility::ByNameOnly {
            "files there are read-only".to_owned()
        } else if writes && self.scope.rules().writing == Writing::Nothing
            || self.scope.guard.hides(&self.scope.work_dir().join(below))
        {
            remedy
        } else {
            "a link in it leads out of the tree".to_owned()
        };
        Error::NotAllowed { path, remedy }
    }
}

/// Whether a mount appears in listings from above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// It is listed in its parent folder.
    Listed,
    /// It can only be reached by its name.
    ByNameOnly,
}

/// All mounts of a tree.
#[derive(Debug)]
pub(crate) struct Mounts {
    points: Vec<MountPoint>,
}

/// Position of a path in the tree.
#[derive(Debug, Clone)]
pub(crate) struct Mounted {
    mounts: Arc<Mounts>,
    /// Index of the mount that contains it.
    pub(crate) number: usize,
    /// The path in the whole tree, without `.` and `..`.
    pub(crate) place: PathBuf,
}

impl Mounts {
    pub(super) fn new(points: Vec<MountPoint>) -> Self {
        Self { points }
    }

    /// Returns the index of the mount that contains a path, the mount, and the path in it.
    fn route<'a>(&self, place: &'a Path) -> Option<(usize, &MountPoint, &'a Path)> {
        let fitting = self
            .points
            .iter()
            .enumerate()
            .filter_map(|(number, point)| {
                let below = place.strip_prefix(&point.at).ok()?;
                Some((number, point, below))
            });
        fitting.min_by_key(|(_, _, below)| below.components().count())
    }

    pub(super) fn resolve(
        self: &Arc<Self>,
        given: &str,
        path: &Path,
        access: Access,
    ) -> Result<FilePath> {
        let mut place = links::lexical(&Path::new("/").join(path));
        // If nothing is mounted at the root, the root is the first mount.
        if let (true, Some(first)) = (place == Path::new("/"), self.points.first())
            && self.route(&place).is_none()
        {
            place.clone_from(&first.at);
        }
        let Some((number, point, below)) = self.route(&place) else {
            return Err(Error::NotAllowed {
                path: given.to_owned(),
                remedy: self.known(),
            });
        };
        let below = if below.as_os_str().is_empty() {
            Path::new(".")
        } else {
            below
        };
        // A trailing slash means a folder, which cannot be written. For reading it makes no
        // difference. Whether a folder exists is unknown here, because some backends must
        // be asked.
        if given.len() > 1 && given.ends_with('/') && access != Access::Read {
            return Err(spelling::misspelt(given, Misspelling::Slash));
        }
        let given = given
            .strip_suffix('/')
            .filter(|given| !given.is_empty())
            .unwrap_or(given);
        let resolved = point.scope.resolve_as(given, below, access);
        let mut path = resolved.map_err(|error| point.reworded(error, below, access))?;
        // Such a path has no other name, so that no two look alike.
        if path.root.dir().is_none() {
            path.real.clone_from(&place);
        }
        path.mounted = Some(Mounted {
            mounts: Arc::clone(self),
            number,
            place,
        });
        Ok(path)
    }

    fn known(&self) -> String {
        let known = self
            .points
            .iter()
            .filter(|point| point.visibility == Visibility::Listed);
        let known: Vec<_> = known.map(|point| point.at.to_string_lossy()).collect();
        format!("paths begin with {}", known.join(" or "))
    }

    /// Returns the folders on the disk, each with its path in the tree.
    pub(super) fn folders(&self) -> Vec<(PathBuf, PathBuf)> {
        let on_disk = self.points.iter().filter(|point| point.scope.is_on_disk());
        on_disk
            .map(|point| (point.at.clone(), point.scope.work_dir().to_owned()))
            .collect()
    }

    /// Translates a path that starts with the real path of a folder of this tree, as
    /// commands print it, to the path in the tree. Returns `None` if the path already has a
    /// meaning in the tree: a folder of that name exists, or something is mounted there.
    pub(super) fn from_host(self: &Arc<Self>, path: &Path) -> Option<PathBuf> {
        let path = links::lexical(path);
        let root = Path::new("/");
        let folders = self.points.iter().filter_map(|point| {
            let folder = point.scope.work_dir();
            let is_a_folder = point.scope.is_on_disk() && folder != root;
            let below = path.strip_prefix(folder).ok().filter(|_| is_a_folder)?;
            Some((point, folder, below))
        });
        let (point, folder, below) =
            folders.min_by_key(|(.., below)| below.components().count())?;
        (!self.has(folder)).then(|| point.at.join(below))
    }

    /// Whether something is mounted at a path, except at the root.
    fn is_mounted(&self, path: &Path) -> bool {
        let route = self.route(path);
        route.is_some_and(|(_, mount, _)| mount.at != Path::new("/"))
    }

    /// Whether a path already has a meaning in this tree.
    fn has(self: &Arc<Self>, path: &Path) -> bool {
        let literal = self.resolve(&path.to_string_lossy(), path, Access::Read);
        self.is_mounted(path) || literal.is_ok_and(|literal| literal.is_there())
    }

    /// Returns the mounts that are listed from above, each with its folder if it is on the
    /// disk.
    pub(super) fn all(&self) -> Vec<(PathBuf, Option<PathBuf>)> {
        let met = self.points.iter();
        let met = met.filter(|point| point.visibility == Visibility::Listed);
        met.map(|point| {
            let folder = point.scope.work_dir().to_owned();
            (point.at.clone(), point.scope.is_on_disk().then_some(folder))
        })
        .collect()
    }

    /// Translates a real path on the disk to a path in this tree.
    pub(super) fn visible_path(&self, real: &Path) -> Option<PathBuf> {
        let on_disk = self.points.iter().filter(|point| point.scope.is_on_disk());
        let fitting = on_disk.filter_map(|point| {
            let below = real.strip_prefix(point.scope.work_dir()).ok()?;
            Some((point, below))
        });
        fitting
            .min_by_key(|(_, below)| below.components().count())
            .map(|(point, below)| point.at.join(below))
    }
}

impl Mounted {
    /// Returns the mounts below this path that are listed from above: index, and path
    /// relative to this one.
    pub(crate) fn below(&self) -> impl Iterator<Item = (usize, &Path)> {
        let points = self.mounts.points.iter().enumerate();
        points.filter_map(|(number, point)| {
            let below = point.at.strip_prefix(&self.place).ok()?;
            let is_met = point.visibility == Visibility::Listed && !below.as_os_str().is_empty();
            is_met.then_some((number, below))
        })
    }

    /// Returns all mounts below this path, listed from above or not.
    pub(crate) fn all_below(&self) -> impl Iterator<Item = &Path> {
        let inside = self
            .mounts
            .points
            .iter()
            .filter_map(|point| point.at.strip_prefix(&self.place).ok());
        inside.filter(|below| !below.as_os_str().is_empty())
    }

    /// Descends to a path below this one. If another mount contains it, the path is
    /// resolved again.
    pub(super) fn descend(&self, below: &Path) -> Descent {
        let place = self.place.join(below);
        match self.mounts.route(&place) {
            Some((number, ..)) if number == self.number => Descent::Inside(Self {
                mounts: Arc::clone(&self.mounts),
                number,
                place,
            }),
            _ => {
                let given = place.to_string_lossy();
                let path = self.mounts.resolve(&given, &place, Access::Read);
                Descent::Elsewhere(path.ok().map(Box::new))
            }
        }
    }

    /// Returns the root of a mount.
    pub(crate) fn root_of(&self, number: usize) -> Option<FilePath> {
        let at = &self.mounts.points.get(number)?.at;
        let given = at.to_string_lossy();
        self.mounts.resolve(&given, at, Access::Read).ok()
    }

    /// Returns the same mount at another path below its root.
    pub(super) fn at(&self, below: &Path) -> Self {
        let at = self.mounts.points.get(self.number).map(|point| &point.at);
        Self {
            mounts: Arc::clone(&self.mounts),
            number: self.number,
            place: at.map_or_else(PathBuf::new, |at| at.join(below)),
        }
    }
}

impl Scope {
    /// Declares that commands run in the work folder. If that is not part of a tree of
    /// several scopes, a path that starts with it is not mistaken for one in the tree.
    #[must_use]
    pub fn with_commands(self) -> Self {
        let is_seen = self.has_work_dir();
        let folder = Some(self.work_dir.clone()).filter(|folder| folder != Path::new("/"));
        Self {
            commands_only: folder.filter(|_| !is_seen),
            ..self
        }
    }

    /// Whether a path names a folder that commands see and this tree does not contain.
    #[must_use]
    pub fn is_for_commands_only(&self, path: &Path) -> bool {
        let folder = self.commands_only.as_ref();
        folder.is_some_and(|folder| {
            let real = self.unlinked(path).map(|(_, real)| real);
            let path = real.unwrap_or_else(|| links::lexical(path));
            path.starts_with(folder)
        })
    }

    /// Sets other names of folders on the disk: each path, and the real path that it leads
    /// to. A path that leads elsewhere is ignored.
    #[must_use]
    pub fn called(self, called: Vec<(PathBuf, PathBuf)>) -> Self {
        let called = called.into_iter().filter_map(|(name, real)| {
            let name = links::lexical(&name);
            let leads_there = name != real && super::real(&name).as_ref() == Some(&real);
            leads_there.then_some((name, real))
        });
        Self {
            called: called.collect(),
            ..self
        }
    }

    /// Returns the other name that a path starts with, and the path with its real folder.
    fn unlinked(&self, path: &Path) -> Option<(&Path, PathBuf)> {
        let path = links::lexical(path);
        self.called.iter().find_map(|(name, real)| {
            let below = path.strip_prefix(name).ok()?;
            // Without a trailing slash.
            Some((name.as_path(), real.join(below).components().collect()))
        })
    }

    /// Translates a path as commands write it (from the real path of a folder, or from the
    /// user's name for that) to the path in a tree of several scopes.
    #[must_use]
    pub fn from_host(&self, path: &Path) -> Option<PathBuf> {
        let mounts = self.mounts.as_ref()?;
        match self.unlinked(path) {
            Some((name, real)) if !mounts.has(name) => mounts
                .from_host(&real)
                .or_else(|| mounts.is_mounted(&real).then_some(real)),
            _ => mounts.from_host(path),
        }
    }

    /// Whether paths of this scope can name the work folder.
    #[must_use]
    pub fn has_work_dir(&self) -> bool {
        let mounts = self.mounts.as_ref();
        mounts.is_none_or(|mounts| mounts.visible_path(&self.work_dir).is_some())
    }

    /// Returns the work folder as paths of this scope name it.
    #[must_use]
    pub fn named_work_dir(&self) -> PathBuf {
        match &self.mounts {
            None => self.work_dir.clone(),
            Some(mounts) => {
                let seen = mounts.visible_path(&self.work_dir);
                let seen = seen.unwrap_or_else(|| PathBuf::from("/"));
                // Without a trailing slash.
                seen.components().collect()
            }
        }
    }

    /// Returns the parts of a tree of several scopes: the path of each, and its folder if
    /// it is on the disk.
    #[must_use]
    pub fn parts(&self) -> Vec<(PathBuf, Option<PathBuf>)> {
        self.mounts
            .as_ref()
            .map_or_else(Vec::new, |mounts| mounts.all())
    }
}

/// Position of a path below another one.
pub(super) enum Descent {
    /// In the same mount.
    Inside(Mounted),
    /// In another mount; `None` if it does not exist there.
    Elsewhere(Option<Box<FilePath>>),
}
