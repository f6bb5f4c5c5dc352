//! Keeping the content of files: as another name of the file, as a reflink, or as a copy.

use super::codec::{Decoder, Encoder};
use super::state::{self, Inode, State};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, Mode, OFlags, SeekFrom, copy_file_range, ftruncate, ioctl_ficlone, linkat, openat,
    seek, unlinkat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum size of a file that goes into the pack. Creating a file costs more than writing
/// this many bytes.
pub(super) const PACKED: u64 = 64 << 10;

/// Name of the pack among the objects.
pub(super) const PACK: &str = "pack";

/// Number of bytes to copy at a time.
const CHUNK: usize = 1 << 20;

/// Place of kept content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kept {
    /// In a file of this name, which is the file itself: another name of its inode.
    Linked(String),
    /// In a file of this name, a copy.
    Copied(String),
    /// In the pack of the set.
    Packed { offset: u64, size: u64 },
    /// Nowhere, for this reason.
    No(String),
}

/// Folder in which a set keeps content. It exists once something is in it.
#[derive(Debug)]
pub(super) struct Objects {
    folder: PathBuf,
    dir: Option<OwnedFd>,
    pack: Option<Arc<File>>,
    pack_length: u64,
    count: u64,
}

/// A file that could not be kept.
#[derive(Debug)]
pub(super) enum NotKept {
    /// Another file has this name now.
    Replaced,
    /// An error of the system.
    System(io::Error),
}

impl From<Errno> for NotKept {
    fn from(errno: Errno) -> Self {
        Self::System(errno.into())
    }
}

impl From<io::Error> for NotKept {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// A place for content that was reserved under the recorder's lock. Filling it needs no lock.
#[derive(Debug)]
pub(super) enum Reserved {
    Packed { pack: Arc<File>, offset: u64 },
    File { dir: OwnedFd, name: String },
}

impl Objects {
    /// Objects of one set, new or continued after a kill.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            dir: None,
            pack: None,
            pack_length: 0,
            count: 0,
        }
    }

    /// Objects of a set that ended its recording. Their names do not clash with earlier ones.
    pub(super) fn continued(folder: PathBuf) -> Self {
        Self {
            count: 1 << 32,
            ..Self::new(folder)
        }
    }

    fn dir(&mut self) -> io::Result<&OwnedFd> {
        if self.dir.is_none() {
            crate::private::folder(&self.folder)?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            self.dir = Some(openat(rustix::fs::CWD, &self.folder, flags, Mode::empty())?);
        }
        self.dir
            .as_ref()
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    /// Gives a file that is about to lose a name another one here.
    pub(super) fn link(
        &mut self,
        folder: impl AsFd,
        name: &OsStr,
        state: &State,
    ) -> Result<Kept, NotKept> {
        let object = linked_name(state);
        let dir = self.dir()?;
        match linkat(&folder, name, dir, object.as_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        // Another thread may have put another file under this name in the meantime.
        match state::read(dir, OsStr::new(&object))? {
            Some(linked) if linked.inode == state.inode => Ok(Kept::Linked(object)),
            _ => {
                let _ = unlinkat(dir, object.as_str(), AtFlags::empty());
                Err(NotKept::Replaced)
            }
        }
    }

    /// Reserves a place for a copy.
    pub(super) fn reserve(&mut self, state: &State) -> io::Result<Reserved> {
        if state.size <= PACKED {
            if self.pack.is_none() {
                let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                let pack = openat(self.dir()?, PACK, flags, Mode::RUSR | Mode::WUSR)?;
                let pack = File::from(pack);
                self.pack_length = pack.metadata()?.len();
                self.pack = Some(Arc::new(pack));
            }
            let pack = self.pack.clone().ok_or(io::ErrorKind::NotFound)?;
            let offset = self.pack_length;
            self.pack_length = offset.saturating_add(state.size);
            return Ok(Reserved::Packed { pack, offset });
        }
        self.count += 1;
        let name = format!("c{}-{:x}", self.count, state.inode.ino);
        let dir = self.dir()?.try_clone()?;
        Ok(Reserved::File { dir, name })
    }
}

impl Reserved {
    /// Copies a file that is about to change. Also returns the open file.
    pub(super) fn copy(
        self,
        folder: impl AsFd,
        name: &OsStr,
        state: &State,
    ) -> Result<(Kept, File), NotKept> {
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(folder, name, flags, Mode::empty()) {
            Err(Errno::NOENT | Errno::LOOP) => return Err(NotKept::Replaced),
            file => File::from(file?),
        };
        let opened = state::of(&file)?;
        if opened.inode != state.inode {
            return Err(NotKept::Replaced);
        }
        has_space()?;
        match self {
            Self::Packed { pack, offset } => {
                let size = usize::try_from(state.size).unwrap_or_default();
                let mut bytes = Vec::with_capacity(size + 1);
                (&file).take(state.size).read_to_end(&mut bytes)?;
                pack.write_all_at(&bytes, offset)?;
                let size = bytes.len() as u64;
                Ok((Kept::Packed { offset, size }, file))
            }
            Self::File { dir, name } => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
                let into = openat(&dir, name.as_str(), flags, Mode::RUSR | Mode::WUSR)?;
                if let Err(error) = copy_content(&file, &into) {
                    let _ = unlinkat(&dir, name.as_str(), AtFlags::empty());
                    return Err(error.into());
                }
                Ok((Kept::Copied(name), file))
            }
        }
    }
}

