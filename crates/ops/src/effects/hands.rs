//! Changes files for an undo: below open folders, without following links, each recorded
//! before it happens.

use super::change::Incomplete;
use super::keep::Source;
use super::metadata::by_handle;
use super::outcome::UndoError;
use super::picture::{Lookup, Picture, Place};
use super::plan::TEMPORARY;
use super::recorder::{Recorder, Touch};
use super::restore::note;
use super::state::{self, Inode, State};
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, chmodat, linkat, mkdirat, mknodat, openat, renameat, symlinkat,
    unlinkat,
};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of folders to keep open.
const OPEN: usize = 64;

/// Permissions that changing a folder's entries needs.
const USABLE: u32 = 0o700;

pub(super) struct Hands<'a> {
    pub(super) picture: Picture,
    pub(super) recorder: &'a Recorder,
    open: HashMap<u32, Arc<OwnedFd>>,
    /// Folders whose mode forbade changes, and that mode.
    opened: Vec<(Place, Inode, u32)>,
    count: u32,
}

impl<'a> Hands<'a> {
    pub(super) fn new(picture: Picture, recorder: &'a Recorder) -> Self {
        Self {
            picture,
            recorder,
            open: HashMap::new(),
            opened: Vec::new(),
            count: 0,
        }
    }

    pub(super) fn name(name: &OsStr) -> Box<[u8]> {
        name.as_bytes().into()
    }

    pub(super) fn entry_place(&self, at: u32) -> Option<Place> {
        let entry = self.picture.entry(at)?;
        Some((entry.folder, entry.name.clone()))
    }

    /// Present path of a place; where it was if its folder is gone.
    pub(super) fn path(&self, place: &Place) -> PathBuf {
        let folder = self.picture.path_now(place.0);
        let folder = folder.unwrap_or_else(|| self.picture.original_folder(place.0));
        folder.join(state::name(&place.1))
    }

    pub(super) fn error(
        &self,
        action: &'static str,
        place: &Place,
        source: impl Into<io::Error>,
    ) -> UndoError {
        UndoError::Io {
            action,
            path: self.path(place),
            source: source.into(),
        }
    }

    pub(super) fn dir(&mut self, id: u32) -> Result<Option<Arc<OwnedFd>>, UndoError> {
        if let Some(dir) = self.open.get(&id) {
            return Ok(Some(Arc::clone(dir)));
        }
        let opened = self.picture.open(id).map_err(|source| UndoError::Io {
            action: "open",
            path: self.picture.original_folder(id),
            source,
        })?;
        let Some(dir) = opened.map(Arc::new) else {
            return Ok(None);
        };
        if self.open.len() >= OPEN {
            self.open.clear();
        }
        self.open.insert(id, Arc::clone(&dir));
        Ok(Some(dir))
    }

    /// Opens a folder whose entries are going to change.
    fn usable(&mut self, place: &Place) -> Result<Arc<OwnedFd>, UndoError> {
        let id = place.0;
        let Some(dir) = self.dir(id)? else {
            return Err(self.error("open the folder of", place, io::ErrorKind::NotFound));
        };
        if rustix::process::geteuid().is_root() {
            return Ok(dir);
        }
        let state = state::of(&*dir).map_err(|errno| self.error("read", place, errno))?;
        if state.mode & USABLE != USABLE
            && let Some(Lookup::At(at)) = self.picture.folder(id).map(|folder| folder.now.clone())
        {
            self.recorder.before(&self.path(&at), Touch::Attributes);
            let mode = Mode::from_raw_mode(state.mode | USABLE);
            chmodat(CWD, by_handle(&*dir), mode, AtFlags::empty())
                .map_err(|errno| self.error("open up", &at, errno))?;
            self.opened.push((at, state.inode, state.mode));
        }
        Ok(dir)
    }

