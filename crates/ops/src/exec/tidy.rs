//! Private temp folders that nobody has used for long.

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Longer than any session waits between two commands.
const UNUSED: Duration = Duration::from_secs(30 * 86_400);

/// Marks a temp folder as used, and removes those beside it that were not for a
/// month. What cannot be removed stays for the next time.
#[expect(
    clippy::disallowed_methods,
    reason = "haft's own folders, which no scope admits"
)]
pub(super) fn tidy(temp: &Path) {
    mark(temp);
    let Some(entries) = temp.parent().and_then(|all| std::fs::read_dir(all).ok()) else {
        return;
    };
    for entry in entries.flatten() {
        let is_old = entry
            .metadata()
            .and_then(|found| found.modified())
            .is_ok_and(|used| {
                SystemTime::now()
                    .duration_since(used)
                    .is_ok_and(|age| age > UNUSED)
            });
        if is_old {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Marks a temp folder as used.
pub(super) fn mark(temp: &Path) {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    let _ = utimensat(CWD, temp, &times, AtFlags::SYMLINK_NOFOLLOW);
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests look at the disk themselves"
)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_old_goes() {
        let all = tempfile::tempdir().unwrap();
        let old = Timestamps {
            last_access: Timespec::default(),
            last_modification: Timespec::default(),
        };
        for name in ["mine", "young", "old"] {
            std::fs::create_dir(all.path().join(name)).unwrap();
            std::fs::write(all.path().join(name).join("file"), "x").unwrap();
        }
        for name in ["mine", "old"] {
            utimensat(CWD, all.path().join(name), &old, AtFlags::empty()).unwrap();
        }
        tidy(&all.path().join("mine"));
        let left = |name: &str| all.path().join(name).join("file").exists();
        assert!(left("mine") && left("young") && !left("old"));
    }
}
