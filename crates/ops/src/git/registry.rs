//! The repositories of a root, found once and remembered.

mod record;

pub(crate) use record::RegistryRecord;

use super::control_files::{
    add_pointer, behind, common, controls, of_the_person, places_above, with_configured,
};
use super::shape::is_whole;
use super::walk::{self, Stamp};
use super::{
    AddedCommands, CONTROL, Controls, UNFINISHED, UnfinishedRebase, is, kind, real,
    unfinished_rebases,
};
use rustix::fs::FileType;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Maximum number of folders to search, and maximum time. Only a whole large disk has more.
const MAX_FOLDERS: usize = 400_000;
const MAX_SEARCH_TIME: Duration = Duration::from_secs(4);

/// Maximum number of folders to remember, so that changes in them are noticed, and the time
/// for checking them in one pass: enough for thousands. The next passes check the others.
const MAX_REMEMBERED: usize = 100_000;
const PASS_TIME: Duration = Duration::from_millis(15);

/// Time for which the content of a configuration is cached.
const CONFIG_CACHE_TIME: Duration = Duration::from_millis(500);

/// When a repository appeared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    /// Before the first search.
    Start,
    /// While no command ran, so another program created it.
    Between,
    /// While a command ran.
    Command,
}

/// Result of a search.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Repositories that are new: each `.git`, or the folder itself.
    pub(crate) new: Vec<PathBuf>,
    /// Number of folders searched, if the search was incomplete.
    pub(crate) cut_off: Option<usize>,
    /// Whether the root itself could not be listed, so that nothing is known about it.
    pub(crate) is_unlisted: bool,
}

/// The repositories in and below a root. Shared by everything in the process that works in
/// that root.
#[derive(Debug)]
pub(crate) struct Registry {
    root: PathBuf,
    known: Mutex<Known>,
    running: AtomicUsize,
}

/// Marks the registry as busy while it exists: something runs that could create
/// repositories.
#[derive(Debug)]
pub(crate) struct BusyGuard(Arc<Registry>);

#[derive(Debug, Default)]
struct Known {
    is_walked: bool,
    is_cut_off: bool,
    folders: BTreeMap<PathBuf, Stamp>,
    /// The last folder that was checked, if the pass was incomplete.
    turn: Option<PathBuf>,
    /// Git folders by their real path.
    gits: BTreeMap<PathBuf, Git>,
    /// Each `.git` that is a file or a link.
    pointers: BTreeMap<PathBuf, Pointer>,
    /// Folders that cannot be listed. A command could make them listable, so everything in
    /// them is guarded.
    closed: BTreeMap<PathBuf, Since>,
    /// The user's configurations that the environment names.
    configs: Vec<PathBuf>,
    /// Cached list of what git obeys in them, and the time of reading.
    guarded: Option<(Instant, Arc<Controls>)>,
}

#[derive(Debug)]
struct Pointer {
    since: Since,
    /// Its targets at the last check.
    leads_to: Vec<PathBuf>,
}

#[derive(Debug)]
struct Git {
    since: Since,
    /// Whether it had everything that git requires at the last check.
    is_whole: bool,
    /// Whether it ever had.
    was_whole: bool,
    /// Its work trees.
    trees: BTreeSet<PathBuf>,
}

static ALL: LazyLock<Mutex<HashMap<PathBuf, Weak<Registry>>>> = LazyLock::new(Mutex::default);

impl Registry {
    /// Returns the shared registry of this root.
    pub(crate) fn of(root: &Path) -> Arc<Self> {
        let root = real(root);
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(&root).and_then(Weak::upgrade) {
            return known;
        }
        all.retain(|_, registry| registry.strong_count() > 0);
        let registry = Arc::new(Self::new(&root));
        all.insert(root, Arc::downgrade(&registry));
        registry
    }

    /// Creates a registry that is not shared.
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: real(root),
            known: Mutex::default(),
            running: AtomicUsize::new(0),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Walks the whole root the first time, and later only looks where something changed.
    /// What the first walk finds was there at the start.
    pub(crate) fn look(&self, since: Since) -> Scan {
        let since = match since {
            Since::Between if self.is_busy() => Since::Command,
            since => since,
        };
        let mut known = self.known();
        let mut looked = Scan::default();
        let is_first = !known.is_walked;
        if is_first {
            let start = VecDeque::from([(self.root.clone(), Since::Start)]);
            known.walk(start, &mut looked);
        } else if since != Since::Start {
            looked = known.look_again(since);
        }
        // If the root itself were guarded, nothing could be written.
        if known.closed.remove(&self.root).is_some() {
            looked.is_unlisted = true;
            known.is_walked &= !is_first;
        }
        looked
    }

    /// Marks the registry as busy: what appears from now on may be a command's work.
    pub(crate) fn runs(self: &Arc<Self>) -> BusyGuard {
        self.running.fetch_add(1, Ordering::SeqCst);
        BusyGuard(Arc::clone(self))
    }

