//! Walking a tree for search and glob: one set of rules, two implementations.
//!
//! On disk, several threads read folders below an open handle. For any other
//! [`crate::Backend`] the walk lists one folder after the other. Both ask the same
//! [`Rules`] which entries to skip and report to the same [`Visitor`], so they return the
//! same results.

pub(crate) mod disk;
mod parent_rules;
pub(crate) mod part;
mod pool;
pub(crate) mod remote;
mod rules;
pub(crate) mod stop;

pub(crate) use rules::Rules;
pub(crate) use stop::{Stop, supervise};

use crate::FilePath;
use crate::backend::Kind;
use crate::scope::filter::{Exclusion, ExclusionReason, Link};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Treatment of ignore files in a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoreFiles {
    /// Obeys `.gitignore`, `.ignore` and `.git/info/exclude`, and does not enter the
    /// folders of version control.
    Honour,
    /// Visits all entries, ignored or not.
    Disregard,
}

/// Folders (and the `.git` file of a worktree) that contain history, not work.
const VERSION_CONTROL: [&[u8]; 5] = [b".git", b".hg", b".svn", b".jj", b".bzr"];

/// Virtual folders of the kernel below `/`: endless, and without real files.
const PSEUDO: [&[u8]; 3] = [b"dev", b"proc", b"sys"];

/// An entry that no rule excluded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WalkEntry<'a> {
    /// Path relative to the start of the walk, separated by `/`.
    pub(crate) below: &'a [u8],
    /// Offset of the name in `below`.
    pub(crate) name_at: usize,
    /// Type of the entry; links are not followed.
    pub(crate) kind: Kind,
    /// Target of a link, if the visitor asks for it.
    pub(crate) link_target: LinkTarget,
}

/// Target of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkTarget {
    /// A folder that may be accessed.
    Folder,
    /// Something else, unknown, or the entry is not a link.
    Other,
}

impl<'a> WalkEntry<'a> {
    /// Returns the name of the entry.
    pub(crate) fn name(&self) -> &'a [u8] {
        self.below.get(self.name_at..).unwrap_or_default()
    }

    /// Returns the path of its folder, without a trailing slash.
    pub(crate) fn folder(&self) -> &'a [u8] {
        self.below
            .get(..self.name_at.saturating_sub(1))
            .unwrap_or_default()
    }
}

/// Decision of a visitor about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Enters a folder or opens a file.
    Into,
    /// Skips the folder or file.
    Over,
}

/// The reason why a walk skipped an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SkipReason {
    /// The folder could not be listed.
    Unreadable,
    /// The scope hides it.
    Hidden,
    /// Rules hide it.
    Filtered(ExclusionReason),
    /// It is a virtual folder of the kernel.
    Pseudo,
}

/// Receives the entries of a walk. On disk, each thread has its own.
pub(crate) trait Visitor {
    /// Visits an entry and returns whether to enter it.
    fn visit(&mut self, entry: &WalkEntry<'_>) -> Next;

    /// Returns whether to enter a folder that is not reported to this visitor.
    fn should_enter(&mut self, folder: &WalkEntry<'_>) -> Next;

    /// Records that an entry was skipped.
    fn skip(&mut self, reason: SkipReason);

    /// Whether the visitor needs to know the targets of links.
    fn needs_link_targets(&self) -> bool {
        false
    }

    /// Called after all entries of a folder were visited.
    fn leave_folder(&mut self) {}
}

/// Decides about entries before they reach the visitor; used by both implementations.
pub(crate) struct Judge<'a> {
    start: &'a FilePath,
    ignored: IgnoreFiles,
    /// Whether the scope hides anything below the start. Usually it does not, and then no
    /// entry needs to be checked.
    hides: bool,
    /// Whether rules apply to the entries.
    has_filter: bool,
    at_top: bool,
}

/// Checks that the entries of a folder need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checks {
    hidden: bool,
    filter: bool,
}

/// Decision about an entry.
pub(crate) enum Verdict {
    /// Report it to the visitor.
    Visit,
    /// Report it, but do not enter it.
    VisitOnly,
    /// The scope hides it.
    Hidden,
    /// A rule hides it, though entries below it may be visible.
    Filtered(Exclusion),
    /// An ignore file excludes it. It is not counted.
    Ignored,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(start: &'a FilePath, ignored: IgnoreFiles) -> Self {
        let on_disk = start.root().dir().is_some();
        Self {
            start,
            ignored,
            hides: start.hides_below(start.real()),
            has_filter: start.has_filter(),
            at_top: on_disk && start.real() == Path::new("/"),
        }
    }

    /// Returns the checks that entries of the folder at `below` need.
    pub(crate) fn checks_in(&self, below: &[u8]) -> Checks {
        let folder = path(below);
        Checks {
            hidden: self.hides && self.start.hides_below(&self.start.real().join(folder)),
            filter: self.has_filter && self.start.excludes_below(folder),
        }
    }

    /// Decides about an entry. `rule_path` is its path from the base of `rules`.
    pub(crate) fn decide(
        &self,
        entry: &WalkEntry<'_>,
        rule_path: &[u8],
        rules: &Rules,
        checks: Checks,
    ) -> Verdict {
        let is_folder = entry.kind == Kind::Directory;
        if self.ignored == IgnoreFiles::Honour {
            let name = entry.name();
            let history = VERSION_CONTROL.contains(&name) && (is_folder || name == b".git");
            if history || rules.ignore(rule_path, is_folder) {
                return Verdict::Ignored;
            }
        }
        if checks.hidden && self.start.hides(&self.start.real().join(path(entry.below))) {
            return Verdict::Hidden;
        }
        // A link may lead to a hidden path from a folder that contains none.
        let is_link = entry.kind == Kind::Link;
        if checks.filter || self.has_filter && is_link {
            let link = if is_link { Link::Yes } else { Link::No };
            if let Some(exclusion) = self.start.excludes(path(entry.below), link) {
                return Verdict::Filtered(exclusion);
            }
        }
        if self.at_top && is_folder && PSEUDO.contains(&entry.below) {
            return Verdict::VisitOnly;
        }
        Verdict::Visit
    }

    /// Whether the link at `below` may be resolved.
    pub(crate) fn sees_through(&self, below: &[u8]) -> bool {
        self.start.sees_through(path(below).as_os_str())
    }

    pub(crate) fn honours_ignore_files(&self) -> bool {
        self.ignored == IgnoreFiles::Honour
    }

    pub(crate) fn start(&self) -> &'a FilePath {
        self.start
    }
}

/// Decides whether to enter a hidden folder because it may contain visible files.
pub(crate) fn enter_filtered(
    exclusion: Exclusion,
    entry: &WalkEntry<'_>,
    visitor: &mut (impl Visitor + ?Sized),
) -> Next {
    if exclusion.open_inside && entry.kind == Kind::Directory {
        visitor.should_enter(entry)
    } else {
        Next::Over
    }
}

/// Converts bytes to a path.
pub(crate) fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
