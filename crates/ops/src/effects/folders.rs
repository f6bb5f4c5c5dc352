//! Folders that contain touched entries.
//!
//! An entry is identified by its folder and name. A folder is identified by its inode, so its
//! entries stay the same when it, or a folder above it, is moved.

use super::record::Record;
use super::state::{self, Inode, State};
use crate::backend::local::handle::open_below;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of open folders to remember.
const OPEN: usize = 8;

/// Length of a path that the kernel resolves in one step.
const LONGEST: usize = 4000;

/// Hash of a folder's number and a name. Long enough that two entries never share one, and
/// much smaller than a name.
pub(super) type Key = u128;

/// The folders of a set, while it is recorded.
#[derive(Debug)]
pub(super) struct Folders {
    hashers: [RandomState; 2],
    root: Option<OwnedFd>,
    by_inode: HashMap<Inode, u32>,
    by_place: HashMap<Key, u32>,
    next: u32,
    open: Vec<(PathBuf, Arc<OwnedFd>, u32)>,
}

/// An entry that is about to be touched.
#[derive(Debug)]
pub(super) struct Spot {
    pub(super) dir: Arc<OwnedFd>,
    pub(super) folder: u32,
    pub(super) name: Box<[u8]>,
    pub(super) key: Key,
    pub(super) now: Option<State>,
}

impl Spot {
    pub(super) fn name(&self) -> &OsStr {
        state::name(&self.name)
    }
}

impl Folders {
    pub(super) fn new() -> Self {
        Self {
            hashers: [RandomState::new(), RandomState::new()],
            root: None,
            by_inode: HashMap::new(),
            by_place: HashMap::new(),
            next: 1,
            open: Vec::new(),
        }
    }

    pub(super) fn key(&self, folder: u32, name: &[u8]) -> Key {
        let [first, second] = &self.hashers;
        u128::from(first.hash_one((folder, name))) << 64
            | u128::from(second.hash_one((folder, name)))
    }

    /// Forgets open folders: one of them may be elsewhere or gone.
    pub(super) fn forget_open(&mut self) {
        self.open.clear();
    }

    /// Adds a folder of an earlier part of the same set.
    pub(super) fn add(&mut self, inode: Inode, parent: u32, name: &[u8]) {
        let key = self.key(parent, name);
        self.by_inode.insert(inode, self.next);
        self.by_place.insert(key, self.next);
        self.next += 1;
    }

    /// Finds an entry. `None` if its folder does not exist. New folders are added to `out`.
    pub(super) fn spot(
        &mut self,
        path: &Path,
        seen: &HashSet<Key>,
        out: &mut Vec<u8>,
    ) -> io::Result<Option<Spot>> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::INVAL.into());
        };
        let Some((dir, folder)) = self.folder(parent, seen, out)? else {
            return Ok(None);
        };
        let now = state::read(&*dir, name)?;
        let name: Box<[u8]> = name.as_bytes().into();
        let key = self.key(folder, &name);
        Ok(Some(Spot {
            dir,
            folder,
            name,
            key,
            now,
        }))
    }

    fn folder(
        &mut self,
        path: &Path,
        seen: &HashSet<Key>,
        out: &mut Vec<u8>,
    ) -> io::Result<Option<(Arc<OwnedFd>, u32)>> {
        if let Some(at) = self.open.iter().position(|(known, ..)| known == path) {
            if let Some(front) = self.open.get_mut(..=at) {
                front.rotate_right(1);
            }
            if let Some((_, dir, id)) = self.open.first() {
                return Ok(Some((Arc::clone(dir), *id)));
            }
        }
        if self.root.is_none() {
            self.root = Some(open_root()?);
        }
        let Some(root) = &self.root else {
            return Ok(None);
        };
        let dir = match open_folder(root, path) {
            // A link in its place is a change that was not seen, and is reported.
            Err(error) if is_missing(&error) && !is_link(&error) => return Ok(None),
            dir => dir?,
        };
        let id = self.identify(path, &state::of(&dir)?, seen, out)?;
        let dir = Arc::new(dir);
        self.open.truncate(OPEN - 1);
        self.open.insert(0, (path.to_owned(), Arc::clone(&dir), id));
        Ok(Some((dir, id)))
    }

    fn identify(
        &mut self,
        path: &Path,
        state: &State,
        seen: &HashSet<Key>,
        out: &mut Vec<u8>,
    ) -> io::Result<u32> {
        if let Some(id) = self.by_inode.get(&state.inode) {
            return Ok(*id);
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(0);
        };
        let above = match &self.root {
            Some(root) => state::of(open_folder(root, parent)?)?,
            None => return Err(Errno::BADF.into()),
        };
        let parent = self.identify(parent, &above, seen, out)?;
        let name = name.as_bytes();
        let key = self.key(parent, name);
        // On an overlay, a folder gets another inode when something in it is first changed.
        if !seen.contains(&key)
            && let Some(id) = self.by_place.get(&key)
        {
            self.by_inode.insert(state.inode, *id);
            return Ok(*id);
        }
        self.number(state, parent, name, out)
    }

    /// Adds a folder that is about to be moved to a place.
    pub(super) fn arrives(
        &mut self,
        state: &State,
        parent: u32,
        name: &[u8],
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        if !self.by_inode.contains_key(&state.inode) {
            self.number(state, parent, name, out)?;
        }
        Ok(())
    }

    fn number(
        &mut self,
        state: &State,
        parent: u32,
        name: &[u8],
        out: &mut Vec<u8>,
    ) -> io::Result<u32> {
        let id = self.next;
        self.next = id.checked_add(1).ok_or(Errno::OVERFLOW)?;
        let key = self.key(parent, name);
        self.by_inode.insert(state.inode, id);
        self.by_place.insert(key, id);
        Record::Folder {
            inode: state.inode,
            parent,
            name: name.into(),
            modified: state.modified,
        }
        .append(out);
        Ok(id)
    }
}

/// Opens `/`.
pub(super) fn open_root() -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, "/", flags, Mode::empty())?)
}

/// Opens a folder by its absolute path, without following links. The path may be longer than
/// the kernel accepts.
pub(super) fn open_folder(root: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let below = path.strip_prefix("/").unwrap_or(path);
    if below.as_os_str().len() <= LONGEST {
        return open_below(root.as_fd(), below, flags);
    }
    let mut dir: Option<OwnedFd> = None;
    let mut part = PathBuf::new();
    for name in below {
        if part.as_os_str().len() + name.len() >= LONGEST {
            dir = Some(open_below(at(dir.as_ref(), root), &part, flags)?);
            part = PathBuf::new();
        }
        part.push(name);
    }
    open_below(at(dir.as_ref(), root), &part, flags)
}

fn at<'a>(dir: Option<&'a OwnedFd>, root: &'a OwnedFd) -> rustix::fd::BorrowedFd<'a> {
    dir.unwrap_or(root).as_fd()
}

fn is_link(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::LOOP)
}

/// Whether there is no such folder, or something else in its place.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
    )
}
