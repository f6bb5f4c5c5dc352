//! Restores the states before.
//!
//! Entries of outer folders come first. What is in the way of an entry, but belongs elsewhere
//! or has to go, waits under a temporary name. New entries go last, then folders get their
//! modes and times. Every step is recorded before it happens, and can be repeated: the result
//! depends on what is there, not on what was done.

mod tidy;

use super::attributes;
use super::compare;
use super::contents::{self, Linked};
use super::hands::Hands;
use super::outcome::UndoError;
use super::picture::{Lookup, Place};
use super::plan::Plan;
use super::recorder::{Recorder, Touch};
use super::session::Session;
use super::state::{Inode, State, Time};
use rustix::fs::{FileType, Mode};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// Restores what the plan says. Returns folders that stay because of what others put there.
pub(super) fn restore(
    session: &Session,
    plan: Plan,
    recorder: &Recorder,
) -> Result<Vec<PathBuf>, UndoError> {
    let mut restorer = Restorer::new(session, plan, recorder);
    let done = restorer.run();
    let closed = restorer.hands.close_opened();
    let left = done?;
    closed?;
    if session.store().is_durable() {
        restorer.hands.sync(session.work_dir());
        for root in session.roots() {
            restorer.hands.sync(root);
        }
    }
    Ok(left)
}

struct Restorer<'a> {
    session: &'a Session,
    hands: Hands<'a>,
    now: Vec<Option<State>>,
    todo: Vec<u32>,
    conflicts: Vec<super::plan::Conflict>,
    blocking: Vec<(Place, PathBuf, PathBuf)>,
    edited: HashMap<Inode, Option<State>>,
    replaced: Vec<(Inode, Inode)>,
    times: Vec<(u32, Time)>,
    remains: Vec<Place>,
    left: Vec<PathBuf>,
    /// Places of original inodes.
    places: HashMap<Inode, Vec<Place>>,
    /// Inodes that were moved aside.
    aside: HashSet<Inode>,
    /// Temporary names, and what waits there.
    waiting: Vec<(Place, Inode)>,
}

impl<'a> Restorer<'a> {
    fn new(session: &'a Session, plan: Plan, recorder: &'a Recorder) -> Self {
        let mut places: HashMap<Inode, Vec<Place>> = HashMap::new();
        for (entry, now) in plan.picture.entries.iter().zip(&plan.now) {
            if let Some(now) = now
                && plan.picture.originals.contains_key(&now.inode)
            {
                let place = (entry.folder, entry.name.clone());
                places.entry(now.inode).or_default().push(place);
            }
        }
        let todo = plan.order.into_iter();
        let todo = todo.filter(|at| plan.todo.contains(at)).collect();
        Self {
            session,
            now: plan.now,
            todo,
            conflicts: plan.conflicts,
            blocking: plan.blocking,
            edited: plan.edited,
            replaced: plan.replaced,
            times: plan.times,
            remains: plan.remains,
            left: Vec::new(),
            places,
            aside: HashSet::new(),
            waiting: Vec::new(),
            hands: Hands::new(plan.picture, recorder),
        }
    }

    fn run(&mut self) -> Result<Vec<PathBuf>, UndoError> {
        // After a kill, the next attempt has to know them.
        for (new, old) in &self.replaced {
            self.hands.recorder.alias(*old, *new);
        }
        self.set_aside()?;
        for at in self.todo.clone() {
            self.put(at)?;
        }
        self.remove_new()?;
        self.finish_folders()?;
        Ok(std::mem::take(&mut self.left))
    }

    fn set_aside(&mut self) -> Result<(), UndoError> {
        for (place, _, aside) in std::mem::take(&mut self.blocking) {
            if let Some(name) = aside.file_name()
                && self.hands.state(&place)?.is_some()
            {
                self.hands.rename(&place, &(place.0, Hands::name(name)))?;
            }
        }
        for conflict in std::mem::take(&mut self.conflicts) {
            let (Some(aside), Some(place)) =
                (&conflict.aside, self.hands.entry_place(conflict.entry))
            else {
                continue;
            };
            let Some(name) = aside.file_name() else {
                continue;
            };
            let target = (place.0, Hands::name(name));
            if self.hands.state(&place)?.is_some() {
                self.hands.rename(&place, &target)?;
                if let Some(slot) = self.now.get_mut(conflict.entry as usize)
                    && let Some(moved) = slot.take()
                {
                    let places = self.places.entry(moved.inode).or_default();
                    places.retain(|known| *known != place);
                    self.aside.insert(moved.inode);
                }
            }
        }
        Ok(())
    }

