//! The paths and hosts that a command may use, computed in haft's own process.

use super::changeable;
use super::known_paths::{self, Kind};
use super::scaffold::Scaffold;
use super::{Error, Execution, Level, Limits, Network, Result};
use crate::git::Controls;
use crate::scope::{self, FileRules, Identity, Reading, Writing};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Input for a plan. There are no defaults: the caller states each choice.
#[derive(Debug, Clone)]
pub struct Request {
    /// Files that may be read and written. Rules that allow everything are refused.
    pub rules: FileRules,
    /// The folder that relative paths start from. It may be used like the roots.
    pub work_dir: PathBuf,
    /// More folders with the same rights. Relative ones start at `work_dir`.
    pub roots: Vec<PathBuf>,
    /// Folders that may be read wherever they are, and never written: they hold full
    /// outputs that replies refer to.
    pub readable: Vec<PathBuf>,
    /// The private temp folder. It exists and belongs to the user.
    pub temp: PathBuf,
    /// Further paths that are never written. Relative ones start at `work_dir`.
    pub protect: Vec<PathBuf>,
    /// Files that control git below the roots, as [`repositories`](super::repositories)
    /// finds them, and other names of protected files.
    pub repositories: Controls,
    /// Home folders whose secret paths are hidden, in addition to `/root` and all in
    /// `/home`.
    pub homes: Vec<PathBuf>,
    /// haft's own folders.
    pub own: Vec<PathBuf>,
    /// Further paths to hide because rules deny them. Real paths.
    pub denied: Vec<PathBuf>,
    /// The user's runtime folder, and temp folders other than `/tmp`: they contain sockets.
    pub sockets: Vec<PathBuf>,
    /// Folders from which programs may be started.
    pub execution: Execution,
    /// Network access.
    pub network: Network,
    /// Limits on processes and memory.
    pub limits: Limits,
}

/// Everything that a command may reach, as real paths. Made for one command, because only paths that
/// exist now can be hidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub(super) reading: Reading,
    pub(super) writing: Writing,
    /// The work folder first.
    pub(super) roots: Vec<PathBuf>,
    /// Identity of each root when the plan was made, because its name may lead elsewhere
    /// when the command starts.
    pub(super) identities: Vec<Identity>,
    pub(super) readable: Vec<PathBuf>,
    /// Folders that only this program may write and see.
    pub(super) own: Vec<PathBuf>,
    /// Cache folders with a layer, in the order of the session's layers.
    pub(super) layers: Vec<PathBuf>,
    pub(super) scaffolds: Vec<Scaffold>,
    /// Folders from which no program can be started.
    pub(super) inert: Vec<PathBuf>,
    pub(super) temp: PathBuf,
    pub(super) protected: Vec<PathBuf>,
    pub(super) watched: Vec<Watched>,
    /// Protected configurations of repositories, in which harmless variables may change.
    pub(super) configs: Vec<PathBuf>,
    /// Folders in the roots that lead to watched paths, or that a `..` on the way to a
    /// protected path leaves. They must not be renamed or replaced.
    pub(super) pinned: Vec<PathBuf>,
    pub(super) hidden: Vec<PathBuf>,
    /// Paths that rules deny. Hidden too, but where that is impossible inside a root, the
    /// user has approved the command.
    pub(super) denied: Vec<PathBuf>,
    pub(super) sockets: Vec<PathBuf>,
    pub(super) network: Network,
    pub(super) limits: Limits,
}

/// A path that cannot be protected by a mount, and is therefore checked after the command.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watched {
    /// The watched path.
    pub path: PathBuf,
    /// The reason it is watched.
    pub why: WatchReason,
}

/// Reason for watching a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchReason {
    /// git or haft would obey what is there. Takes precedence over `Listed`: what users
    /// create there is reported but not moved away.
    Control,
    /// The user protects it.
    Listed,
}

