//! Remembers the closed paths that earlier commands found, so that later ones only look at
//! folders that have changed.

use super::MOST_ENTRIES;
use crate::scope::Closing;
use rustix::fs::{AtFlags, CWD, FileType, statat};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A folder that changed this recently may change again without showing it.
const SETTLED: Duration = Duration::from_secs(2);

/// The path by which a folder was reached, and its real path if that differs.
type Names = (PathBuf, Option<PathBuf>);

/// What was found before, by rules.
#[derive(Debug, Default)]
pub(in crate::exec) struct Found {
    pub(super) version: u64,
    /// A number for the targets of links that rules name. `judged` holds for this one only.
    ways: u64,
    /// For each folder a number for what is closed below it, or `None` if nothing is. It
    /// takes much longer to compute than to check whether the folder has changed.
    judged: HashMap<Names, Option<u64>>,
    /// By real path and by what is closed below it.
    pub(super) folders: HashMap<(PathBuf, u64), (Stamp, Inside)>,
    /// Where links led that were closed: a command that removes the link does not open
    /// it. By the version of the rules.
    pub(super) led_to: HashMap<u64, BTreeSet<PathBuf>>,
}

/// What of a folder changes with what is in it, and can be set by nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    number: u64,
    changed: (i64, i64),
}

/// What in a folder matters.
#[derive(Debug, Clone, Default)]
pub(super) struct Inside {
    /// All its entries, by number.
    pub(super) entries: usize,
    /// What is closed.
    pub(super) closed: Vec<OsString>,
    /// Links that are closed, by their name or by where they lead.
    pub(super) links: Vec<OsString>,
    /// Folders that may hold something closed.
    pub(super) folders: Vec<OsString>,
    /// Links to what may hold something closed, if it is a folder.
    pub(super) ways: Vec<OsString>,
}

impl Found {
    /// Forgets everything that was found with other rules.
    pub(super) fn begin(&mut self, closing: &dyn Closing) {
        if self.version != closing.version() {
            self.version = closing.version();
            self.folders.clear();
            self.judged.clear();
        }
        if self.ways != closing.ways() {
            self.ways = closing.ways();
            self.judged.clear();
        }
    }

    /// A number for what is closed below a folder, if anything may be.
    pub(super) fn standing(&mut self, closing: &dyn Closing, names: [&Path; 2]) -> Option<u64> {
        let [named, real] = names;
        let key = (named.to_owned(), (real != named).then(|| real.to_owned()));
        if let Some(known) = self.judged.get(&key) {
            return *known;
        }
        let standing = closing
            .closes_below(&names)
            .then(|| closing.standing(&names));
        if self.judged.len() < MOST_ENTRIES {
            self.judged.insert(key, standing);
        }
        standing
    }
}

impl Stamp {
    pub(super) fn of(folder: &Path) -> Option<Self> {
        let stat = statat(CWD, folder, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        FileType::from_raw_mode(stat.st_mode)
            .is_dir()
            .then_some(())?;
        #[expect(
            clippy::useless_conversion,
            reason = "the types differ between architectures"
        )]
        Some(Self {
            device: stat.st_dev.into(),
            number: stat.st_ino.into(),
            changed: (
                stat.st_ctime.into(),
                i64::try_from(stat.st_ctime_nsec).unwrap_or(0),
            ),
        })
    }

    /// Whether the folder changed so long ago that another change would show.
    pub(super) fn is_settled(self) -> bool {
        let Ok(seconds) = u64::try_from(self.changed.0) else {
            return false;
        };
        let changed = UNIX_EPOCH + Duration::from_secs(seconds);
        SystemTime::now()
            .duration_since(changed)
            .is_ok_and(|since| since > SETTLED)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
mod tests {
    use super::super::paths;
    use super::*;
    use crate::scope::closing::{Closable, Closed, Extent, Why};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Closes `*.pem`, and counts how often it is asked what is closed below a folder.
    #[derive(Debug, Default)]
    struct Pem {
        root: PathBuf,
        ways: u64,
        asked: AtomicUsize,
    }

    impl Closing for Pem {
        fn closes(&self, names: &[&Path]) -> Option<Closed> {
            let is_pem = |name: &&Path| name.extension().is_some_and(|end| end == "pem");
            let closed = Closed {
                why: Why::Denied,
                open_inside: false,
            };
            names.iter().any(is_pem).then_some(closed)
        }

        fn closes_below(&self, _: &[&Path]) -> bool {
            true
        }

        fn standing(&self, _: &[&Path]) -> u64 {
            self.asked.fetch_add(1, Ordering::Relaxed);
            7
        }

        fn places(&self) -> Vec<Closable> {
            vec![Closable {
                path: self.root.clone(),
                extent: Extent::Itself,
                rule: "rule".to_owned(),
            }]
        }

        fn version(&self) -> u64 {
            1
        }

        fn ways(&self) -> u64 {
            self.ways
        }
    }

    #[test]
    fn the_rules_are_asked_about_a_folder_once_and_again_when_links_have_changed() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        for number in 0..50 {
            let folder = root.join(format!("d{number}"));
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("key.pem"), "x").unwrap();
        }
        let mut pem = Pem {
            root: root.clone(),
            ..Pem::default()
        };
        let mut found = Found::default();
        let mut asked = |pem: &Pem| {
            let before = pem.asked.load(Ordering::Relaxed);
            let covered = paths(pem, &[], &mut found).unwrap();
            assert_eq!(covered.paths.len(), 50);
            pem.asked.load(Ordering::Relaxed) - before
        };
        assert_eq!((asked(&pem), asked(&pem)), (51, 0));
        pem.ways = 1;
        assert_eq!((asked(&pem), asked(&pem)), (51, 0));
    }
}
