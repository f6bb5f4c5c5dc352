//! Detects changes that a command made to protected paths and that the kernel could not
//! prevent: names that did not exist before, links, and at the partial level everything
//! protected.

use super::move_out::move_out;
use super::state::{State, is_link, place, state};
use crate::executor::sandbox::{Confinement, Level, WatchReason, Watched};
use crate::git::{
    AddedCommands, BusyGuard, ConfigGate, RefusedConfig, Registry, Since, UnfinishedRebase,
};
use crate::scope::shut::{Opened, open_way};
use rustix::fs::symlinkat;
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A change to a protected path, or a gap in its protection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Something was created at a path that the user protects, and was moved away.
    MovedOut {
        /// The protected path.
        path: PathBuf,
        /// The new path of what was created.
        to: PathBuf,
    },
    /// Something was created that can make git or haft run code.
    Appeared {
        /// The new file or folder.
        path: PathBuf,
    },
    /// Something was created at a path that the user protects, and could not be moved away.
    NotMoved {
        /// The protected path.
        path: PathBuf,
        /// The reason why it could not be moved.
        reason: String,
        /// Target of the link that was at this path before, if it was a link.
        target: Option<PathBuf>,
    },
    /// A link that the user protects was removed or replaced, and has been restored.
    Restored {
        /// Path of the link.
        path: PathBuf,
    },
    /// Something protected was changed.
    Changed {
        /// The protected path.
        path: PathBuf,
    },
    /// A repository was created: a `.git`, or a bare repository.
    Repository {
        /// The `.git`, or the bare repository.
        path: PathBuf,
    },
    /// A repository lost `HEAD`, `objects` or `refs`, without which git does not recognize
    /// it.
    Dismantled {
        /// Git folder of the repository.
        path: PathBuf,
    },
    /// A file that controls git was changed, in a repository that an earlier command
    /// created.
    GitControlChanged {
        /// The changed file or folder.
        path: PathBuf,
    },
    /// A change to the configuration of a repository was refused.
    ConfigRefused(RefusedConfig),
    /// A rebase was left unfinished that will run commands when it is continued.
    UnfinishedRebase {
        /// The list of steps.
        path: PathBuf,
        /// The last of the new commands that git would run.
        commands: Vec<String>,
        /// Number of further new commands.
        more: usize,
    },
    /// Not everything was searched, so something may be unprotected.
    SearchIncomplete {
        /// Number of folders searched for repositories; `None` if the search was for other
        /// names of protected files.
        folders: Option<usize>,
    },
}

/// States of the paths before the command.
#[derive(Debug)]
pub(super) struct Baseline {
    pub(super) watched: Vec<(Watched, State)>,
    protected: Vec<(PathBuf, State)>,
    /// Folders that lead to protected paths and must not become links.
    pinned: Vec<PathBuf>,
    /// Files that control git in repositories that commands created.
    made: Vec<(PathBuf, State)>,
    /// Commands that unfinished rebases would run.
    rebases: Vec<UnfinishedRebase>,
    pub(super) repositories: Vec<Arc<Registry>>,
    /// Marks the repositories as busy: what appears meanwhile may be the command's work.
    running: Vec<BusyGuard>,
    /// What the programs tried to change in git configurations.
    gates: Vec<Arc<ConfigGate>>,
}

