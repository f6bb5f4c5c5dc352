//! The file of one set: records that are only ever appended.
//!
//! Each is a length of four bytes and a payload. A length of 0, or more than what is left, is
//! the end: that is what a machine that lost power leaves.

use super::attributes::Attributes;
use super::codec::{Decoder, Encoder};
use super::keep::Kept;
use super::recorder::End;
use super::state::{Inode, State, Time};

/// Version of the format.
pub(super) const VERSION: u64 = 1;

/// One record.
#[derive(Debug, Clone)]
pub(super) enum Record {
    /// First record.
    Header(Header),
    /// A folder that contains touched entries. Their numbers rise from 1; 0 is `/`.
    Folder {
        inode: Inode,
        parent: u32,
        name: Box<[u8]>,
        modified: Time,
    },
    /// An entry before its first change.
    Entry {
        folder: u32,
        name: Box<[u8]>,
        before: Option<State>,
    },
    /// The content of a file before its first change.
    Content { inode: Inode, kept: Kept },
    /// Extended attributes of an inode before their first change.
    Attributes { inode: Inode, list: Attributes },
    /// A folder is about to be moved here. It may not get there.
    Moved {
        inode: Inode,
        folder: u32,
        name: Box<[u8]>,
    },
    /// Something is missing in this set.
    Incomplete(String),
    /// A changed entry after the call. Refers to an `Entry`.
    After {
        folder: u32,
        name: Box<[u8]>,
        after: Option<State>,
        /// Whether more than attributes changed.
        content: bool,
        /// SHA-256 of the content, where it was cheap to compute.
        hash: Option<[u8; 32]>,
    },
    /// A folder after the call: its folder and name, unless it is gone.
    FolderAfter {
        folder: u32,
        now: Option<(u32, Box<[u8]>)>,
        modified: Time,
    },
    /// An undo made a file or folder again: `new` is what `old` was.
    Alias { old: Inode, new: Inode },
    /// A file that is kept under another name and has further ones, after the call.
    LinkedAfter { inode: Inode, after: State },
    /// The file did not change, or not in content, so its content is not kept any more.
    Dropped { inode: Inode, part: Part },
    /// The records below were written after all those with a lower order. Without overlapping
    /// calls, this is the order of the sets.
    At(Order),
    /// Last record but one.
    Finished(Finished),
    /// Last record: the length of the one before, so that it is found without reading all.
    Trailer,
}

/// Length of the trailer.
pub(super) const TRAILER: usize = 9;

/// Position of records among those of other sets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Order {
    /// Number of the first set of the process that wrote them.
    pub(super) process: u64,
    /// Number of changes from one set to another before that, in this process.
    pub(super) change: u64,
}

/// Part of what is kept of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Its other name.
    Link,
    /// Its other name and its copy.
    All,
}

/// Start of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) call_id: String,
    pub(super) tool: String,
    pub(super) time: Time,
    /// Sets that it takes back, if it is an undo.
    pub(super) undoes: Vec<Target>,
    /// Name that the undos of several sessions share if they were one for the user; or empty.
    pub(super) group: String,
}

/// A set that an undo takes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) number: u64,
    pub(super) call_id: String,
    /// Absolute paths; empty: all of it.
    pub(super) paths: Vec<Box<[u8]>>,
}

/// End of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finished {
    pub(super) end: End,
    /// Created, modified, deleted, renamed, attributes.
    pub(super) counts: [u64; 5],
    /// Reason why something was not recorded.
    pub(super) why: Option<String>,
    /// Whether a limit removed what the set had kept.
    pub(super) evicted: bool,
    /// Time of the end; older sets do not have it.
    pub(super) time: Option<Time>,
}