    /// Gives folders that were opened up their mode again.
    pub(super) fn close_opened(&mut self) -> Result<(), UndoError> {
        for (place, inode, mode) in std::mem::take(&mut self.opened).into_iter().rev() {
            let Some(dir) = self.dir(place.0)? else {
                continue;
            };
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            // A folder that was moved meanwhile has the mode of its place already. Something
            // else may be here now, even a link to somewhere else.
            let Ok(folder) = openat(&*dir, state::name(&place.1), flags, Mode::empty()) else {
                continue;
            };
            if state::of(&folder).is_ok_and(|now| now.inode == inode) {
                let mode = Mode::from_raw_mode(mode);
                chmodat(CWD, by_handle(&folder), mode, AtFlags::empty())
                    .map_err(|errno| self.error("restore the mode of", &place, errno))?;
            }
        }
        Ok(())
    }

    /// The folder has its mode of before.
    pub(super) fn forget_opened(&mut self, place: &Place) {
        self.opened.retain(|(opened, ..)| opened != place);
    }

    pub(super) fn state(&mut self, place: &Place) -> Result<Option<State>, UndoError> {
        let Some(dir) = self.dir(place.0)? else {
            return Ok(None);
        };
        let state = self.picture.read(&*dir, &place.1);
        state.map_err(|errno| self.error("read", place, errno))
    }

    /// Notes that what is at a place now is what another inode was.
    pub(super) fn is_again(&mut self, place: &Place, old: Inode) -> Result<(), UndoError> {
        let Some(dir) = self.dir(place.0)? else {
            return Ok(());
        };
        let now = state::read(&*dir, state::name(&place.1))
            .map_err(|errno| self.error("read", place, errno))?;
        if let Some(now) = now.filter(|now| now.inode != old) {
            self.recorder.alias(old, now.inode);
            self.picture.aliases.insert(now.inode, old);
        }
        Ok(())
    }

    pub(super) fn place_folder(&mut self, id: u32, now: Lookup) {
        self.open.remove(&id);
        if let Some(folder) = self.picture.folders.get_mut(id as usize) {
            folder.now = now;
        }
    }

    /// Makes sure that a folder exists. One that others removed is made again.
    pub(super) fn make_folder(&mut self, id: u32) -> Result<(), UndoError> {
        let located = self.picture.locate(id).map_err(|source| UndoError::Io {
            action: "find",
            path: self.picture.original_folder(id),
            source,
        })?;
        if located {
            return Ok(());
        }
        let Some(place) = self.picture.home(id) else {
            return Ok(());
        };
        self.make_folder(place.0)?;
        if self.state(&place)?.is_none() {
            self.make_dir(&place, Mode::RWXU | Mode::RWXG | Mode::RWXO)?;
        }
        self.place_folder(id, Lookup::At(place));
        Ok(())
    }

    pub(super) fn make_dir(&mut self, place: &Place, mode: Mode) -> Result<(), UndoError> {
        step().map_err(|errno| self.error("change", place, errno))?;
        let dir = self.usable(place)?;
        self.recorder.before(&self.path(place), Touch::Create);
        mkdirat(&*dir, state::name(&place.1), mode)
            .map_err(|errno| self.error("create", place, errno))
    }

    /// Renames an entry, over whatever is there.
    pub(super) fn rename(&mut self, from: &Place, to: &Place) -> Result<(), UndoError> {
        step().map_err(|errno| self.error("change", from, errno))?;
        let (old, new) = (self.usable(from)?, self.usable(to)?);
        let moved = self.state(from)?;
        let (old_path, new_path) = (self.path(from), self.path(to));
        self.recorder
            .before(&old_path, Touch::Move { to: &new_path });
        let renamed = renameat(&*old, state::name(&from.1), &*new, state::name(&to.1));
        renamed.map_err(|errno| self.error("rename", from, errno))?;
        let folder = moved.and_then(|moved| self.picture.by_inode.get(&moved.inode).copied());
        if let Some(folder) = folder {
            self.place_folder(folder, Lookup::At(to.clone()));
        }
        step().map_err(|errno| self.error("change", from, errno))
    }