impl Baseline {
    pub(super) fn record(
        confinement: &Confinement,
        repositories: &[Arc<Registry>],
        gate: Arc<ConfigGate>,
    ) -> Self {
        let plan = &confinement.plan;
        let watched = plan.watched().iter();
        // At the full level the kernel prevents changes.
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
            rebases: unfinished_rebases(repositories, &[])
                .into_iter()
                .map(|(rebase, _)| rebase)
                .collect(),
            repositories: repositories.to_vec(),
            running: repositories.iter().map(Registry::runs).collect(),
            gates: vec![gate],
        }
    }

    /// Takes over states from before the start of processes that still run, because those
    /// may have changed the paths since.
    pub(super) fn inherit(&mut self, earlier: &HashMap<PathBuf, State>) {
        for (watched, before) in &mut self.watched {
            if let Some(state) = earlier.get(&watched.path) {
                *before = state.clone();
            }
        }
    }

    /// Creates a baseline from the record of a process that was killed.
    pub(super) fn of_another(
        watched: Vec<(Watched, State)>,
        repositories: Vec<Arc<Registry>>,
    ) -> Self {
        Self {
            watched,
            protected: Vec::new(),
            pinned: Vec::new(),
            made: Vec::new(),
            rebases: Vec::new(),
            repositories,
            running: Vec::new(),
            gates: Vec::new(),
        }
    }

    /// Merges another baseline into this one. Both must have been compared just now.
    pub(super) fn join(&mut self, other: Self) {
        let Self {
            watched,
            protected,
            pinned,
            made,
            rebases,
            repositories,
            running,
            gates,
        } = other;
        self.gates.extend(gates);
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
        // A root that is already watched is already busy.
        for (registry, running) in repositories.into_iter().zip(running) {
            let is_known = |known: &Arc<Registry>| Arc::ptr_eq(known, &registry);
            if !self.repositories.iter().any(is_known) {
                self.repositories.push(registry);
                self.running.push(running);
            }
        }
        for one in rebases {
            if self.rebases.iter().all(|known| known.path != one.path) {
                self.rebases.push(one);
            }
        }
    }

    /// Returns what has changed, and moves what must not stay into `out`. A later call
    /// returns only the changes since.
    pub(super) fn compare(&mut self, out: Option<&Path>) -> Vec<Finding> {
        let mut findings = Vec::new();
        let roots = self.repositories.iter().map(|one| one.root().to_owned());
        let roots: Vec<PathBuf> = roots.collect();
        let out = out.map(|folder| Out {
            folder,
            roots: &roots,
        });
        // Folders that must stay searchable until everything was compared.
        let mut ways = Vec::new();
        for (Watched { path, why }, before) in &mut self.watched {
            let mut now = state(path);
            if now == State::Shut && *before != State::Shut {
                ways.extend(open_way(path));
                now = state(path);
            }
            // An unreachable path is compared with the same earlier state the next time.
            if now == *before || now == State::Shut {
                continue;
            }
            let path = path.clone();
            let event = match (&*before, why) {
                // No watched path may lead elsewhere, whatever its purpose.
                (State::Nothing, why) if *why == WatchReason::Listed || now.is_behind() => {
                    moved_out(path, &now, out)
                }
                (State::Nothing, _) => Finding::Appeared { path },
                (State::Link(target), WatchReason::Listed) => restore_link(path, target, &now, out),
                _ => Finding::Changed { path },
            };
            // A process that still runs can create it again at any moment. So the recorded
            // state stays as it was before, and the next check finds the new one.
            let is_reported = matches!(event, Finding::Appeared { .. } | Finding::Changed { .. });
            if is_reported && !now.is_behind() {
                *before = now;
            }
            findings.push(event);
        }
        for path in self.pinned.iter().filter(|path| is_link(path)) {
            findings.push(moved_out(path.clone(), &state(path), out));
        }
        let gates = &self.gates;
        let is_published = |path: &Path| gates.iter().any(|gate| gate.is_published(path));
        for (path, before) in &mut self.protected {
            let now = state(path);
            if now != *before {
                *before = now;
                if !is_published(path) {
                    findings.push(Finding::Changed { path: path.clone() });
                }
            }
        }
        for (path, before) in &mut self.made {
            let now = state(path);
            if now != *before {
                *before = now;
                if !is_published(path) {
                    findings.push(Finding::GitControlChanged { path: path.clone() });
                }
            }
        }
        let refused = self.gates.iter().flat_map(|gate| gate.take_refused());
        findings.extend(refused.map(Finding::ConfigRefused));
        findings.extend(self.appeared(&findings));
        let rebases = unfinished_rebases(&self.repositories, &self.rebases);
        self.rebases = rebases
            .into_iter()
            .map(|(rebase, added)| {
                if let Some(AddedCommands { commands, more }) = added {
                    let path = rebase.path.clone();
                    findings.push(Finding::UnfinishedRebase {
                        path,
                        commands,
                        more,
                    });
                }
                rebase
            })
            .collect();
        drop(ways);
        findings
    }

    /// Returns the repositories that appeared or were lost, except those already in `reported`.
    fn appeared(&self, reported: &[Finding]) -> Vec<Finding> {
        let looked = self.repositories.iter().map(|one| one.look(Since::Command));
        let new = looked.flat_map(|looked| looked.new);
        let lost = self.repositories.iter().flat_map(|one| one.lost());
        let lost = lost.map(|path| Finding::Dismantled { path });
        let is_reported = |path: &Path| {
            reported
                .iter()
                .any(|one| matches!(one, Finding::Appeared { path: reported } if reported == path))
        };
        new.filter(|path| !is_reported(path))
            .map(|path| Finding::Repository { path })
            .chain(lost)
            .collect()
    }
}

