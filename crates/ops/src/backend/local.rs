//! Files on local disks, accessed below the open handle of a root.

pub(crate) mod handle;
pub(crate) mod litter;
mod replace;
#[cfg(test)]
mod tests;

pub use litter::Litter;

use super::{Backend, Content, Entry, Expect, Kind, LIGHT, Stat, Target, Through, Written};
use crate::blocking::{self, Weight};
use crate::{Error, FilePath, Result};
use async_trait::async_trait;
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, Dir, FileType, OFlags, fstat, readlinkat, statat, unlinkat};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Maximum number of bytes to read from files in `/proc` and `/sys`, which have no size and
/// may be endless.
const PSEUDO_LIMIT: u64 = 8 << 20;

/// The local disk.
#[derive(Debug, Clone, Default)]
pub struct Local {
    litter: Option<Arc<Litter>>,
    swept: Arc<replace::Swept>,
}

impl Local {
    /// Creates a backend that removes stale temporary files from a folder only when it next
    /// writes there.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a backend that also records its temporary files in `litter`, so that the
    /// next start can remove those of a killed process.
    #[must_use]
    pub fn with_litter(litter: Litter) -> Self {
        Self {
            litter: Some(Arc::new(litter)),
            ..Self::default()
        }
    }
}

#[async_trait]
impl Backend for Local {
    async fn read(&self, path: &FilePath) -> Result<Content> {
        // The scope has just accessed the path, so opening it is fast.
        open_regular(path)
    }

    async fn write(&self, path: &FilePath, bytes: Vec<u8>, expect: Expect) -> Result<Written> {
        let path = path.clone();
        let (litter, swept) = (self.litter.clone(), Arc::clone(&self.swept));
        blocking::run(Weight::Heavy, move || {
            replace::replace(&path, &bytes, &expect, litter.as_deref(), &swept)
        })
        .await
    }

    async fn remove(&self, path: &FilePath) -> Result<()> {
        let path = path.clone();
        blocking::run(Weight::Heavy, move || remove(&path)).await
    }

    async fn stat(&self, path: &FilePath) -> Result<Stat> {
        let path = path.clone();
        blocking::run(Weight::Heavy, move || stat(&path)).await
    }

    async fn list(&self, path: &FilePath) -> Result<Vec<Entry>> {
        let path = path.clone();
        blocking::run(Weight::Heavy, move || list(&path)).await
    }

    fn on_disk<'a>(&self, path: &'a FilePath) -> Option<&'a Path> {
        path.root().dir().map(|_| path.real())
    }
}

/// Returns the metadata of a path on disk.
pub(crate) fn stat(path: &FilePath) -> Result<Stat> {
    let handle = handle::open(path, OFlags::PATH | OFlags::NOFOLLOW)?;
    let stat = fstat(&handle).map_err(|errno| Error::io("stat", path.given(), errno.into()))?;
    Ok(describe(&stat))
}

/// Opens a regular file for reading. Checks the type first, because opening a device can
/// have effects.
pub(crate) fn open_regular(path: &FilePath) -> Result<Content> {
    let fail = |errno: rustix::io::Errno| Error::io("read", path.given(), errno.into());
    if !path.was_file() {
        let handle = handle::open(path, OFlags::PATH)?;
        regular(path, &fstat(&handle).map_err(fail)?)?;
    }
    let file = handle::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
    let opened = fstat(&file).map_err(fail)?;
    regular(path, &opened)?;
    let weight = weight(&file, &opened);
    let file = std::fs::File::from(file);
    let reader: Box<dyn Read + Send> = if is_pseudo(path.real()) {
        Box::new(Bounded::new(file, PSEUDO_LIMIT))
    } else {
        Box::new(file)
    };
    Ok(Content {
        stat: describe(&opened),
        reader,
        weight,
    })
}

fn regular(path: &FilePath, stat: &rustix::fs::Stat) -> Result<()> {
    let given = || path.given().to_owned();
    match describe(stat).kind {
        Kind::File => Ok(()),
        Kind::Directory => Err(Error::IsDirectory { path: given() }),
        Kind::Link => Err(Error::NotRegular {
            path: given(),
            kind: "symbolic link",
        }),
        Kind::Other(kind) => Err(Error::NotRegular {
            path: given(),
            kind,
        }),
    }
}

