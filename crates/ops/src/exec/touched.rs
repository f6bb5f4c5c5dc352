//! What a command did to places that it had better not touch, where no kernel
//! could keep it from that: names that did not exist before, links, and at the
//! partial level everything that is protected.

use super::moving::move_out;
use super::state::{Opened, State, is_link, open_way, place, state};
use crate::executor::sandbox::{Confinement, Level, Watched, Why};
use crate::git::{Added, Left, Register, Running, Since};
use rustix::fs::symlinkat;
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Something that a command did to a protected place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touched {
    /// It made something at a path that the person protects, which did not
    /// exist; that was moved out of the way.
    MovedOut {
        /// The protected path.
        path: PathBuf,
        /// Where what it made is now.
        to: PathBuf,
    },
    /// It made something that can make git or haft run things.
    Appeared {
        /// What.
        path: PathBuf,
    },
    /// It made something at a path that the person protects, and that could not be moved
    /// out of the way.
    Stayed {
        /// The protected path.
        path: PathBuf,
        /// Why it is still there.
        reason: String,
        /// Target of the link that was at this path before, if it was a link.
        target: Option<PathBuf>,
    },
    /// It removed or replaced a link that the person protects, which leads where it
    /// led again.
    PutBack {
        /// The link.
        path: PathBuf,
    },
    /// It changed something that is protected.
    Changed {
        /// What.
        path: PathBuf,
    },
    /// A repository appeared: a `.git`, or a folder that is one itself.
    Repository {
        /// Where.
        path: PathBuf,
    },
    /// A repository lost `HEAD`, `objects` or `refs`, by which it is known.
    Dismantled {
        /// The repository.
        path: PathBuf,
    },
    /// It changed what git obeys in a repository that an earlier command made.
    Obeyed {
        /// What.
        path: PathBuf,
    },
    /// It left a rebase open that will run commands when somebody continues it.
    Unfinished {
        /// The list of steps.
        path: PathBuf,
        /// What git would run: the last commands that are new.
        commands: Vec<String>,
        /// How many more are new.
        more: usize,
    },
    /// Not everything could be searched, so something may be unprotected.
    CutOff {
        /// How many folders were searched for repositories; nothing where it was
        /// other names of protected files that were searched for.
        folders: Option<usize>,
    },
}

/// How such places were before the command.
#[derive(Debug)]
pub(super) struct Before {
    pub(super) watched: Vec<(Watched, State)>,
    protected: Vec<(PathBuf, State)>,
    /// Folders that lead to protected paths and must not become links.
    pinned: Vec<PathBuf>,
    /// What git obeys in repositories that commands made.
    made: Vec<(PathBuf, State)>,
    /// What git would run when it is told to continue.
    left: Vec<Left>,
    pub(super) repositories: Vec<Arc<Register>>,
    /// What appears while this is watched for may be the command's work.
    running: Vec<Running>,
}

impl Before {
    pub(super) fn look(confinement: &Confinement, repositories: &[Arc<Register>]) -> Self {
        let plan = &confinement.plan;
        let watched = plan.watched().iter();
        // At the full level the kernel sees to it.
        let protected = match confinement.strength.level {
            Level::Full => &[],
            Level::Partial => plan.protected(),
        };
        let now = |path: PathBuf| {
            let state = state(&path);
            (path, state)
        };
        Self {
            watched: watched
                .map(|watched| (watched.clone(), opened_state(&watched.path)))
                .collect(),
            protected: protected.iter().cloned().map(now).collect(),
            pinned: plan.pinned().to_vec(),
            made: repositories
                .iter()
                .flat_map(|one| one.made())
                .map(now)
                .collect(),
            left: left_open(repositories, &[])
                .into_iter()
                .map(|(left, _)| left)
                .collect(),
            repositories: repositories.to_vec(),
            running: repositories.iter().map(Register::runs).collect(),
        }
    }