/// Returns the state of a path. Makes folders on the way searchable for that moment if
/// necessary.
fn opened_state(path: &Path) -> State {
    match state(path) {
        State::Shut => {
            let _opened = open_way(path);
            state(path)
        }
        known => known,
    }
}

fn unfinished_rebases(
    repositories: &[Arc<Registry>],
    earlier: &[UnfinishedRebase],
) -> Vec<(UnfinishedRebase, Option<AddedCommands>)> {
    repositories
        .iter()
        .flat_map(|one| one.unfinished_rebases(earlier))
        .collect()
}

/// Destination of files that must not stay where they were created.
#[derive(Clone, Copy)]
struct Out<'a> {
    folder: &'a Path,
    roots: &'a [PathBuf],
}

impl Out<'_> {
    /// Whether a command can have created the link, which must be below a root for that.
    fn is_ours(&self, link: &Path) -> bool {
        let mut roots = self.roots.iter();
        roots.any(|root| link.starts_with(root) && link != root)
    }
}

/// Moves what appeared at a path, or the link that now leads there.
fn moved_out(path: PathBuf, now: &State, out: Option<Out<'_>>) -> Finding {
    let made = match now {
        State::Behind(link) => link,
        State::Nothing | State::Shut | State::Link(_) | State::There(_) => &path,
    };
    let Some(out) = out.filter(|out| out.is_ours(made)) else {
        return Finding::Appeared { path };
    };
    match move_out(made, out.folder, out.roots) {
        Ok(to) => Finding::MovedOut { path, to },
        Err(error) => Finding::NotMoved {
            path,
            reason: error.to_string(),
            target: None,
        },
    }
}

/// Restores a link that a command changed, and moves away what replaced it.
fn restore_link(path: PathBuf, target: &[u8], now: &State, out: Option<Out<'_>>) -> Finding {
    let not_moved = |path, reason| Finding::NotMoved {
        path,
        reason,
        target: Some(PathBuf::from(OsStr::from_bytes(target))),
    };
    match (now, out) {
        (State::Nothing, _) => {}
        (State::Link(_) | State::There(_), Some(out)) => {
            if let Err(error) = move_out(&path, out.folder, out.roots) {
                return not_moved(path, error.to_string());
            }
        }
        // There is no folder to move it to, or the folder that contained the link was
        // replaced.
        (State::Link(_) | State::There(_), None) | (State::Behind(_) | State::Shut, _) => {
            return Finding::Changed { path };
        }
    }
    let restored = place(&path).and_then(|(folder, name)| {
        let _opened = Opened::new(&folder);
        symlinkat(target, &folder, name)
    });
    match restored {
        Ok(()) => Finding::Restored { path },
        // Something was created there again meanwhile; the next check finds it.
        Err(Errno::EXIST) => not_moved(path, "another process created it again".to_owned()),
        Err(_) => Finding::Changed { path },
    }
}
