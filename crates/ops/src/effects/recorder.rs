//! Records the effects of one call.

use super::change::{Counts, Incomplete};
use super::hold::{Hold, Holds};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Records the effects of one call. Clones share the same set. A recorder that is dropped
/// without [`Recorder::finish`] leaves an interrupted set.
#[derive(Debug, Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    why: Mutex<Option<Incomplete>>,
    holds: Holds,
}

/// What is about to happen to an entry. Operations that cannot change anything because they
/// fail (such as `mkdir` of an existing folder) may be reported too.
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

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With a reply.
    Done,
    /// By a timeout, a cancellation or a kill.
    Interrupted,
}

impl Recorder {
    pub(super) fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                why: Mutex::new(None),
                holds: Holds::default(),
            }),
        }
    }

    /// Whether changes at this absolute path are recorded: it is below the work folder or a
    /// root, and not in the store itself.
    #[must_use]
    pub fn covers(&self, _path: &Path) -> bool {
        false
    }

    /// Keeps what is about to change. Returns when the change may happen. Trouble makes the
    /// set incomplete, it never stops the call.
    ///
    /// `path` is absolute, its folder has no links in it, and its last component is not
    /// followed. Paths that are not covered are ignored; of a move, either end is enough.
    pub fn before(&self, _path: &Path, _touch: Touch<'_>) {
        self.incomplete(Incomplete::Other("recording is not built yet".to_owned()));
    }

    /// Records that something could not be recorded. The first reason is the one shown.
    pub fn incomplete(&self, reason: Incomplete) {
        let mut why = self
            .shared
            .why
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        why.get_or_insert(reason);
    }

    /// Compares with what is there now and goes on recording, for a call that left processes
    /// running.
    #[must_use]
    pub fn counts_now(&self) -> Counts {
        let why = self
            .shared
            .why
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Counts {
            complete: why.is_none(),
            why: why.as_ref().map(ToString::to_string),
            ..Counts::default()
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
        self.counts_now()
    }
}
