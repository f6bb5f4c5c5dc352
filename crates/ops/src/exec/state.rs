//! States of paths: enough to detect whether they were changed.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, openat2, readlinkat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Maximum number of entries of a protected folder that are compared.
const MAX_ENTRIES: usize = 2_000;

/// State of a file or folder, enough to detect a change. It includes the change time, which
/// no program can set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Nothing,
    /// Unknown: a folder on the way cannot be searched.
    Shut,
    Link(Vec<u8>),
    /// A link replaced a folder above, so what is there has another path, which is not
    /// watched. Holds the link.
    Behind(PathBuf),
    There(Vec<(PathBuf, [i64; 5])>),
}

impl State {
    pub(super) fn is_behind(&self) -> bool {
        matches!(self, Self::Behind(_))
    }
}

/// Opens the folder that contains a path, and returns it with the last name of the path.
/// Does not follow links, because a command may have created one that leads to something
/// protected.
pub(super) fn place(path: &Path) -> Result<(OwnedFd, &OsStr), Errno> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::INVAL);
    };
    let folder = openat2(
        CWD,
        parent,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    );
    Ok((folder?, name))
}

/// Returns the current state of a path.
pub(super) fn state(path: &Path) -> State {
    let (folder, name) = match place(path) {
        Ok(place) => place,
        Err(Errno::ACCESS) => return State::Shut,
        Err(_) => return link_above(path).map_or(State::Nothing, State::Behind),
    };
    let stat = match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::ACCESS) => return State::Shut,
        Err(_) => return State::Nothing,
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => {
            let target = readlinkat(&folder, name, Vec::new()).unwrap_or_default();
            State::Link(target.into_bytes())
        }
        FileType::Directory => {
            let mut entries = vec![(PathBuf::new(), facts(&stat))];
            collect(path, Path::new(""), &mut entries);
            entries.sort();
            State::There(entries)
        }
        _ => State::There(vec![(PathBuf::new(), facts(&stat))]),
    }
}

/// Returns the first link on the way to a path. The path was real when it was chosen, so
/// the link was created since.
fn link_above(path: &Path) -> Option<PathBuf> {
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    above
        .into_iter()
        .find(|folder| is_link(folder))
        .map(Path::to_owned)
}

/// Whether something is at a path, or a folder on the way cannot be searched.
pub(super) fn may_be_there(path: &Path) -> bool {
    let found = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
    !matches!(found, Err(Errno::NOENT | Errno::NOTDIR))
}

pub(super) fn is_link(path: &Path) -> bool {
    statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_symlink())
}

#[expect(
    clippy::disallowed_methods,
    reason = "names and times of what is protected; no content is read"
)]
fn collect(root: &Path, below: &Path, entries: &mut Vec<(PathBuf, [i64; 5])>) {
    let Ok(listed) = std::fs::read_dir(root.join(below)) else {
        return;
    };
    for entry in listed.flatten() {
        if entries.len() >= MAX_ENTRIES {
            return;
        }
        let below = below.join(entry.file_name());
        let Ok(stat) = statat(CWD, root.join(&below), AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        entries.push((below.clone(), facts(&stat)));
        if FileType::from_raw_mode(stat.st_mode).is_dir() {
            collect(root, &below, entries);
        }
    }
}

#[expect(
    clippy::cast_possible_wrap,
    reason = "compared for being the same, never for being larger"
)]
fn facts(stat: &rustix::fs::Stat) -> [i64; 5] {
    // The times of a folder change with its entries, which are compared one by one.
    let is_folder = FileType::from_raw_mode(stat.st_mode).is_dir();
    let time = |value: i64| if is_folder { 0 } else { value };
    [
        stat.st_ino as i64,
        i64::from(stat.st_mode),
        time(stat.st_size),
        time(stat.st_ctime),
        time(stat.st_ctime_nsec as i64),
    ]
}
