//! What is watched while something of haft's runs, written down: if haft is killed, the
//! next session in the work folder compares with it.
//!
//! Each session has a file of its own, which it holds locked. A file that nobody holds is
//! of one that was killed. It is empty while nothing runs.

use super::state::State;
use super::touched::Before;
use crate::executor::sandbox::{Watched, Why};
use crate::git::{Register, Remembered};
use crate::private;
use rustix::fs::{CWD, FlockOperation, flock, fstat, unlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// What such a file begins with. One that begins otherwise is of another version.
const FIRST: &str = "haft watches 1";

/// The last field: what lacks it was cut off.
const LAST: &[u8] = b"e\0";

/// More than a thousand repositories need.
const LONGEST: u64 = 64 << 20;

/// How many files of killed sessions are looked at.
const MOST: usize = 100;

/// What was watched.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// The folders that commands could write.
    pub(super) roots: Vec<PathBuf>,
    pub(super) watched: Vec<(Watched, State)>,
    pub(super) repositories: Remembered,
}

impl Kept {
    /// What is watched now, in places where it can be seen later that somebody came by.
    pub(super) fn of(before: &Before) -> Self {
        let watched = before.watched.iter();
        let watched = watched.filter(|(_, state)| matches!(state, State::Nothing | State::Link(_)));
        let mut kept = Self {
            roots: Vec::new(),
            watched: watched.cloned().collect(),
            repositories: Remembered {
                is_complete: true,
                ..Remembered::default()
            },
        };
        for register in &before.repositories {
            kept.with(register.root(), register.remembered());
        }
        kept
    }

    /// What has to be watched after the session, because it is not as it should be.
    pub(super) fn of_rest<'a>(
        stuck: &[(PathBuf, State)],
        registers: impl Iterator<Item = &'a Register>,
    ) -> Self {
        let why = Why::Listed;
        let watched = stuck.iter().cloned();
        let watched = watched.map(|(path, before)| (Watched { path, why }, before));
        let mut kept = Self {
            watched: watched.collect(),
            ..Self::default()
        };
        for register in registers {
            let gits = register.incomplete().into_iter();
            let remembered = Remembered {
                gits: gits.map(|git| (git, false)).collect(),
                ..Remembered::default()
            };
            kept.with(register.root(), remembered);
        }
        kept
    }

    fn with(&mut self, root: &Path, remembered: Remembered) {
        let Remembered {
            gits,
            pointers,
            is_complete,
        } = remembered;
        self.roots.push(root.to_owned());
        self.repositories.gits.extend(gits);
        self.repositories.pointers.extend(pointers);
        self.repositories.is_complete &= is_complete;
    }

    /// Whether there is nothing to come back to.
    pub(super) fn is_empty(&self) -> bool {
        self.watched.is_empty() && self.repositories.gits.is_empty()
    }

    /// Fields that end with a zero byte, which no path has. The first byte of each says
    /// what it is.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut put = |kind: u8, text: &[u8]| {
            bytes.push(kind);
            bytes.extend(text);
            bytes.push(0);
        };
        let raw = |path: &Path| path.as_os_str().as_bytes().to_owned();
        for root in &self.roots {
            put(b'r', &raw(root));
        }
        for (Watched { path, why }, state) in &self.watched {
            match why {
                Why::Control => put(b'c', &raw(path)),
                Why::Listed => put(b'l', &raw(path)),
            }
            if let State::Link(target) = state {
                put(b't', target);
            }
        }
        for (git, is_made) in &self.repositories.gits {
            put(if *is_made { b'm' } else { b'g' }, &raw(git));
        }
        for pointer in &self.repositories.pointers {
            put(b'p', &raw(pointer));
        }
        if !self.repositories.is_complete {
            put(b'x', b"");
        }
        bytes
    }

    /// Reads what can be read of it: the file of a process that was killed may end
    /// anywhere.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let mut kept = Self::default();
        kept.repositories.is_complete = bytes.ends_with(LAST);
        let mut fields: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
        // What follows the last zero is no field, or a part of one.
        fields.pop();
        for field in fields {
            let Some((kind, text)) = field.split_first() else {
                continue;
            };
            let path = PathBuf::from(OsStr::from_bytes(text));
            let watch = |why| {
                let path = path.clone();
                (Watched { path, why }, State::Nothing)
            };
            match kind {
                b'r' => kept.roots.push(path),
                b'c' => kept.watched.push(watch(Why::Control)),
                b'l' => kept.watched.push(watch(Why::Listed)),
                b't' => {
                    if let Some((_, state)) = kept.watched.last_mut() {
                        *state = State::Link(text.to_owned());
                    }
                }
                b'g' => kept.repositories.gits.push((path, false)),
                b'm' => kept.repositories.gits.push((path, true)),
                b'p' => kept.repositories.pointers.push(path),
                b'e' => {}
                _ => kept.repositories.is_complete = false,
            }
        }
        let roots = &kept.roots;
        let in_roots = |path: &Path| roots.iter().any(|root| path.starts_with(root));
        kept.watched.retain(|(watched, _)| in_roots(&watched.path));
        kept.repositories.gits.retain(|(git, _)| in_roots(git));
        kept.watched.sort_by(|one, other| one.0.cmp(&other.0));
        kept.watched
            .dedup_by(|one, other| one.0.path == other.0.path);
        kept
    }
}

/// The file of this session.
#[derive(Debug)]
pub(super) struct Mark {
    file: File,
    path: PathBuf,
    /// Whether it says nothing.
    is_empty: bool,
}

