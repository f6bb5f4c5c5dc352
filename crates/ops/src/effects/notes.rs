//! Notes of a recorder.

use super::attributes::{self, Attributes};
use super::change::Counts;
use super::folders::{Folders, Key, Spot};
use super::keep::Kept;
use super::keep::Objects;
use super::metadata::by_handle;
use super::record::{Header, Record};
use super::session::Session;
use super::set_file::SetFile;
use super::state::{Inode, State};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct Notes {
    /// Made by the first record.
    pub(super) file: Option<SetFile>,
    /// Records that are not written yet.
    pub(super) out: Vec<u8>,
    pub(super) folders: Folders,
    pub(super) seen: HashSet<Key>,
    /// Inodes that existed before the call, of all entries in `seen`.
    pub(super) originals: HashSet<Inode>,
    pub(super) contents: HashMap<Inode, Content>,
    /// Inodes that have another name in the store.
    pub(super) linked: HashSet<Inode>,
    pub(super) attributes: HashSet<Inode>,
    pub(super) objects: Objects,
    pub(super) why: Option<String>,
    /// Whether the session's limit leaves no space for more records.
    pub(super) is_full: bool,
    /// Bytes of the session's limit that are reserved for the end of the set.
    pub(super) promised: u64,
    pub(super) finished: Option<Counts>,
}

#[derive(Debug)]
pub(super) enum Content {
    /// Another thread copies it.
    Pending,
    /// It has another name in the store, so it must not be changed in place.
    Linked,
    Kept,
}

/// Whether an empty list of attributes is recorded too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Empty {
    Recorded,
    Ignored,
}

impl Notes {
    pub(super) fn new() -> Self {
        Self {
            file: None,
            out: Vec::new(),
            folders: Folders::new(),
            seen: HashSet::new(),
            originals: HashSet::new(),
            contents: HashMap::new(),
            linked: HashSet::new(),
            attributes: HashSet::new(),
            objects: Objects::new(PathBuf::new()),
            why: None,
            is_full: false,
            promised: 0,
            finished: None,
        }
    }

    pub(super) fn spot(&mut self, path: &Path) -> io::Result<Option<Spot>> {
        if self.finished.is_some() {
            return Ok(None);
        }
        self.folders.spot(path, &self.seen, &mut self.out)
    }

    /// Notes the state of an entry, unless it is noted already.
    pub(super) fn note(&mut self, spot: &Spot) {
        if !self.seen.insert(spot.key) {
            return;
        }
        if let Some(now) = &spot.now {
            self.originals.insert(now.inode);
        }
        Record::Entry {
            folder: spot.folder,
            name: spot.name.clone(),
            before: spot.now.clone(),
        }
        .append(&mut self.out);
    }

    /// Notes an entry that did not exist a moment ago.
    pub(super) fn note_new(&mut self, spot: &Spot) {
        if self.seen.insert(spot.key) {
            Record::Entry {
                folder: spot.folder,
                name: spot.name.clone(),
                before: None,
            }
            .append(&mut self.out);
        }
    }

    pub(super) fn moved(&mut self, old: &Spot, new: &Spot) {
        if let Some(now) = &old.now
            && now.is_dir()
        {
            Record::Moved {
                inode: now.inode,
                folder: new.folder,
                name: new.name.clone(),
            }
            .append(&mut self.out);
            self.folders.forget_open();
        }
    }

    /// Notes everything in a folder that comes from where nothing is recorded: it is new here.
    pub(super) fn arrives(&mut self, from: &Path, folder: &State, to: &Spot) -> io::Result<()> {
        self.folders
            .arrives(folder, to.folder, &to.name, &mut self.out)?;
        let mut open = vec![from.to_owned()];
        while let Some(folder) = open.pop() {
            for name in super::disk::names(&folder)? {
                let path = folder.join(name);
                if let Some(spot) = self.spot(&path)? {
                    self.note_new(&spot);
                    if spot.now.is_some_and(|now| now.is_dir()) {
                        open.push(path);
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn attributes(&mut self, spot: &Spot, inode: Inode, empty: Empty) -> io::Result<()> {
        if !self.originals.contains(&inode) || self.attributes.contains(&inode) {
            return Ok(());
        }
        let list = attributes::of_path(&by_handle(&*spot.dir).join(spot.name()))?;
        self.add_attributes(inode, list, empty);
        Ok(())
    }

    pub(super) fn add_attributes(&mut self, inode: Inode, list: Attributes, empty: Empty) {
        if (!list.is_empty() || empty == Empty::Recorded) && self.attributes.insert(inode) {
            Record::Attributes { inode, list }.append(&mut self.out);
        }
    }

    pub(super) fn kept(&mut self, inode: Inode, kept: Kept) {
        self.remember(inode, &kept);
        Record::Content { inode, kept }.append(&mut self.out);
    }

    /// A copy is better than a link, which another name of the file can change.
    fn remember(&mut self, inode: Inode, kept: &Kept) {
        if matches!(kept, Kept::Linked(_)) {
            self.linked.insert(inode);
            self.contents.entry(inode).or_insert(Content::Linked);
        } else {
            self.contents.insert(inode, Content::Kept);
        }
    }

    pub(super) fn not_kept(&mut self, inode: Inode, why: &str) {
        self.kept(inode, Kept::No(why.to_owned()));
    }

    /// Writes the records, before the change that they are about.
    pub(super) fn flush(&mut self, session: &Session, header: &Header) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        if self.is_full {
            self.out.clear();
            return Ok(());
        }
        if let Some(promised) = session.reserve_records(self.out.len())? {
            self.promised += promised;
        } else {
            self.out.clear();
            self.is_full = true;
            let why = "effects.max_session is reached".to_owned();
            Record::Incomplete(why.clone()).append(&mut self.out);
            self.why.get_or_insert(why);
        }
        if self.file.is_none() {
            let file = session.create_set(header)?;
            self.objects = Objects::new(session.objects(file.number()));
            self.file = Some(file);
        }
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        if let Some(order) = session.writes(file.number()) {
            let mut out = Vec::with_capacity(self.out.len() + 16);
            Record::At(order).append(&mut out);
            out.append(&mut self.out);
            self.out = out;
        }
        file.append(&self.out);
        self.out.clear();
        Ok(())
    }

    pub(super) fn nothing(&self) -> Counts {
        Counts {
            complete: self.why.is_none(),
            why: self.why.clone(),
            ..Counts::default()
        }
    }

    pub(super) fn replay(&mut self, record: Record) {
        match record {
            Record::Folder {
                inode,
                parent,
                name,
                ..
            } => self.folders.add(inode, parent, &name),
            Record::Entry {
                folder,
                name,
                before,
            } => {
                self.seen.insert(self.folders.key(folder, &name));
                if let Some(before) = before {
                    self.originals.insert(before.inode);
                }
            }
            Record::Content { inode, kept } => self.remember(inode, &kept),
            Record::Attributes { inode, .. } => {
                self.attributes.insert(inode);
            }
            Record::Incomplete(why) => self.why = Some(why),
            _ => {}
        }
    }
}
