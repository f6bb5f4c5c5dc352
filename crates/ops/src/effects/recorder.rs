//! Records the effects of one call.

use super::attributes;
use super::change::{Counts, Incomplete};
use super::folders::Spot;
use super::hold::{Hold, Holds};
use super::keep::{NotKept, Objects};
use super::notes::{Content, Empty, Notes};
use super::record::{Header, Record};
use super::session::Session;
use super::set_file::SetFile;
use super::state::State;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Number of attempts to keep a file that other threads replace all the time.
const ATTEMPTS: usize = 8;

/// Records the effects of one call. Clones share the same set. A recorder that is dropped
/// without [`Recorder::finish`] leaves an interrupted set.
#[derive(Debug, Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    session: Session,
    header: Header,
    inner: Mutex<Notes>,
    /// Signalled when a copy ends.
    copied: Condvar,
    holds: Holds,
}

/// Upcoming change of an entry. Operations that cannot change anything because they fail (such
/// as `mkdir` of an existing folder) may be reported too.
#[derive(Debug, Clone, Copy)]
pub enum Touch<'a> {
    /// The file is opened for writing or truncated, or replaced by a new one. It may not exist
    /// yet.
    Content,
    /// A new entry is made: a folder, a symbolic link, a FIFO, a socket. An existing entry
    /// would make the operation fail.
    Create,
    /// The entry is made as another name of the file `from`.
    Link {
        /// Absolute path of the existing file.
        from: &'a Path,
    },
    /// The entry is removed: `unlink`, `rmdir`.
    Remove,
    /// Mode, owner, times or extended attributes change.
    Attributes,
    /// The entry is moved; what is at the new path is lost.
    Move {
        /// Absolute new path.
        to: &'a Path,
    },
    /// The entry and another one change places.
    Exchange {
        /// Absolute path of the other entry.
        with: &'a Path,
    },
}

/// Manner in which a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With a reply.
    Done,
    /// By a timeout, a cancellation or a kill.
    Interrupted,
}

/// Whether the inode outlives the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Its content changes, or it may be changed where it is not recorded.
    InPlace,
    /// It loses this name.
    LosesName,
}

type Guard<'a> = MutexGuard<'a, Notes>;

impl Recorder {
    pub(super) fn new(session: Session, header: Header) -> Self {
        Self {
            shared: Arc::new(Shared {
                session,
                header,
                inner: Mutex::new(Notes::new()),
                copied: Condvar::new(),
                holds: Holds::default(),
            }),
        }
    }

    /// Continues a set that a killed process left.
    pub(super) fn resume(session: Session, header: Header, mut file: SetFile) -> io::Result<Self> {
        if !header.undoes.is_empty() {
            file.set_undo();
        }
        let recorder = Self::new(session, header);
        {
            let mut inner = recorder.lock();
            for record in file.records()? {
                inner.replay(record);
            }
            inner.objects = Objects::new(recorder.shared.session.objects(file.number()));
            inner.file = Some(file);
        }
        Ok(recorder)
    }

    fn lock(&self) -> Guard<'_> {
        let inner = &self.shared.inner;
        inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the records, before the change that they are about.
    fn flush(&self, inner: &mut Notes) -> io::Result<()> {
        inner.flush(&self.shared.session, &self.shared.header)
    }

    /// Whether changes at this absolute path are recorded: it is below the work folder or a
    /// root, and not in the store itself.
    #[must_use]
    pub fn covers(&self, path: &Path) -> bool {
        self.shared.session.covers(path)
    }

    /// Keeps what is about to change. Returns when the change may happen. Trouble makes the
    /// set incomplete, it never stops the call.
    ///
    /// `path` is absolute, its folder has no links in it, and its last component is not
    /// followed. Paths that are not covered are ignored; of a move, either end is enough.
    pub fn before(&self, path: &Path, touch: Touch<'_>) {
        let is_covered = self.covers(path);
        let done = match touch {
            Touch::Move { to } => self.before_move(path, is_covered, to, self.covers(to)),
            Touch::Exchange { with } if is_covered || self.covers(with) => {
                self.before_exchange(path, with)
            }
            _ if !is_covered => return,
            Touch::Exchange { .. } => return,
            Touch::Content => self.before_content(path),
            Touch::Create => self.before_create(path),
            Touch::Link { from } => self.before_link(path, from),
            Touch::Remove => self.before_remove(path),
            Touch::Attributes => self.before_attributes(path),
        };
        if let Err(error) = done {
            self.incomplete(Incomplete::Failed {
                path: path.to_owned(),
                error: format!("its state could not be recorded: {error}"),
            });
        }
    }

    fn before_content(&self, path: &Path) -> io::Result<()> {
        self.keep(path, Change::InPlace)
    }

    fn before_remove(&self, path: &Path) -> io::Result<()> {
        self.keep(path, Change::LosesName)
    }

