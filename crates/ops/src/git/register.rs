//! The repositories of a root, found once and remembered.

mod recall;

pub(crate) use recall::Remembered;

use super::obeyed::{add_pointer, behind, common, controls, of_the_person, with_configured};
use super::shape::is_whole;
use super::walk::{self, Stamp};
use super::{Added, CONTROL, Controls, Left, UNFINISHED, is, kind, left_open, real};
use rustix::fs::FileType;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How many folders are searched, and for how long. Only the whole of a large disk
/// has more.
const MOST: usize = 400_000;
const LONGEST: Duration = Duration::from_secs(4);

/// How many folders are remembered, so that what appears in them is noticed, and how
/// long those are looked at each time: enough for thousands. The others have their turn
/// the next times.
const REMEMBERED: usize = 100_000;
const TURN: Duration = Duration::from_millis(15);

/// How long it is believed what a configuration says.
const FRESH: Duration = Duration::from_millis(500);

/// Since when a repository is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    /// It was there when somebody first looked.
    Start,
    /// It appeared while no command ran: somebody else made it.
    Between,
    /// It appeared while a command ran.
    Command,
}

/// What a look found.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// Repositories that were not there before: each `.git`, or the folder itself.
    pub(crate) new: Vec<PathBuf>,
    /// How many folders were searched, where that was not all of them.
    pub(crate) cut_off: Option<usize>,
}

/// The repositories in and below a root. Everybody who works in that root has the
/// same one.
#[derive(Debug)]
pub(crate) struct Register {
    root: PathBuf,
    known: Mutex<Known>,
    running: AtomicUsize,
}

/// Something that could make repositories runs for as long as this lives.
#[derive(Debug)]
pub(crate) struct Running(Arc<Register>);

#[derive(Debug, Default)]
struct Known {
    is_walked: bool,
    is_cut_off: bool,
    folders: BTreeMap<PathBuf, Stamp>,
    /// The last folder that was looked at, where it was not the turn of all.
    turn: Option<PathBuf>,
    /// Git folders.
    gits: BTreeMap<PathBuf, Git>,
    /// Each `.git` that is a file or a link.
    pointers: BTreeMap<PathBuf, Pointer>,
    /// Folders that cannot be listed. A command could open them, so all that is in
    /// them is guarded.
    closed: BTreeMap<PathBuf, Since>,
    /// Configurations of the person that the environment names.
    configs: Vec<PathBuf>,
    /// What git obeys in them, and when that was read.
    guarded: Option<(Instant, Arc<Controls>)>,
}

#[derive(Debug)]
struct Pointer {
    since: Since,
    /// Where it led when somebody last looked.
    leads_to: Vec<PathBuf>,
}

#[derive(Debug)]
struct Git {
    since: Since,
    /// Whether it had all that git asks for when somebody last looked.
    is_whole: bool,
    /// Whether it ever had.
    was_whole: bool,
    /// The folders that are worked in with it.
    trees: BTreeSet<PathBuf>,
}

static ALL: LazyLock<Mutex<HashMap<PathBuf, Weak<Register>>>> = LazyLock::new(Mutex::default);

impl Register {
    /// The one of this root.
    pub(crate) fn of(root: &Path) -> Arc<Self> {
        let root = real(root);
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(&root).and_then(Weak::upgrade) {
            return known;
        }
        all.retain(|_, register| register.strong_count() > 0);
        let register = Arc::new(Self::new(&root));
        all.insert(root, Arc::downgrade(&register));
        register
    }

    /// One that nobody else has.
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

    /// Walks all of the root the first time, and after that looks where something
    /// changed. What is there the first time was there at the start.
    pub(crate) fn look(&self, since: Since) -> Looked {
        let since = match since {
            Since::Between if self.is_busy() => Since::Command,
            since => since,
        };
        let mut known = self.known();
        if !known.is_walked {
            let mut looked = Looked::default();
            known.walk(
                VecDeque::from([self.root.clone()]),
                Since::Start,
                &mut looked,
            );
            // Without its root nothing could be written.
            if known.closed.remove(&self.root).is_some() {
                looked.cut_off = Some(0);
            }
            return looked;
        }
        if since == Since::Start {
            return Looked::default();
        }
        known.look_again(since)
    }

    /// What appears from now on may be the work of something that was started.
    pub(crate) fn runs(self: &Arc<Self>) -> Running {
        self.running.fetch_add(1, Ordering::SeqCst);
        Running(Arc::clone(self))
    }

    /// Whether something runs that could make repositories.
    pub(crate) fn is_busy(&self) -> bool {
        self.running.load(Ordering::SeqCst) > 0
    }

