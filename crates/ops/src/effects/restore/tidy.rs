//! The end of a restoration: what is new goes, and folders get their modes and times.

use super::{Place, Restorer};
use crate::effects::outcome::UndoError;
use crate::effects::picture::Lookup;
use crate::effects::state::{Inode, State, Time};
use std::collections::HashMap;
use std::path::PathBuf;

impl Restorer<'_> {
    /// Removes entries that did not exist before, inner ones first.
    pub(super) fn remove_new(&mut self) -> Result<(), UndoError> {
        let mut list: Vec<(usize, Place, Option<Inode>)> = Vec::new();
        let depth = |path: &std::path::Path| path.components().count();
        for at in &self.todo {
            let now = self.now.get(*at as usize).and_then(Option::as_ref);
            let entry = self.hands.picture.entry(*at);
            if let (Some(entry), Some(now)) = (entry, now)
                && entry.before.is_none()
                && let Some(folder) = self.hands.picture.path_now(entry.folder)
            {
                let place = (entry.folder, entry.name.clone());
                list.push((depth(&folder), place, Some(now.inode)));
            }
        }
        let waiting = std::mem::take(&mut self.waiting);
        let waiting = waiting.into_iter();
        let waiting = waiting.map(|(place, inode)| (place, Some(inode)));
        let remains = std::mem::take(&mut self.remains);
        let remains = remains.into_iter().map(|place| (place, None));
        for (place, inode) in waiting.chain(remains) {
            if let Some(folder) = self.hands.picture.path_now(place.0) {
                list.push((depth(&folder), place, inode));
            }
        }
        list.sort_by_key(|(depth, ..)| std::cmp::Reverse(*depth));
        for (_, place, inode) in list {
            let Some(there) = self.hands.state(&place)? else {
                continue;
            };
            let is_expected = inode.is_none_or(|inode| inode == there.inode);
            // The only name of something that existed before is never removed.
            let is_precious = (there.is_dir() || there.links <= 1)
                && self.hands.picture.originals.contains_key(&there.inode)
                && !self.has_equal(&there)?;
            if is_expected && !is_precious {
                // So that a redo finds the file to link again.
                if there.links > 1
                    && let Some(other) = self.take(there.inode)?
                    && other != place
                {
                    let path = self.hands.path(&other);
                    self.hands.recorder.note_name(&path);
                }
                let is_gone = self.hands.remove(&place)?;
                if !is_gone {
                    self.left.push(self.hands.path(&place));
                }
            }
        }
        Ok(())
    }

    /// Gives folders their modes and times, inner ones first, because an outer one may forbid
    /// access to them.
    pub(super) fn finish_folders(&mut self) -> Result<(), UndoError> {
        let mut list: Vec<(PathBuf, Place, Option<State>, Option<Time>)> = Vec::new();
        let mut times: HashMap<u32, Time> = std::mem::take(&mut self.times).into_iter().collect();
        for at in &self.todo {
            let Some(entry) = self.hands.picture.entry(*at) else {
                continue;
            };
            let Some(before) = entry.before.as_ref().filter(|before| before.is_dir()) else {
                continue;
            };
            let place = (entry.folder, entry.name.clone());
            let folder = self.hands.picture.by_inode.get(&before.inode);
            let time = match folder {
                Some(folder) => times.remove(folder),
                None => Some(before.modified),
            };
            list.push((self.hands.path(&place), place, Some(before.clone()), time));
        }
        for (id, time) in times {
            if let Some(Lookup::At(place)) = self.hands.picture.folder(id).map(|folder| &folder.now)
            {
                let place = place.clone();
                list.push((self.hands.path(&place), place, None, Some(time)));
            }
        }
        list.sort_by(|one, other| other.0.cmp(&one.0));
        for (_, place, state, time) in list {
            if let Some(state) = &state {
                self.hands.attributes(&place, state)?;
                self.hands.forget_opened(&place);
            }
            if let Some(time) = time {
                self.hands.set_time(&place, time);
            }
        }
        Ok(())
    }

    /// Whether an equal link, FIFO, socket or device has the place of an original one.
    fn has_equal(&mut self, original: &State) -> Result<bool, UndoError> {
        if original.is_dir() || original.is_file() {
            return Ok(false);
        }
        let home = self.hands.picture.originals.get(&original.inode);
        let Some(home) = home.and_then(|at| self.hands.entry_place(*at)) else {
            return Ok(false);
        };
        let there = self.hands.state(&home)?;
        Ok(there.is_some_and(|there| there.same_content(original)))
    }
}