    /// Notes an entry and keeps its content. Starts again if another thread puts another file
    /// there in the meantime.
    fn keep(&self, path: &Path, change: Change) -> io::Result<()> {
        for _ in 0..ATTEMPTS {
            let mut inner = self.lock();
            let Some(spot) = inner.spot(path)? else {
                return Ok(());
            };
            match &spot.now {
                // Nothing can be lost.
                None if change == Change::LosesName => return self.flush(&mut inner),
                None => inner.note(&spot),
                Some(now) if now.is_file() => {
                    inner.note(&spot);
                    if !self.content(inner, path, &spot, now, change) {
                        continue;
                    }
                    inner = self.lock();
                }
                Some(now) => {
                    inner.note(&spot);
                    if now.is_dir() && change == Change::LosesName {
                        inner.attributes(path, now.inode, Empty::Ignored)?;
                        inner.folders.forget_open();
                    }
                }
            }
            return self.flush(&mut inner);
        }
        Err(io::Error::other("it is replaced all the time"))
    }

    fn before_create(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        if let Some(spot) = inner.spot(path)?
            && spot.now.is_none()
        {
            inner.note(&spot);
        }
        self.flush(&mut inner)
    }

    fn before_link(&self, path: &Path, from: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        let (Some(from), Some(spot)) = (inner.spot(from)?, inner.spot(path)?) else {
            return self.flush(&mut inner);
        };
        if from.now.is_some() && spot.now.is_none() {
            inner.note(&from);
            inner.note(&spot);
        }
        self.flush(&mut inner)
    }

    fn before_attributes(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        if let Some(spot) = inner.spot(path)?
            && let Some(now) = &spot.now
        {
            inner.note(&spot);
            inner.attributes(path, now.inode, Empty::Recorded)?;
        }
        self.flush(&mut inner)
    }

