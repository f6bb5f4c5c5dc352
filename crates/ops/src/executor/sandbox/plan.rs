//! What a command may reach, worked out in haft's own process.

use super::places::{self, Kind};
use super::{Error, Execution, Level, Limits, Network, Result};
use crate::git::Controls;
use crate::scope::{self, FileRules, Identity, Reading, Writing};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What a plan is made from. There are no defaults: the caller states each
/// choice.
#[derive(Debug, Clone)]
pub struct Request {
    /// What may be read and written. Rules that allow everything are refused.
    pub rules: FileRules,
    /// The work folder.
    pub work_dir: PathBuf,
    /// More folders with the same rights; relative ones start at `work_dir`.
    pub roots: Vec<PathBuf>,
    /// Folders that may be read wherever they lie, and never written: outputs
    /// that a note named.
    pub readable: Vec<PathBuf>,
    /// The private temp folder, which exists and belongs to the user.
    pub temp: PathBuf,
    /// What is never written beside what is always protected; relative ones
    /// start at `work_dir`.
    pub protect: Vec<PathBuf>,
    /// What git obeys below the roots, as [`repositories`](super::repositories)
    /// finds it, and other names of what is protected.
    pub repositories: Controls,
    /// Home folders whose secret places are hidden, beside all in `/home` and
    /// `/root`.
    pub homes: Vec<PathBuf>,
    /// haft's own folders.
    pub own: Vec<PathBuf>,
    /// What else is hidden, because a rule says so: real paths.
    pub closed: Vec<PathBuf>,
    /// The user's runtime folder and temp folders beside `/tmp`: sockets live
    /// there.
    pub sockets: Vec<PathBuf>,
    /// Where programs may be started from.
    pub execution: Execution,
    /// What may be reached over the network.
    pub network: Network,
    /// What may be used up.
    pub limits: Limits,
}

/// What a command may reach, in real paths. Made for one command: what exists
/// now decides what can be covered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub(super) reading: Reading,
    pub(super) writing: Writing,
    /// The work folder first.
    pub(super) roots: Vec<PathBuf>,
    /// Which folder each of them was when the plan was made: a name can be made to
    /// lead elsewhere before the command starts.
    pub(super) identities: Vec<Identity>,
    pub(super) readable: Vec<PathBuf>,
    /// Folders that this one program may write and no other sees.
    pub(super) own: Vec<PathBuf>,
    /// Folders from which no program can be started.
    pub(super) inert: Vec<PathBuf>,
    pub(super) temp: PathBuf,
    pub(super) protected: Vec<PathBuf>,
    pub(super) watched: Vec<Watched>,
    /// Folders in the roots that lead to what is watched, or that a `..` on the way to a
    /// protected path leaves. None of them may be renamed or replaced.
    pub(super) pinned: Vec<PathBuf>,
    pub(super) hidden: Vec<PathBuf>,
    /// Hidden as well, but where that cannot be done inside a root a person has said
    /// yes to the command.
    pub(super) closed: Vec<PathBuf>,
    pub(super) sockets: Vec<PathBuf>,
    pub(super) network: Network,
    pub(super) limits: Limits,
}

/// A path that no mount can keep, so that it has to be looked at afterwards.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watched {
    /// The path.
    pub path: PathBuf,
    /// Why it matters.
    pub why: Why,
}

/// Why a path is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// git or haft would obey what is there. Said of a path that is both: what
    /// people make there is named and not taken away.
    Control,
    /// The person protects it.
    Listed,
}

impl Plan {
    /// Works out what to mount, to cover and to allow.
    ///
    /// # Errors
    /// Rules that confine nothing, a folder that is missing, and a work folder
    /// in a secret place.
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
        let temp = folder(&request.temp, "is no private temp folder")?;
        let readable: Vec<_> = existing(request.readable.iter().map(|path| places::real(path)));

