//! A work folder, a store, and operations that tell the recorder what they are about to do.

use super::super::*;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, RenameFlags, XattrFlags, linkat, mknodat, renameat_with,
};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) struct Bed {
    // Dropped last.
    pub(super) work: PathBuf,
    pub(super) store: Store,
    pub(super) session: Session,
    _temp: tempfile::TempDir,
    _other: Option<tempfile::TempDir>,
}

pub(super) fn bounds() -> Bounds {
    Bounds {
        max_file: 64 << 20,
        max_session: 1 << 30,
        keep: Duration::from_secs(3600),
        skip: Skip::default(),
    }
}

impl Bed {
    pub(super) fn new() -> Self {
        Self::with(bounds())
    }

    pub(super) fn with(bounds: Bounds) -> Self {
        // In memory where there is such a place, because there are thousands of these.
        let memory = tempfile::tempdir_in("/dev/shm");
        let temp = memory.or_else(|_| tempfile::tempdir()).unwrap();
        let root = temp.path().canonicalize().unwrap();
        let state = root.join("state");
        Self::build(temp, None, &root, state, bounds)
    }

    /// A bed whose store is on another file system, so that nothing can be linked. `None` if
    /// the machine has only one.
    pub(super) fn apart() -> Option<Self> {
        let temp = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir_in("/dev/shm").ok()?;
        let root = temp.path().canonicalize().unwrap();
        if fs::metadata(&root).unwrap().dev() == other.path().metadata().unwrap().dev() {
            return None;
        }
        let state = other.path().join("state");
        Some(Self::build(temp, Some(other), &root, state, bounds()))
    }

    fn build(
        temp: tempfile::TempDir,
        other: Option<tempfile::TempDir>,
        root: &Path,
        state: PathBuf,
        bounds: Bounds,
    ) -> Self {
        let work = root.join("work");
        fs::create_dir(&work).unwrap();
        let store = Store::hasty(state, bounds);
        let session = store.session("s-1", &work, &[]);
        Self {
            work,
            store,
            session,
            _temp: temp,
            _other: other,
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    pub(super) fn call(&self, id: &str) -> Call {
        Call {
            recorder: self.session.begin(id, "bash"),
            work: self.work.clone(),
        }
    }

    pub(super) fn tree(&self) -> Tree {
        tree(&self.work)
    }

    pub(super) fn undo(&self) -> Result<Undone, UndoError> {
        let last = Selection {
            calls: Calls::Last,
            paths: Vec::new(),
        };
        self.session.undo(&last, UndoMode::Careful)
    }

    pub(super) fn undo_calls(&self, ids: &[&str]) -> Result<Undone, UndoError> {
        let ids = ids.iter().map(|id| (*id).to_owned()).collect();
        let what = Selection {
            calls: Calls::Ids(ids),
            paths: Vec::new(),
        };
        self.session.undo(&what, UndoMode::Careful)
    }
}

/// A call whose operations are recorded before they happen, whether they succeed or not.
pub(super) struct Call {
    pub(super) recorder: Recorder,
    work: PathBuf,
}

impl Call {
    /// The path without links in its folders, as the recorder wants it.
    fn at(&self, name: &str) -> PathBuf {
        let path = self.work.join(name);
        let folder = path.parent().unwrap();
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        folder.join(path.file_name().unwrap())
    }

    /// Tells the recorder, unless the folder cannot be reached and the operation will fail.
    fn tell(&self, path: &Path, touch: Touch<'_>) {
        let other = match touch {
            Touch::Move { to: other }
            | Touch::Link { from: other }
            | Touch::Exchange { with: other } => other,
            _ => path,
        };
        let is_there = |path: &Path| path.parent().unwrap().canonicalize().is_ok();
        if is_there(path) && is_there(other) {
            self.recorder.before(path, touch);
        }
    }

    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.tell(&self.at(name), Touch::Content);
        fs::write(self.at(name), bytes)
    }

    pub(super) fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        use std::io::Write;
        self.tell(&self.at(name), Touch::Content);
        let mut file = fs::OpenOptions::new().append(true).open(self.at(name))?;
        file.write_all(bytes)
    }

    /// Like `cp -p`: the copy has the times of the original too.
    pub(super) fn copy(&self, from: &str, to: &str) -> io::Result<()> {
        let meta = fs::metadata(self.at(from))?;
        let bytes = fs::read(self.at(from))?;
        self.write(to, &bytes)?;
        self.tell(&self.at(to), Touch::Attributes);
        let file = fs::File::options().write(true).open(self.at(to))?;
        let times = fs::FileTimes::new().set_modified(meta.modified()?);
        file.set_times(times)
    }

