//! Finding files and folders by name.

mod first_entries;
mod matcher;
pub(crate) mod pattern;
mod stats;
#[cfg(test)]
mod tests;

pub use crate::search::{IgnoreFiles, Progress, Stopped, Watch};
pub use matcher::{Matcher, Reached};
pub use pattern::{Anchored, Dots};
pub use stats::stats;

use crate::backend::Kind;
use crate::scope::filter::{ExclusionReason, LeftOut};
use crate::search::tree::disk::{self, Opener};
use crate::search::tree::part::{self, MappedVisitor, PathMapping};
use crate::search::tree::remote::RemoteWalk;
use crate::search::tree::stop::{blocking, walk_permit};
use crate::search::tree::{Judge, LinkTarget, Next, SkipReason, Visitor, WalkEntry, supervise};
use crate::{Backend, Error, FilePath, Result};
use first_entries::FirstEntries;
use memchr::memmem::Finder;
use pattern::{Memory, Pattern};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// Selection of entries by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matching {
    /// Every entry, whatever its name.
    Everything,
    /// Entries whose name contains this text.
    NameContains(String),
    /// Entries that a glob matches. With a trailing `/`, only folders.
    Glob {
        /// Glob with `*`, `?`, `[a-z]`, `**`, `{a,b}`, `{1..3}`.
        pattern: String,
        /// Whether it applies to names or paths.
        anchored: Anchored,
    },
}

/// Selection of entries by type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinds {
    /// Everything that is not a folder or a link to one, including broken links.
    Files,
    /// Folders and links to them.
    Directories,
    /// Folders and everything else.
    Both,
}

/// Request to find entries.
#[derive(Debug)]
pub struct Glob {
    /// Folder to search.
    pub path: FilePath,
    /// Selection of entries by name.
    pub matching: Matching,
    /// Whether wildcards match a leading dot.
    pub dots: Dots,
    /// Selection of entries by type.
    pub kinds: Kinds,
    /// How to treat ignore files.
    pub ignored: IgnoreFiles,
    /// Maximum number of entries to return.
    pub max: usize,
    /// Time at which to stop and return the results so far.
    pub deadline: Option<Instant>,
    /// Stops the walk, which returns the results so far.
    pub cancel: CancellationToken,
}

/// Result of finding entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Globbed {
    /// The first entries, sorted by the bytes of their paths as shown, including the
    /// trailing slash of folders.
    pub entries: Vec<Entry>,
    /// Number of all matching entries.
    pub total: u64,
    /// Number of entries checked, without folders.
    pub visited: u64,
    /// Entries that were not checked, by reason.
    pub skipped: Skipped,
    /// The reason if the walk ended early.
    pub stopped: Option<Stopped>,
}

/// A matching entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Path relative to the searched folder.
    pub below: PathBuf,
    /// Type of the entry. A link to a folder counts as a folder, though it is not entered;
    /// any other link is a link.
    pub kind: Kind,
}

impl Entry {
    /// Whether it is a folder or a link to one.
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.kind == Kind::Directory
    }
}

/// Counts of entries that were not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    /// Folders without read permission.
    pub unreadable: u64,
    /// Entries that the scope hides.
    pub hidden: u64,
    /// Entries that the session's rules hide.
    pub excluded: LeftOut,
    /// Virtual folders of the kernel.
    pub special: u64,
}

impl Skipped {
    /// Returns the sum of all counts.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.unreadable + self.hidden + self.excluded.total() + self.special
    }
}

/// Finds entries below a folder.
///
/// # Errors
/// [`Error::InvalidGlob`]; [`Error::NotADirectory`] for a file. Stopping early is not an
/// error; the results so far are returned.
pub async fn entries(backend: &dyn Backend, request: Glob, watch: &Watch<'_>) -> Result<Globbed> {
    let Glob {
        path,
        matching,
        dots,
        kinds,
        ignored,
        max,
        deadline,
        cancel,
    } = request;
    let selection = Selection::new(matching, dots, kinds)?;
    if backend.stat(&path).await?.kind != Kind::Directory {
        return Err(Error::NotADirectory {
            path: path.given().to_owned(),
        });
    }
    let first = Arc::new(FirstEntries::new(max));
    let progress = || watch(first.progress());
    let selection = Arc::new(selection);
    let work = async {
        for part in part::parts(backend, &path).await? {
            let mapping = PathMapping::of(&part);
            let mut visitor = GlobVisitor::new(&selection, &first);
            let next = mapping.announce(&part.path, &mut visitor);
            visitor.leave_folder();
            if next == Next::Over {
                continue;
            }
            if part.backend.on_disk(&part.path).is_some() {
                let _permit = walk_permit().await;
                let (first, selection) = (Arc::clone(&first), Arc::clone(&selection));
                blocking(move || {
                    let judge = Judge::new(&part.path, ignored);
                    disk::walk(&judge, &first.stop, || {
                        MappedVisitor::new(&mapping, GlobVisitor::new(&selection, &first))
                    })
                })
                .await?;
            } else {
                let mut remote =
                    RemoteWalk::new(part.backend, Judge::new(&part.path, ignored)).await;
                let mut visitor = MappedVisitor::new(&mapping, visitor);
                while remote.folder(&mut visitor, &first.stop).await?.is_some() {}
            }
        }
        Ok(())
    };
    supervise(work, &first.stop, deadline, &cancel, progress).await?;
    progress();
    Ok(first.globbed())
}

