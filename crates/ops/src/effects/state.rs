//! The state of one entry.

use super::EntryKind;
use super::change::Side;
use super::codec::{Decoder, Encoder};
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, FileType, StatxFlags, readlinkat, statat, statx};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::SystemTime;

/// Identity of a file or folder. The time of its creation tells it apart from an earlier file
/// whose number the file system has reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Inode {
    pub(super) dev: u64,
    pub(super) ino: u64,
    /// Nanoseconds; 0 if the file system does not know it.
    pub(super) born: i64,
}

/// Time with nanoseconds, as the kernel keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Time {
    pub(super) seconds: i64,
    pub(super) nanos: u32,
}

/// An existing entry.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) inode: Inode,
    pub(super) file_type: FileType,
    /// Permission bits.
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) size: u64,
    pub(super) modified: Time,
    /// Time of the last change of content or attributes, which no program can set.
    pub(super) changed: Time,
    pub(super) links: u32,
    pub(super) device: u64,
    /// Target of a symbolic link.
    pub(super) target: Option<Box<[u8]>>,
    /// Space on disk in bytes. Not stored.
    pub(super) space: u64,
}

/// Reads the state of an entry, without following it. `None`: it does not exist.
pub(super) fn read(dir: impl AsFd, name: &OsStr) -> rustix::io::Result<Option<State>> {
    let mut state = match numbers(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(state) => state,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    if state.file_type == FileType::Symlink {
        match readlinkat(&dir, name, Vec::new()) {
            Ok(target) => state.target = Some(target.into_bytes().into_boxed_slice()),
            Err(Errno::NOENT) => return Ok(None),
            // Replaced since: the state is not that of a link any more.
            Err(Errno::INVAL) => return read(dir, name),
            Err(errno) => return Err(errno),
        }
    }
    Ok(Some(state))
}

/// Reads the state of an open file or folder.
pub(super) fn of(file: impl AsFd) -> rustix::io::Result<State> {
    numbers(file, OsStr::new(""), AtFlags::EMPTY_PATH)
}

fn numbers(dir: impl AsFd, name: &OsStr, flags: AtFlags) -> rustix::io::Result<State> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    match statx(&dir, name, flags, wanted) {
        Ok(stat) => {
            let is_born = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
            let born = stat.stx_btime;
            Ok(State {
                inode: Inode {
                    dev: u64::from(stat.stx_dev_major) << 32 | u64::from(stat.stx_dev_minor),
                    ino: stat.stx_ino,
                    born: if is_born {
                        born.tv_sec
                            .wrapping_mul(1_000_000_000)
                            .wrapping_add(i64::from(born.tv_nsec))
                    } else {
                        0
                    },
                },
                file_type: FileType::from_raw_mode(stat.stx_mode.into()),
                mode: u32::from(stat.stx_mode) & 0o7777,
                uid: stat.stx_uid,
                gid: stat.stx_gid,
                size: stat.stx_size,
                modified: Time {
                    seconds: stat.stx_mtime.tv_sec,
                    nanos: stat.stx_mtime.tv_nsec,
                },
                changed: Time {
                    seconds: stat.stx_ctime.tv_sec,
                    nanos: stat.stx_ctime.tv_nsec,
                },
                links: stat.stx_nlink,
                device: rustix::fs::makedev(stat.stx_rdev_major, stat.stx_rdev_minor),
                target: None,
                space: stat.stx_blocks.saturating_mul(512),
            })
        }
        // A filter around haft may not know the newer call.
        Err(Errno::NOSYS | Errno::PERM) => older(dir, name, flags),
        Err(errno) => Err(errno),
    }
}

fn older(dir: impl AsFd, name: &OsStr, flags: AtFlags) -> rustix::io::Result<State> {
    let stat = statat(dir, name, flags)?;
    Ok(State {
        inode: Inode {
            dev: u64::from(rustix::fs::major(stat.st_dev)) << 32
                | u64::from(rustix::fs::minor(stat.st_dev)),
            ino: stat.st_ino,
            born: 0,
        },
        file_type: FileType::from_raw_mode(stat.st_mode),
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        size: stat.st_size.cast_unsigned(),
        modified: Time {
            seconds: stat.st_mtime,
            nanos: u32::try_from(stat.st_mtime_nsec).unwrap_or_default(),
        },
        changed: Time {
            seconds: stat.st_ctime,
            nanos: u32::try_from(stat.st_ctime_nsec).unwrap_or_default(),
        },
        links: u32::try_from(stat.st_nlink).unwrap_or(u32::MAX),
        device: stat.st_rdev,
        target: None,
        space: stat.st_blocks.cast_unsigned().saturating_mul(512),
    })
}

