//! Moving aside what others put where an undo by force restores something.

use super::outcome::Aside;
use super::plan::Plan;
use super::state;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

impl Plan {
    /// Finds links and files of others in the place of folders that are gone.
    pub(super) fn find_blocking(&mut self) -> io::Result<()> {
        let folders: HashSet<u32> = self
            .conflicts
            .iter()
            .filter_map(|conflict| self.picture.entry(conflict.entry))
            .map(|entry| entry.folder)
            .collect();
        for mut id in folders {
            // The outermost one that is gone.
            let mut place = None;
            while !self.picture.locate(id)? {
                let Some(home) = self.picture.home(id) else {
                    break;
                };
                id = home.0;
                place = Some(home);
            }
            let Some(place) = place.filter(|place| !self.picture.by_key.contains_key(place)) else {
                continue;
            };
            let there = match self.picture.open(place.0)? {
                Some(dir) => self.picture.read(&dir, &place.1)?,
                None => None,
            };
            let above = self.picture.path_now(place.0).unwrap_or_default();
            let path = above.join(state::name(&place.1));
            let is_known = self.blocking.iter().any(|(known, ..)| *known == place);
            if there.is_some_and(|there| !there.is_dir()) && !is_known {
                let aside = free_name(&mut self.taken, &path);
                self.blocking.push((place, path, aside));
            }
        }
        Ok(())
    }

    pub(super) fn asides(&self) -> Vec<Aside> {
        let conflicts = self.conflicts.iter().filter_map(|conflict| {
            let path = self.present_path(self.picture.entry(conflict.entry)?);
            let now = conflict.aside.clone()?;
            Some(Aside { path, now })
        });
        let blocking = self.blocking.iter().map(|(_, path, now)| Aside {
            path: path.clone(),
            now: now.clone(),
        });
        blocking.chain(conflicts).collect()
    }
}

/// A free name beside an entry.
pub(super) fn free_name(taken: &mut HashSet<PathBuf>, path: &Path) -> PathBuf {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let name = path.file_name().unwrap_or_default().as_bytes();
    for count in 1..u32::MAX {
        let suffix = match count {
            1 => ".before-undo".to_owned(),
            count => format!(".before-undo-{count}"),
        };
        let room = 255_usize.saturating_sub(suffix.len());
        let mut free = name.get(..room).unwrap_or(name).to_vec();
        free.extend_from_slice(suffix.as_bytes());
        let free = path.with_file_name(OsString::from_vec(free));
        if free.symlink_metadata().is_err() && taken.insert(free.clone()) {
            return free;
        }
    }
    path.to_owned()
}
