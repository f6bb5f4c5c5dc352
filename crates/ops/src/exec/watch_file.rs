//! A file with the list of watched paths, kept while a command runs. If haft is killed, the
//! next session in the work folder compares the paths with it.
//!
//! Each session has its own file and keeps it locked. An unlocked file belongs to a session
//! that was killed. The file is empty while nothing runs.

use super::findings::Baseline;
use super::state::State;
use crate::executor::sandbox::{WatchReason, Watched};
use crate::git::{Registry, RegistryRecord};
use crate::private;
use rustix::fs::{CWD, FlockOperation, flock, fstat, unlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Start of such a file, with the version of the format.
const HEADER: &str = "haft watches 1";

/// The last field. A file without it was truncated.
const END_FIELD: &[u8] = b"e\0";

/// Maximum size in bytes. Enough for more than a thousand repositories.
const MAX_BYTES: u64 = 64 << 20;

/// Maximum number of files of killed sessions to read.
const MAX_FILES: usize = 100;

/// The paths that are watched, and their states.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WatchList {
    /// The folders that commands could write.
    pub(super) roots: Vec<PathBuf>,
    pub(super) watched: Vec<(Watched, State)>,
    pub(super) repositories: RegistryRecord,
}

impl WatchList {
    /// Returns the watched paths whose states can be compared by a later process.
    pub(super) fn of(before: &Baseline) -> Self {
        let watched = before.watched.iter();
        let watched = watched.filter(|(_, state)| matches!(state, State::Nothing | State::Link(_)));
        let mut list = Self {
            roots: Vec::new(),
            watched: watched.cloned().collect(),
            repositories: RegistryRecord {
                is_complete: true,
                ..RegistryRecord::default()
            },
        };
        for registry in &before.repositories {
            list.with(registry.root(), registry.record());
        }
        list
    }

    /// Returns what must be watched after the session, because it could not be repaired.
    pub(super) fn of_remaining<'a>(
        stuck: &[(PathBuf, State)],
        registries: impl Iterator<Item = &'a Registry>,
    ) -> Self {
        let why = WatchReason::Listed;
        let watched = stuck.iter().cloned();
        let watched = watched.map(|(path, before)| (Watched { path, why }, before));
        let mut list = Self {
            watched: watched.collect(),
            ..Self::default()
        };
        for registry in registries {
            let gits = registry.incomplete().into_iter();
            let record = RegistryRecord {
                gits: gits.map(|git| (git, false)).collect(),
                ..RegistryRecord::default()
            };
            list.with(registry.root(), record);
        }
        list
    }

    fn with(&mut self, root: &Path, record: RegistryRecord) {
        let RegistryRecord {
            gits,
            pointers,
            is_complete,
        } = record;
        self.roots.push(root.to_owned());
        self.repositories.gits.extend(gits);
        self.repositories.pointers.extend(pointers);
        self.repositories.is_complete &= is_complete;
    }

    /// Whether there is nothing left to check.
    pub(super) fn is_empty(&self) -> bool {
        self.watched.is_empty() && self.repositories.gits.is_empty()
    }

    /// Encodes the list as fields that end with a zero byte, which no path contains. The
    /// first byte of each field is its kind.
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
                WatchReason::Control => put(b'c', &raw(path)),
                WatchReason::Listed => put(b'l', &raw(path)),
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

    /// Decodes as much as possible: the file of a killed process may be truncated anywhere.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let mut list = Self::default();
        list.repositories.is_complete = bytes.ends_with(END_FIELD);
        let mut fields: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
        // The rest after the last zero byte is empty or an incomplete field.
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
                b'r' => list.roots.push(path),
                b'c' => list.watched.push(watch(WatchReason::Control)),
                b'l' => list.watched.push(watch(WatchReason::Listed)),
                b't' => {
                    if let Some((_, state)) = list.watched.last_mut() {
                        *state = State::Link(text.to_owned());
                    }
                }
                b'g' => list.repositories.gits.push((path, false)),
                b'm' => list.repositories.gits.push((path, true)),
                b'p' => list.repositories.pointers.push(path),
                b'e' => {}
                _ => list.repositories.is_complete = false,
            }
        }
        list.roots.sort();
        list.roots.dedup();
        list.repositories.gits.sort();
        list.repositories.gits.dedup();
        list.repositories.pointers.sort();
        list.repositories.pointers.dedup();
        let roots = &list.roots;
        let in_roots = |path: &Path| roots.iter().any(|root| path.starts_with(root));
        list.watched.retain(|(watched, _)| in_roots(&watched.path));
        list.repositories.gits.retain(|(git, _)| in_roots(git));
        list.watched.sort_by(|one, other| one.0.cmp(&other.0));
        list.watched
            .dedup_by(|one, other| one.0.path == other.0.path);
        list
    }
}

/// The file of this session.
#[derive(Debug)]
pub(super) struct WatchFile {
    file: File,
    path: PathBuf,
    /// Whether the file is empty.
    is_empty: bool,
}

