//! The sets of one session.

use super::change::{Change, ChangeSet, Incomplete, SetState, SetSummary, Version};
use super::keep::Kept;
use super::library::{self, Head};
use super::outcome::{Selection, TreeAt, UndoError, UndoMode, Undone};
use super::record::{Header, Order};
use super::set_file::SetFile;
use super::space::Space;
use super::state::{State, Time};
use super::summaries;
use super::undo;
use super::{Recorder, Store, compare, contents};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The sets of one session. Clones share it.
#[derive(Debug, Clone)]
pub struct Session {
    shared: Arc<Shared>,
}

/// Bytes that the end of a set says about an entry, apart from its name.
const PER_RECORD: u64 = 160;

/// Bytes of the limit that are left for the ends of sets, and for what says that it is reached.
const SPARE: u64 = 16 << 10;

/// Limits that apply to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limits {
    All,
    /// Only that of the session.
    Session,
}

#[derive(Debug)]
struct Shared {
    store: Store,
    id: String,
    folder: PathBuf,
    work_dir: PathBuf,
    roots: Vec<PathBuf>,
    /// The store's folder without links.
    real_store: OnceLock<PathBuf>,
    space: Space,
    last_number: AtomicU64,
    writers: Mutex<Writers>,
    contents: contents::Cache,
    heads: library::HeadCache,
}

/// The set that was written last by this process.
#[derive(Debug, Default)]
struct Writers {
    last: u64,
    order: Order,
}

impl Session {
    pub(super) fn new(store: Store, id: &str, work_dir: &Path, roots: &[PathBuf]) -> Self {
        let folder = store.folder().join(library::folder_name(id));
        Self {
            shared: Arc::new(Shared {
                store,
                id: id.to_owned(),
                folder,
                work_dir: work_dir.to_owned(),
                roots: roots.to_vec(),
                real_store: OnceLock::new(),
                space: Space::default(),
                last_number: AtomicU64::new(0),
                writers: Mutex::default(),
                contents: contents::Cache::default(),
                heads: library::HeadCache::default(),
            }),
        }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.shared.id
    }

    /// Its work folder.
    #[must_use]
    pub fn work_dir(&self) -> &Path {
        &self.shared.work_dir
    }

    /// Its other roots.
    #[must_use]
    pub fn roots(&self) -> &[PathBuf] {
        &self.shared.roots
    }