/// Compiled selection of entries.
struct Selection {
    matching: Compiled,
    dots: Dots,
    kinds: Kinds,
}

enum Compiled {
    Everything,
    Contains(Box<Finder<'static>>),
    Glob(Pattern),
}

impl Selection {
    fn new(matching: Matching, dots: Dots, kinds: Kinds) -> Result<Self> {
        let matching = match matching {
            Matching::Everything => Compiled::Everything,
            Matching::NameContains(text) => {
                Compiled::Contains(Box::new(Finder::new(text.as_bytes()).into_owned()))
            }
            Matching::Glob { pattern, anchored } => {
                Compiled::Glob(Pattern::new(&pattern, anchored, dots)?)
            }
        };
        Ok(Self {
            matching,
            dots,
            kinds,
        })
    }
}

/// Checks the entries that one thread visits.
struct GlobVisitor<'a> {
    selection: &'a Selection,
    first: &'a FirstEntries,
    memory: Memory,
    batch: first_entries::Batch,
}

impl<'a> GlobVisitor<'a> {
    fn new(selection: &'a Selection, first: &'a FirstEntries) -> Self {
        Self {
            selection,
            first,
            memory: Memory::default(),
            batch: first_entries::Batch::default(),
        }
    }
}

impl GlobVisitor<'_> {
    /// Returns whether an entry matches, and whether entries below it can.
    fn check(&mut self, entry: &WalkEntry<'_>) -> (bool, bool) {
        match &self.selection.matching {
            Compiled::Glob(glob) => {
                let matched = glob.check(entry.folder(), entry.name(), &mut self.memory);
                let right_kind = counts_as(entry) == Kind::Directory || !glob.only_folders;
                (matched.matches && right_kind, matched.below)
            }
            // There is no pattern that could contain the dot.
            _ if self.selection.dots == Dots::ExplicitOnly && entry.name().starts_with(b".") => {
                (false, false)
            }
            Compiled::Everything => (true, true),
            Compiled::Contains(text) => (text.find(entry.name()).is_some(), true),
        }
    }
}

/// Returns the type of an entry; a link to a folder counts as a folder.
fn counts_as(entry: &WalkEntry<'_>) -> Kind {
    match entry.link_target {
        LinkTarget::Folder => Kind::Directory,
        LinkTarget::Other => entry.kind,
    }
}

impl Visitor for GlobVisitor<'_> {
    fn visit(&mut self, entry: &WalkEntry<'_>) -> Next {
        let is_folder = entry.kind == Kind::Directory;
        self.batch.visited += u64::from(!is_folder);
        let (matches, below) = self.check(entry);
        let kind = counts_as(entry);
        let is_selected = match self.selection.kinds {
            Kinds::Both => true,
            Kinds::Directories => kind == Kind::Directory,
            Kinds::Files => kind != Kind::Directory,
        };
        if matches && is_selected {
            self.batch.add(entry, kind, self.first);
        }
        if is_folder && below {
            Next::Into
        } else {
            Next::Over
        }
    }

    fn should_enter(&mut self, folder: &WalkEntry<'_>) -> Next {
        let (_, below) = self.check(folder);
        if below { Next::Into } else { Next::Over }
    }

    fn skip(&mut self, reason: SkipReason) {
        match reason {
            SkipReason::Unreadable => self.first.unreadable.add(1),
            SkipReason::Hidden => self.first.hidden.add(1),
            SkipReason::Filtered(ExclusionReason::Denied) => self.first.denied.add(1),
            SkipReason::Filtered(ExclusionReason::NeedsApproval) => self.first.asks.add(1),
            SkipReason::Pseudo => self.first.special.add(1),
        }
    }

    fn needs_link_targets(&self) -> bool {
        true
    }

    fn leave_folder(&mut self) {
        self.first.take(&mut self.batch);
    }
}

impl Opener for GlobVisitor<'_> {
    /// Never called, because `visit` never requests a file.
    fn open(&mut self, _below: &[u8], _file: std::io::Result<std::fs::File>) {}
}
