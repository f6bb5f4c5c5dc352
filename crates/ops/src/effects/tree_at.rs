//! The work folder as it was after a call.

use super::attributes;
use super::combine;
use super::contents;
use super::library;
use super::outcome::{TreeAt, UndoError};
use super::picture::Picture;
use super::session::Session;
use super::state::{self, State};
use super::undo::{self, store_error};
use super::{disk, folders, keep};
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, chmodat,
    chownat, mkdirat, mknodat, openat, symlinkat, utimensat,
};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Copies the work folder as it was after a call: what is there now, with what later calls
/// changed as it was before them.
pub(super) fn tree_at(session: &Session, call_id: &str, into: &Path) -> Result<TreeAt, UndoError> {
    let fail = store_error(session);
    let heads = session.heads().map_err(&fail)?;
    let last = heads
        .iter()
        .rfind(|head| head.header.call_id == call_id)
        .ok_or_else(|| UndoError::UnknownCall(call_id.to_owned()))?;
    // All of them: an undone call and its undo cancel each other out, but a call that was made
    // before this one and undone after it does not.
    let later: Vec<&library::Head> = heads
        .iter()
        .filter(|head| head.number > last.number)
        .collect();
    undo::can_be_taken_back(&later)?;
    let numbers: Vec<u64> = later.iter().map(|head| head.number).collect();
    let picture = combine::combined(session, &numbers).map_err(&fail)?;
    let mut by_folder: HashMap<u32, Vec<u32>> = HashMap::new();
    for (entry, at) in picture.entries.iter().zip(0..) {
        if entry.before.is_some() {
            by_folder.entry(entry.folder).or_default().push(at);
        }
    }
    let mut copier = Copier {
        session,
        picture,
        by_folder,
        made: TreeAt::default(),
        missing: Vec::new(),
    };
    copier.start(into)?;
    if !copier.missing.is_empty() {
        copier.missing.sort();
        return Err(UndoError::NotKept {
            paths: copier.missing,
        });
    }
    Ok(copier.made)
}

struct Copier<'a> {
    session: &'a Session,
    picture: Picture,
    /// Entries that existed, by folder.
    by_folder: HashMap<u32, Vec<u32>>,
    made: TreeAt,
    missing: Vec<PathBuf>,
}

/// A folder of the tree as it was.
struct Task {
    /// Present path, unless it is gone.
    now: Option<PathBuf>,
    /// Its number in the picture, if something in it was touched.
    folder: Option<u32>,
    /// Path as it was, for messages.
    path: PathBuf,
    into: PathBuf,
    state: Option<State>,
}

