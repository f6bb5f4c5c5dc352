//! The file of a set, as its writer holds it.

use super::change::Counts;
use super::compare;
use super::keep::Kept;
use super::keep::{self, Objects};
use super::picture::{Lookup, Picture};
use super::record::{Finished, Header, Part, Record};
use super::recorder::End;
use super::records::Loaded;
use super::records::Records;
use super::session::{Limits, Session};
use super::state::{self, Time};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// An open set that no other process writes.
#[derive(Debug)]
pub(super) struct SetFile {
    file: File,
    path: PathBuf,
    number: u64,
    length: u64,
    /// First error of writing.
    trouble: Option<String>,
    is_undo: bool,
}

impl SetFile {
    /// Takes a new file. It is locked before others can see it.
    pub(super) fn new(file: File, path: PathBuf, number: u64) -> Self {
        Self {
            file,
            path,
            number,
            length: 0,
            trouble: None,
            is_undo: false,
        }
    }

    /// Opens a set whose writer is gone. `None`: it is being written.
    pub(super) fn take_over(path: PathBuf, number: u64) -> io::Result<Option<Self>> {
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true);
        let file = crate::private::file(&options, &path)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        let mut set = Self::new(file, path, number);
        let bytes = set.bytes()?;
        let mut records = Records::new(&bytes);
        records.by_ref().for_each(drop);
        set.length = records.length() as u64;
        // A record that was cut would hide those after it.
        set.file.set_len(set.length)?;
        Ok(Some(set))
    }

    /// Keeps the set even if nothing changed.
    pub(super) fn set_undo(&mut self) {
        self.is_undo = true;
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Appends records, all or nothing.
    pub(super) fn append(&mut self, records: &[u8]) {
        let written = keep::has_space().and_then(|()| self.file.write_all_at(records, self.length));
        match written {
            Ok(()) => self.length += records.len() as u64,
            Err(error) => {
                let _ = self.file.set_len(self.length);
                self.trouble
                    .get_or_insert_with(|| format!("the store cannot be written: {error}"));
            }
        }
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut file = &self.file;
        io::Seek::rewind(&mut file)?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// All records so far.
    pub(super) fn records(&self) -> io::Result<Vec<Record>> {
        Ok(Records::new(&self.bytes()?).collect())
    }

    fn compared(&self, session: &Session) -> io::Result<(Picture, Option<String>)> {
        let set = Loaded::new(self.number, self.records()?.into_iter());
        let why = set.why.clone().or_else(|| self.trouble.clone());
        let started = set
            .header
            .as_ref()
            .map_or_else(Time::now, |header: &Header| header.time);
        let mut picture = Picture::new(&[set], &[])?;
        compare::compare(&mut picture, session, started)?;
        let why = why.or_else(|| compare::first_lost(&picture));
        Ok((picture, why))
    }

    /// Compares with what is there now, without ending the set.
    pub(super) fn counts_now(&self, session: &Session) -> io::Result<Counts> {
        let (picture, why) = self.compared(session)?;
        let counts = compare::count(&compare::changes(&picture));
        Ok(compare::counts(counts, why))
    }

    /// Ends the set. Removes it if nothing changed and nothing is missing.
    pub(super) fn finish(mut self, session: &Session, end: End) -> io::Result<Counts> {
        let (mut picture, why) = self.compared(session)?;
        let is_empty = picture.entries.iter().all(|entry| entry.after.is_none());
        // An undo that found everything restored already still counts.
        if is_empty && why.is_none() && !self.is_undo {
            session.remove_set(self.number, &self.path)?;
            return Ok(compare::counts([0; 5], None));
        }
        let mut out = Vec::new();
        if let Some(order) = session.writes(self.number) {
            Record::At(order).append(&mut out);
        }
        for id in 1..u32::try_from(picture.folders.len()).unwrap_or(u32::MAX) {
            folder_after(&mut picture, id)?.append(&mut out);
        }
        for id in 1..picture.folders.len() {
            // The changes below are described with these places.
            if let Some(folder) = picture.folders.get_mut(id)
                && let Lookup::At(place) = &folder.now
            {
                folder.after = Some((Some(place.clone()), folder.modified));
            }
        }
        for entry in &picture.entries {
            if let Some(after) = &entry.after {
                Record::After {
                    folder: entry.folder,
                    name: entry.name.clone(),
                    after: after.state.clone(),
                    content: after.content,
                    hash: after.hash,
                }
                .append(&mut out);
            }
        }
        self.drop_unused(&picture, session, &mut out);
        self.drop_alive(&mut picture, session, &mut out)?;
        self.copy_shared(&picture, session, &mut out);
        let counts = compare::count(&compare::changes(&picture));
        let finished = Finished {
            end,
            counts,
            why: why.clone(),
            evicted: false,
            time: Some(Time::now()),
        };
        Record::append_end(finished, &mut out);
        self.append(&out);
        Ok(compare::counts(counts, why.or(self.trouble)))
    }

    /// Copies linked files that still have another name, because they could be changed there.
    fn copy_shared(&self, picture: &Picture, session: &Session, out: &mut Vec<u8>) {
        let objects = session.objects(self.number);
        let mut copies = Objects::continued(objects.clone());
        for entry in &picture.entries {
            let Some(before) = entry.before.as_ref().filter(|before| before.links > 1) else {
                continue;
            };
            let Some((_, name)) = picture.links.get(&before.inode) else {
                continue;
            };
            let has_copy = !matches!(
                picture.contents.get(&before.inode),
                Some((_, Kept::Linked(_)))
            );
            let Ok(folder) = open_dir(&objects) else {
                continue;
            };
            let name = std::ffi::OsStr::new(name);
            let Ok(Some(now)) = state::read(&folder, name) else {
                continue;
            };
            let (inode, after) = (before.inode, now.clone());
            Record::LinkedAfter { inode, after }.append(out);
            if now.links > 1
                && !has_copy
                && session
                    .reserve(&picture.original_path(entry), &now, Limits::All)
                    .is_ok()
            {
                let copied = copies.reserve(&now).ok();
                if let Some(Ok((kept, _))) = copied.map(|copy| copy.copy(&folder, name, &now)) {
                    let inode = before.inode;
                    Record::Content { inode, kept }.append(out);
                }
            }
        }
    }

    /// Removes the extra names of files that are still in the tree: they would be changed there.
    fn drop_alive(
        &self,
        picture: &mut Picture,
        session: &Session,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        if picture.links.is_empty() {
            return Ok(());
        }
        let objects = open_dir(&session.objects(self.number))?;
        for (at, now) in picture.recorded().into_iter().enumerate() {
            let name = now.and_then(|now| picture.links.get(&now.inode));
            let (Some((_, name)), Some(entry)) = (name.cloned(), picture.entries.get(at)) else {
                continue;
            };
            let place = (entry.folder, entry.name.clone());
            let Some(folder) = picture.open(place.0)? else {
                continue;
            };
            // The inodes themselves, not what an undo takes them for.
            let here = state::read(folder, state::name(&place.1))?;
            let kept = state::read(&objects, std::ffi::OsStr::new(&name))?;
            if here.is_some() && here.map(|here| here.inode) == kept.as_ref().map(|kept| kept.inode)
            {
                session.remove_object(self.number, &Kept::Linked(name));
                if let Some(kept) = kept {
                    let (inode, part) = (kept.inode, Part::Link);
                    Record::Dropped { inode, part }.append(out);
                }
            }
        }
        Ok(())
    }

    /// Removes objects of files that did not change.
    fn drop_unused(&self, picture: &Picture, session: &Session, out: &mut Vec<u8>) {
        use std::collections::HashSet;
        let changed: HashSet<_> = picture
            .entries
            .iter()
            .filter(|entry| entry.after.is_some())
            .filter_map(|entry| entry.before.as_ref())
            .map(|before| before.inode)
            .collect();
        let linked = picture.links.iter();
        let linked = linked.map(|(inode, (_, name))| (inode, Kept::Linked(name.clone())));
        let copied = picture.contents.iter();
        let copied = copied.map(|(inode, (_, kept))| (inode, kept.clone()));
        for (inode, kept) in linked.chain(copied) {
            if !changed.contains(inode) {
                session.remove_object(self.number, &kept);
                let (inode, part) = (*inode, Part::All);
                Record::Dropped { inode, part }.append(out);
            }
        }
    }
}

fn open_dir(path: &std::path::Path) -> io::Result<rustix::fd::OwnedFd> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

fn folder_after(picture: &mut Picture, id: u32) -> io::Result<Record> {
    let open = picture.open(id)?;
    let folder = picture.folder(id);
    let now = match folder.map(|folder| &folder.now) {
        Some(Lookup::At(place)) => Some(place.clone()),
        _ => None,
    };
    let modified = match open {
        Some(open) => state::of(open)?.modified,
        None => folder.map_or_else(Time::now, |folder| folder.modified),
    };
    Ok(Record::FolderAfter {
        folder: id,
        now,
        modified,
    })
}