    /// Moves an entry to a temporary name beside it.
    pub(super) fn move_away(&mut self, place: &Place) -> Result<Place, UndoError> {
        let temporary = self.temporary(place)?;
        self.rename(place, &temporary)?;
        Ok(temporary)
    }

    fn temporary(&mut self, place: &Place) -> Result<Place, UndoError> {
        loop {
            self.count += 1;
            let mut name = TEMPORARY.to_vec();
            name.extend_from_slice(format!("{}-{}~", std::process::id(), self.count).as_bytes());
            let free = (place.0, name.into_boxed_slice());
            if self.state(&free)?.is_none() {
                return Ok(free);
            }
        }
    }

    /// Puts a finished temporary file in its place.
    fn put(&mut self, temporary: &Place, place: &Place) -> Result<(), UndoError> {
        step().map_err(|errno| self.error("change", place, errno))?;
        let dir = self.usable(place)?;
        note(self.recorder, &self.path(place));
        let (from, to) = (state::name(&temporary.1), state::name(&place.1));
        renameat(&*dir, from, &*dir, to).map_err(|errno| {
            let _ = unlinkat(&*dir, from, AtFlags::empty());
            self.error("replace", place, errno)
        })
    }

    /// Gives a file another name, over whatever is there.
    pub(super) fn link(&mut self, from: &Place, place: &Place) -> Result<(), UndoError> {
        step().map_err(|errno| self.error("change", place, errno))?;
        let (old, dir) = (self.usable(from)?, self.usable(place)?);
        let temporary = self.temporary(place)?;
        let (from_path, path) = (self.path(from), self.path(&temporary));
        self.recorder
            .before(&path, Touch::Link { from: &from_path });
        let (name, new) = (state::name(&from.1), state::name(&temporary.1));
        linkat(&*old, name, &*dir, new, AtFlags::empty())
            .map_err(|errno| self.error("link", place, errno))?;
        self.put(&temporary, place)
    }

    pub(super) fn symlink(&mut self, place: &Place, target: &[u8]) -> Result<(), UndoError> {
        step().map_err(|errno| self.error("change", place, errno))?;
        let dir = self.usable(place)?;
        let temporary = self.temporary(place)?;
        self.recorder.before(&self.path(&temporary), Touch::Create);
        symlinkat(state::name(target), &*dir, state::name(&temporary.1))
            .map_err(|errno| self.error("create", place, errno))?;
        self.put(&temporary, place)
    }

    pub(super) fn make_node(&mut self, place: &Place, before: &State) -> Result<(), UndoError> {
        step().map_err(|errno| self.error("change", place, errno))?;
        let dir = self.usable(place)?;
        let temporary = self.temporary(place)?;
        self.recorder.before(&self.path(&temporary), Touch::Create);
        let name = state::name(&temporary.1);
        mknodat(&*dir, name, before.file_type, Mode::RUSR, before.device)
            .map_err(|errno| self.error("create", place, errno))?;
        self.put(&temporary, place)
    }

    /// Makes a file with content and attributes, and puts it in place of whatever is there.
    pub(super) fn make_file(
        &mut self,
        place: &Place,
        before: &State,
        source: Option<Source>,
    ) -> Result<(), UndoError> {
        step().map_err(|errno| self.error("change", place, errno))?;
        let dir = self.usable(place)?;
        let temporary = self.temporary(place)?;
        self.recorder.before(&self.path(&temporary), Touch::Create);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let name = state::name(&temporary.1);
        let file = openat(
            &*dir,
            name,
            flags | OFlags::CLOEXEC,
            Mode::RUSR | Mode::WUSR,
        )
        .map_err(|errno| self.error("create", place, errno))?;
        let written = source.map_or(Ok(()), |source| source.copy_to(&file));
        let done = written
            .map_err(|error| self.error("write", place, error))
            .and_then(|()| self.set_attributes(&dir, &temporary, before));
        if let Err(error) = done {
            let _ = unlinkat(&*dir, name, AtFlags::empty());
            return Err(error);
        }
        self.put(&temporary, place)
    }