    /// Takes over how places were when something that still runs was started. It may have
    /// changed them since.
    pub(super) fn inherit(&mut self, earlier: &HashMap<PathBuf, State>) {
        for (watched, before) in &mut self.watched {
            if let Some(state) = earlier.get(&watched.path) {
                *before = state.clone();
            }
        }
    }

    /// How these places were when another process watched them, which is gone.
    pub(super) fn of_another(
        watched: Vec<(Watched, State)>,
        repositories: Vec<Arc<Register>>,
    ) -> Self {
        Self {
            watched,
            protected: Vec::new(),
            pinned: Vec::new(),
            made: Vec::new(),
            left: Vec::new(),
            repositories,
            running: Vec::new(),
        }
    }

    /// Watches for what another one watches for as well. Both must have been compared
    /// just now.
    pub(super) fn join(&mut self, other: Self) {
        let Self {
            watched,
            protected,
            pinned,
            made,
            left,
            repositories,
            running,
        } = other;
        self.pinned.extend(pinned);
        self.pinned.sort();
        self.pinned.dedup();
        let is_new =
            |list: &[(PathBuf, State)], path: &Path| list.iter().all(|(known, _)| known != path);
        for (one, state) in watched {
            if self.watched.iter().all(|(known, _)| known.path != one.path) {
                self.watched.push((one, state));
            }
        }
        for (path, state) in protected {
            if is_new(&self.protected, &path) {
                self.protected.push((path, state));
            }
        }
        for (path, state) in made {
            if is_new(&self.made, &path) {
                self.made.push((path, state));
            }
        }
        // A root that is watched already is busy already.
        for (register, running) in repositories.into_iter().zip(running) {
            let is_known = |known: &Arc<Register>| Arc::ptr_eq(known, &register);
            if !self.repositories.iter().any(is_known) {
                self.repositories.push(register);
                self.running.push(running);
            }
        }
        for one in left {
            if self.left.iter().all(|known| known.path != one.path) {
                self.left.push(one);
            }
        }
    }

    /// What is otherwise now; what must not be there is moved below `out`. Looked
    /// at again later, it tells what happened since.
    pub(super) fn compare(&mut self, out: Option<&Path>) -> Vec<Touched> {
        let mut touched = Vec::new();
        let roots = self.repositories.iter().map(|one| one.root().to_owned());
        let roots: Vec<PathBuf> = roots.collect();
        let out = out.map(|folder| Out {
            folder,
            roots: &roots,
        });
        // Folders that have to stay open until everything was compared.
        let mut ways = Vec::new();
        for (Watched { path, why }, before) in &mut self.watched {
            let mut now = state(path);
            if now == State::Shut && *before != State::Shut {
                ways.extend(open_way(path));
                now = state(path);
            }
            // A path that is out of reach now is compared again the next time, with the same
            // earlier state.
            if now == *before || now == State::Shut {
                continue;
            }
            let path = path.clone();
            let event = match (&*before, why) {
                // Whatever the path is for, nobody wants it to lead elsewhere.
                (State::Nothing, why) if *why == Why::Listed || now.is_behind() => {
                    moved_out(path, &now, out)
                }
                (State::Nothing, _) => Touched::Appeared { path },
                (State::Link(target), Why::Listed) => put_back(path, target, &now, out),
                _ => Touched::Changed { path },
            };
            // A process that still runs can make it again at any moment. So what was taken
            // away counts as gone, whatever is there by now, and the next look finds it.
            let is_told = matches!(event, Touched::Appeared { .. } | Touched::Changed { .. });
            if is_told && !now.is_behind() {
                *before = now;
            }
            touched.push(event);
        }
        for path in self.pinned.iter().filter(|path| is_link(path)) {
            touched.push(moved_out(path.clone(), &state(path), out));
        }
        for (path, before) in &mut self.protected {
            let now = state(path);
            if now != *before {
                *before = now;
                touched.push(Touched::Changed { path: path.clone() });
            }
        }
        for (path, before) in &mut self.made {
            let now = state(path);
            if now != *before {
                *before = now;
                touched.push(Touched::Obeyed { path: path.clone() });
            }
        }
        touched.extend(self.appeared(&touched));
        let left = left_open(&self.repositories, &self.left);
        self.left = left
            .into_iter()
            .map(|(left, added)| {
                if let Some(Added { commands, more }) = added {
                    let path = left.path.clone();
                    touched.push(Touched::Unfinished {
                        path,
                        commands,
                        more,
                    });
                }
                left
            })
            .collect();
        drop(ways);
        touched
    }

