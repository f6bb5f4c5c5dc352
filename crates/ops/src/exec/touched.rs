//! What a command did to places that it had better not touch, where no kernel
//! could keep it from that: names that did not exist before, links, and at the
//! partial level everything that is protected.

use crate::executor::sandbox::{Confinement, Level, Watched, Why};
use crate::private;
use rustix::fs::{AtFlags, CWD, FileType, readlinkat, renameat, statat};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// How many entries of a protected folder are compared.
const ENTRIES: usize = 2_000;

/// Something that a command did to a protected place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touched {
    /// It made something at a path that the person protects, which did not
    /// exist; that was moved out of the way.
    MovedOut {
        /// The protected path.
        path: PathBuf,
        /// Where what it made is now.
        to: PathBuf,
    },
    /// It made something that can make git or haft run things, or that the
    /// person protects and that could not be moved.
    Appeared {
        /// What.
        path: PathBuf,
    },
    /// It changed something that is protected.
    Changed {
        /// What.
        path: PathBuf,
    },
}

/// How such places were before the command.
#[derive(Debug)]
pub(super) struct Before {
    watched: Vec<(Watched, State)>,
    protected: Vec<(PathBuf, State)>,
}

/// As much of a file or folder as tells whether it was changed. The time of the
/// last change cannot be set by anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Nothing,
    Link(Vec<u8>),
    There(Vec<(PathBuf, [i64; 5])>),
}

impl Before {
    pub(super) fn look(confinement: &Confinement) -> Self {
        let plan = &confinement.plan;
        let watched = plan.watched().iter();
        // At the full level the kernel sees to it.
        let protected = match confinement.strength.level {
            Level::Full => &[],
            Level::Partial => plan.protected(),
        };
        Self {
            watched: watched
                .map(|watched| (watched.clone(), state(&watched.path)))
                .collect(),
            protected: protected
                .iter()
                .map(|path| (path.clone(), state(path)))
                .collect(),
        }
    }

    /// What is otherwise now. What must not be there is moved below `out`.
    pub(super) fn compare(self, out: Option<&Path>) -> Vec<Touched> {
        let mut touched = Vec::new();
        for (Watched { path, why }, before) in self.watched {
            let now = state(&path);
            if now == before || now == State::Nothing && before == State::Nothing {
                continue;
            }
            touched.push(match (before, why) {
                (State::Nothing, Why::Listed) => match out.and_then(|out| move_out(&path, out)) {
                    Some(to) => Touched::MovedOut { path, to },
                    None => Touched::Appeared { path },
                },
                (State::Nothing, Why::Control) => Touched::Appeared { path },
                _ => Touched::Changed { path },
            });
        }
        for (path, before) in self.protected {
            if state(&path) != before {
                touched.push(Touched::Changed { path });
            }
        }
        touched
    }
}

/// Moves something to a free name below a folder of ours.
fn move_out(path: &Path, out: &Path) -> Option<PathBuf> {
    private::folder(out).ok()?;
    let name = path.file_name()?.to_string_lossy().into_owned();
    for number in 1..1_000 {
        let to = out.join(format!("moved-{number}-{name}"));
        if statat(CWD, &to, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            continue;
        }
        return match renameat(CWD, path, CWD, &to) {
            Ok(()) => Some(to),
            // Another disk: only what has a content of its own is worth a copy.
            Err(Errno::XDEV) => copy_out(path, &to).then_some(to),
            Err(_) => None,
        };
    }
    None
}

#[expect(
    clippy::disallowed_methods,
    reason = "between a protected place and haft's own folder, which no scope admits"
)]
fn copy_out(path: &Path, to: &Path) -> bool {
    let kind = std::fs::symlink_metadata(path).map(|found| found.file_type());
    match kind {
        Ok(kind) if kind.is_file() => {
            std::fs::copy(path, to).is_ok() && std::fs::remove_file(path).is_ok()
        }
        Ok(kind) if kind.is_dir() => {
            let copied = std::fs::create_dir(to).is_ok()
                && std::fs::read_dir(path).is_ok_and(|entries| {
                    entries
                        .flatten()
                        .all(|entry| copy_out(&entry.path(), &to.join(entry.file_name())))
                });
            copied && std::fs::remove_dir(path).is_ok()
        }
        Ok(_) => std::fs::remove_file(path).is_ok(),
        Err(_) => false,
    }
}

fn state(path: &Path) -> State {
    let Ok(stat) = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) else {
        return State::Nothing;
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => {
            let target = readlinkat(CWD, path, Vec::new()).unwrap_or_default();
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

#[expect(
    clippy::disallowed_methods,
    reason = "names and times of what is protected; no content is read"
)]
fn collect(root: &Path, below: &Path, entries: &mut Vec<(PathBuf, [i64; 5])>) {
    let Ok(listed) = std::fs::read_dir(root.join(below)) else {
        return;
    };
    for entry in listed.flatten() {
        if entries.len() >= ENTRIES {
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
    // A folder's own times change with what happens in it, which is compared
    // entry by entry.
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