impl Copier<'_> {
    fn start(&mut self, into: &Path) -> Result<(), UndoError> {
        let fail = |action, source: io::Error| UndoError::Io {
            action,
            path: into.to_owned(),
            source,
        };
        let work_dir = self.session.work_dir().to_owned();
        let is_inside = || fail("copy to", io::Error::other("it is in the work folder"));
        let mut above = into.ancestors().filter_map(crate::scope::real);
        if above
            .next()
            .is_some_and(|above| above.starts_with(&work_dir))
        {
            return Err(is_inside());
        }
        crate::private::create_missing(into).map_err(|error| fail("create", error))?;
        let into_real = crate::scope::real(into).unwrap_or_else(|| into.to_owned());
        if !disk::names(&into_real)
            .map_err(|error| fail("read", error))?
            .is_empty()
        {
            return Err(fail("copy to", io::Error::other("it is not empty")));
        }
        if into_real.starts_with(&work_dir) {
            return Err(is_inside());
        }
        let state = self.state_at(&work_dir)?;
        let mut open = vec![Task {
            folder: self.number(state.as_ref()),
            now: Some(work_dir.clone()),
            path: work_dir,
            into: into_real,
            state,
        }];
        let mut done = Vec::new();
        while let Some(task) = open.pop() {
            open.extend(self.copy_folder(&task)?);
            done.push(task);
        }
        // Inner folders first, because an outer one may be read-only.
        for task in done.iter().rev() {
            if let Some(state) = &task.state {
                finish(&task.into, state).map_err(|source| UndoError::Io {
                    action: "write",
                    path: task.into.clone(),
                    source,
                })?;
            }
        }
        Ok(())
    }

    fn number(&self, state: Option<&State>) -> Option<u32> {
        let inode = self.picture.canonical(state?.inode);
        self.picture.by_inode.get(&inode).copied()
    }

    fn state_at(&self, path: &Path) -> Result<Option<State>, UndoError> {
        let opened = folders::open_folder(self.picture.root(), path);
        match opened.and_then(|folder| Ok(state::of(folder)?)) {
            Ok(state) => Ok(Some(state)),
            Err(error) if folders::is_missing(&error) => Ok(None),
            Err(source) => Err(UndoError::Io {
                action: "read",
                path: path.to_owned(),
                source,
            }),
        }
    }

    fn copy_folder(&mut self, task: &Task) -> Result<Vec<Task>, UndoError> {
        let fail = |source: io::Error| UndoError::Io {
            action: "copy",
            path: task.path.clone(),
            source,
        };
        let mut inner = Vec::new();
        if let Some(now) = &task.now {
            let folder = folders::open_folder(self.picture.root(), now).map_err(fail)?;
            for name in disk::names_in(&folder).map_err(fail)? {
                let key = task.folder.map(|id| (id, name.as_bytes().into()));
                if key.is_some_and(|key| self.picture.by_key.contains_key(&key)) {
                    continue;
                }
                let Some(state) =
                    state::read(&folder, &name).map_err(|errno| fail(errno.into()))?
                else {
                    continue;
                };
                let path = task.path.join(&name);
                if state.is_dir() {
                    // The work folder of another session, or the store itself.
                    if now.join(&name) == self.session.store().folder() {
                        continue;
                    }
                    inner.push(self.make_folder(
                        Some(now.join(&name)),
                        path,
                        &task.into.join(&name),
                        state,
                    )?);
                } else {
                    let source = open_file(&folder, &name, &state).map_err(fail)?;
                    self.copy_entry(&path, &task.into.join(&name), &state, source)?;
                }
            }
        }
        let Some(id) = task.folder else {
            return Ok(inner);
        };
        for at in self.by_folder.remove(&id).unwrap_or_default() {
            let Some(entry) = self.picture.entry(at) else {
                continue;
            };
            let Some(before) = entry.before.clone() else {
                continue;
            };
            let name = state::name(&entry.name).to_owned();
            let (path, into) = (task.path.join(&name), task.into.join(&name));
            if before.is_dir() {
                let now = self.now_of(&before, at).map_err(fail)?;
                inner.push(self.make_folder(now, path, &into, before)?);
            } else {
                let source = self.find(&before, at).map_err(fail)?;
                self.copy_entry(&path, &into, &before, source)?;
            }
        }
        Ok(inner)
    }

    /// Present path of a folder as it was before.
    fn now_of(&mut self, before: &State, at: u32) -> io::Result<Option<PathBuf>> {
        if let Some(id) = self.picture.by_inode.get(&before.inode).copied() {
            return Ok(match self.picture.locate(id)? {
                true => self.picture.path_now(id),
                false => None,
            });
        }
        // Nothing in it was touched, so it is where one of the entries says.
        Ok(self.where_is(before, at)?.map(|(path, _)| path))
    }

    /// Looks for an inode among the touched entries.
    fn where_is(&mut self, wanted: &State, at: u32) -> io::Result<Option<(PathBuf, State)>> {
        let after = |entry: &super::picture::Entry| match &entry.after {
            Some(after) => after.state.as_ref().map(|state| state.inode),
            None => entry.before.as_ref().map(|state| state.inode),
        };
        let candidates = self.picture.entries.iter().zip(0..);
        let candidates: Vec<(u32, Box<[u8]>)> = candidates
            .filter(|(entry, own)| *own == at || after(entry) == Some(wanted.inode))
            .map(|(entry, _)| (entry.folder, entry.name.clone()))
            .collect();
        for (folder, name) in candidates {
            let Some(dir) = self.picture.open(folder)? else {
                continue;
            };
            if let Some(now) = self.picture.read(&dir, &name)?
                && now.inode == wanted.inode
                && let Some(path) = self.picture.path_now(folder)
            {
                return Ok(Some((path.join(state::name(&name)), now)));
            }
        }
        Ok(None)
    }

    /// Content of a file as it was before.
    fn find(&mut self, before: &State, at: u32) -> io::Result<Option<keep::Source>> {
        if !before.is_file() {
            return Ok(None);
        }
        if let Some(source) = contents::source(self.session, &self.picture, before.inode)? {
            return Ok(Some(source));
        }
        let Some((path, now)) = self.where_is(before, at)? else {
            return Ok(None);
        };
        if !before.same_content(&now) {
            return Ok(None);
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(None);
        };
        let folder = folders::open_folder(self.picture.root(), parent)?;
        open_file(&folder, name, &now)
    }

    fn make_folder(
        &mut self,
        now: Option<PathBuf>,
        path: PathBuf,
        into: &Path,
        state: State,
    ) -> Result<Task, UndoError> {
        mkdirat(CWD, into, Mode::RWXU).map_err(|errno| UndoError::Io {
            action: "create",
            path: into.to_owned(),
            source: errno.into(),
        })?;
        self.made.entries += 1;
        Ok(Task {
            folder: self.number(Some(&state)),
            now,
            path,
            into: into.to_owned(),
            state: Some(state),
        })
    }

    fn copy_entry(
        &mut self,
        path: &Path,
        into: &Path,
        state: &State,
        source: Option<keep::Source>,
    ) -> Result<(), UndoError> {
        if state.is_file() && state.size > 0 && source.is_none() {
            self.missing.push(path.to_owned());
            return Ok(());
        }
        let made = make_entry(into, state, source)
            .and_then(|()| {
                if let Some(list) = self.picture.attributes.get(&state.inode)
                    && state.is_file()
                {
                    attributes::restore(into, list)?;
                }
                Ok(())
            })
            .and_then(|()| finish(into, state));
        made.map_err(|source| UndoError::Io {
            action: "copy",
            path: path.to_owned(),
            source,
        })?;
        self.made.entries += 1;
        if state.is_file() {
            self.made.bytes = self.made.bytes.saturating_add(state.size);
        }
        Ok(())
    }
}