    /// The repositories that nobody has named yet.
    fn appeared(&self, told: &[Touched]) -> Vec<Touched> {
        let looked = self.repositories.iter().map(|one| one.look(Since::Command));
        let new = looked.flat_map(|looked| looked.new);
        let lost = self.repositories.iter().flat_map(|one| one.lost());
        let lost = lost.map(|path| Touched::Dismantled { path });
        let is_told = |path: &Path| {
            told.iter()
                .any(|one| matches!(one, Touched::Appeared { path: told } if told == path))
        };
        new.filter(|path| !is_told(path))
            .map(|path| Touched::Repository { path })
            .chain(lost)
            .collect()
    }
}

/// Returns the state of a path. Opens a folder on the way for a moment if it has to.
fn opened_state(path: &Path) -> State {
    match state(path) {
        State::Shut => {
            let _opened = open_way(path);
            state(path)
        }
        known => known,
    }
}

fn left_open(repositories: &[Arc<Register>], earlier: &[Left]) -> Vec<(Left, Option<Added>)> {
    repositories
        .iter()
        .flat_map(|one| one.left_open(earlier))
        .collect()
}

/// Where goes what must not stay where it was made.
#[derive(Clone, Copy)]
struct Out<'a> {
    folder: &'a Path,
    roots: &'a [PathBuf],
}

impl Out<'_> {
    /// Whether something is a command's: a link above the roots is not.
    fn is_ours(&self, link: &Path) -> bool {
        let mut roots = self.roots.iter();
        roots.any(|root| link.starts_with(root) && link != root)
    }
}

/// Moves out what appeared at a path, or the link that leads there now.
fn moved_out(path: PathBuf, now: &State, out: Option<Out<'_>>) -> Touched {
    let made = match now {
        State::Behind(link) => link,
        State::Nothing | State::Shut | State::Link(_) | State::There(_) => &path,
    };
    let Some(out) = out.filter(|out| out.is_ours(made)) else {
        return Touched::Appeared { path };
    };
    match move_out(made, out.folder, out.roots) {
        Ok(to) => Touched::MovedOut { path, to },
        Err(error) => Touched::Stayed {
            path,
            reason: error.to_string(),
            target: None,
        },
    }
}

/// Restores a link that a command changed. What took its place is moved out of the way.
fn put_back(path: PathBuf, target: &[u8], now: &State, out: Option<Out<'_>>) -> Touched {
    let stayed = |path, reason| Touched::Stayed {
        path,
        reason,
        target: Some(PathBuf::from(OsStr::from_bytes(target))),
    };
    match (now, out) {
        (State::Nothing, _) => {}
        (State::Link(_) | State::There(_), Some(out)) => {
            if let Err(error) = move_out(&path, out.folder, out.roots) {
                return stayed(path, error.to_string());
            }
        }
        // There is nowhere to move it to, or the folder that held the link is not the same.
        (State::Link(_) | State::There(_), None) | (State::Behind(_) | State::Shut, _) => {
            return Touched::Changed { path };
        }
    }
    let restored = place(&path).and_then(|(folder, name)| {
        let _opened = Opened::new(&folder);
        symlinkat(target, &folder, name)
    });
    match restored {
        Ok(()) => Touched::PutBack { path },
        // Something was made there again meanwhile; the next look finds it.
        Err(Errno::EXIST) => stayed(path, "something made it again".to_owned()),
        Err(_) => Touched::Changed { path },
    }
}