    /// The store it belongs to.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    pub(super) fn folder(&self) -> &Path {
        &self.shared.folder
    }

    /// Folder of what a set keeps.
    pub(super) fn objects(&self, number: u64) -> PathBuf {
        self.shared
            .folder
            .join("objects")
            .join(format!("{number:06}"))
    }

    pub(super) fn head_cache(&self) -> &library::HeadCache {
        &self.shared.heads
    }

    pub(super) fn contents(&self) -> &contents::Cache {
        &self.shared.contents
    }

    /// Starts recording a call. Touches no disk.
    #[must_use]
    pub fn begin(&self, call_id: &str, tool: &str) -> Recorder {
        Recorder::new(
            self.clone(),
            Header {
                call_id: call_id.to_owned(),
                tool: tool.to_owned(),
                time: Time::now(),
                undoes: Vec::new(),
                group: String::new(),
            },
        )
    }

    pub(super) fn covers(&self, path: &Path) -> bool {
        let shared = &self.shared;
        let is_within = path.starts_with(&shared.work_dir)
            || shared.roots.iter().any(|root| path.starts_with(root));
        is_within && {
            let store = shared.store.folder();
            let real = shared
                .real_store
                .get_or_init(|| crate::scope::real(store).unwrap_or_else(|| store.to_owned()));
            !path.starts_with(store) && !path.starts_with(real)
        }
    }

    /// Decides whether the content of a file may be kept, and counts it.
    pub(super) fn reserve(
        &self,
        path: &Path,
        state: &State,
        limits: Limits,
    ) -> Result<(), Incomplete> {
        let bounds = self.shared.store.bounds();
        let below = path.strip_prefix(&self.shared.work_dir);
        let below = below.or_else(|_| path.strip_prefix("/")).unwrap_or(path);
        if limits == Limits::All && bounds.skip.matches(below) {
            return Err(Incomplete::Skipped(path.to_owned()));
        }
        let cost = state.cost();
        if limits == Limits::All && cost > bounds.max_file {
            return Err(Incomplete::TooLarge(path.to_owned()));
        }
        let has_space = self
            .shared
            .space
            .reserve(self, cost, bounds.max_session)
            .map_err(|error| Incomplete::Failed {
                path: path.to_owned(),
                error: error.to_string(),
            })?;
        if has_space {
            Ok(())
        } else {
            Err(Incomplete::SessionFull(path.to_owned()))
        }
    }

    /// Counts records that are about to be written, and what the end of the set will say about
    /// them. Returns the bytes promised to the end, or `None` if the limit is reached.
    pub(super) fn reserve_records(&self, bytes: usize) -> io::Result<Option<u64>> {
        let spare = self.shared.store.bounds().max_session.saturating_sub(SPARE);
        let bytes = bytes as u64;
        let end = bytes + PER_RECORD;
        let space = &self.shared.space;
        let fits = space.reserve_with_end(self, bytes, end, spare)?;
        Ok(fits.then_some(end))
    }

    /// Releases what was promised to the end of a set, which is written now.
    pub(super) fn release(&self, promised: u64) {
        self.shared.space.release(promised);
    }

    /// Number of the last set that this process made, or 0.
    pub(super) fn last_number(&self) -> u64 {
        self.shared.last_number.load(Ordering::Relaxed)
    }

    pub(super) fn set_last_number(&self, number: u64) {
        self.shared.last_number.store(number, Ordering::Relaxed);
    }

    /// Announces records of a set. Returns their place among those of other sets, unless the last
    /// ones were of the same set.
    pub(super) fn writes(&self, number: u64) -> Option<Order> {
        let writers = &self.shared.writers;
        let mut writers = writers.lock().unwrap_or_else(PoisonError::into_inner);
        if writers.last == number {
            return None;
        }
        if writers.last == 0 {
            writers.order.process = number;
        }
        writers.last = number;
        writers.order.change += 1;
        Some(writers.order)
    }

    pub(super) fn create_set(&self, header: &Header) -> io::Result<SetFile> {
        library::create_set(self, header)
    }

    /// Removes a set with everything it keeps.
    pub(super) fn remove_set(&self, number: u64, file: &Path) -> io::Result<()> {
        library::remove_tree(&self.objects(number))?;
        library::remove_file(file)
    }

    pub(super) fn remove_object(&self, number: u64, kept: &Kept) {
        if let Kept::Linked(name) | Kept::Copied(name) = kept {
            let _ = library::remove_file(&self.objects(number).join(name));
        }
    }

    /// All sets with changes, oldest first, those of undo included.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn sets(&self) -> io::Result<Vec<ChangeSet>> {
        let heads = self.heads()?;
        let mut sets = Vec::with_capacity(heads.len());
        for (head, summary) in heads.iter().zip(summaries::summaries(self, &heads)) {
            match self.change_set(head, summary) {
                Ok(set) => sets.extend(set),
                Err(error) => {
                    tracing::warn!(%error, number = head.number, "a set of changes cannot be read");
                }
            }
        }
        Ok(sets)
    }

    /// Files of sets that cannot be read, and why. [`Session::sets`] leaves them out.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn unreadable(&self) -> io::Result<Vec<(PathBuf, String)>> {
        library::unreadable(self)
    }

    /// The newest set of a call, if it changed anything.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn set_of(&self, call_id: &str) -> io::Result<Option<ChangeSet>> {
        let heads = self.heads()?;
        let summaries = summaries::summaries(self, &heads);
        let mut newest_first = heads.iter().zip(summaries).rev();
        match newest_first.find(|(_, summary)| summary.call_id == call_id) {
            Some((head, summary)) => self.change_set(head, summary),
            None => Ok(None),
        }
    }

    fn change_set(&self, head: &Head, mut summary: SetSummary) -> io::Result<Option<ChangeSet>> {
        let Some(picture) = library::picture(self, head)? else {
            return Ok(None);
        };
        let changes = compare::changes(&picture);
        if summary.state == SetState::Running {
            let why = summary.counts.why.take();
            let why = why.or_else(|| compare::first_lost(&picture));
            summary.counts = compare::counts(compare::count(&changes), why);
        }
        Ok(Some(ChangeSet { summary, changes }))
    }

    /// The same without the changes, which is cheap. A live session that looks here between two
    /// turns notices what another process undid.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn summaries(&self) -> io::Result<Vec<SetSummary>> {
        let heads = self.heads()?;
        Ok(summaries::summaries(self, &heads))
    }

    /// Heads of all sets, oldest first. Ends sets and completes an undo that were killed.
    pub(super) fn heads(&self) -> io::Result<Vec<Head>> {
        if let Err(error) = undo::recover(self) {
            tracing::warn!(%error, "an undo that was killed could not be completed");
        }
        library::heads(self)
    }

    /// Opens one version of a changed file, for a diff. `None` if it was not kept or changed
    /// since, or if that side is not a regular file.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn content(
        &self,
        set: &SetSummary,
        change: &Change,
        version: Version,
    ) -> io::Result<Option<Box<dyn Read + Send>>> {
        contents::open(self, set.number, change, version)
    }

    /// Takes back what calls changed. Nothing is changed unless everything selected can be
    /// taken back.
    ///
    /// # Errors
    /// If there is nothing to undo, something changed since, or something was not kept.
    pub fn undo(&self, what: &Selection, how: UndoMode) -> Result<Undone, UndoError> {
        undo::undo(self, what, how, "")
    }

    /// Takes back what calls changed, as one of several undos with the same name in
    /// [`SetSummary::group`].
    ///
    /// # Errors
    /// As [`Session::undo`].
    pub fn undo_as_part(
        &self,
        what: &Selection,
        how: UndoMode,
        group: &str,
    ) -> Result<Undone, UndoError> {
        undo::undo(self, what, how, group)
    }

    /// Takes back the last undo.
    ///
    /// # Errors
    /// As [`Session::undo`].
    pub fn redo(&self, how: UndoMode) -> Result<Undone, UndoError> {
        undo::redo(self, how)
    }

    /// Copies the work folder as it was after a call into a new folder.
    ///
    /// # Errors
    /// If the call is unknown, something was not kept, or the folder exists and is not empty.
    pub fn tree_at(&self, call_id: &str, into: &Path) -> Result<TreeAt, UndoError> {
        super::tree_at::tree_at(self, call_id, into)
    }
}