/// A small file on a local disk is light. A file on a network or behind another program may
/// never be readable, however small it is.
fn weight(file: &impl AsFd, stat: &rustix::fs::Stat) -> Weight {
    #[cfg(target_os = "linux")]
    {
        /// ext2 to ext4, XFS, Btrfs, F2FS, ZFS, tmpfs, overlayfs.
        const LOCAL: [u64; 7] = [
            0xEF53,
            0x5846_5342,
            0x9123_683E,
            0xF2F5_2010,
            0x2FC1_2FC1,
            0x0102_1994,
            0x794C_7630,
        ];
        let small = u64::try_from(stat.st_size).is_ok_and(|size| size <= LIGHT);
        if small && let Ok(system) = rustix::fs::fstatfs(file) {
            let kind = u64::try_from(system.f_type).unwrap_or_default();
            return if LOCAL.contains(&kind) {
                Weight::Light
            } else {
                Weight::Heavy
            };
        }
    }
    let _ = (file, stat);
    Weight::Heavy
}

/// Opens a regular file found by a walk, for the parallel search.
pub(crate) fn open_found(path: &FilePath, below: &Path) -> io::Result<std::fs::File> {
    let dir = path
        .root()
        .dir()
        .ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
    let whole;
    let below = if path.below().as_os_str().is_empty() {
        below
    } else {
        whole = path.below().join(below);
        &whole
    };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(std::fs::File::from(handle::open_below(dir, below, flags)?))
}

fn is_pseudo(real: &Path) -> bool {
    real.starts_with("/proc") || real.starts_with("/sys") || real.starts_with("/dev")
}

/// A reader that fails instead of continuing forever.
pub(crate) struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R> Bounded<R> {
    pub(crate) fn new(inner: R, limit: u64) -> Self {
        Self { inner, left: limit }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| io::Error::other("it has no end"))?;
        Ok(read)
    }
}

fn remove(path: &FilePath) -> Result<()> {
    let fail = |errno: rustix::io::Errno| Error::io("delete", path.given(), errno.into());
    let (parent, name) = handle::open_parent(path, handle::Parents::MustExist)?;
    let stat = describe(&statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(fail)?);
    if stat.kind == Kind::Directory {
        return Err(Error::IsDirectory {
            path: path.given().to_owned(),
        });
    }
    unlinkat(&parent, &name, AtFlags::empty()).map_err(fail)?;
    rustix::fs::fsync(&parent).map_err(fail)
}

fn list(path: &FilePath) -> Result<Vec<Entry>> {
    let fail = |errno: rustix::io::Errno| Error::io("list", path.given(), errno.into());
    // The type first: `O_DIRECTORY` alone would return ENOTDIR for a missing parent, too.
    let folder = handle::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK)?;
    let mut entries = Vec::new();
    for entry in Dir::read_from(&folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." || path.hides(&path.real().join(name)) {
            continue;
        }
        // It disappeared after the listing, which is not an error.
        let Ok(stat) = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let stat = describe(&stat);
        // A write in progress, or one that was killed.
        if stat.kind == Kind::File && litter::is_temporary(name.as_bytes()) {
            continue;
        }
        let target = if stat.kind == Kind::Link {
            Some(target(&folder, name, path.sees_through(name)))
        } else {
            None
        };
        entries.push(Entry {
            name: name.to_owned(),
            stat,
            target,
        });
    }
    entries.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
    Ok(entries)
}

fn target(folder: &impl AsFd, name: &OsStr, visible: bool) -> Target {
    let path = readlinkat(folder, name, Vec::new())
        .map(|target| PathBuf::from(OsString::from_vec(target.into_bytes())))
        .unwrap_or_default();
    let there = || match statat(folder, name, AtFlags::empty()) {
        Ok(stat) => Through::To(describe(&stat).kind),
        Err(_) => Through::Broken,
    };
    Target {
        path,
        through: if visible { there() } else { Through::Unseen },
    }
}

/// Converts the type reported by the system.
pub(crate) fn kind(file_type: FileType) -> Kind {
    match file_type {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Link,
        FileType::Fifo => Kind::Other("FIFO"),
        FileType::Socket => Kind::Other("socket"),
        FileType::CharacterDevice => Kind::Other("character device"),
        FileType::BlockDevice => Kind::Other("block device"),
        FileType::Unknown => Kind::Other("special file"),
    }
}

pub(crate) fn describe(stat: &rustix::fs::Stat) -> Stat {
    let kind = kind(FileType::from_raw_mode(stat.st_mode));
    let size = if kind == Kind::Directory {
        0
    } else {
        u64::try_from(stat.st_size).unwrap_or(0)
    };
    Stat {
        kind,
        size,
        modified: modified(stat.st_mtime, stat.st_mtime_nsec),
        mode: Some(stat.st_mode & 0o7777),
    }
}

fn modified(seconds: i64, nanos: impl TryInto<u32>) -> Option<SystemTime> {
    let nanos = Duration::from_nanos(u64::from(nanos.try_into().unwrap_or(0)));
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let time = if seconds >= 0 {
        SystemTime::UNIX_EPOCH.checked_add(whole)
    } else {
        SystemTime::UNIX_EPOCH.checked_sub(whole)
    };
    time?.checked_add(nanos)
}