impl Plan {
    /// Computes what to mount, to hide and to allow.
    ///
    /// # Errors
    /// The rules confine nothing, a folder is missing, or the work folder is in a secret
    /// path.
    pub fn new(request: &Request) -> Result<Self> {
        let FileRules { reading, writing } = request.rules;
        if reading == Reading::Anywhere || writing == Writing::Anywhere {
            return Err(Error::Unconfined);
        }
        let mut roots = Vec::new();
        let mut identities = Vec::new();
        for root in std::iter::once(Path::new("")).chain(request.roots.iter().map(PathBuf::as_path))
        {
            let root = folder(&request.work_dir.join(root), "is not a folder")?;
            let identity = scope::identity_of(&root).ok_or_else(|| changed(&root))?;
            identities.push(identity);
            roots.push(root);
        }
        let temp = folder(&request.temp, "is not a private temp folder")?;
        let readable: Vec<_> =
            existing(request.readable.iter().map(|path| known_paths::real(path)));

        let own = request.own.iter().map(|path| known_paths::real(path));
        let all: Vec<_> = own.chain(known_paths::secrets(&request.homes)).collect();
        if let Some(root) = roots
            .iter()
            .find(|root| all.iter().any(|hidden| root.starts_with(hidden)))
        {
            return Err(Error::Unusable {
                path: root.clone(),
                reason: "is in a secret place or in one of haft's own folders",
            });
        }
        let around = |denied: &&PathBuf| roots.iter().any(|root| root.starts_with(denied));
        if let Some(denied) = request.denied.iter().find(around) {
            return Err(Error::Unusable {
                path: denied.clone(),
                reason: "is denied to commands by a rule, but is or contains a folder that they run in",
            });
        }
        let in_roots = |path: &Path| roots.iter().any(|root| path.starts_with(root));

        let mut named: Vec<(PathBuf, WatchReason)> = Vec::new();
        for entry in request
            .protect
            .iter()
            .filter(|entry| !entry.as_os_str().is_empty())
        {
            let path = roots
                .first()
                .map_or_else(|| entry.clone(), |work| work.join(entry));
            named.push((path, WatchReason::Listed));
        }
        let home = request.homes.first().map(PathBuf::as_path);
        let mut controls = request.repositories.clone();
        for root in &roots {
            controls.extend(known_paths::always_protected(root, home));
        }
        let configs = std::mem::take(&mut controls.configs);
        // A command that changes a link on the way to a protected path decides what git and
        // the next session of haft read there. The same holds for one that replaces a
        // folder before a `..` with a link.
        let listed = named.iter().map(|(path, _)| path);
        let mut links: BTreeSet<PathBuf> = listed
            .chain(&request.own)
            .flat_map(|path| scope::links_on(path))
            .collect();
        links.extend(controls.links);
        for path in controls.paths {
            // The user may have wanted a repository or a haft.yaml, but not something that
            // makes git run code in an existing one.
            let is_wanted = path.ends_with(".git") || path.ends_with("haft.yaml");
            let why = match known_paths::kind(&path) {
                Kind::Link => WatchReason::Listed,
                _ if is_wanted => WatchReason::Control,
                _ => WatchReason::Listed,
            };
            named.push((path, why));
        }
        let mut protected = Vec::new();
        let mut watched: Vec<Watched> = Vec::new();
        let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
        for path in links.into_iter().filter(|path| !roots.contains(path)) {
            let why = WatchReason::Listed;
            match known_paths::kind(&path) {
                Kind::Folder => _ = folders.insert(path),
                Kind::File => protected.push(path),
                Kind::Shut => protected.push(shut(&path)),
                Kind::Link | Kind::Nothing => watched.push(Watched { path, why }),
            }
        }
        for (path, why) in named {
            // The name itself, in its real folder. No mount can protect a link there, so it
            // is watched.
            let name = match (path.parent(), path.file_name()) {
                (Some(parent), Some(name)) => known_paths::real(parent).join(name),
                (Some(_), None) => known_paths::real(&path),
                (None, _) => continue,
            };
            let kind = known_paths::kind(&name);
            if matches!(kind, Kind::Link | Kind::Shut) {
                let target = known_paths::real(&name);
                match known_paths::kind(&target) {
                    Kind::Folder | Kind::File => protected.push(target),
                    // Files created there are obeyed too.
                    Kind::Nothing => watched.push(Watched { path: target, why }),
                    Kind::Shut => protected.push(shut(&target)),
                    // A link cycle leads nowhere.
                    Kind::Link => {}
                }
            }
            match kind {
                Kind::Folder | Kind::File => protected.push(name),
                Kind::Shut => protected.push(shut(&name)),
                Kind::Link | Kind::Nothing => watched.push(Watched { path: name, why }),
            }
        }
        // Everything else is read-only already, and a program may have been given it to
        // read.
        protected.retain(|path| in_roots(path) || roots.iter().any(|root| root.starts_with(path)));
        // A root below a protected folder is protected with it.
        let inside: Vec<PathBuf> = roots
            .iter()
            .filter(|root| protected.iter().any(|path| root.starts_with(path)))
            .cloned()
            .collect();
        protected.extend(inside);
        // If the home is a work folder, a secret path may still appear.
        watched.extend(
            all.iter()
                .filter(|path| in_roots(path) && known_paths::kind(path) == Kind::Nothing)
                .map(|path| Watched {
                    path: path.clone(),
                    why: WatchReason::Control,
                }),
        );
        watched.retain(|watched| in_roots(&watched.path));
        watched.sort();
        watched.dedup_by(|one, other| one.path == other.path);
        let mut pinned: BTreeSet<&Path> = watched
            .iter()
            .map(|watched| &watched.path)
            .chain(&folders)
            .flat_map(|path| ancestors_in(&roots, path))
            .collect();
        pinned.extend(
            folders
                .iter()
                .map(PathBuf::as_path)
                .filter(|path| in_roots(path)),
        );
        let pinned = pinned
            .into_iter()
            .filter(|path| known_paths::kind(path) == Kind::Folder)
            .map(Path::to_owned)
            .collect();

        let sockets = known_paths::SOCKETS
            .iter()
            .map(PathBuf::from)
            .chain(request.sockets.iter().cloned())
            .map(|path| known_paths::real(&path));
        let inert = match &request.execution {
            Execution::Anywhere => Vec::new(),
            Execution::OutsideRoots { nor, except } => {
                let more = existing(nor.iter().map(|path| known_paths::real(path)));
                let except: Vec<PathBuf> =
                    except.iter().map(|path| known_paths::real(path)).collect();
                let is_free = |path: &PathBuf| {
                    known_paths::holds_programs(path)
                        || except.iter().any(|free| path.starts_with(free))
                };
                let all = roots.iter().cloned().chain(more);
                all.filter(|path| !is_free(path)).collect()
            }
        };
        let mut plan = Self {
            reading,
            writing,
            roots,
            identities,
            readable,
            own: Vec::new(),
            layers: Vec::new(),
            scaffolds: Vec::new(),
            inert,
            temp,
            protected,
            watched,
            configs: Vec::new(),
            pinned,
            hidden: existing(all.into_iter()),
            denied: existing(request.denied.iter().cloned()),
            sockets: existing(sockets)
                .into_iter()
                .filter(|path| path != Path::new("/"))
                .collect(),
            network: request.network,
            limits: request.limits,
        };
        if writing == Writing::Roots {
            plan.configs = changeable::configs(&plan, configs, request);
        }
        for list in [
            &mut plan.protected,
            &mut plan.configs,
            &mut plan.hidden,
            &mut plan.denied,
            &mut plan.sockets,
            &mut plan.readable,
            &mut plan.inert,
        ] {
            list.sort();
            list.dedup();
        }
        Ok(plan)
    }

