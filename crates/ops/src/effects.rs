//! Effects: what a call changed on disk, kept so that it can be shown and undone.
//!
//! A [`Recorder`] hears of a change *before* it happens and never learns whether it
//! succeeded. So it keeps states, not operations: the state of every touched entry before its
//! first change, and the content that would otherwise be lost. When the call ends, these
//! states are compared with what is there; entries that did not change drop out, and the rest
//! is a [`ChangeSet`]. Undo puts the states before back, whatever the order of the operations
//! was.
//!
//! Entries are identified by the inode of their folder and their name, not by their path, so
//! that moving a folder with thousands of files needs a single record.
//!
//! A [`Store`] holds the sessions of one state folder, a [`Session`] its sets, oldest first.

mod aside;
mod attributes;
mod bounds;
mod change;
mod codec;
mod combine;
mod compare;
mod contents;
mod disk;
mod edited;
mod folders;
mod hands;
mod hold;
mod keep;
mod library;
mod locate;
mod metadata;
mod notes;
mod outcome;
mod picture;
mod plan;
mod record;
mod recorder;
mod records;
mod restore;
mod session;
mod set_file;
mod shared;
mod space;
mod state;
mod store;
mod summaries;
mod switch;
mod touch;
mod tree_at;
mod undo;
mod verdict;

pub use bounds::{Bounds, Skip};
pub use change::{
    Change, ChangeKind, ChangeSet, Counts, EntryKind, Incomplete, SetState, SetSummary, Side,
    Version,
};
pub use hold::Hold;
pub use outcome::{Aside, Calls, ChangedPath, Selection, TreeAt, UndoError, UndoMode, Undone};
pub(crate) use recorder::Opened;
pub use recorder::{End, Recorder, Touch};
pub use session::Session;
pub use store::{Clean, SessionInfo, Store, Usage};
pub use switch::{Attribution, Recording, Switch};

#[cfg(test)]
mod tests;