    /// Restores an entry that existed before.
    fn put(&mut self, at: u32) -> Result<(), UndoError> {
        let Some(entry) = self.hands.picture.entry(at) else {
            return Ok(());
        };
        let Some(before) = entry.before.clone() else {
            return Ok(());
        };
        let place = (entry.folder, entry.name.clone());
        let has_content = entry.after.as_ref().is_some_and(|after| !after.content);
        self.hands.make_folder(place.0)?;
        let here = self.hands.state(&place)?;
        let is_edited = self.edited.contains_key(&before.inode);
        if has_content && !is_edited && here.as_ref().is_some_and(|here| is_one_file(here, &before))
        {
            return self.hands.attributes(&place, &before);
        }
        if is_edited && self.take(before.inode)?.is_some() {
            return self.put_edited(&place, &before, here.as_ref());
        }
        match before.file_type {
            FileType::Directory => self.put_folder(&place, &before, here.as_ref()),
            FileType::RegularFile => self.put_file(at, &place, &before, here),
            _ => self.put_special(&place, &before, here.as_ref()),
        }
    }

    /// Puts a file that others have written in its place. What they did to it stays.
    fn put_edited(
        &mut self,
        place: &Place,
        before: &State,
        here: Option<&State>,
    ) -> Result<(), UndoError> {
        if here.is_none_or(|here| here.inode != before.inode) {
            self.make_way(place, here)?;
            self.put_known(place, before.inode)?;
        }
        let Some(now) = self.hands.state(place)? else {
            return Ok(());
        };
        let left = self.edited.get(&before.inode).and_then(Option::as_ref);
        if left.is_some_and(|left| now.same_access(left)) {
            let modified = now.modified;
            let wanted = State {
                modified,
                ..before.clone()
            };
            return self.hands.attributes(place, &wanted);
        }
        Ok(())
    }

    /// Restores a symbolic link, a FIFO, a socket or a device.
    fn put_special(
        &mut self,
        place: &Place,
        before: &State,
        here: Option<&State>,
    ) -> Result<(), UndoError> {
        // One that belongs to another place is still taken there.
        let is_spare = |here: &State| !self.hands.picture.originals.contains_key(&here.inode);
        let is_there = here.is_some_and(|here| {
            here.inode == before.inode
                || (before.links <= 1 && here.same_content(before) && is_spare(here))
        });
        if !is_there {
            self.make_way(place, here)?;
            let is_put = self.put_known(place, before.inode)? || self.put_linked(place, before)?;
            if !is_put {
                match &before.target {
                    Some(target) => self.hands.symlink(place, target)?,
                    None => self.hands.make_node(place, before)?,
                }
                self.is_made(place, before.inode)?;
            }
        }
        self.hands.attributes(place, before)
    }