    /// Puts the kept file itself back, with these attributes. Returns `false` if it is on another file system.
    pub(super) fn put_back(
        &mut self,
        object: &Path,
        place: &Place,
        before: Option<&State>,
    ) -> Result<bool, UndoError> {
        step().map_err(|errno| self.error("change", place, errno))?;
        let dir = self.usable(place)?;
        let (Some(folder), Some(name)) = (object.parent(), object.file_name()) else {
            return Ok(false);
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let objects = Arc::new(
            openat(CWD, folder, flags, Mode::empty())
                .map_err(|errno| self.error("read the kept content of", place, errno))?,
        );
        if let Some(before) = before {
            self.set_attributes(&objects, &(0, Self::name(name)), before)?;
        }
        note(self.recorder, &self.path(place));
        match renameat(&*objects, name, &*dir, state::name(&place.1)) {
            Ok(()) => Ok(true),
            Err(Errno::XDEV) => Ok(false),
            Err(errno) => Err(self.error("replace", place, errno)),
        }
    }

    /// A file that the calls changed under one name gets its content back under all of them,
    /// of which some are unknown.
    pub(super) fn cannot_redo(&self, place: &Place) {
        self.recorder.incomplete(Incomplete::Failed {
            path: self.path(place),
            error: "redo does not change other names of this file".to_owned(),
        });
    }

    /// Writes content into a file that has other names too.
    pub(super) fn write_in_place(
        &mut self,
        place: &Place,
        source: Option<Source>,
    ) -> Result<(), UndoError> {
        step().map_err(|errno| self.error("change", place, errno))?;
        let dir = self.usable(place)?;
        self.recorder.before(&self.path(place), Touch::Content);
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let name = state::name(&place.1);
        let open = || openat(&*dir, name, flags, Mode::empty());
        let file = match open() {
            Err(Errno::ACCESS) => {
                self.recorder.before(&self.path(place), Touch::Attributes);
                let mode = Mode::RUSR | Mode::WUSR;
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                if let Ok(file) = openat(&*dir, name, flags, Mode::empty()) {
                    // Not by its name, which may be that of a link by now.
                    let _ = chmodat(CWD, by_handle(&file), mode, AtFlags::empty());
                }
                open()
            }
            file => file,
        };
        let file = File::from(file.map_err(|errno| self.error("open", place, errno))?);
        let cut = file.set_len(0);
        step().map_err(|errno| self.error("change", place, errno))?;
        cut.and_then(|()| source.map_or(Ok(()), |source| source.copy_to(&file)))
            .map_err(|error| self.error("write", place, error))
    }

    /// Removes an entry. Returns `false` for a folder that is not empty.
    pub(super) fn remove(&mut self, place: &Place) -> Result<bool, UndoError> {
        step().map_err(|errno| self.error("change", place, errno))?;
        let Some(there) = self.state(place)? else {
            return Ok(true);
        };
        let dir = self.usable(place)?;
        self.recorder.before(&self.path(place), Touch::Remove);
        let flags = if there.is_dir() {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        match unlinkat(&*dir, state::name(&place.1), flags) {
            Ok(()) => {
                let folder = self.picture.by_inode.get(&there.inode).copied();
                if let Some(folder) = folder.filter(|_| there.is_dir()) {
                    self.place_folder(folder, Lookup::Gone);
                }
                Ok(true)
            }
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(errno) => Err(self.error("remove", place, errno)),
        }
    }

    /// Waits until everything is on disk.
    pub(super) fn sync(&self, folder: &Path) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(folder) = openat(CWD, folder, flags, Mode::empty()) {
            let _ = rustix::fs::syncfs(folder);
        }
    }
}

/// A point at which a test lets an undo be killed or fail.
pub(super) fn step() -> rustix::io::Result<()> {
    #[cfg(test)]
    super::tests::steps::step()?;
    Ok(())
}
