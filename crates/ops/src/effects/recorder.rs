//! Records the effects of one call.

use super::change::{Counts, Incomplete};
use super::hold::{Hold, Holds};
use super::keep::Objects;
use super::notes::{Content, Notes};
use super::record::{Header, Record};
use super::session::Session;
use super::set_file::SetFile;
use super::state::Inode;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Records the effects of one call. Clones share the same set. A recorder that is dropped
/// without [`Recorder::finish`] leaves an interrupted set.
#[derive(Debug, Clone)]
pub struct Recorder {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) session: Session,
    pub(super) header: Header,
    pub(super) inner: Mutex<Notes>,
    /// Signalled when a copy ends.
    pub(super) copied: Condvar,
    pub(super) holds: Holds,
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

/// Result of noting a file that is about to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opened {
    /// The present content is kept, if there is any.
    Kept,
    /// Nothing was noted, because the path is that of a symbolic link.
    Link,
}

/// Manner in which a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With a reply.
    Done,
    /// By a timeout, a cancellation or a kill.
    Interrupted,
}

pub(super) type Guard<'a> = MutexGuard<'a, Notes>;

/// Treatment of a symbolic link where a file is to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// It is what changes.
    Kept,
    /// It is not noted, but reported.
    Reported,
}

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

    pub(super) fn lock(&self) -> Guard<'_> {
        let inner = &self.shared.inner;
        inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the records, before the change that they are about.
    pub(super) fn flush(&self, inner: &mut Notes) -> io::Result<()> {
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
        self.before_call(path, touch, Links::Kept);
    }

    /// Like [`Recorder::before`] for a file that is opened by a path whose last component may be a
    /// link, which the call follows.
    pub(crate) fn before_open(&self, path: &Path, touch: Touch<'_>) -> Opened {
        self.before_call(path, touch, Links::Reported)
    }

    fn before_call(&self, path: &Path, touch: Touch<'_>, links: Links) -> Opened {
        let is_covered = self.covers(path);
        let done = match touch {
            Touch::Move { to } => self.before_move(path, is_covered, to, self.covers(to)),
            Touch::Exchange { with } if is_covered || self.covers(with) => {
                self.before_exchange(path, with)
            }
            _ if !is_covered => return Opened::Kept,
            Touch::Exchange { .. } => return Opened::Kept,
            Touch::Content | Touch::Create => {
                let opened = match touch {
                    Touch::Content => self.before_content(path, links),
                    _ => self.before_create(path),
                };
                match opened {
                    Ok(Opened::Link) if links == Links::Reported => return Opened::Link,
                    opened => opened.map(drop),
                }
            }
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
        Opened::Kept
    }

    /// Records that an undo has made something again.
    pub(super) fn alias(&self, old: Inode, new: Inode) {
        let mut inner = self.lock();
        Record::Alias { old, new }.append(&mut inner.out);
        let _ = self.flush(&mut inner);
    }

    /// Notes another name of a file that is about to lose one.
    pub(super) fn note_name(&self, path: &Path) {
        let mut inner = self.lock();
        if let Ok(Some(spot)) = inner.spot(path) {
            inner.note(&spot);
        }
        let _ = self.flush(&mut inner);
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
        self.shared.session.release(inner.promised);
        // Frees the notes now, not with the last clone.
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

fn unreadable(error: &io::Error) -> Counts {
    Counts {
        complete: false,
        why: Some(format!("the set cannot be stored: {error}")),
        ..Counts::default()
    }
}