    /// Puts an inode that is elsewhere, or was made again, in its place. Returns `false` if
    /// it is nowhere.
    fn put_known(&mut self, place: &Place, inode: Inode) -> Result<bool, UndoError> {
        if let Some(from) = self.take(inode)? {
            if self.is_home(&from, inode) {
                self.hands.link(&from, place)?;
            } else {
                self.hands.rename(&from, place)?;
                self.places.insert(inode, vec![place.clone()]);
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn is_made(&mut self, place: &Place, inode: Inode) -> Result<(), UndoError> {
        // The version that was moved aside is still there, so this is another file.
        if !self.aside.contains(&inode) {
            self.hands.is_again(place, inode)?;
        }
        self.places.insert(inode, vec![place.clone()]);
        Ok(())
    }

    fn put_folder(
        &mut self,
        place: &Place,
        before: &State,
        here: Option<&State>,
    ) -> Result<(), UndoError> {
        let folder = self.hands.picture.by_inode.get(&before.inode).copied();
        let is_at_home = folder.is_some_and(|folder| {
            let folder = self.hands.picture.folder(folder);
            folder.is_some_and(|folder| folder.now == Lookup::At(place.clone()))
        });
        if here.is_some_and(|here| here.is_dir() && (is_at_home || here.inode == before.inode)) {
            return Ok(());
        }
        self.make_way(place, here)?;
        self.hands.remove(place)?;
        if let Some(from) = self.take(before.inode)? {
            self.hands.rename(&from, place)?;
            self.places.insert(before.inode, vec![place.clone()]);
            return Ok(());
        }
        self.hands.make_dir(place, Mode::RWXU)?;
        self.is_made(place, before.inode)?;
        if let Some(folder) = folder {
            self.hands.place_folder(folder, Lookup::At(place.clone()));
        }
        Ok(())
    }

    fn put_file(
        &mut self,
        at: u32,
        place: &Place,
        before: &State,
        here: Option<State>,
    ) -> Result<(), UndoError> {
        let mut here = here;
        if here.as_ref().is_none_or(|here| here.inode != before.inode) {
            self.make_way(place, here.as_ref())?;
            if !self.put_known(place, before.inode)? {
                return self.make_file(place, before);
            }
            here = self.hands.state(place)?;
        }
        let looks_same = here.as_ref().is_some_and(|here| here.same_content(before));
        if looks_same && self.is_as_before(at, place, before)? {
            return self.hands.attributes(place, before);
        }
        match here {
            // Other names of the file need the content too.
            Some(here) if here.links > 1 => {
                let source = self.source(place, before)?;
                self.hands.write_in_place(place, source)?;
                self.hands.attributes(place, before)
            }
            _ => self.make_file(place, before),
        }
    }

    fn is_as_before(&self, at: u32, place: &Place, before: &State) -> Result<bool, UndoError> {
        let picture = &self.hands.picture;
        let Some(entry) = picture.entry(at) else {
            return Ok(true);
        };
        compare::is_as_before(picture, self.session, entry, before)
            .map_err(|error| self.hands.error("read", place, error))
    }

    /// Puts a file with the kept content in place of whatever is there, in one step.
    fn make_file(&mut self, place: &Place, before: &State) -> Result<(), UndoError> {
        let is_done = self.put_linked(place, before)?;
        if !is_done {
            let source = self.source(place, before)?;
            self.hands.make_file(place, before, source)?;
        }
        self.is_made(place, before.inode)
    }

    /// Puts the file itself back, if it is kept.
    fn put_linked(&mut self, place: &Place, before: &State) -> Result<bool, UndoError> {
        let linked = contents::linked(self.session, &self.hands.picture, before)
            .map_err(|error| self.hands.error("read the kept content of", place, error))?;
        let is_done = match &linked {
            Some(Linked::Same(object, there)) => {
                let list = self.hands.picture.attributes.get(&before.inode);
                let is_same = there.same_access(before)
                    && list.is_none_or(|list| {
                        attributes::of_path(object).is_ok_and(|present| present == *list)
                    });
                if there.links > 1 && !is_same {
                    self.hands.cannot_redo(place);
                }
                self.hands.put_back(object, place, Some(before))?
            }
            Some(Linked::Changed(object)) => {
                let is_back = self.hands.put_back(object, place, None)?;
                if is_back {
                    self.hands.cannot_redo(place);
                    self.is_made(place, before.inode)?;
                    let source = self.source(place, before)?;
                    self.hands.write_in_place(place, source)?;
                    self.hands.attributes(place, before)?;
                }
                is_back
            }
            None => false,
        };
        if is_done {
            self.is_made(place, before.inode)?;
        }
        Ok(is_done)
    }

    fn source(
        &self,
        place: &Place,
        before: &State,
    ) -> Result<Option<super::keep::Source>, UndoError> {
        let fail = |error| self.hands.error("read the kept content of", place, error);
        let picture = &self.hands.picture;
        let source = contents::source(self.session, picture, before.inode).map_err(fail)?;
        if source.is_none() && before.size > 0 {
            return Err(fail(std::io::ErrorKind::NotFound.into()));
        }
        Ok(source)
    }

    /// Whether an inode was at this place before.
    fn is_home(&self, place: &Place, inode: Inode) -> bool {
        let picture = &self.hands.picture;
        let entry = picture.by_key.get(place).and_then(|at| picture.entry(*at));
        entry
            .and_then(|entry| entry.before.as_ref())
            .is_some_and(|before| before.inode == inode)
    }

    /// Finds where an original inode is now: best where it was before.
    fn take(&mut self, inode: Inode) -> Result<Option<Place>, UndoError> {
        let mut places = self.places.get(&inode).cloned().unwrap_or_default();
        places.sort_by_key(|place| !self.is_home(place, inode));
        for place in places {
            let there = self.hands.state(&place)?;
            if there.is_some_and(|there| there.inode == inode) {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Moves what is in the way to a temporary name if it is a folder or belongs elsewhere.
    /// Anything else is replaced.
    fn make_way(&mut self, place: &Place, here: Option<&State>) -> Result<(), UndoError> {
        let Some(here) = here else {
            return Ok(());
        };
        let is_original = self.hands.picture.originals.contains_key(&here.inode);
        if !here.is_dir() && !is_original {
            return Ok(());
        }
        let temporary = self.hands.move_away(place)?;
        if is_original {
            self.places.insert(here.inode, vec![temporary.clone()]);
        }
        self.waiting.push((temporary, here.inode));
        Ok(())
    }
}

fn is_one_file(here: &State, before: &State) -> bool {
    here.is_file() && before.is_file() && here.inode == before.inode && here.size == before.size
}

/// Notes an entry that is about to be replaced or made.
pub(super) fn note(recorder: &Recorder, path: &std::path::Path) {
    recorder.before(path, Touch::Remove);
    recorder.before(path, Touch::Create);
}