impl Mark {
    /// Makes one in this folder. Where that is impossible there is none: whatever is
    /// watched is still looked at when the session ends.
    pub(super) fn new(folder: &Path) -> Option<Self> {
        private::folder(folder).ok()?;
        for _ in 0..10 {
            let name = format!("{:016x}", random());
            let path = folder.join(name);
            let options = OpenOptions::new().write(true).create_new(true).clone();
            let file = private::file(&options, &path).ok()?;
            // Somebody who looks for files that nobody holds may have been quicker.
            let is_held = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
            if is_held && fstat(&file).is_ok_and(|stat| stat.st_nlink > 0) {
                return Some(Self {
                    file,
                    path,
                    is_empty: true,
                });
            }
        }
        None
    }

    /// Writes what is watched from now on.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            if !std::mem::replace(&mut self.is_empty, true) {
                let _ = self.file.set_len(0);
            }
            return;
        }
        self.is_empty = false;
        let all = [FIRST.as_bytes(), &[0], bytes, LAST].concat();
        let written = self.file.write_all_at(&all, 0);
        let cut = self.file.set_len(all.len() as u64);
        if let Err(error) = written.and(cut) {
            tracing::warn!(%error, "what is watched cannot be written down");
        }
    }

    /// Leaves it to the next session if it says anything, and removes it otherwise.
    pub(super) fn end(self) {
        if self.is_empty {
            remove(&self.path);
        }
    }
}

fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    let now = std::time::SystemTime::now();
    RandomState::new().hash_one((now, std::process::id()))
}

fn remove(path: &Path) {
    // One that stays is looked at again, and says the same.
    let _ = unlinkat(CWD, path, rustix::fs::AtFlags::empty());
}

/// A file that nobody holds any more.
pub(super) struct Abandoned {
    path: PathBuf,
    pub(super) kept: Kept,
    /// Held, so that nobody else looks at it.
    _file: File,
}

impl Abandoned {
    /// It was looked at.
    pub(super) fn done(self) {
        remove(&self.path);
    }
}

/// Reads the files of all sessions in this folder, including those that still run.
#[expect(
    clippy::disallowed_methods,
    reason = "haft's own folder, which no scope admits"
)]
pub(super) fn written(folder: &Path) -> Vec<Kept> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let options = OpenOptions::new().read(true).clone();
    let files = entries.flatten().take(MOST);
    let files = files.filter_map(|entry| private::file(&options, &entry.path()).ok());
    files.filter_map(|file| read(&file)).collect()
}

/// Reads one file. Returns `None` if it is empty or has an unknown format.
fn read(file: &File) -> Option<Kept> {
    let mut bytes = Vec::new();
    let _ = file.take(LONGEST).read_to_end(&mut bytes);
    let body = bytes.strip_prefix(FIRST.as_bytes())?;
    Some(Kept::parse(body.strip_prefix(&[0])?))
}

/// The files in this folder that are of sessions that are gone.
#[expect(
    clippy::disallowed_methods,
    reason = "haft's own folder, which no scope admits"
)]
pub(super) fn abandoned(folder: &Path) -> Vec<Abandoned> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.flatten().take(MOST) {
        let path = entry.path();
        let options = OpenOptions::new().read(true).clone();
        let Ok(file) = private::file(&options, &path) else {
            continue;
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            continue;
        }
        match read(&file) {
            Some(kept) => found.push(Abandoned {
                kept,
                path,
                _file: file,
            }),
            // It says nothing, or nothing that can be understood.
            None => remove(&path),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Kept {
        let root = PathBuf::from("/w");
        let watch = |name: &str, why, state| {
            (
                Watched {
                    path: root.join(name),
                    why,
                },
                state,
            )
        };
        Kept {
            watched: vec![
                watch("a", Why::Control, State::Nothing),
                watch("b\n", Why::Listed, State::Link(b"to \xff".to_vec())),
            ],
            repositories: Remembered {
                gits: vec![(root.join(".git"), false), (root.join("made"), true)],
                pointers: vec![root.join("sub/.git")],
                is_complete: true,
            },
            roots: vec![root],
        }
    }

    #[test]
    fn what_was_written_is_read_when_nobody_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut mark = Mark::new(folder.path()).unwrap();
        mark.write(&kept().to_bytes());
        assert!(abandoned(folder.path()).is_empty(), "it is still held");
        drop(mark);
        let found = abandoned(folder.path());
        let [one] = <[Abandoned; 1]>::try_from(found).ok().unwrap();
        assert_eq!(one.kept, kept());
        assert!(abandoned(folder.path()).is_empty(), "somebody looks at it");
        one.done();
        assert!(abandoned(folder.path()).is_empty());
    }

    #[test]
    fn nothing_is_left_of_a_session_that_ended_well() {
        let folder = tempfile::tempdir().unwrap();
        let mut mark = Mark::new(folder.path()).unwrap();
        mark.write(&kept().to_bytes());
        mark.write(&[]);
        mark.end();
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "the test damages the file itself"
    )]
    fn a_damaged_file_does_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let whole = [FIRST.as_bytes(), &[0], &kept().to_bytes(), LAST].concat();
        for end in 0..whole.len() {
            std::fs::write(folder.path().join("x"), &whole[..end]).unwrap();
            for one in abandoned(folder.path()) {
                assert!(one.kept.watched.len() <= 2);
                one.done();
            }
            assert_eq!(folder.path().read_dir().unwrap().count(), 0, "{end}");
        }
        std::fs::write(folder.path().join("x"), [7; 100]).unwrap();
        assert!(abandoned(folder.path()).is_empty());
    }
}