    /// Configurations of repositories in which a command may change harmless variables.
    pub(crate) fn configs(&self) -> &[PathBuf] {
        &self.configs
    }

    /// Protected and secret paths inside the roots that did not exist, or were links, when
    /// the plan was made. Nothing can be mounted on them, so the caller checks them after
    /// the command.
    #[must_use]
    pub fn watched(&self) -> &[Watched] {
        &self.watched
    }

    /// Protected paths that exist. At the full level the kernel prevents changes; at the
    /// partial level the caller compares them.
    #[must_use]
    pub fn protected(&self) -> &[PathBuf] {
        &self.protected
    }

    /// Folders that lead to protected paths. At the partial level the caller checks that
    /// none of them became a link.
    #[must_use]
    pub fn pinned(&self) -> &[PathBuf] {
        &self.pinned
    }

    /// Writable folders, by their paths outside and by the paths that the command sees.
    pub(in crate::executor) fn writable(&self) -> Vec<PathBuf> {
        let shared = crate::scope::temp::SHARED.iter().map(PathBuf::from);
        let roots = self.roots.iter().cloned();
        let layers = self.layers.iter().cloned();
        roots
            .chain([self.temp.clone()])
            .chain(shared)
            .chain(layers)
            .collect()
    }

    /// Lets this program, and no other, see and write a folder, wherever it is.
    ///
    /// # Errors
    /// The folder does not exist.
    pub fn add_own_folder(&mut self, path: &Path) -> Result<()> {
        self.own.push(folder(path, "is not a folder")?);
        Ok(())
    }

