//! Planning an undo, without changing anything.

use super::aside::free_name;
use super::compare;
use super::contents;
use super::picture::{After, Entry, Picture, Place};
use super::session::Session;
use super::state::{self, Inode, State, Time};
use rustix::fd::OwnedFd;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

/// Start of the names of entries that wait for their place.
pub(super) const TEMPORARY: &[u8] = b".haft-undo-";

/// Number of the attempt to restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    First,
    /// An earlier attempt was killed or failed half-way. What it touched may be in any state,
    /// and its own set is the last of the picture.
    Again,
}

/// The plan.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) picture: Picture,
    /// Present state of each entry.
    pub(super) now: Vec<Option<State>>,
    /// The files and folders that these are.
    present: HashSet<Inode>,
    /// Entries, those of outer folders first.
    pub(super) order: Vec<u32>,
    /// Entries that have to be restored.
    pub(super) todo: HashSet<u32>,
    /// Entries that are not as the calls left them.
    pub(super) conflicts: Vec<Conflict>,
    /// Entries whose content is missing.
    pub(super) not_kept: Vec<u32>,
    /// Folders that stay because of what others put there.
    pub(super) left: Vec<PathBuf>,
    /// Files that the calls did not write, but others have, and how the calls left them.
    pub(super) edited: HashMap<Inode, Option<State>>,
    /// Links and files of others in the place of folders that are needed again: place, path, and
    /// the path to which each is moved.
    pub(super) blocking: Vec<(Place, PathBuf, PathBuf)>,
    /// Of these, the files that are new, and those whose place they took.
    pub(super) replaced: Vec<(Inode, Inode)>,
    /// Times of folders to put back at the end.
    pub(super) times: Vec<(u32, Time)>,
    /// Remains of an earlier attempt.
    pub(super) remains: Vec<Place>,
    /// Names that are going to be used.
    pub(super) taken: HashSet<PathBuf>,
    pub(super) is_empty: bool,
}

/// An entry that is not as the calls left it.
#[derive(Debug)]
pub(super) struct Conflict {
    pub(super) entry: u32,
    pub(super) path: PathBuf,
    pub(super) what: &'static str,
    /// Path to which its present version is moved.
    pub(super) aside: Option<PathBuf>,
}

/// Plans to restore the states before. Empty `paths` stand for everything.
pub(super) fn plan(
    session: &Session,
    picture: Picture,
    paths: &[PathBuf],
    attempt: Attempt,
) -> io::Result<Plan> {
    let mut plan = Plan {
        now: Vec::new(),
        present: HashSet::new(),
        order: order(&picture),
        picture,
        todo: HashSet::new(),
        conflicts: Vec::new(),
        not_kept: Vec::new(),
        left: Vec::new(),
        edited: HashMap::new(),
        replaced: Vec::new(),
        blocking: Vec::new(),
        times: Vec::new(),
        remains: Vec::new(),
        taken: HashSet::new(),
        is_empty: true,
    };
    plan.observe()?;
    plan.find_edited();
    let selected = plan.selected(paths);
    plan.is_empty = selected.is_empty();
    for at in plan.order.clone() {
        if selected.contains(&at) {
            plan.decide(session, at, attempt)?;
        }
    }
    plan.look_inside(attempt)?;
    plan.find_blocking()?;
    plan.find_content(session)?;
    plan.find_times()?;
    if attempt == Attempt::Again {
        for (entry, now) in plan.picture.entries.iter().zip(&plan.now) {
            if now.is_some() && entry.name.starts_with(TEMPORARY) {
                plan.remains.push((entry.folder, entry.name.clone()));
            }
        }
    }
    Ok(plan)
}

fn order(picture: &Picture) -> Vec<u32> {
    let mut paths: Vec<(PathBuf, u32)> = picture
        .entries
        .iter()
        .zip(0..)
        .map(|(entry, at)| (picture.original_path(entry), at))
        .collect();
    paths.sort();
    paths.into_iter().map(|(_, at)| at).collect()
}

impl Plan {
    pub(super) fn state(&self, at: u32) -> Option<&State> {
        self.now.get(at as usize).and_then(Option::as_ref)
    }

    /// Reads the present state of every entry.
    fn observe(&mut self) -> io::Result<()> {
        self.now = vec![None; self.picture.entries.len()];
        let mut open: Option<(u32, Option<OwnedFd>)> = None;
        for at in &self.order {
            let Some(id) = self.picture.entry(*at).map(|entry| entry.folder) else {
                continue;
            };
            if open.as_ref().is_none_or(|(known, _)| *known != id) {
                open = Some((id, self.picture.open(id)?));
            }
            let Some(entry) = self.picture.entry(*at) else {
                continue;
            };
            let now = match &open {
                Some((_, Some(dir))) => self.picture.read(dir, &entry.name)?,
                _ => None,
            };
            if let Some(slot) = self.now.get_mut(*at as usize) {
                *slot = now;
            }
        }
        let present = self.now.iter().flatten();
        self.present = present.map(|state| state.inode).collect();
        Ok(())
    }

