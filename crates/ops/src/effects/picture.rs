//! One or several sets as a picture of what was before and what is now.
//!
//! Of several sets, the state before is that of the oldest set that touched an entry, and the
//! state after that of the newest.

use super::attributes::Attributes;
use super::folders::{is_missing, open_folder, open_root};
use super::record::{Finished, Header, Kept, Record};
use super::state::{self, Inode, State, Time};
use rustix::fd::OwnedFd;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

/// A set as it was read.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) number: u64,
    pub(super) header: Option<Header>,
    pub(super) records: Vec<Record>,
    /// Why something is missing.
    pub(super) why: Option<String>,
    pub(super) finished: Option<Finished>,
}

impl Loaded {
    pub(super) fn new(number: u64, records: impl Iterator<Item = Record>) -> Self {
        let mut set = Self {
            number,
            ..Self::default()
        };
        for record in records {
            match record {
                Record::Header(header) => set.header = Some(header),
                Record::Finished(finished) => set.finished = Some(finished),
                Record::Incomplete(why) => {
                    set.why.get_or_insert(why);
                }
                Record::Trailer => {}
                record => set.records.push(record),
            }
        }
        set
    }
}

/// Folder with touched entries.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) inode: Inode,
    /// Where it was when it was first seen.
    pub(super) parent: u32,
    pub(super) name: Box<[u8]>,
    /// Time of its last change before the call.
    pub(super) modified: Time,
    /// Where it was after the call, and its time.
    pub(super) after: Option<(Option<Place>, Time)>,
    /// Where it is now, once it was looked for.
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
    pub(super) attributes: HashMap<Inode, Attributes>,
    moved: HashMap<Inode, Vec<Place>>,
    root: OwnedFd,
    searching: HashSet<u32>,
    hit_loop: bool,
}

