//! Remembers the denied paths that earlier commands found, so that later searches only look
//! at folders that have changed.

use super::MAX_ENTRIES;
use crate::scope::PathFilter;
use rustix::fs::{AtFlags, CWD, FileType, statat};
use rustix::io::Errno;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A folder that changed more recently than this may change again without a new time stamp.
const SETTLED: Duration = Duration::from_secs(2);

/// The path by which a folder was reached, and its real path if that differs.
type Names = (PathBuf, Option<PathBuf>);

/// Results of earlier searches, valid for one version of the rules.
#[derive(Debug, Default)]
pub(in crate::exec) struct SearchCache {
    pub(super) version: u64,
    /// Hash of the targets of links that rules name. `hashes` is valid for this value only.
    links_version: u64,
    /// For each folder, a hash of what is denied below it, or `None` if nothing is.
    /// Computing it takes much longer than checking whether the folder has changed.
    hashes: HashMap<Names, Option<u64>>,
    /// By real path and by the hash of what is denied below it.
    pub(super) folders: HashMap<(PathBuf, u64), (Stamp, Inside)>,
    /// Targets of denied links, by the version of the rules. They stay denied even if a
    /// command removes the link.
    pub(super) led_to: HashMap<u64, BTreeSet<PathBuf>>,
}

/// Metadata that changes with the entries of a folder, and that no program can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    number: u64,
    changed: (i64, i64),
}

/// The entries of a folder that matter to the search.
#[derive(Debug, Clone, Default)]
pub(super) struct Inside {
    /// Number of all entries.
    pub(super) entries: usize,
    /// Denied entries.
    pub(super) denied: Vec<OsString>,
    /// Links that are denied, by their name or by their target.
    pub(super) links: Vec<OsString>,
    /// Folders that may contain denied entries.
    pub(super) folders: Vec<OsString>,
    /// Links whose targets, if folders, may contain denied entries.
    pub(super) links_to_search: Vec<OsString>,
}

impl SearchCache {
    /// Discards results that were found with other rules.
    pub(super) fn begin(&mut self, filter: &dyn PathFilter) {
        if self.version != filter.version() {
            self.version = filter.version();
            self.folders.clear();
            self.hashes.clear();
        }
        if self.links_version != filter.links_version() {
            self.links_version = filter.links_version();
            self.hashes.clear();
        }
    }

    /// Returns a hash of what is denied below a folder, or `None` if nothing can be.
    pub(super) fn hash_below(&mut self, filter: &dyn PathFilter, names: [&Path; 2]) -> Option<u64> {
        let [named, real] = names;
        let key = (named.to_owned(), (real != named).then(|| real.to_owned()));
        if let Some(known) = self.hashes.get(&key) {
            return *known;
        }
        let hash = filter
            .excludes_below(&names)
            .then(|| filter.hash_below(&names));
        if self.hashes.len() < MAX_ENTRIES {
            self.hashes.insert(key, hash);
        }
        hash
    }
}

impl Stamp {
    /// Returns the stamp of a folder.
    ///
    /// # Errors
    /// When it cannot be reached, or is not a folder.
    pub(super) fn of(folder: &Path) -> Result<Self, Errno> {
        let stat = statat(CWD, folder, AtFlags::SYMLINK_NOFOLLOW)?;
        if !FileType::from_raw_mode(stat.st_mode).is_dir() {
            return Err(Errno::NOTDIR);
        }
        #[expect(
            clippy::useless_conversion,
            reason = "the types differ between architectures"
        )]
        Ok(Self {
            device: stat.st_dev.into(),
            number: stat.st_ino.into(),
            changed: (
                stat.st_ctime.into(),
                i64::try_from(stat.st_ctime_nsec).unwrap_or(0),
            ),
        })
    }

    /// Whether the last change is so old that another change would be visible.
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
    use super::super::find;
    use super::*;
    use crate::scope::filter::{Exclusion, ExclusionReason, Extent, FilterTarget};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Denies `*.pem`, and counts the queries about what is denied below a folder.
    #[derive(Debug, Default)]
    struct Pem {
        root: PathBuf,
        links_version: u64,
        asked: AtomicUsize,
    }

    impl PathFilter for Pem {
        fn excludes(&self, names: &[&Path]) -> Option<Exclusion> {
            let is_pem = |name: &&Path| name.extension().is_some_and(|end| end == "pem");
            let exclusion = Exclusion {
                why: ExclusionReason::Denied,
                open_inside: false,
            };
            names.iter().any(is_pem).then_some(exclusion)
        }

        fn excludes_below(&self, _: &[&Path]) -> bool {
            true
        }

        fn hash_below(&self, _: &[&Path]) -> u64 {
            self.asked.fetch_add(1, Ordering::Relaxed);
            7
        }

        fn targets(&self) -> Vec<FilterTarget> {
            vec![FilterTarget {
                path: self.root.clone(),
                extent: Extent::Itself,
                rule: "rule".to_owned(),
            }]
        }

        fn version(&self) -> u64 {
            1
        }

        fn links_version(&self) -> u64 {
            self.links_version
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
        let mut cache = SearchCache::default();
        let mut asked = |pem: &Pem| {
            let before = pem.asked.load(Ordering::Relaxed);
            let denied = find(pem, &[], &mut cache).unwrap();
            assert_eq!(denied.paths.len(), 50);
            pem.asked.load(Ordering::Relaxed) - before
        };
        assert_eq!((asked(&pem), asked(&pem)), (51, 0));
        pem.links_version = 1;
        assert_eq!((asked(&pem), asked(&pem)), (51, 0));
    }
}