    /// Entries to restore: changed ones at or below the paths, the other end of what was moved,
    /// and removed folders around them.
    fn selected(&self, paths: &[PathBuf]) -> HashSet<u32> {
        let picture = &self.picture;
        let changed = |entry: &Entry| entry.after.is_some();
        let is_within = |path: &Path| paths.iter().any(|wanted| path.starts_with(wanted));
        let mut selected: HashSet<u32> = picture
            .entries
            .iter()
            .zip(0..)
            .filter(|(entry, _)| changed(entry))
            .filter(|(entry, _)| {
                paths.is_empty()
                    || is_within(&picture.original_path(entry))
                    || is_within(&picture.path_after(entry))
            })
            .map(|(_, at)| at)
            .collect();
        if paths.is_empty() {
            return selected;
        }
        let mut ends: HashMap<_, Vec<u32>> = HashMap::new();
        for (entry, at) in picture
            .entries
            .iter()
            .zip(0..)
            .filter(|(entry, _)| changed(entry))
        {
            let after = entry.after.as_ref().and_then(|after| after.state.as_ref());
            for state in entry.before.iter().chain(after) {
                ends.entry(state.inode).or_default().push(at);
            }
        }
        let mut open: Vec<u32> = selected.iter().copied().collect();
        while let Some(at) = open.pop() {
            let Some(entry) = picture.entry(at) else {
                continue;
            };
            let after = entry.after.as_ref().and_then(|after| after.state.as_ref());
            let others = entry.before.iter().chain(after);
            let others = others.filter_map(|state| ends.get(&state.inode)).flatten();
            let around = picture.folder(entry.folder).and_then(|folder| {
                let home = picture.originals.get(&folder.inode)?;
                let is_gone = self.state(*home).is_none_or(|now| !now.is_dir());
                (entry.before.is_some() && is_gone).then_some(home)
            });
            for other in others.chain(around) {
                if selected.insert(*other) {
                    open.push(*other);
                }
            }
        }
        selected
    }

    fn decide(&mut self, session: &Session, at: u32, attempt: Attempt) -> io::Result<()> {
        let Some(entry) = self.picture.entry(at) else {
            return Ok(());
        };
        let now = self.state(at);
        if self.is_restored(session, entry, now)? {
            return Ok(());
        }
        let Some(after) = &entry.after else {
            return Ok(());
        };
        let is_lost = entry.before.is_some() && now.is_none() && self.has_lost(entry.folder);
        let is_expected = !is_lost
            && (self.is_edited(entry, now) || self.is_left_so(entry, after, now)?)
            // The earlier attempt had made room for it, or was at work on it.
            || attempt == Attempt::Again;
        // Another folder took the place of a new one: it belongs to others.
        let is_foreign_folder = !is_expected
            && entry.before.is_none()
            && now.is_some_and(State::is_dir)
            && now.map(|now| now.inode) != after.state.as_ref().map(|left| left.inode);
        if !is_expected {
            let path = self.present_path(entry);
            let is_own_folder = now.is_some_and(|now| {
                let left = after.state.as_ref().map(|left| left.inode);
                now.is_dir() && left == Some(now.inode)
            });
            let what = match (&after.state, now) {
                _ if is_lost => "in a folder that is no longer there",
                (Some(_), None) => "no longer there",
                (None, Some(_)) => "created since",
                _ => "changed since",
            };
            let is_in_the_way = now.is_some() && !is_own_folder && !is_foreign_folder;
            let aside = is_in_the_way.then(|| free_name(&mut self.taken, &path));
            self.conflicts.push(Conflict {
                entry: at,
                path,
                what,
                aside,
            });
        }
        if !is_foreign_folder {
            self.todo.insert(at);
        }
        Ok(())
    }

    /// Whether a folder is gone that the calls neither removed nor moved.
    fn has_lost(&self, folder: u32) -> bool {
        let picture = &self.picture;
        let mut id = folder;
        for _ in 0..picture.folders.len() {
            let Some(folder) = picture.folder(id).filter(|_| id != 0) else {
                break;
            };
            let home = picture.originals.get(&folder.inode);
            let home = home.and_then(|at| picture.entry(*at));
            if home.is_some_and(|home| home.after.is_some()) || picture.is_new(id) {
                return false;
            }
            id = folder.parent;
        }
        picture.path_now(folder).is_none()
    }

    fn is_restored(
        &self,
        session: &Session,
        entry: &Entry,
        now: Option<&State>,
    ) -> io::Result<bool> {
        let (Some(before), Some(now)) = (&entry.before, now) else {
            return Ok(entry.before.is_none() && now.is_none());
        };
        Ok(!self.picture.is_replaced(before, now, &self.present)
            && before.same_content(now)
            && before.same_access(now)
            && compare::has_same_attributes(&self.picture, entry, before, now)
            && compare::is_as_before(&self.picture, session, entry, before)?)
    }