impl WatchFile {
    /// Creates a file in this folder. Returns `None` if that fails; the paths are then
    /// checked only by this session.
    pub(super) fn new(folder: &Path) -> Option<Self> {
        private::folder(folder).ok()?;
        for _ in 0..10 {
            let name = format!("{:016x}", random());
            let path = folder.join(name);
            let options = OpenOptions::new().write(true).create_new(true).clone();
            let file = private::file(&options, &path).ok()?;
            // A session that looks for unlocked files may have locked or removed it
            // already.
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

    /// Replaces the content.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            if !std::mem::replace(&mut self.is_empty, true) {
                let _ = self.file.set_len(0);
            }
            return;
        }
        self.is_empty = false;
        let all = [HEADER.as_bytes(), &[0], bytes, END_FIELD].concat();
        let written = self.file.write_all_at(&all, 0);
        let cut = self.file.set_len(all.len() as u64);
        if let Err(error) = written.and(cut) {
            tracing::warn!(%error, "cannot write the list of watched paths");
        }
    }

    /// Keeps the file for the next session if it has content, and removes it otherwise.
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
    // A file that cannot be removed is read again, with the same result.
    let _ = unlinkat(CWD, path, rustix::fs::AtFlags::empty());
}

/// The file of a session that was killed.
pub(super) struct Abandoned {
    path: PathBuf,
    pub(super) list: WatchList,
    /// Locked, so that no other session reads it.
    _file: File,
}

impl Abandoned {
    /// Removes the file, after its paths were checked.
    pub(super) fn done(self) {
        remove(&self.path);
    }
}

/// Reads the files of all sessions in this folder, including those that still run.
#[expect(
    clippy::disallowed_methods,
    reason = "haft's own folder, which no scope admits"
)]
pub(super) fn written(folder: &Path) -> Vec<WatchList> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let options = OpenOptions::new().read(true).clone();
    let files = entries.flatten().take(MAX_FILES);
    let files = files.filter_map(|entry| private::file(&options, &entry.path()).ok());
    files.filter_map(|file| read(&file)).collect()
}

/// Reads one file. Returns `None` if it is empty or has an unknown format.
fn read(file: &File) -> Option<WatchList> {
    let mut bytes = Vec::new();
    let _ = file.take(MAX_BYTES).read_to_end(&mut bytes);
    let body = bytes.strip_prefix(HEADER.as_bytes())?;
    Some(WatchList::parse(body.strip_prefix(&[0])?))
}

/// Returns the files in this folder whose sessions were killed.
#[expect(
    clippy::disallowed_methods,
    reason = "haft's own folder, which no scope admits"
)]
pub(super) fn abandoned(folder: &Path) -> Vec<Abandoned> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.flatten().take(MAX_FILES) {
        let path = entry.path();
        let options = OpenOptions::new().read(true).clone();
        let Ok(file) = private::file(&options, &path) else {
            continue;
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            continue;
        }
        match read(&file) {
            Some(list) => found.push(Abandoned {
                list,
                path,
                _file: file,
            }),
            // Empty, or in an unknown format.
            None => remove(&path),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> WatchList {
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
        WatchList {
            watched: vec![
                watch("a", WatchReason::Control, State::Nothing),
                watch("b\n", WatchReason::Listed, State::Link(b"to \xff".to_vec())),
            ],
            repositories: RegistryRecord {
                gits: vec![(root.join(".git"), false), (root.join("made"), true)],
                pointers: vec![root.join("sub/.git")],
                is_complete: true,
            },
            roots: vec![root],
        }
    }

    /// A record is taken over by every later session, so it must not grow each time.
    #[test]
    fn entries_that_are_repeated_are_read_once() {
        let bytes = list().to_bytes();
        let repeated = [bytes.clone(), bytes.clone(), bytes.clone()].concat();
        assert_eq!(WatchList::parse(&repeated), WatchList::parse(&bytes));
    }

    #[test]
    fn the_list_is_read_once_it_is_not_locked() {
        let folder = tempfile::tempdir().unwrap();
        let mut watch_file = WatchFile::new(folder.path()).unwrap();
        watch_file.write(&list().to_bytes());
        assert!(abandoned(folder.path()).is_empty(), "it is still held");
        drop(watch_file);
        let found = abandoned(folder.path());
        let [one] = <[Abandoned; 1]>::try_from(found).ok().unwrap();
        assert_eq!(one.list, list());
        assert!(
            abandoned(folder.path()).is_empty(),
            "another session reads it"
        );
        one.done();
        assert!(abandoned(folder.path()).is_empty());
    }

    #[test]
    fn nothing_is_left_of_a_session_that_ended_well() {
        let folder = tempfile::tempdir().unwrap();
        let mut watch_file = WatchFile::new(folder.path()).unwrap();
        watch_file.write(&list().to_bytes());
        watch_file.write(&[]);
        watch_file.end();
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "the test damages the file itself"
    )]
    fn a_damaged_file_does_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let whole = [HEADER.as_bytes(), &[0], &list().to_bytes(), END_FIELD].concat();
        for end in 0..whole.len() {
            std::fs::write(folder.path().join("x"), &whole[..end]).unwrap();
            for one in abandoned(folder.path()) {
                assert!(one.list.watched.len() <= 2);
                one.done();
            }
            assert_eq!(folder.path().read_dir().unwrap().count(), 0, "{end}");
        }
        std::fs::write(folder.path().join("x"), [7; 100]).unwrap();
        assert!(abandoned(folder.path()).is_empty());
    }
}
