//! One or several sets as a picture of what was before and what is now.
//!
//! Of several sets, the state before is that of the oldest set that touched an entry, and the
//! state after that of the newest.

use super::attributes::Attributes;
use super::folders::open_root;
use super::keep::Kept;
use super::record::{Part, Record};
use super::records::{Loaded, in_order};
use super::shared::Last;
use super::state::{self, Inode, State, Time};
use rustix::fd::{AsFd, OwnedFd};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

/// Folder with touched entries.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) inode: Inode,
    /// Place where it was first seen.
    pub(super) parent: u32,
    pub(super) name: Box<[u8]>,
    /// Time of its last change before the call.
    pub(super) modified: Time,
    /// Place and time after the call; no place if it was gone.
    pub(super) after: Option<(Option<Place>, Time)>,
    /// Present place.
    pub(super) now: Lookup,
}

/// A folder's number and a name.
pub(super) type Place = (u32, Box<[u8]>);

/// Result of looking for a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lookup {
    Unknown,
    Gone,
    At(Place),
}

/// A touched entry.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) folder: u32,
    pub(super) name: Box<[u8]>,
    pub(super) before: Option<State>,
    /// State after the call, if it changed.
    pub(super) after: Option<After>,
}

/// A changed entry after the call.
#[derive(Debug, Clone)]
pub(super) struct After {
    pub(super) state: Option<State>,
    /// Whether more than attributes changed.
    pub(super) content: bool,
    pub(super) hash: Option<[u8; 32]>,
}

/// The picture.
#[derive(Debug)]
pub(super) struct Picture {
    pub(super) folders: Vec<Folder>,
    pub(super) entries: Vec<Entry>,
    pub(super) by_key: HashMap<Place, u32>,
    pub(super) by_inode: HashMap<Inode, u32>,
    /// Entry whose state before had this inode; of several names, the first.
    pub(super) originals: HashMap<Inode, u32>,
    /// Number of the set, and where it keeps the content.
    pub(super) contents: HashMap<Inode, (u64, Kept)>,
    /// Number of the set, and name of the object that is the file itself.
    pub(super) links: HashMap<Inode, (u64, String)>,
    /// State after the call of files that are kept under another name and have further ones.
    pub(super) links_after: HashMap<Inode, State>,
    pub(super) attributes: HashMap<Inode, Attributes>,
    /// Files and folders that an undo made again, and what they were before.
    pub(super) aliases: HashMap<Inode, Inode>,
    pub(super) moved: HashMap<Inode, Vec<Place>>,
    pub(super) root: OwnedFd,
    pub(super) searching: HashSet<u32>,
    pub(super) hit_loop: bool,
}

impl Picture {
    /// Combines sets, oldest first. `aliases` are pairs of a new and an old inode from undos
    /// since.
    pub(super) fn new(sets: &[Loaded], aliases: &[(Inode, Inode)]) -> io::Result<Self> {
        let root = open_root()?;
        let mut aliases: HashMap<Inode, Inode> = aliases.iter().copied().collect();
        for record in sets.iter().flat_map(|set| &set.records) {
            if let Record::Alias { old, new } = record {
                aliases.insert(*new, *old);
            }
        }
        let mut picture = Self {
            folders: vec![Folder {
                inode: state::of(&root)?.inode,
                parent: 0,
                name: Box::default(),
                modified: Time::now(),
                after: None,
                now: Lookup::Unknown,
            }],
            entries: Vec::new(),
            by_key: HashMap::new(),
            by_inode: HashMap::new(),
            originals: HashMap::new(),
            contents: HashMap::new(),
            links: HashMap::new(),
            links_after: HashMap::new(),
            aliases,
            attributes: HashMap::new(),
            moved: HashMap::new(),
            root,
            searching: HashSet::new(),
            hit_loop: false,
        };
        let mut by_inode = HashMap::new();
        let mut by_place = HashMap::new();
        // First and last states of files with several names.
        let mut shared = HashMap::new();
        let mut last = Last::new();
        // Numbers of the folders of each set in the picture.
        let mut ids = vec![vec![0]; sets.len()];
        for (at, set, records) in in_order(sets) {
            let Some(ids) = ids.get_mut(at) else { continue };
            picture.add(set, records, ids, &mut by_inode, &mut by_place, &mut shared);
            picture.note_last(records, &mut last);
        }
        picture.apply_last(&last);
        picture.by_inode = by_inode;
        for (at, entry) in (0..).zip(&picture.entries) {
            if let Some(before) = &entry.before {
                picture.originals.entry(before.inode).or_insert(at);
            }
        }
        Ok(picture)
    }