    fn before_exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        let (Some(one), Some(other)) = (inner.spot(one)?, inner.spot(other)?) else {
            return self.flush(&mut inner);
        };
        if one.now.is_some() && other.now.is_some() {
            inner.note(&one);
            inner.note(&other);
            inner.moved(&one, &other);
            inner.moved(&other, &one);
        }
        self.flush(&mut inner)
    }

    fn before_move(
        &self,
        from: &Path,
        is_covered: bool,
        to: &Path,
        is_covered_there: bool,
    ) -> io::Result<()> {
        if !is_covered && !is_covered_there {
            return Ok(());
        }
        if !is_covered_there {
            return self.before_leaving(from);
        }
        for _ in 0..ATTEMPTS {
            let mut inner = self.lock();
            let (Some(old), Some(new)) = (inner.spot(from)?, inner.spot(to)?) else {
                return self.flush(&mut inner);
            };
            let Some(moved) = &old.now else {
                return self.flush(&mut inner);
            };
            if is_covered {
                inner.note(&old);
            }
            inner.note(&new);
            match &new.now {
                Some(lost) if lost.inode == moved.inode => {}
                Some(lost) if lost.is_file() => {
                    if !self.content(inner, to, &new, lost, Change::LosesName) {
                        continue;
                    }
                    inner = self.lock();
                }
                Some(lost) => inner.attributes(to, lost.inode, Empty::Ignored)?,
                None => {}
            }
            if is_covered {
                inner.moved(&old, &new);
            }
            inner.folders.forget_open();
            return self.flush(&mut inner);
        }
        Err(io::Error::other("it is replaced all the time"))
    }

    /// Something is moved to where nothing is recorded: like a removal, but the inode goes on
    /// to live there.
    fn before_leaving(&self, path: &Path) -> io::Result<()> {
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            let is_dir = {
                let mut inner = self.lock();
                let spot = inner.spot(&path)?;
                self.flush(&mut inner)?;
                spot.and_then(|spot| spot.now)
                    .is_some_and(|now| now.is_dir())
            };
            self.keep(
                &path,
                if is_dir {
                    Change::LosesName
                } else {
                    Change::InPlace
                },
            )?;
            if is_dir {
                for entry in super::disk::names(&path)? {
                    open.push(path.join(entry));
                }
            }
        }
        Ok(())
    }

    /// Keeps the content of a file that existed before the call. Returns `false` if another
    /// file is there now. Releases the lock, so that a large file holds up nobody.
    fn content(
        &self,
        mut inner: Guard<'_>,
        path: &Path,
        spot: &Spot,
        now: &State,
        change: Change,
    ) -> bool {
        if !inner.originals.contains(&now.inode) {
            return true;
        }
        loop {
            match inner.contents.get(&now.inode) {
                None => break,
                Some(Content::Linked) if change == Change::LosesName => return true,
                // A file with other names is linked too, to be the same file again.
                Some(Content::Kept) => {
                    if change == Change::LosesName
                        && now.links > 1
                        && !inner.linked.contains(&now.inode)
                        && let Ok(kept) = inner.objects.link(&*spot.dir, spot.name(), now)
                    {
                        inner.kept(now.inode, kept);
                        let _ = self.flush(&mut inner);
                    }
                    return true;
                }
                // It is changed under another name, or its name was not lost after all.
                Some(Content::Linked) => break,
                Some(Content::Pending) => {
                    let copied = &self.shared.copied;
                    inner = copied.wait(inner).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
        if let Some(why) = self.over_limit(path, now) {
            inner.not_kept(now.inode, &why);
            return self.flush(&mut inner).is_ok();
        }
        let _ = self.flush(&mut inner);
        // A file with other names gets a copy too when the call ends, if one of them is left.
        if change == Change::LosesName {
            match inner.objects.link(&*spot.dir, spot.name(), now) {
                Ok(kept) => {
                    inner.kept(now.inode, kept);
                    let _ = self.flush(&mut inner);
                    return true;
                }
                Err(NotKept::Replaced) => return false,
                // Another file system, another owner: copied instead.
                Err(NotKept::System(_)) => {}
            }
        }
        let reserved = match inner.objects.reserve(now) {
            Ok(reserved) => reserved,
            Err(error) => {
                inner.not_kept(now.inode, &failed(path, &error));
                return self.flush(&mut inner).is_ok();
            }
        };
        inner.contents.insert(now.inode, Content::Pending);
        drop(inner);
        let copied = reserved.copy(&*spot.dir, spot.name(), now);
        let mut inner = self.lock();
        let mut is_done = true;
        match copied {
            Ok((kept, file)) => {
                if let Ok(list) = attributes::of_file(&file) {
                    inner.add_attributes(now.inode, list, Empty::Ignored);
                }
                inner.kept(now.inode, kept);
            }
            Err(NotKept::Replaced) => {
                inner.contents.remove(&now.inode);
                is_done = false;
            }
            Err(NotKept::System(error)) => inner.not_kept(now.inode, &failed(path, &error)),
        }
        let _ = self.flush(&mut inner);
        drop(inner);
        self.shared.copied.notify_all();
        is_done
    }

    fn over_limit(&self, path: &Path, now: &State) -> Option<String> {
        self.shared
            .session
            .reserve(path, now)
            .err()
            .map(|why| why.to_string())
    }

    /// Records that something could not be recorded. The first reason is the one shown.
    pub fn incomplete(&self, reason: Incomplete) {
        let mut inner = self.lock();
        if inner.finished.is_some() || inner.why.is_some() {
            return;
        }
        let why = reason.to_string();
        Record::Incomplete(why.clone()).append(&mut inner.out);
        inner.why = Some(why);
        let _ = self.flush(&mut inner);
    }

    /// Compares with what is there now and goes on recording, for a call that left processes
    /// running.
    #[must_use]
    pub fn counts_now(&self) -> Counts {
        let inner = self.lock();
        if let Some(counts) = &inner.finished {
            return counts.clone();
        }
        let Some(file) = &inner.file else {
            return inner.nothing();
        };
        match file.counts_now(&self.shared.session) {
            Ok(counts) => counts,
            Err(error) => unreadable(&error),
        }
    }

    /// Keeps the set open while processes that the call left behind are running.
    pub fn hold(&self) -> Hold {
        Hold::new(self)
    }

    pub(super) fn holds(&self) -> &Holds {
        &self.shared.holds
    }

    /// Ends the set: compares with what is there now and stores the result. A set without
    /// changes leaves nothing on disk. Later calls of `before` and `finish` do nothing.
    /// While there is a [`Hold`], it only compares; the set ends with the last one.
    pub fn finish(&self, end: End) -> Counts {
        if self.shared.holds.postpone(end) {
            return self.counts_now();
        }
        let mut inner = self.lock();
        while inner
            .contents
            .values()
            .any(|content| matches!(content, Content::Pending))
        {
            let copied = &self.shared.copied;
            inner = copied.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(counts) = &inner.finished {
            return counts.clone();
        }
        let counts = match inner.file.take() {
            None => inner.nothing(),
            Some(file) => match file.finish(&self.shared.session, end) {
                Ok(counts) => counts,
                Err(error) => unreadable(&error),
            },
        };
        // What was needed only for recording goes now, not with the last clone.
        *inner = Notes {
            finished: Some(counts.clone()),
            ..Notes::new()
        };
        counts
    }

    /// Notes an entry that an operation has just made in a folder that it made too. The folder
    /// itself was noted before.
    pub(crate) fn created(&self, path: &Path) {
        if !self.covers(path) {
            return;
        }
        let mut inner = self.lock();
        if let Ok(Some(spot)) = inner.spot(path) {
            inner.note_new(&spot);
        }
        let _ = self.flush(&mut inner);
    }
}

fn failed(path: &Path, error: &io::Error) -> String {
    Incomplete::Failed {
        path: path.to_owned(),
        error: format!("its content could not be kept: {error}"),
    }
    .to_string()
}

fn unreadable(error: &io::Error) -> Counts {
    Counts {
        complete: false,
        why: Some(format!("the set cannot be stored: {error}")),
        ..Counts::default()
    }
}