    /// Whether something runs that could create repositories.
    pub(crate) fn is_busy(&self) -> bool {
        self.running.load(Ordering::SeqCst) > 0
    }

    /// Adds configurations of the user that the environment names.
    pub(crate) fn reads(&self, configs: &[PathBuf]) {
        let mut known = self.known();
        for config in configs {
            if !known.configs.contains(config) {
                known.configs.push(config.clone());
            }
        }
        known.guarded = None;
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns what git obeys and no command may change: everything except what commands
    /// created.
    pub(crate) fn guarded(&self, home: Option<&Path>) -> Controls {
        let known = self.known();
        let lasting = |since: Since| since != Since::Command;
        let gits = known.gits.iter().filter(|(_, git)| lasting(git.since));
        let mut found = Controls::default();
        let mut places = Vec::new();
        for (path, git) in gits {
            let of_it: Vec<PathBuf> = git.trees.iter().cloned().collect();
            let of_it = with_configured(path, &of_it, home);
            found.extend(controls(path, &of_it, home));
            places.extend(of_it);
            places.push(path.clone());
        }
        places.extend(places_above(&self.root));
        found.extend(of_the_person(&self.root, &places, home, &known.configs));
        let closed = known.closed.iter().filter(|(_, since)| lasting(**since));
        found.paths.extend(closed.map(|(path, _)| path.clone()));
        let pointers = known.pointers.iter();
        for (path, _) in pointers.filter(|(_, pointer)| lasting(pointer.since)) {
            add_pointer(&mut found, path);
        }
        found.sort();
        found
    }

    /// Returns repositories that still exist but no longer have everything that git
    /// requires, so that a first search might miss them. Each is reported once.
    pub(crate) fn lost(&self) -> Vec<PathBuf> {
        self.known().lost()
    }

    /// Returns what git obeys in repositories that commands created.
    pub(crate) fn made(&self) -> Vec<PathBuf> {
        let known = self.known();
        let gits = known.gits.iter();
        gits.filter(|(_, git)| git.since == Since::Command)
            .flat_map(|(path, _)| {
                ["hooks", "config", "config.worktree"].map(|name| path.join(name))
            })
            .collect()
    }

    /// Returns the unfinished rebases, and what is new in each compared with `earlier`.
    pub(crate) fn unfinished_rebases(
        &self,
        earlier: &[UnfinishedRebase],
    ) -> Vec<(UnfinishedRebase, Option<AddedCommands>)> {
        let gits: Vec<PathBuf> = self.known().gits.keys().cloned().collect();
        let left = gits.iter().flat_map(|git| unfinished_rebases(git, earlier));
        left.collect()
    }

    /// Whether a real path is something that git obeys, or continues with, in a repository
    /// that exists or existed.
    pub(crate) fn covers(&self, path: &Path, home: Option<&Path>) -> bool {
        self.look(Since::Start);
        let is_part = self.known().gits.keys().any(|git| {
            let below = path.strip_prefix(git).ok();
            let first = below.and_then(|below| below.iter().next());
            first.is_some_and(|first| {
                CONTROL
                    .iter()
                    .chain(&UNFINISHED)
                    .any(|name| is(first, name))
            })
        });
        if is_part {
            return true;
        }
        let guarded = self.lately_guarded(home);
        guarded.paths.iter().any(|place| path.starts_with(place))
            || guarded
                .links
                .binary_search_by(|link| (**link).cmp(path))
                .is_ok()
    }

    /// Returns what is guarded, with real paths, from the cache if it is recent.
    fn lately_guarded(&self, home: Option<&Path>) -> Arc<Controls> {
        if let Some((read, guarded)) = &self.known().guarded
            && read.elapsed() < CONFIG_CACHE_TIME
        {
            return Arc::clone(guarded);
        }
        let mut guarded = self.guarded(home);
        let real: Vec<PathBuf> = guarded.paths.iter().map(|path| real(path)).collect();
        guarded.paths.extend(real);
        guarded.sort();
        let guarded = Arc::new(guarded);
        self.known().guarded = Some((Instant::now(), Arc::clone(&guarded)));
        guarded
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Known {
    /// Searches these folders and everything below them, breadth first.
    fn walk(&mut self, mut queue: VecDeque<(PathBuf, Since)>, looked: &mut Scan) {
        self.is_walked = true;
        let begun = Instant::now();
        let mut visited = 0;
        while let Some((folder, since)) = queue.pop_front() {
            visited += 1;
            if visited > MAX_FOLDERS || (visited % 64 == 0 && begun.elapsed() > MAX_SEARCH_TIME) {
                looked.cut_off = Some(visited);
                self.is_cut_off = true;
                break;
            }
            queue.extend(self.enter(folder, since, &mut looked.new));
        }
        self.settle(&mut looked.new);
    }

    /// Lists one folder, and returns the folders in it that are not known yet.
    fn enter(
        &mut self,
        folder: PathBuf,
        since: Since,
        new: &mut Vec<PathBuf>,
    ) -> Vec<(PathBuf, Since)> {
        // What is found in a folder that could not be listed may have been there all along.
        let since = self.closed.get(&folder).copied().unwrap_or(since);
        let Some(visit) = walk::visit(&folder) else {
            self.folders.remove(&folder);
            self.closed.remove(&folder);
            return Vec::new();
        };
        if visit.is_closed {
            self.closed.entry(folder.clone()).or_insert(since);
        } else {
            self.closed.remove(&folder);
        }
        if visit.has_dot_git {
            self.meet(&folder.join(".git"), since, new);
        }
        // A folder named `.git` was already handled with its parent.
        if visit.is_repository && !self.gits.contains_key(&folder) {
            if since != Since::Start {
                new.push(folder.clone());
            }
            self.remember(folder.clone(), None, since);
            if let Some(shared) = common(&folder) {
                self.remember(shared, None, since);
            }
        }
        let mut unknown = visit.folders;
        unknown.retain(|path| !self.folders.contains_key(path));
        if self.folders.len() < MAX_REMEMBERED || self.folders.contains_key(&folder) {
            self.folders.insert(folder, visit.stamp);
        }
        unknown.into_iter().map(|path| (path, since)).collect()
    }

    /// Records a `.git`.
    fn meet(&mut self, dot_git: &Path, since: Since, new: &mut Vec<PathBuf>) {
        let gits = behind(dot_git);
        let is_folder = kind(dot_git) == Some(FileType::Directory);
        let is_new = if is_folder {
            gits.first().is_some_and(|git| !self.gits.contains_key(git))
        } else {
            let pointer = Pointer {
                since,
                leads_to: gits.clone(),
            };
            match self.pointers.get_mut(dot_git) {
                Some(known) => std::mem::replace(&mut known.leads_to, gits.clone()) != gits,
                None => self.pointers.insert(dot_git.to_owned(), pointer).is_none(),
            }
        };
        if is_new && since != Since::Start {
            new.push(dot_git.to_owned());
        }
        let tree = dot_git.parent().map(Path::to_owned);
        for git in gits {
            self.remember(git, tree.clone(), since);
        }
    }

    fn remember(&mut self, git: PathBuf, tree: Option<PathBuf>, since: Since) {
        let is_whole = is_whole(&git);
        let known = self.gits.entry(git).or_insert_with(|| Git {
            since,
            is_whole,
            was_whole: is_whole,
            trees: BTreeSet::new(),
        });
        known.trees.extend(tree);
    }

    /// Removes from `new` what is inside a repository that is itself new.
    fn settle(&self, new: &mut Vec<PathBuf>) {
        new.sort();
        new.dedup();
        let outer: Vec<PathBuf> = new.clone();
        new.retain(|path| {
            let mut others = outer.iter().filter(|other| *other != path);
            !others.any(|other| path.starts_with(other))
        });
        // Reported by the pointer that leads to it.
        let named = new.iter().filter_map(|path| self.pointers.get(path));
        let led_to: BTreeSet<PathBuf> = named.flat_map(|at| at.leads_to.clone()).collect();
        new.retain(|path| !led_to.contains(path));
    }

    /// Checks the folders in which something was added, removed or renamed.
    fn look_again(&mut self, since: Since) -> Scan {
        let mut looked = Scan::default();
        let from = match self.turn.take() {
            Some(last) => Bound::Excluded(last),
            None => Bound::Unbounded,
        };
        let begun = Instant::now();
        let mut changed = VecDeque::new();
        let turn = self
            .folders
            .range::<PathBuf, _>((from, Bound::Unbounded))
            .enumerate();
        for (at, (folder, before)) in turn {
            let now = walk::stamp(folder);
            if before.is_none() || now != Ok(*before) {
                changed.push_back((folder.clone(), since));
            }
            if at % 64 == 63 && begun.elapsed() > PASS_TIME {
                self.turn = Some(folder.clone());
                break;
            }
        }
        // The content of a pointer can change without a change of its folder.
        let pointers: Vec<PathBuf> = self.pointers.keys().cloned().collect();
        for pointer in pointers {
            self.meet(&pointer, since, &mut looked.new);
        }
        self.walk(changed, &mut looked);
        if since == Since::Between {
            // Not the work of a command.
            self.lost();
        }
        looked
    }

    /// Returns the guarded repositories that are no longer complete. Each is reported once.
    fn lost(&mut self) -> Vec<PathBuf> {
        let mut lost = Vec::new();
        for (path, git) in &mut self.gits {
            let is_there = kind(path) == Some(FileType::Directory);
            let was_whole = std::mem::replace(&mut git.is_whole, is_whole(path));
            git.was_whole |= git.is_whole;
            if is_there && was_whole && !git.is_whole && git.since != Since::Command {
                lost.push(path.clone());
            }
        }
        lost
    }
}
