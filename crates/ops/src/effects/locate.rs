//! Finding the folders of a picture.

use super::folders::{is_missing, open_folder};
use super::picture::{Lookup, Picture, Place, joined};
use super::state::State;
use rustix::fd::OwnedFd;
use std::io;
use std::path::PathBuf;

impl Picture {
    /// Present path of a folder, by where it was last known to be.
    pub(super) fn path_now(&self, mut id: u32) -> Option<PathBuf> {
        let mut names = Vec::new();
        for _ in 0..=self.folders.len() {
            if id == 0 {
                names.reverse();
                return Some(joined(names.into_iter()));
            }
            let Lookup::At((parent, name)) = &self.folder(id)?.now else {
                return None;
            };
            names.push(&**name);
            id = *parent;
        }
        None
    }

    /// Place where a folder was before the calls.
    pub(super) fn home(&self, id: u32) -> Option<Place> {
        let folder = self.folder(id).filter(|_| id != 0)?;
        match self.originals.get(&folder.inode) {
            Some(home) => {
                let entry = self.entry(*home)?;
                Some((entry.folder, entry.name.clone()))
            }
            None => Some((folder.parent, folder.name.clone())),
        }
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
                above => self.read(above?, &place.1)?,
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
                (Some((_, Some(dir))), Some(entry)) => self.read(dir, &entry.name)?,
                _ => None,
            };
            states.push(state);
        }
        Ok(states)
    }
}