impl Record {
    /// Appends the record with its length.
    pub(super) fn append(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        let mut encoder = Encoder(std::mem::take(out));
        self.encode(&mut encoder);
        *out = encoder.0;
        let length = u32::try_from(out.len() - start - 4).unwrap_or_default();
        if let Some(place) = out.get_mut(start..start + 4) {
            place.copy_from_slice(&length.to_le_bytes());
        }
    }

    fn encode(&self, to: &mut Encoder) {
        match self {
            Self::Header(header) => {
                to.number(1);
                to.number(VERSION);
                to.text(&header.call_id);
                to.text(&header.tool);
                header.time.encode(to);
                to.number(header.undoes.len() as u64);
                for target in &header.undoes {
                    target.encode(to);
                }
                to.text(&header.group);
            }
            Self::Folder {
                inode,
                parent,
                name,
                modified,
            } => {
                to.number(2);
                inode.encode(to);
                to.number((*parent).into());
                to.bytes(name);
                modified.encode(to);
            }
            Self::Entry {
                folder,
                name,
                before,
            } => {
                to.number(3);
                to.number((*folder).into());
                to.bytes(name);
                State::encode(before.as_ref(), to);
            }
            Self::Content { inode, kept } => {
                to.number(4);
                inode.encode(to);
                kept.encode(to);
            }
            Self::Attributes { inode, list } => {
                to.number(5);
                inode.encode(to);
                to.number(list.len() as u64);
                for (name, value) in list {
                    to.bytes(name);
                    to.bytes(value);
                }
            }
            Self::Moved {
                inode,
                folder,
                name,
            } => {
                to.number(6);
                inode.encode(to);
                to.number((*folder).into());
                to.bytes(name);
            }
            Self::Incomplete(why) => {
                to.number(7);
                to.text(why);
            }
            Self::After {
                folder,
                name,
                after,
                content,
                hash,
            } => {
                to.number(8);
                to.number((*folder).into());
                to.bytes(name);
                State::encode(after.as_ref(), to);
                to.number((*content).into());
                to.bytes(hash.as_ref().map_or(&[], |hash| hash.as_slice()));
            }
            Self::FolderAfter {
                folder,
                now,
                modified,
            } => {
                to.number(9);
                to.number((*folder).into());
                to.number(now.is_some().into());
                let (parent, name) = now.as_ref().map_or((0, &[][..]), |(id, name)| (*id, name));
                to.number(parent.into());
                to.bytes(name);
                modified.encode(to);
            }
            Self::Finished(finished) => {
                to.number(10);
                to.number(match finished.end {
                    End::Done => 0,
                    End::Interrupted => 1,
                });
                finished.counts.iter().for_each(|count| to.number(*count));
                to.number(finished.evicted.into());
                to.number(finished.why.is_some().into());
                to.text(finished.why.as_deref().unwrap_or_default());
                if let Some(time) = finished.time {
                    time.encode(to);
                }
            }
            Self::Trailer => to.number(11),
            Self::Alias { old, new } => {
                to.number(12);
                old.encode(to);
                new.encode(to);
            }
            Self::Dropped { inode, part } => {
                to.number(14);
                inode.encode(to);
                to.number((*part == Part::All).into());
            }
            Self::At(order) => {
                to.number(15);
                to.number(order.process);
                to.number(order.change);
            }
            Self::LinkedAfter { inode, after } => {
                to.number(13);
                inode.encode(to);
                State::encode(Some(after), to);
            }
        }
    }

    /// Appends the end of a set.
    pub(super) fn append_end(finished: Finished, out: &mut Vec<u8>) {
        let start = out.len();
        Self::Finished(finished).append(out);
        let length = u32::try_from(out.len() - start).unwrap_or_default();
        out.extend_from_slice(&[5, 0, 0, 0, 11]);
        out.extend_from_slice(&length.to_le_bytes());
    }

    /// Length of the `Finished` record, if these are the last bytes of a finished set.
    pub(super) fn end_length(trailer: [u8; TRAILER]) -> Option<u32> {
        let [5, 0, 0, 0, 11, length @ ..] = trailer else {
            return None;
        };
        Some(u32::from_le_bytes(length))
    }