    /// Opens a file for writing and does nothing with it.
    pub(super) fn open(&self, name: &str) -> io::Result<()> {
        self.tell(&self.at(name), Touch::Content);
        fs::OpenOptions::new().write(true).open(self.at(name))?;
        Ok(())
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        self.tell(&self.at(name), Touch::Remove);
        fs::remove_file(self.at(name))
    }

    pub(super) fn rmdir(&self, name: &str) -> io::Result<()> {
        self.tell(&self.at(name), Touch::Remove);
        fs::remove_dir(self.at(name))
    }

    /// Like `rm -rf`.
    pub(super) fn remove_all(&self, name: &str) -> io::Result<()> {
        let path = self.at(name);
        if fs::symlink_metadata(&path)?.is_dir() {
            let mut names: Vec<_> = fs::read_dir(&path)?
                .map(|entry| entry.unwrap().file_name())
                .collect();
            names.sort();
            for inner in names {
                self.remove_all(&format!("{name}/{}", inner.to_str().unwrap()))?;
            }
            self.rmdir(name)
        } else {
            self.remove(name)
        }
    }

    pub(super) fn mkdir(&self, name: &str) -> io::Result<()> {
        self.tell(&self.at(name), Touch::Create);
        fs::create_dir(self.at(name))
    }

    pub(super) fn symlink(&self, target: &str, name: &str) -> io::Result<()> {
        self.tell(&self.at(name), Touch::Create);
        symlink(target, self.at(name))
    }

    pub(super) fn fifo(&self, name: &str) -> io::Result<()> {
        self.tell(&self.at(name), Touch::Create);
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(mknodat(CWD, self.at(name), FileType::Fifo, mode, 0)?)
    }

    pub(super) fn link(&self, from: &str, name: &str) -> io::Result<()> {
        let from = self.at(from);
        self.tell(&self.at(name), Touch::Link { from: &from });
        Ok(linkat(CWD, &from, CWD, self.at(name), AtFlags::empty())?)
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let to = self.at(to);
        self.tell(&self.at(from), Touch::Move { to: &to });
        fs::rename(self.at(from), to)
    }

    pub(super) fn exchange(&self, one: &str, other: &str) -> io::Result<()> {
        let with = self.at(other);
        self.tell(&self.at(one), Touch::Exchange { with: &with });
        let flags = RenameFlags::EXCHANGE;
        Ok(renameat_with(CWD, self.at(one), CWD, with, flags)?)
    }

    pub(super) fn chmod(&self, name: &str, mode: u32) -> io::Result<()> {
        self.tell(&self.at(name), Touch::Attributes);
        // Of a link, the file that it leads to would change.
        if fs::symlink_metadata(self.at(name))?.is_symlink() {
            return Ok(());
        }
        fs::set_permissions(self.at(name), fs::Permissions::from_mode(mode))
    }

    pub(super) fn set_attribute(&self, name: &str, value: &[u8]) -> io::Result<()> {
        self.tell(&self.at(name), Touch::Attributes);
        if fs::symlink_metadata(self.at(name))?.is_symlink() {
            return Ok(());
        }
        let flags = XattrFlags::empty();
        Ok(rustix::fs::setxattr(
            self.at(name),
            "user.haft",
            value,
            flags,
        )?)
    }

    pub(super) fn done(&self) -> Counts {
        self.recorder.finish(End::Done)
    }
}

/// Everything below a folder, by path: type, mode, content or target, time of files, and which
/// names are the same file.
pub(super) type Tree = BTreeMap<PathBuf, String>;

pub(super) fn tree(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut inodes: BTreeMap<(u64, u64), Vec<PathBuf>> = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        let mut names: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        names.sort();
        for path in names {
            let below = path.strip_prefix(root).unwrap().to_owned();
            let meta = fs::symlink_metadata(&path).unwrap();
            let mut what = format!("{:o}", meta.mode());
            if meta.is_symlink() {
                what = format!("link to {:?}", fs::read_link(&path).unwrap());
            } else if meta.is_file() {
                let bytes = fs::read(&path).unwrap();
                what += &format!(" {}.{}", meta.mtime(), meta.mtime_nsec());
                what += &format!(" {:?}", String::from_utf8_lossy(&bytes));
                let mut value = [0; 64];
                if let Ok(length) = rustix::fs::getxattr(&path, "user.haft", &mut value) {
                    what += &format!(" user.haft={:?}", &value[..length]);
                }
            }
            if meta.is_dir() {
                open.push(path.clone());
            } else if meta.nlink() > 1 && !meta.is_symlink() {
                // Equal symbolic links need not become one again.
                let inode = (meta.dev(), meta.ino());
                inodes.entry(inode).or_default().push(below.clone());
            }
            tree.insert(below, what);
        }
    }
    for names in inodes.values_mut().filter(|names| names.len() > 1) {
        names.sort();
        for name in names.iter() {
            tree.entry(name.clone())
                .and_modify(|what| *what += &format!(" same as {names:?}"));
        }
    }
    tree
}