    /// The inode that another one stands for, since an undo made it again.
    pub(super) fn canonical(&self, inode: Inode) -> Inode {
        let mut inode = inode;
        for _ in 0..=self.aliases.len() {
            match self.aliases.get(&inode) {
                Some(old) if *old != inode => inode = *old,
                _ => break,
            }
        }
        inode
    }

    fn known(&self, state: Option<&State>) -> Option<State> {
        state.map(|state| State {
            inode: self.canonical(state.inode),
            ..state.clone()
        })
    }

    /// Reads the state of an entry.
    pub(super) fn read(&self, dir: impl AsFd, name: &[u8]) -> rustix::io::Result<Option<State>> {
        let state = super::disk::looked_into(&dir, || state::read(&dir, state::name(name)))?;
        Ok(self.known(state.as_ref()))
    }

    fn add(
        &mut self,
        set: &Loaded,
        records: &[Record],
        ids: &mut Vec<u32>,
        by_inode: &mut HashMap<Inode, u32>,
        by_place: &mut HashMap<Place, u32>,
        shared: &mut HashMap<Inode, State>,
    ) {
        let id = |ids: &[u32], folder: u32| ids.get(folder as usize).copied().unwrap_or_default();
        for record in records {
            match record {
                Record::Folder {
                    inode,
                    parent,
                    name,
                    modified,
                } => {
                    let inode = &self.canonical(*inode);
                    let place = (id(ids, *parent), name.clone());
                    let by_name = || {
                        by_place
                            .get(&place)
                            .filter(|_| !self.by_key.contains_key(&place))
                    };
                    let known = by_inode.get(inode).or_else(by_name).copied();
                    let known = known.unwrap_or_else(|| {
                        let next = u32::try_from(self.folders.len()).unwrap_or(u32::MAX);
                        self.folders.push(Folder {
                            inode: *inode,
                            parent: place.0,
                            name: place.1.clone(),
                            modified: *modified,
                            after: None,
                            now: Lookup::Unknown,
                        });
                        by_place.insert(place, next);
                        next
                    });
                    by_inode.insert(*inode, known);
                    ids.push(known);
                }
                Record::Entry {
                    folder,
                    name,
                    before,
                } => {
                    let key = (id(ids, *folder), name.clone());
                    let next = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
                    let mut before = self.known(before.as_ref());
                    if let Some(before) = &mut before
                        && before.links > 1
                    {
                        // It may have been changed under another name in the meantime.
                        let first = shared.entry(before.inode);
                        *before = first.or_insert_with(|| before.clone()).clone();
                    }
                    let entries = &mut self.entries;
                    self.by_key.entry(key).or_insert_with_key(|(folder, name)| {
                        entries.push(Entry {
                            folder: *folder,
                            name: name.clone(),
                            before,
                            after: None,
                        });
                        next
                    });
                }
                Record::Content { inode, kept } => {
                    let inode = self.canonical(*inode);
                    let content = (set.number, kept.clone());
                    if let Kept::Linked(name) = kept {
                        self.links.insert(inode, (set.number, name.clone()));
                        self.contents.entry(inode).or_insert(content);
                    } else if self
                        .contents
                        .get(&inode)
                        .is_none_or(|(earlier, _)| *earlier == set.number)
                    {
                        self.contents.insert(inode, content);
                    }
                }
                Record::Attributes { inode, list } => {
                    let inode = self.canonical(*inode);
                    self.attributes.entry(inode).or_insert_with(|| list.clone());
                }
                Record::Moved {
                    inode,
                    folder,
                    name,
                } => {
                    let place = (id(ids, *folder), name.clone());
                    let inode = self.canonical(*inode);
                    self.moved.entry(inode).or_default().push(place);
                }
                Record::After {
                    folder,
                    name,
                    after,
                    content,
                    hash,
                } => {
                    let key = (id(ids, *folder), name.clone());
                    let at = self.by_key.get(&key).copied();
                    let after = self.known(after.as_ref());
                    if let Some(entry) = at.and_then(|at| self.entries.get_mut(at as usize)) {
                        let earlier = entry.after.as_ref().is_some_and(|after| after.content);
                        entry.after = Some(After {
                            state: after,
                            content: *content || earlier,
                            hash: *hash,
                        });
                    }
                }
                Record::FolderAfter {
                    folder,
                    now,
                    modified,
                } => {
                    let now = now
                        .as_ref()
                        .map(|(parent, name)| (id(ids, *parent), name.clone()));
                    let folder = self.folders.get_mut(id(ids, *folder) as usize);
                    if let Some(folder) = folder {
                        if let Some(now) = &now {
                            self.moved
                                .entry(folder.inode)
                                .or_default()
                                .push(now.clone());
                        }
                        folder.after = Some((now, *modified));
                    }
                }
                Record::Dropped { inode, part } => {
                    let inode = self.canonical(*inode);
                    let is_own = |number: &u64| *number == set.number;
                    if self.links.get(&inode).is_some_and(|(own, _)| is_own(own)) {
                        self.links.remove(&inode);
                    }
                    let is_dropped = |(own, kept): &(u64, Kept)| {
                        is_own(own) && (*part == Part::All || matches!(kept, Kept::Linked(_)))
                    };
                    if self.contents.get(&inode).is_some_and(is_dropped) {
                        self.contents.remove(&inode);
                    }
                }
                Record::LinkedAfter { inode, after } => {
                    let inode = self.canonical(*inode);
                    self.links_after.insert(inode, after.clone());
                }
                _ => {}
            }
        }
    }