fn open_file(
    folder: &OwnedFd,
    name: &std::ffi::OsStr,
    state: &State,
) -> io::Result<Option<keep::Source>> {
    if !state.is_file() {
        return Ok(None);
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(folder, name, flags, Mode::empty())?);
    Ok(Some(keep::Source { file, part: None }))
}

fn make_entry(into: &Path, state: &State, source: Option<keep::Source>) -> io::Result<()> {
    match state.file_type {
        FileType::RegularFile => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file = openat(CWD, into, flags, Mode::RUSR | Mode::WUSR)?;
            source.map_or(Ok(()), |source| source.copy_to(&file))
        }
        FileType::Symlink => {
            let target = state.target.as_deref().unwrap_or_default();
            Ok(symlinkat(state::name(target), CWD, into)?)
        }
        FileType::Fifo | FileType::Socket => {
            Ok(mknodat(CWD, into, state.file_type, Mode::RUSR, 0)?)
        }
        // A copy of a device would be a way around permissions.
        _ => Ok(()),
    }
}

fn finish(into: &Path, state: &State) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(state.uid), Gid::from_raw(state.gid));
    let _ = chownat(CWD, into, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW);
    if matches!(
        state.file_type,
        FileType::CharacterDevice | FileType::BlockDevice
    ) {
        return Ok(());
    }
    if state.file_type != FileType::Symlink {
        chmodat(CWD, into, Mode::from_raw_mode(state.mode), AtFlags::empty())?;
    }
    let times = Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: state.modified.seconds,
            tv_nsec: state.modified.nanos.into(),
        },
    };
    utimensat(CWD, into, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}