    /// Whether an entry is as the calls left it.
    fn is_left_so(&self, entry: &Entry, after: &After, now: Option<&State>) -> io::Result<bool> {
        let (Some(left), Some(now)) = (&after.state, now) else {
            return Ok(after.state.is_none() && now.is_none());
        };
        if left.file_type != now.file_type || !left.same_access(now) {
            return Ok(false);
        }
        if left.is_dir() {
            return Ok(left.inode == now.inode);
        }
        // A program can set the time of a file to what it was.
        let is_certain = left.changed == now.changed || after.hash.is_none();
        if left.same_content(now) && (is_certain || !left.is_file()) {
            return Ok(true);
        }
        let Some(hash) = after
            .hash
            .filter(|_| left.is_file() && left.size == now.size)
        else {
            return Ok(false);
        };
        match compare::open_now(&self.picture, entry) {
            Some(file) => Ok(compare::hash(&file)? == hash),
            None => Ok(false),
        }
    }

    /// Looks into new folders that have to go: what others put there stays.
    fn look_inside(&mut self, attempt: Attempt) -> io::Result<()> {
        let mut conflicts = Vec::new();
        for at in &self.order {
            let Some(entry) = self.picture.entry(*at).filter(|_| self.todo.contains(at)) else {
                continue;
            };
            let Some(now) = self.state(*at).filter(|now| now.is_dir()) else {
                continue;
            };
            let is_needed = entry.before.is_some();
            if self.picture.originals.contains_key(&now.inode) {
                continue;
            }
            let path = self.present_path(entry);
            let folder = self.picture.by_inode.get(&now.inode).copied();
            let foreign = super::disk::names(&path)?.into_iter().find(|name| {
                use std::os::unix::ffi::OsStrExt;
                let key = folder.map(|id| (id, name.as_bytes().into()));
                let known = key.and_then(|key| self.picture.by_key.get(&key));
                known.is_none_or(|known| !self.todo.contains(known))
            });
            let is_moved = self.conflicts.iter().any(|known| known.entry == *at);
            match foreign {
                // It is moved aside already, with everything in it.
                Some(_) if is_needed && is_moved => {}
                Some(name) if is_needed && attempt == Attempt::First => conflicts.push(Conflict {
                    entry: *at,
                    aside: Some(free_name(&mut self.taken, &path)),
                    path: path.join(name),
                    what: "created since, in a folder that has to go",
                }),
                Some(_) if !is_needed => self.left.push(path),
                _ => {}
            }
        }
        self.conflicts.extend(conflicts);
        Ok(())
    }

    fn find_content(&mut self, session: &Session) -> io::Result<()> {
        let conflicts = self.conflicts.iter();
        let conflicts: HashSet<u32> = conflicts.map(|conflict| conflict.entry).collect();
        let mut alive: HashMap<_, &State> = HashMap::new();
        for (now, at) in self.now.iter().zip(0..) {
            if let Some(now) = now.as_ref().filter(|_| !conflicts.contains(&at)) {
                alive.insert(now.inode, now);
            }
        }
        for at in &self.order {
            let Some(entry) = self.picture.entry(*at).filter(|_| self.todo.contains(at)) else {
                continue;
            };
            let Some(before) = entry.before.as_ref().filter(|state| state.is_file()) else {
                continue;
            };
            let has_content = entry.after.as_ref().is_some_and(|after| !after.content);
            let is_alive = alive.get(&before.inode).is_some_and(|now| {
                has_content || before.same_content(now) || self.edited.contains_key(&now.inode)
            });
            if before.size > 0
                && !is_alive
                && !contents::is_kept(session, &self.picture, before.inode)?
            {
                self.not_kept.push(*at);
            }
        }
        Ok(())
    }

    /// Folders whose time of change only the calls have moved.
    fn find_times(&mut self) -> io::Result<()> {
        let touched: HashSet<u32> = self
            .todo
            .iter()
            .filter_map(|at| self.picture.entry(*at))
            .map(|entry| entry.folder)
            .collect();
        for id in touched {
            if self.picture.is_new(id) {
                continue;
            }
            let present = self.picture.open(id)?.map(state::of).transpose()?;
            let Some(folder) = self.picture.folder(id) else {
                continue;
            };
            let after = folder.after.as_ref().map(|(_, modified)| *modified);
            let is_left_so = present
                .as_ref()
                .is_none_or(|now| Some(now.modified) == after);
            if is_left_so {
                self.times.push((id, folder.modified));
            }
        }
        Ok(())
    }

    /// Present path of an entry; if its folder is gone, its path before.
    pub(super) fn present_path(&self, entry: &Entry) -> PathBuf {
        self.picture.path_now(entry.folder).map_or_else(
            || self.picture.original_path(entry),
            |folder| folder.join(state::name(&entry.name)),
        )
    }
}