    /// The roots, and the identity of each when the plan was made.
    pub(crate) fn found(&self) -> impl Iterator<Item = (&Path, Identity)> {
        let roots = self.roots.iter().map(PathBuf::as_path);
        roots.zip(self.identities.iter().copied())
    }

    /// Checks that an opened folder is the root of this path.
    #[cfg(target_os = "linux")]
    pub(super) fn is_same(&self, path: &Path, opened: impl rustix::fd::AsFd) -> Result<()> {
        match self.found().find(|(root, _)| *root == path) {
            Some((_, expected)) if scope::identity(opened) != Some(expected) => Err(changed(path)),
            _ => Ok(()),
        }
    }

    /// Returns the work folder.
    #[must_use]
    pub fn work_dir(&self) -> &Path {
        self.roots.first().map_or(Path::new("/"), PathBuf::as_path)
    }

    /// Returns the temp folder as the command sees it, for `TMPDIR`.
    #[must_use]
    pub fn temp_seen(&self, level: Level) -> &Path {
        match level {
            Level::Full => Path::new("/tmp"),
            Level::Partial => &self.temp,
        }
    }
}

fn folder(path: &Path, reason: &'static str) -> Result<PathBuf> {
    let found = known_paths::real(path);
    if known_paths::kind(&found) == Kind::Folder {
        Ok(found)
    } else {
        Err(Error::Unusable {
            path: path.to_owned(),
            reason,
        })
    }
}

/// Returns the folders above a path that are inside a root, without the roots themselves.
pub(super) fn ancestors_in<'a>(
    roots: &'a [PathBuf],
    path: &'a Path,
) -> impl Iterator<Item = &'a Path> {
    let inside = |folder: &Path| {
        let mut around = roots.iter();
        around.any(|root| folder.starts_with(root) && folder != root)
    };
    path.ancestors()
        .skip(1)
        .take_while(move |folder| inside(folder))
}

pub(super) fn changed(path: &Path) -> Error {
    Error::Unusable {
        path: path.to_owned(),
        reason: "changed while the command was being started",
    }
}

/// Returns the folder to protect instead of an unreachable path in it. The path may be
/// anything, and a command can make the folder searchable.
fn shut(path: &Path) -> PathBuf {
    scope::shut::shut_folder(path).unwrap_or_else(|| path.to_owned())
}

fn existing(paths: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    paths
        .filter(|path| known_paths::kind(path) != Kind::Nothing)
        .collect()
}