    pub(super) fn decode(mut from: Decoder<'_>) -> Option<Self> {
        let from = &mut from;
        let record = match from.number()? {
            1 => {
                if from.number()? != VERSION {
                    return None;
                }
                let (call_id, tool) = (from.text()?, from.text()?);
                let time = Time::decode(from)?;
                let count = from.small()?;
                let undoes = (0..count)
                    .map(|_| Target::decode(from))
                    .collect::<Option<_>>()?;
                Self::Header(Header {
                    call_id,
                    tool,
                    time,
                    undoes,
                    group: from.text().unwrap_or_default(),
                })
            }
            2 => Self::Folder {
                inode: Inode::decode(from)?,
                parent: from.small()?,
                name: from.bytes()?.into(),
                modified: Time::decode(from)?,
            },
            3 => Self::Entry {
                folder: from.small()?,
                name: from.bytes()?.into(),
                before: State::decode(from)?,
            },
            4 => Self::Content {
                inode: Inode::decode(from)?,
                kept: Kept::decode(from)?,
            },
            5 => {
                let inode = Inode::decode(from)?;
                let count = from.small()?;
                let list = (0..count)
                    .map(|_| Some((from.bytes()?.into(), from.bytes()?.into())))
                    .collect::<Option<_>>()?;
                Self::Attributes { inode, list }
            }
            6 => Self::Moved {
                inode: Inode::decode(from)?,
                folder: from.small()?,
                name: from.bytes()?.into(),
            },
            7 => Self::Incomplete(from.text()?),
            8 => Self::After {
                folder: from.small()?,
                name: from.bytes()?.into(),
                after: State::decode(from)?,
                content: from.number()? != 0,
                hash: from.bytes()?.try_into().ok(),
            },
            9 => {
                let folder = from.small()?;
                let is_there = from.number()? != 0;
                let (parent, name) = (from.small()?, from.bytes()?);
                Self::FolderAfter {
                    folder,
                    now: is_there.then(|| (parent, name.into())),
                    modified: Time::decode(from)?,
                }
            }
            10 => {
                let end = if from.number()? == 0 {
                    End::Done
                } else {
                    End::Interrupted
                };
                let mut counts = [0; 5];
                for count in &mut counts {
                    *count = from.number()?;
                }
                let evicted = from.number()? != 0;
                let has_why = from.number()? != 0;
                let why = from.text()?;
                Self::Finished(Finished {
                    end,
                    counts,
                    why: has_why.then_some(why),
                    evicted,
                    time: Time::decode(from),
                })
            }
            11 => Self::Trailer,
            12 => Self::Alias {
                old: Inode::decode(from)?,
                new: Inode::decode(from)?,
            },
            14 => Self::Dropped {
                inode: Inode::decode(from)?,
                part: match from.number()? {
                    0 => Part::Link,
                    _ => Part::All,
                },
            },
            13 => Self::LinkedAfter {
                inode: Inode::decode(from)?,
                after: State::decode(from)??,
            },
            15 => Self::At(Order {
                process: from.number()?,
                change: from.number()?,
            }),
            _ => return None,
        };
        Some(record)
    }
}

impl Target {
    pub(super) fn encode(&self, to: &mut Encoder) {
        to.number(self.number);
        to.text(&self.call_id);
        to.number(self.paths.len() as u64);
        self.paths.iter().for_each(|path| to.bytes(path));
    }

    pub(super) fn decode(from: &mut Decoder<'_>) -> Option<Self> {
        let (number, call_id) = (from.number()?, from.text()?);
        let count = from.small()?;
        let paths = (0..count)
            .map(|_| from.bytes().map(Into::into))
            .collect::<Option<_>>()?;
        Some(Self {
            number,
            call_id,
            paths,
        })
    }
}