    /// Takes note of configurations of the person that the environment names.
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

    /// What git obeys and no command may change: all of it but what commands made.
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

    /// Repositories that are still there, and no longer have all that git asks for:
    /// whoever looks for the first time may not find them. Each is told once.
    pub(crate) fn lost(&self) -> Vec<PathBuf> {
        self.known().lost()
    }

    /// What git obeys in repositories that commands made.
    pub(crate) fn made(&self) -> Vec<PathBuf> {
        let known = self.known();
        let gits = known.gits.iter();
        gits.filter(|(_, git)| git.since == Since::Command)
            .flat_map(|(path, _)| {
                ["hooks", "config", "config.worktree"].map(|name| path.join(name))
            })
            .collect()
    }

    /// What git would run when it is told to continue, in any repository, and what is
    /// new of that since it was like `earlier`.
    pub(crate) fn left_open(&self, earlier: &[Left]) -> Vec<(Left, Option<Added>)> {
        let known = self.known();
        let gits: Vec<PathBuf> = known.gits.keys().cloned().collect();
        drop(known);
        let left = gits.iter().flat_map(|git| left_open(git, earlier));
        left.collect()
    }

    /// Whether a real path is something that git obeys, or goes on with, in a
    /// repository that is or was there.
    pub(crate) fn covers(&self, path: &Path, home: Option<&Path>) -> bool {
        self.look(Since::Start);
        let known = self.known();
        let is_part = known.gits.keys().any(|git| {
            let below = path.strip_prefix(git).ok();
            let first = below.and_then(|below| below.iter().next());
            first.is_some_and(|first| {
                CONTROL
                    .iter()
                    .chain(&UNFINISHED)
                    .any(|name| is(first, name))
            })
        });
        drop(known);
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

    /// What is guarded, and where it really is, read not long ago.
    fn lately_guarded(&self, home: Option<&Path>) -> Arc<Controls> {
        if let Some((read, guarded)) = &self.known().guarded
            && read.elapsed() < FRESH
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

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Known {
    /// Searches these folders and all below them, near ones first.
    fn walk(&mut self, mut queue: VecDeque<PathBuf>, since: Since, looked: &mut Looked) {
        self.is_walked = true;
        let begun = Instant::now();
        let mut visited = 0;
        while let Some(folder) = queue.pop_front() {
            visited += 1;
            if visited > MOST || (visited % 64 == 0 && begun.elapsed() > LONGEST) {
                looked.cut_off = Some(visited);
                self.is_cut_off = true;
                break;
            }
            queue.extend(self.enter(folder, since, &mut looked.new));
        }
        self.settle(since, &mut looked.new);
    }

    /// Lists one folder, and answers with those in it that are not known yet.
    fn enter(&mut self, folder: PathBuf, since: Since, new: &mut Vec<PathBuf>) -> Vec<PathBuf> {
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
        // What lies in a folder named `.git` was met from above.
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
        if self.folders.len() < REMEMBERED || self.folders.contains_key(&folder) {
            self.folders.insert(folder, visit.stamp);
        }
        unknown
    }

    /// A `.git` was seen.
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

    /// What is in a repository that appeared goes without saying.
    fn settle(&self, since: Since, new: &mut Vec<PathBuf>) {
        if since == Since::Start {
            return;
        }
        new.sort();
        new.dedup();
        let outer: Vec<PathBuf> = new.clone();
        new.retain(|path| {
            let mut others = outer.iter().filter(|other| *other != path);
            !others.any(|other| path.starts_with(other))
        });
        // Named by what leads to it.
        let named = new.iter().filter_map(|path| self.pointers.get(path));
        let led_to: BTreeSet<PathBuf> = named.flat_map(|at| at.leads_to.clone()).collect();
        new.retain(|path| !led_to.contains(path));
    }

    /// Looks where something came, went or was renamed since.
    fn look_again(&mut self, since: Since) -> Looked {
        let mut looked = Looked::default();
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
            if before.is_none() || now != Some(*before) {
                changed.push_back(folder.clone());
            }
            if at % 64 == 63 && begun.elapsed() > TURN {
                self.turn = Some(folder.clone());
                break;
            }
        }
        // What a pointer says can change without a change of its folder.
        let pointers: Vec<PathBuf> = self.pointers.keys().cloned().collect();
        for pointer in pointers {
            self.meet(&pointer, since, &mut looked.new);
        }
        self.walk(changed, since, &mut looked);
        if since == Since::Between {
            // No command's work.
            self.lost();
        }
        looked
    }

    /// Which of the guarded repositories are no longer whole, told once.
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
