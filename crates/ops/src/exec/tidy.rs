//! Removal of private temp folders and caches that have not been used for a long time.

use super::caches::disk;
use crate::private::FolderLock;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Age at which an unused folder is removed.
const UNUSED: Duration = Duration::from_secs(30 * 86_400);

/// Removes the folders beside this one that no session holds and that were not used for
/// a month. A wrong clock can make a folder look old, but a folder in use is held. A folder
/// that cannot be removed stays for the next attempt.
#[expect(
    clippy::disallowed_methods,
    reason = "haft's own folders, which no scope admits"
)]
pub(super) fn tidy(temp: &Path) {
    let Some(entries) = temp.parent().and_then(|all| std::fs::read_dir(all).ok()) else {
        return;
    };
    let is_old = |folder: &Path| {
        let used = std::fs::symlink_metadata(folder).and_then(|found| found.modified());
        let age = used
            .ok()
            .and_then(|used| SystemTime::now().duration_since(used).ok());
        age.is_some_and(|age| age > UNUSED)
    };
    for folder in entries.flatten().map(|entry| entry.path()) {
        if folder == temp || !is_old(&folder) {
            continue;
        }
        // A session may have used it until just now.
        let lock = FolderLock::try_exclusive(&folder);
        if lock.is_some() && is_old(&folder) {
            disk::remove(&folder);
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests look at the disk themselves"
)]
mod tests {
    use super::*;
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

    fn make_old(folder: &Path) {
        let old = Timestamps {
            last_access: Timespec::default(),
            last_modification: Timespec::default(),
        };
        utimensat(CWD, folder, &old, AtFlags::empty()).unwrap();
    }

    #[test]
    fn only_old_folders_are_removed() {
        let all = tempfile::tempdir().unwrap();
        for name in ["mine", "young", "old"] {
            std::fs::create_dir(all.path().join(name)).unwrap();
            std::fs::write(all.path().join(name).join("file"), "x").unwrap();
        }
        for name in ["mine", "old"] {
            make_old(&all.path().join(name));
        }
        tidy(&all.path().join("mine"));
        let left = |name: &str| all.path().join(name).join("file").exists();
        assert!(left("mine") && left("young") && !left("old"));
    }

    #[test]
    fn a_folder_in_use_is_kept_however_old_it_looks() {
        let all = tempfile::tempdir().unwrap();
        let live = all.path().join("live");
        let one = FolderLock::new(&live).unwrap();
        let other = FolderLock::new(&live).unwrap();
        std::fs::write(live.join("file"), "x").unwrap();
        for held in [one, other] {
            make_old(&live);
            tidy(&all.path().join("mine"));
            assert!(live.join("file").exists());
            drop(held);
        }
        // It is no longer held, but was used just now.
        tidy(&all.path().join("mine"));
        assert!(live.join("file").exists());
        make_old(&live);
        tidy(&all.path().join("mine"));
        assert!(!live.exists());
    }
}