    pub(super) fn folder(&self, id: u32) -> Option<&Folder> {
        self.folders.get(id as usize)
    }

    pub(super) fn entry(&self, at: u32) -> Option<&Entry> {
        self.entries.get(at as usize)
    }

    /// Whether something else is in a place now that cannot stand for what was there, even if it
    /// looks the same: it has other names, had another place before, to which an undo takes it,
    /// or is a folder; or what was there is `present` in another place.
    pub(super) fn is_replaced(
        &self,
        before: &State,
        now: &State,
        present: &HashSet<Inode>,
    ) -> bool {
        before.inode != now.inode
            && (now.is_dir()
                || before.links > 1
                || now.links > 1
                || self.originals.contains_key(&now.inode)
                || present.contains(&before.inode))
    }

    /// Whether the folder did not exist before.
    pub(super) fn is_new(&self, mut id: u32) -> bool {
        // A chain that is longer than the list of folders is a loop.
        for _ in 0..self.folders.len() {
            let Some(folder) = self.folder(id).filter(|_| id != 0) else {
                return false;
            };
            if self.originals.contains_key(&folder.inode) {
                return false;
            }
            if self
                .by_key
                .contains_key(&(folder.parent, folder.name.clone()))
            {
                return true;
            }
            id = folder.parent;
        }
        true
    }

    /// Path of a folder before the call; of a new one, where it was first seen.
    pub(super) fn original_folder(&self, mut id: u32) -> PathBuf {
        let mut names = Vec::new();
        for _ in 0..=self.folders.len() {
            let Some(folder) = self.folder(id).filter(|_| id != 0) else {
                break;
            };
            match self
                .originals
                .get(&folder.inode)
                .and_then(|at| self.entry(*at))
            {
                Some(entry) => {
                    names.push(&entry.name);
                    id = entry.folder;
                }
                None => {
                    names.push(&folder.name);
                    id = folder.parent;
                }
            }
        }
        joined(names.iter().rev().map(|name| &***name))
    }

    /// Path of an entry before the call.
    pub(super) fn original_path(&self, entry: &Entry) -> PathBuf {
        self.original_folder(entry.folder)
            .join(state::name(&entry.name))
    }

    /// Path of a folder after the call, as far as it was recorded.
    pub(super) fn folder_after(&self, mut id: u32) -> PathBuf {
        let mut names = Vec::new();
        for _ in 0..=self.folders.len() {
            let Some(folder) = self.folder(id).filter(|_| id != 0) else {
                break;
            };
            let (parent, name) = match &folder.after {
                Some((Some((parent, name)), _)) => (*parent, name),
                _ => (folder.parent, &folder.name),
            };
            names.push(name);
            id = parent;
        }
        joined(names.iter().rev().map(|name| &***name))
    }

    /// Path of an entry after the call.
    pub(super) fn path_after(&self, entry: &Entry) -> PathBuf {
        self.folder_after(entry.folder)
            .join(state::name(&entry.name))
    }

    /// States of every entry after the call, as they were recorded.
    pub(super) fn recorded(&self) -> Vec<Option<State>> {
        self.entries
            .iter()
            .map(|entry| match &entry.after {
                Some(after) => after.state.clone(),
                None => entry.before.clone(),
            })
            .collect()
    }

    /// The open root.
    pub(super) fn root(&self) -> &OwnedFd {
        &self.root
    }
}

pub(super) fn joined<'a>(names: impl Iterator<Item = &'a [u8]>) -> PathBuf {
    let mut path = PathBuf::from("/");
    path.extend(names.map(|name| Path::new(state::name(name))));
    path
}