impl Picture {
    /// Combines sets, oldest first.
    pub(super) fn new(sets: &[Loaded]) -> io::Result<Self> {
        let root = open_root()?;
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
            attributes: HashMap::new(),
            moved: HashMap::new(),
            root,
            searching: HashSet::new(),
            hit_loop: false,
        };
        let mut by_inode = HashMap::new();
        let mut by_place = HashMap::new();
        for set in sets {
            picture.add(set, &mut by_inode, &mut by_place);
        }
        picture.by_inode = by_inode;
        for (at, entry) in (0..).zip(&picture.entries) {
            if let Some(before) = &entry.before {
                picture.originals.entry(before.inode).or_insert(at);
            }
        }
        Ok(picture)
    }

    fn add(
        &mut self,
        set: &Loaded,
        by_inode: &mut HashMap<Inode, u32>,
        by_place: &mut HashMap<Place, u32>,
    ) {
        let earlier: HashSet<Inode> = self.contents.keys().copied().collect();
        // Numbers of the set's folders in the picture.
        let mut ids = vec![0];
        let id = |ids: &[u32], folder: u32| ids.get(folder as usize).copied().unwrap_or_default();
        for record in &set.records {
            match record {
                Record::Folder {
                    inode,
                    parent,
                    name,
                    modified,
                } => {
                    let place = (id(&ids, *parent), name.clone());
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
                    let key = (id(&ids, *folder), name.clone());
                    let next = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
                    let entries = &mut self.entries;
                    self.by_key.entry(key).or_insert_with_key(|(folder, name)| {
                        entries.push(Entry {
                            folder: *folder,
                            name: name.clone(),
                            before: before.clone(),
                            after: None,
                        });
                        next
                    });
                }
                Record::Content { inode, kept } if !earlier.contains(inode) => {
                    let content = (set.number, kept.clone());
                    if let Kept::Linked(name) = kept {
                        self.links.insert(*inode, (set.number, name.clone()));
                        self.contents.entry(*inode).or_insert(content);
                    } else {
                        self.contents.insert(*inode, content);
                    }
                }
                Record::Attributes { inode, list } => {
                    self.attributes
                        .entry(*inode)
                        .or_insert_with(|| list.clone());
                }
                Record::Moved {
                    inode,
                    folder,
                    name,
                } => {
                    let place = (id(&ids, *folder), name.clone());
                    self.moved.entry(*inode).or_default().push(place);
                }
                Record::After {
                    folder,
                    name,
                    after,
                    content,
                    hash,
                } => {
                    let key = (id(&ids, *folder), name.clone());
                    let at = self.by_key.get(&key).copied();
                    if let Some(entry) = at.and_then(|at| self.entries.get_mut(at as usize)) {
                        let earlier = entry.after.as_ref().is_some_and(|after| after.content);
                        entry.after = Some(After {
                            state: after.clone(),
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
                        .map(|(parent, name)| (id(&ids, *parent), name.clone()));
                    let folder = self.folders.get_mut(id(&ids, *folder) as usize);
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

    /// Present path of a folder, by where it was last known to be.
    pub(super) fn path_now(&self, mut id: u32) -> Option<PathBuf> {
        let mut names = Vec::new();
        for _ in 0..=self.folders.len() {
            if id == 0 {
                return Some(joined(names.iter().rev().map(|name: &&Box<[u8]>| &***name)));
            }
            let Lookup::At((parent, name)) = &self.folder(id)?.now else {
                return None;
            };
            names.push(name);
            id = *parent;
        }
        None
    }

    /// Opens a folder where it is now. `None` if it is gone.
    pub(super) fn open(&mut self, id: u32) -> io::Result<Option<OwnedFd>> {
        if !self.locate(id)? {
            return Ok(None);
        }
        let Some(path) = self.path_now(id) else {
            return Ok(None);
        };
        match open_folder(&self.root, &path) {
            Err(error) if is_missing(&error) => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// Looks for a folder: where it was moved, then where it was first seen. Another folder in
    /// that place does not count, unless the place was never touched.
    pub(super) fn locate(&mut self, id: u32) -> io::Result<bool> {
        if id == 0 {
            return Ok(true);
        }
        let Some(folder) = self.folder(id) else {
            return Ok(false);
        };
        match &folder.now {
            Lookup::At(_) => return Ok(true),
            Lookup::Gone => return Ok(false),
            Lookup::Unknown => {}
        }
        let inode = folder.inode;
        let first = (folder.parent, folder.name.clone());
        if !self.searching.insert(id) {
            self.hit_loop = true;
            return Ok(false);
        }
        let mut places: Vec<Place> = Vec::new();
        let moved = self.moved.get(&inode).into_iter().flatten().rev();
        for place in moved.chain([&first]) {
            if !places.contains(place) {
                places.push(place.clone());
            }
        }
        let is_outer = self.searching.len() == 1;
        if is_outer {
            self.hit_loop = false;
        }
        let mut found = Lookup::Gone;
        for place in places {
            if !self.locate(place.0)? {
                continue;
            }
            let Some(above) = self.path_now(place.0) else {
                continue;
            };
            let is_untouched = place == first && !self.by_key.contains_key(&place);
            let there = match open_folder(&self.root, &above) {
                Err(error) if is_missing(&error) => continue,
                above => state::read(above?, state::name(&place.1))?,
            };
            if there.is_some_and(|there| there.is_dir() && (there.inode == inode || is_untouched)) {
                found = Lookup::At(place);
                break;
            }
        }
        self.searching.remove(&id);
        let is_found = matches!(found, Lookup::At(_));
        if (is_found || !self.hit_loop)
            && let Some(folder) = self.folders.get_mut(id as usize)
        {
            folder.now = found;
        }
        Ok(is_found)
    }

    /// Reads the present state of every entry.
    pub(super) fn observe(&mut self) -> io::Result<Vec<Option<State>>> {
        let mut states = Vec::with_capacity(self.entries.len());
        let mut open: Option<(u32, Option<OwnedFd>)> = None;
        for at in 0..self.entries.len() {
            let Some(id) = self.entries.get(at).map(|entry| entry.folder) else {
                continue;
            };
            if open.as_ref().is_none_or(|(known, _)| *known != id) {
                open = Some((id, self.open(id)?));
            }
            let state = match (&open, self.entries.get(at)) {
                (Some((_, Some(dir))), Some(entry)) => state::read(dir, state::name(&entry.name))?,
                _ => None,
            };
            states.push(state);
        }
        Ok(states)
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

    /// The open root of the file system.
    pub(super) fn root(&self) -> &OwnedFd {
        &self.root
    }
}

fn joined<'a>(names: impl Iterator<Item = &'a [u8]>) -> PathBuf {
    let mut path = PathBuf::from("/");
    path.extend(names.map(|name| Path::new(state::name(name))));
    path
}
