//! Paths that the rules of a session deny in addition to a scope.
//!
//! A scope knows no policy rules. The policy attaches a [`PathFilter`] to the paths of a call,
//! and everything found from such a path (by a walk, a listing or a search for similar
//! names) is checked with it. Commands name no paths, so denied paths are hidden from them.

use super::{FilePath, Last, links};
use std::ffi::OsStr;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Decides about paths that no call has named. One path may have several names: the one by
/// which it was reached, and its real one. All are absolute, and all are checked.
pub trait PathFilter: fmt::Debug + Send + Sync {
    /// Returns why a path is denied, or `None` if it is not.
    fn excludes(&self, names: &[&Path]) -> Option<Exclusion>;

    /// Whether anything below a folder may be denied. Asked once per folder, so that a walk
    /// need not ask for every entry.
    fn excludes_below(&self, names: &[&Path]) -> bool;

    /// Returns a hash of what is denied below a folder. If it is the same for two names of
    /// a folder, the same paths are denied below both.
    fn hash_below(&self, names: &[&Path]) -> u64 {
        let mut hasher = DefaultHasher::new();
        names.hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the paths on the disk where something may be denied.
    fn targets(&self) -> Vec<FilterTarget>;

    /// Returns a number that is the same for the same rules.
    fn version(&self) -> u64;

    /// Returns a number that changes when links that the rules name lead elsewhere, so that
    /// the same rules deny other paths.
    fn links_version(&self) -> u64 {
        0
    }
}

/// A decision that excludes a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exclusion {
    /// Kind of rule that excludes it.
    pub why: ExclusionReason,
    /// Whether something below it may be allowed anyway.
    pub open_inside: bool,
}

/// Reason for excluding a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExclusionReason {
    /// A rule denies it.
    Denied,
    /// A rule requires the user's approval.
    NeedsApproval,
}

/// A path at which a rule may deny something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterTarget {
    /// The path, or the folder to search.
    pub path: PathBuf,
    /// Part of the folder to search.
    pub extent: Extent,
    /// The rule and its location, for messages.
    pub rule: String,
}

/// Reach of a rule below the path before its first wildcard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The rule names exactly this path, or everything in this folder.
    Itself,
    /// The denied paths can only be found by a walk.
    Below,
}

/// Number of paths that were left out of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Paths that are denied.
    pub denied: u64,
    /// Paths that need the user's approval.
    pub asks: u64,
}

impl LeftOut {
    /// Counts one path.
    pub fn add(&mut self, why: ExclusionReason) {
        match why {
            ExclusionReason::Denied => self.denied += 1,
            ExclusionReason::NeedsApproval => self.asks += 1,
        }
    }

    /// Returns the number of all paths.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.denied + self.asks
    }
}

/// Rules attached to a path, and the name by which the path was reached.
#[derive(Debug, Clone)]
pub(super) struct AttachedFilter {
    rules: Arc<dyn PathFilter>,
    named: PathBuf,
}

impl AttachedFilter {
    pub(super) fn descend(&self, below: &Path) -> Self {
        Self {
            rules: Arc::clone(&self.rules),
            named: self.named.join(below),
        }
    }
}

impl FilePath {
    /// Attaches rules that decide about everything found from this path. `named` is the
    /// path as the caller meant it, before following links.
    #[must_use]
    pub fn with_filter(mut self, rules: Arc<dyn PathFilter>, named: PathBuf) -> Self {
        self.filter = Some(AttachedFilter { rules, named });
        self
    }

    /// Attaches the rules of `folder`, as for the path at `below` in it.
    pub(crate) fn with_filter_of(mut self, folder: &Self, below: &Path) -> Self {
        self.filter = folder.filter.as_ref().map(|filter| filter.descend(below));
        self
    }

    /// Whether rules are attached.
    pub(crate) fn has_filter(&self) -> bool {
        self.filter.is_some()
    }

    /// Returns why this path is denied, or `None`.
    #[must_use]
    pub fn exclusion(&self) -> Option<Exclusion> {
        let filter = self.filter.as_ref()?;
        filter.rules.excludes(&[&filter.named, &self.real])
    }

    /// Whether anything in or below the folder at `below` may be denied.
    pub(crate) fn excludes_below(&self, below: &Path) -> bool {
        self.filter.as_ref().is_some_and(|filter| {
            let (named, real) = (filter.named.join(below), self.real.join(below));
            filter.rules.excludes_below(&[&named, &real])
        })
    }

    /// Returns why the path at `below` in this folder is denied, or `None`. For a link, the
    /// target is checked too.
    pub(crate) fn excludes(&self, below: &Path, link: Link) -> Option<Exclusion> {
        let filter = self.filter.as_ref()?;
        let (named, real) = (filter.named.join(below), self.real.join(below));
        let target = match link {
            Link::No => None,
            Link::Yes => self.target(below),
        };
        let mut names = vec![named.as_path(), real.as_path()];
        names.extend(target.as_deref());
        filter.rules.excludes(&names)
    }

    /// Returns why an entry of this folder is denied, or `None`, on any backend.
    #[must_use]
    pub fn excludes_entry(&self, name: &OsStr, link: Link) -> Option<Exclusion> {
        self.filter.as_ref()?;
        let own = self.excludes(Path::new(name), link);
        own.or_else(|| self.descend(Path::new(name))?.exclusion())
    }

    /// Whether a name in the parent folder of this path is denied.
    pub(crate) fn excludes_sibling(&self, name: &OsStr) -> bool {
        self.filter.as_ref().is_some_and(|filter| {
            let (named, real) = (
                filter.named.with_file_name(name),
                self.real.with_file_name(name),
            );
            let target = links::real_path(&real, Last::Follow, self.guard.rules().reading);
            let target = target.unwrap_or_else(|_| real.clone());
            filter.rules.excludes(&[&named, &real, &target]).is_some()
        })
    }

    fn target(&self, below: &Path) -> Option<PathBuf> {
        self.root.dir()?;
        let reading = self.guard.rules().reading;
        let real = links::real_below(&self.real, below, Last::Follow, reading);
        real.ok().map(|real| real.path)
    }
}

/// Whether an entry is a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// A link.
    Yes,
    /// Not a link.
    No,
}
