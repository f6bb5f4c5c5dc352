//! Files that the calls did not write, and that others have written since. Undo takes back
//! what the calls did to them, such as a new name, and what others wrote stays.

use super::keep::Kept;
use super::picture::Entry;
use super::plan::Plan;
use super::state::{Inode, State};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

impl Plan {
    /// Finds such files. Editors replace a file by a new one, so what is in its place is taken
    /// for the file itself.
    pub(super) fn find_edited(&mut self) {
        let unwritten = self.unwritten();
        let present = self.now.iter().flatten();
        let mut alive: HashSet<Inode> = present.map(|now| now.inode).collect();
        let mut replaced: Vec<(Inode, Inode)> = Vec::new();
        for (entry, now) in self.picture.entries.iter().zip(&self.now) {
            let left = entry.after.as_ref().and_then(|after| after.state.as_ref());
            let (Some(left), Some(now)) = (left, now) else {
                continue;
            };
            let is_replaced = now.inode != left.inode && now.is_file();
            let is_known = self.picture.originals.contains_key(&now.inode);
            if is_replaced && !is_known && unwritten.contains_key(&left.inode) {
                // Only one file can be what it was.
                if alive.insert(left.inode) {
                    replaced.push((now.inode, left.inode));
                }
            }
        }
        for (new, old) in &replaced {
            self.picture.aliases.insert(*new, *old);
            for now in self.now.iter_mut().flatten() {
                if now.inode == *new {
                    now.inode = *old;
                }
            }
        }
        self.replaced = replaced;
        for now in self.now.iter().flatten() {
            let before = unwritten.get(&now.inode);
            if before.is_some_and(|before| now.is_file() && !before.same_version(now)) {
                self.edited.insert(now.inode, None);
            }
        }
        for entry in &self.picture.entries {
            let left = entry.after.as_ref().and_then(|after| after.state.as_ref());
            if let Some(left) = left
                && let Some(known) = self.edited.get_mut(&left.inode)
            {
                *known = Some(left.clone());
            }
        }
    }

    /// State before of each file that no call has written.
    fn unwritten(&self) -> HashMap<Inode, State> {
        let picture = &self.picture;
        let mut unwritten: HashMap<Inode, State> = HashMap::new();
        for (inode, home) in &picture.originals {
            let before = picture.entry(*home).and_then(|entry| entry.before.as_ref());
            let kept = picture.contents.get(inode).map(|(_, kept)| kept);
            let is_opened = kept.is_some_and(|kept| !matches!(kept, Kept::Linked(_)));
            if let Some(before) = before.filter(|before| before.is_file() && !is_opened) {
                unwritten.insert(*inode, before.clone());
            }
        }
        // An undo may have put another file in its place.
        for entry in &picture.entries {
            let left = entry.after.as_ref().and_then(|after| after.state.as_ref());
            if let Some(left) = left
                && let Some(before) = unwritten.get(&left.inode)
                && !before.same_version(left)
            {
                unwritten.remove(&left.inode);
            }
        }
        unwritten
    }

    /// Whether an entry is as the calls left it, apart from content that others wrote.
    pub(super) fn is_edited(&self, entry: &Entry, now: Option<&State>) -> bool {
        let left = entry.after.as_ref().and_then(|after| after.state.as_ref());
        let (Some(left), Some(now)) = (left, now) else {
            return false;
        };
        let is_at_home = entry
            .before
            .as_ref()
            .is_some_and(|before| before.inode == left.inode);
        left.inode == now.inode
            && self.edited.contains_key(&now.inode)
            && (!is_at_home || now.same_access(left))
    }

    /// Entries that the undo changes though others have written them.
    pub(super) fn touched(&self) -> impl Iterator<Item = PathBuf> {
        self.todo.iter().filter_map(|at| {
            let entry = self.picture.entry(*at)?;
            let is_edited = self.is_edited(entry, self.state(*at));
            is_edited.then(|| self.present_path(entry))
        })
    }

    /// Paths of these files after the undo.
    pub(super) fn edited_paths(&self) -> Vec<PathBuf> {
        let homes = self.edited.keys();
        let homes = homes.filter_map(|inode| self.picture.originals.get(inode));
        let mut paths: Vec<PathBuf> = homes
            .filter(|home| self.todo.contains(home))
            .filter_map(|home| self.picture.entry(*home))
            .map(|entry| self.picture.original_path(entry))
            .collect();
        paths.sort();
        paths
    }
}