        let own = request.own.iter().map(|path| places::real(path));
        let all: Vec<_> = own.chain(places::secrets(&request.homes)).collect();
        if let Some(root) = roots
            .iter()
            .find(|root| all.iter().any(|hidden| root.starts_with(hidden)))
        {
            return Err(Error::Unusable {
                path: root.clone(),
                reason: "lies in a secret place or in one of haft's own folders",
            });
        }
        let around = |closed: &&PathBuf| roots.iter().any(|root| root.starts_with(closed));
        if let Some(closed) = request.closed.iter().find(around) {
            return Err(Error::Unusable {
                path: closed.clone(),
                reason: "is closed to commands by a rule, and is or holds a folder that they work in",
            });
        }
        let in_roots = |path: &Path| roots.iter().any(|root| path.starts_with(root));

        let mut named: Vec<(PathBuf, Why)> = Vec::new();
        for entry in request
            .protect
            .iter()
            .filter(|entry| !entry.as_os_str().is_empty())
        {
            let path = roots
                .first()
                .map_or_else(|| entry.clone(), |work| work.join(entry));
            named.push((path, Why::Listed));
        }
        let home = request.homes.first().map(PathBuf::as_path);
        let mut controls = request.repositories.clone();
        for root in &roots {
            controls.extend(places::always_protected(root, home));
        }
        // A command that changes a link on the way to a protected path decides what git and
        // the next session of haft read there. So does one that replaces a folder before a
        // `..` by a link.
        let listed = named.iter().map(|(path, _)| path);
        let mut links: BTreeSet<PathBuf> = listed
            .chain(&request.own)
            .flat_map(|path| scope::links_on(path))
            .collect();
        links.extend(controls.links);
        for path in controls.paths {
            // A repository or a haft.yaml may be what a person wanted; what makes
            // git run something in one that is there is not.
            let is_wanted = path.ends_with(".git") || path.ends_with("haft.yaml");
            let why = match places::kind(&path) {
                Kind::Link => Why::Listed,
                _ if is_wanted => Why::Control,
                _ => Why::Listed,
            };
            named.push((path, why));
        }
        let mut protected = Vec::new();
        let mut watched: Vec<Watched> = Vec::new();
        let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
        for path in links.into_iter().filter(|path| !roots.contains(path)) {
            let why = Why::Listed;
            match places::kind(&path) {
                Kind::Folder => _ = folders.insert(path),
                Kind::File => protected.push(path),
                Kind::Shut => protected.push(shut(&path)),
                Kind::Link | Kind::Nothing => watched.push(Watched { path, why }),
            }
        }
        for (path, why) in named {
            // The name itself, in its real folder: a link there can be read
            // through but not pinned by a mount, so it is watched.
            let name = match (path.parent(), path.file_name()) {
                (Some(parent), Some(name)) => places::real(parent).join(name),
                (Some(_), None) => places::real(&path),
                (None, _) => continue,
            };
            match places::kind(&name) {
                Kind::Folder | Kind::File => protected.push(name),
                Kind::Link => {
                    let target = places::real(&name);
                    match places::kind(&target) {
                        Kind::Folder | Kind::File => protected.push(target),
                        // What is made there is obeyed as well.
                        Kind::Nothing => watched.push(Watched { path: target, why }),
                        Kind::Shut => protected.push(shut(&target)),
                        // Links in a circle lead nowhere.
                        Kind::Link => {}
                    }
                    watched.push(Watched { path: name, why });
                }
                Kind::Shut => protected.push(shut(&name)),
                Kind::Nothing => watched.push(Watched { path: name, why }),
            }
        }
        // Everything else is read-only already, and may be what a program is given to read.
        protected.retain(|path| in_roots(path) || roots.iter().any(|root| root.starts_with(path)));
        // A root below a protected folder is protected with it.
        let inside: Vec<PathBuf> = roots
            .iter()
            .filter(|root| protected.iter().any(|path| root.starts_with(path)))
            .cloned()
            .collect();
        protected.extend(inside);
        // In a home that is a work folder, a secret place may still appear.
        watched.extend(
            all.iter()
                .filter(|path| in_roots(path) && places::kind(path) == Kind::Nothing)
                .map(|path| Watched {
                    path: path.clone(),
                    why: Why::Control,
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
            .filter(|path| places::kind(path) == Kind::Folder)
            .map(Path::to_owned)
            .collect();

        let sockets = places::SOCKETS
            .iter()
            .map(PathBuf::from)
            .chain(request.sockets.iter().cloned())
            .map(|path| places::real(&path));
        let inert = match &request.execution {
            Execution::Anywhere => Vec::new(),
            Execution::OutsideRoots { nor, except } => {
                let more = existing(nor.iter().map(|path| places::real(path)));
                let except: Vec<PathBuf> = except.iter().map(|path| places::real(path)).collect();
                let is_free = |path: &PathBuf| {
                    places::holds_programs(path) || except.iter().any(|free| path.starts_with(free))
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
            inert,
            temp,
            protected,
            watched,
            pinned,
            hidden: existing(all.into_iter()),
            closed: existing(request.closed.iter().cloned()),
            sockets: existing(sockets)
                .into_iter()
                .filter(|path| path != Path::new("/"))
                .collect(),
            network: request.network,
            limits: request.limits,
        };
        for list in [
            &mut plan.protected,
            &mut plan.hidden,
            &mut plan.closed,
            &mut plan.sockets,
            &mut plan.readable,
            &mut plan.inert,
        ] {
            list.sort();
            list.dedup();
        }
        Ok(plan)
    }

    /// Protected and secret paths inside the roots that did not exist, or are
    /// links, when the plan was made. Nothing can be mounted on them: whoever
    /// runs the command looks at them again afterwards.
    #[must_use]
    pub fn watched(&self) -> &[Watched] {
        &self.watched
    }

    /// Protected paths that exist. At the full level the kernel refuses to
    /// change them; at the partial level whoever runs the command compares.
    #[must_use]
    pub fn protected(&self) -> &[PathBuf] {
        &self.protected
    }

    /// Folders that lead to protected paths. At the partial level the caller checks that none
    /// of them became a link.
    #[must_use]
    pub fn pinned(&self) -> &[PathBuf] {
        &self.pinned
    }

    /// The folders that may be written, as they are outside and as the command sees
    /// them.
    pub(in crate::executor) fn writable(&self) -> Vec<PathBuf> {
        let shared = crate::scope::temp::SHARED.iter().map(PathBuf::from);
        let roots = self.roots.iter().cloned();
        roots.chain([self.temp.clone()]).chain(shared).collect()
    }

    /// Lets the program write a folder that no other one sees, wherever it lies.
    ///
    /// # Errors
    /// When there is no such folder.
    pub fn give(&mut self, path: &Path) -> Result<()> {
        self.own.push(folder(path, "is not a folder")?);
        Ok(())
    }

    /// The roots, and which folder each of them was when the plan was made.
    pub(crate) fn found(&self) -> impl Iterator<Item = (&Path, Identity)> {
        let roots = self.roots.iter().map(PathBuf::as_path);
        roots.zip(self.identities.iter().copied())
    }

    /// Makes sure that what was opened under the name of a root is that root.
    #[cfg(target_os = "linux")]
    pub(super) fn is_same(&self, path: &Path, opened: impl rustix::fd::AsFd) -> Result<()> {
        match self.found().find(|(root, _)| *root == path) {
            Some((_, expected)) if scope::identity(opened) != Some(expected) => Err(changed(path)),
            _ => Ok(()),
        }
    }

    /// The work folder.
    #[must_use]
    pub fn work_dir(&self) -> &Path {
        self.roots.first().map_or(Path::new("/"), PathBuf::as_path)
    }

    /// The temp folder as the command sees it, for `TMPDIR`.
    #[must_use]
    pub fn temp_seen(&self, level: Level) -> &Path {
        match level {
            Level::Full => Path::new("/tmp"),
            Level::Partial => &self.temp,
        }
    }
}

fn folder(path: &Path, reason: &'static str) -> Result<PathBuf> {
    let found = places::real(path);
    if places::kind(&found) == Kind::Folder {
        Ok(found)
    } else {
        Err(Error::Unusable {
            path: path.to_owned(),
            reason,
        })
    }
}

/// The folders above a path that lie in a root and are none themselves.
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

/// The folder to protect instead of a path in it that is out of reach: the path may be
/// anything, and a command can open the folder.
fn shut(path: &Path) -> PathBuf {
    scope::shut_folder(path).unwrap_or_else(|| path.to_owned())
}

fn existing(paths: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    paths
        .filter(|path| places::kind(path) != Kind::Nothing)
        .collect()
}