/// A point at which a test lets the store be full.
pub(super) fn has_space() -> io::Result<()> {
    #[cfg(test)]
    super::tests::steps::has_space()?;
    Ok(())
}

/// Name of a linked object. It identifies a version of a file, so that a file which was put
/// back and is deleted again is found under the same name.
fn linked_name(state: &State) -> String {
    let Inode { dev, ino, born } = state.inode;
    let time = state.modified;
    format!(
        "l{dev:x}-{ino:x}-{born:x}-{:x}.{:x}-{:x}",
        time.seconds, time.nanos, state.size
    )
}

/// Copies the content of a file, holes included, to the start of another.
pub(super) fn copy_content(from: impl AsFd, into: impl AsFd) -> io::Result<()> {
    let (from, into) = (from.as_fd(), into.as_fd());
    if ioctl_ficlone(into, from).is_ok() {
        return Ok(());
    }
    let size = state::of(from)?.size;
    ftruncate(into, size)?;
    let mut at = 0;
    while at < size {
        let (start, end) = match seek(from, SeekFrom::Data(at)) {
            Ok(start) => (start, seek(from, SeekFrom::Hole(start))?),
            // Only a hole is left.
            Err(Errno::NXIO) => break,
            // A file system without holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => (at, size),
            Err(errno) => return Err(errno.into()),
        };
        copy_range(from, into, start, end)?;
        at = end.max(start.saturating_add(1));
    }
    Ok(())
}

fn copy_range(from: impl AsFd, into: impl AsFd, start: u64, end: u64) -> io::Result<()> {
    let (mut read, mut written) = (start, start);
    while read < end {
        let length = usize::try_from(end - read).unwrap_or(CHUNK).min(CHUNK * 64);
        match copy_file_range(&from, Some(&mut read), &into, Some(&mut written), length) {
            // The file became shorter.
            Ok(0) => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => {
                return copy_bytes(from, into, read, end);
            }
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn copy_bytes(from: impl AsFd, into: impl AsFd, start: u64, end: u64) -> io::Result<()> {
    let mut at = start;
    let mut chunk = vec![0; CHUNK];
    while at < end {
        let length = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
        let part = chunk.get_mut(..length).unwrap_or_default();
        let read = match rustix::io::pread(&from, part, at) {
            Ok(0) => return Ok(()),
            Err(Errno::INTR) => continue,
            read => read?,
        };
        let mut rest = chunk.get(..read).unwrap_or_default();
        while !rest.is_empty() {
            let written = match rustix::io::pwrite(&into, rest, at) {
                Err(Errno::INTR) => continue,
                written => written?,
            };
            at += written as u64;
            rest = rest.get(written..).unwrap_or_default();
        }
    }
    Ok(())
}

/// Content of an object.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) file: File,
    /// Part of the file, if it is a pack.
    pub(super) part: Option<(u64, u64)>,
}

/// Opens what a set kept. `None`: it is not there any more.
pub(super) fn open(folder: &Path, kept: &Kept) -> io::Result<Option<Source>> {
    let (name, part) = match kept {
        Kept::Linked(name) | Kept::Copied(name) => (name.as_str(), None),
        Kept::Packed { offset, size } => (PACK, Some((*offset, *size))),
        Kept::No(_) => return Ok(None),
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match openat(rustix::fs::CWD, folder.join(name), flags, Mode::empty()) {
        Ok(file) => Ok(Some(Source {
            file: File::from(file),
            part,
        })),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

impl Source {
    /// Writes the content to the start of an empty file.
    pub(super) fn copy_to(&self, into: impl AsFd) -> io::Result<()> {
        match self.part {
            None => copy_content(&self.file, into),
            Some((offset, size)) => {
                let mut bytes = vec![0; usize::try_from(size).unwrap_or_default()];
                self.file.read_exact_at(&mut bytes, offset)?;
                let mut at = 0;
                while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
                    at += rustix::io::pwrite(&into, rest, at as u64)?;
                }
                Ok(())
            }
        }
    }

    /// A reader of the content.
    pub(super) fn reader(self) -> Box<dyn Read + Send> {
        match self.part {
            None => Box::new(self.file),
            Some((offset, size)) => Box::new(Part {
                file: self.file,
                at: offset,
                end: offset.saturating_add(size),
            }),
        }
    }
}

struct Part {
    file: File,
    at: u64,
    end: u64,
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        let read = self
            .file
            .read_at(buffer.get_mut(..length).unwrap_or_default(), self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Kept {
    pub(super) fn encode(&self, to: &mut Encoder) {
        match self {
            Self::Linked(name) => {
                to.number(0);
                to.text(name);
            }
            Self::Copied(name) => {
                to.number(1);
                to.text(name);
            }
            Self::Packed { offset, size } => {
                to.number(2);
                to.number(*offset);
                to.number(*size);
            }
            Self::No(why) => {
                to.number(3);
                to.text(why);
            }
        }
    }

    pub(super) fn decode(from: &mut Decoder<'_>) -> Option<Self> {
        Some(match from.number()? {
            0 => Self::Linked(from.text()?),
            1 => Self::Copied(from.text()?),
            2 => Self::Packed {
                offset: from.number()?,
                size: from.number()?,
            },
            3 => Self::No(from.text()?),
            _ => return None,
        })
    }
}