impl State {
    pub(super) fn kind(&self) -> EntryKind {
        match self.file_type {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Dir,
            FileType::Symlink => EntryKind::Link,
            _ => EntryKind::Other,
        }
    }

    pub(super) fn is_dir(&self) -> bool {
        self.file_type == FileType::Directory
    }

    pub(super) fn is_link(&self) -> bool {
        self.file_type == FileType::Symlink
    }

    pub(super) fn is_file(&self) -> bool {
        self.file_type == FileType::RegularFile
    }

    pub(super) fn side(&self) -> Side {
        let entry = self.kind();
        Side {
            entry,
            bytes: if entry == EntryKind::Dir {
                0
            } else {
                self.size
            },
            mode: self.mode,
            target: self
                .target
                .as_ref()
                .map(|target| PathBuf::from(OsString::from_vec(target.to_vec()))),
        }
    }

    /// Whether type, target and content are the same. Files are judged by size and time, which
    /// tell versions of one file apart, but not two files.
    pub(super) fn same_content(&self, other: &Self) -> bool {
        let is_one = (self.inode.dev, self.inode.ino) == (other.inode.dev, other.inode.ino);
        self.same_version(other) && (is_one || self.kind() != EntryKind::File)
    }

    /// The same for two states that are known to be of one file.
    pub(super) fn same_version(&self, other: &Self) -> bool {
        self.file_type == other.file_type
            && match self.kind() {
                EntryKind::File => self.size == other.size && self.modified == other.modified,
                EntryKind::Dir => true,
                EntryKind::Link => self.target == other.target,
                EntryKind::Other => self.device == other.device,
            }
    }

    /// Space that a copy needs; less than the size if the file has holes.
    pub(super) fn cost(&self) -> u64 {
        self.size.min(self.space.max(1))
    }

    /// Whether mode and owner are the same. A symbolic link has no mode.
    pub(super) fn same_access(&self, other: &Self) -> bool {
        (self.uid, self.gid) == (other.uid, other.gid)
            && (self.mode == other.mode || self.kind() == EntryKind::Link)
    }

    pub(super) fn encode(state: Option<&Self>, encoder: &mut Encoder) {
        let Some(state) = state else {
            return encoder.number(0);
        };
        encoder.number(u64::from(state.file_type.as_raw_mode() >> 12));
        state.inode.encode(encoder);
        encoder.number(state.mode.into());
        encoder.number(state.uid.into());
        encoder.number(state.gid.into());
        encoder.number(state.size);
        state.modified.encode(encoder);
        state.changed.encode(encoder);
        encoder.number(state.links.into());
        encoder.number(state.device);
        encoder.bytes(state.target.as_deref().unwrap_or_default());
    }

    /// Decodes a state; the inner `None` is an absent entry.
    pub(super) fn decode(decoder: &mut Decoder<'_>) -> Option<Option<Self>> {
        let kind = decoder.small()?;
        if kind == 0 {
            return Some(None);
        }
        let file_type = FileType::from_raw_mode(kind.checked_shl(12)?);
        let mut state = Self {
            inode: Inode::decode(decoder)?,
            file_type,
            mode: decoder.small()?,
            uid: decoder.small()?,
            gid: decoder.small()?,
            size: decoder.number()?,
            modified: Time::decode(decoder)?,
            changed: Time::decode(decoder)?,
            links: decoder.small()?,
            device: decoder.number()?,
            target: None,
            space: 0,
        };
        let target = decoder.bytes()?;
        if file_type == FileType::Symlink {
            state.target = Some(target.into());
        }
        Some(Some(state))
    }
}

impl Inode {
    pub(super) fn encode(self, encoder: &mut Encoder) {
        encoder.number(self.dev);
        encoder.number(self.ino);
        encoder.signed(self.born);
    }

    pub(super) fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        Some(Self {
            dev: decoder.number()?,
            ino: decoder.number()?,
            born: decoder.signed()?,
        })
    }
}

impl Time {
    pub(super) fn encode(self, to: &mut Encoder) {
        to.signed(self.seconds);
        to.number(self.nanos.into());
    }

    pub(super) fn decode(from: &mut Decoder<'_>) -> Option<Self> {
        Some(Self {
            seconds: from.signed()?,
            nanos: from.small()?,
        })
    }

    pub(super) fn now() -> Self {
        let since = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
            nanos: since.subsec_nanos(),
        }
    }
}

/// A name as the system gave it.
pub(super) fn name(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}
