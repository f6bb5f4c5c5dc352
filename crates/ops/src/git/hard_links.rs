//! Finds hard links to protected files: writing to one writes to all.

use super::names;
use crate::scope::shut::look;
use crate::scope::shut::shut_above;
use rustix::fs::{AtFlags, CWD, FileType, statat};
use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Maximum number of entries to look at, and maximum time.
const MAX_ENTRIES: usize = 4_000_000;
const MAX_TIME: Duration = Duration::from_secs(4);

/// Maximum number of files to look at in one protected folder.
const MAX_PER_FOLDER: usize = 20_000;

/// Identity of a file: device, inode number, and change time.
type Identity = (u64, u64, i64, i64);

/// Files with more than one hard link.
pub(crate) type Sought = BTreeSet<Identity>;

/// Returns which of these files, or of the files in these folders, have more than one hard
/// link.
pub(crate) fn with_other_names<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Sought {
    let mut sought = Sought::new();
    for path in paths {
        let mut queue = VecDeque::from([path.to_owned()]);
        let mut looked = 0;
        while let Some(path) = queue.pop_front() {
            looked += 1;
            let Some((kind, links, identity)) = facts(&path) else {
                continue;
            };
            if kind.is_dir() && looked < MAX_PER_FOLDER {
                queue.extend(names(&path).iter().map(std::fs::DirEntry::path));
            } else if kind.is_file() && links > 1 {
                sought.insert(identity);
            }
        }
    }
    sought
}

/// Returns all names of these files below the roots, and whether the roots were searched
/// completely.
pub(crate) fn same_files(sought: &Sought, roots: &[PathBuf]) -> (Vec<PathBuf>, bool) {
    let begun = Instant::now();
    let mut found = Vec::new();
    let mut looked = 0;
    let mut queue: VecDeque<PathBuf> = roots.iter().cloned().collect();
    while let Some(folder) = queue.pop_front() {
        let entries = names(&folder);
        // A folder that cannot be searched may contain any name.
        if let Some(first) = entries.first()
            && shut_above(&first.path()).is_some()
        {
            found.push(folder);
            continue;
        }
        for entry in entries {
            looked += 1;
            if looked > MAX_ENTRIES || (looked % 256 == 0 && begun.elapsed() > MAX_TIME) {
                return (found, false);
            }
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() {
                queue.push_back(entry.path());
            } else if kind.is_file()
                && let Some((_, links, identity)) = facts(&entry.path())
                && links > 1
                && sought.contains(&identity)
            {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found.dedup();
    (found, true)
}

#[expect(
    clippy::unnecessary_cast,
    reason = "the kernel's types differ between architectures"
)]
fn facts(path: &Path) -> Option<(FileType, u64, Identity)> {
    let stat = look(path, || statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)).ok()?;
    let identity = (
        stat.st_dev as u64,
        stat.st_ino as u64,
        stat.st_ctime as i64,
        stat.st_ctime_nsec as i64,
    );
    let kind = FileType::from_raw_mode(stat.st_mode);
    Some((kind, stat.st_nlink as u64, identity))
}
