//! Text search, line by line.
//!
//! On disk it uses ripgrep's engine with several threads; other backends are searched one file
//! after the other. Both select files by the same rules and return the same result every time:
//! the first matches in path order, and the total count. The parallel walk moves from handle to
//! handle, never by path name, for the reason given in [`crate::scope`].

mod file;
mod go_regex;
mod lines;
mod pattern;
pub use pattern::meant_literally;
mod results;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod tree;

pub(crate) use results::Count;
pub use tree::IgnoreFiles;
pub use tree::stop::Stopped;

use crate::backend::local::{self, Bounded};
use crate::backend::{Kind, Part};
use crate::glob::pattern::{Anchored, Dots, Memory, Pattern as Glob};
use crate::scope::filter::{ExclusionReason, LeftOut};
use crate::{Backend, Error, FilePath, Result};
use file::{FileSearcher, SearchEnd};
use results::Job;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use tree::disk::Opener;
use tree::part::{self, MappedVisitor, PathMapping};
use tree::remote::{FileToOpen, RemoteWalk};
use tree::stop::{blocking, walk_permit};
use tree::{Judge, Next, SkipReason, Visitor, WalkEntry, supervise};

/// Number of files of other backends to open at a time, while as many are searched.
const BATCH: usize = 32;

/// Pattern to search for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// Regular expression in Rust syntax; also accepts Go's `\Q…\E`, classes and octal
    /// numbers.
    Regex(String),
    /// Literal text, in which no character is special.
    Literal(String),
}

/// Whether upper and lower case differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Upper and lower case differ.
    Sensitive,
    /// They are the same.
    Insensitive,
}

/// Form of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collect {
    /// The first matching lines, with their context.
    Lines,
    /// Every matching file and its number of matches, without lines.
    Counts,
}

/// Request to search files.
#[derive(Debug)]
pub struct Search {
    /// File or folder to search, even if an ignore file lists it.
    pub path: FilePath,
    /// Pattern to search for.
    pub pattern: Pattern,
    /// Whether case matters.
    pub case: Case,
    /// Files to search in a folder: a glob without `/` matches names at any depth, one with
    /// `/` matches paths relative to `path`.
    pub glob: Option<String>,
    /// Form of the results.
    pub collect: Collect,
    /// Number of context lines before and after each match.
    pub context: usize,
    /// Maximum number of matching lines to return.
    pub max_matches: usize,
    /// Maximum length of a line in characters: a longer one is cut around its first match,
    /// with `…` at the cut ends.
    pub max_line: usize,
    /// Time at which to stop and return the results so far.
    pub deadline: Option<Instant>,
    /// Stops the search, which returns the results so far.
    pub cancel: CancellationToken,
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Searched {
    /// Files with matches, sorted by the bytes of their paths.
    pub files: Vec<FileMatches>,
    /// Number of matching lines in `files`.
    pub shown: u64,
    /// Number of all matching lines, returned or not.
    pub total: u64,
    /// Number of files searched completely.
    pub searched: u64,
    /// Entries that were not searched, by reason.
    pub skipped: Skipped,
    /// The reason if the search ended early.
    pub stopped: Option<Stopped>,
}

/// Matches in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMatches {
    /// Path relative to the searched folder; empty if the request named the file itself.
    pub below: PathBuf,
    /// Lines to show, in order and without duplicates.
    pub lines: Vec<ResultLine>,
    /// Number of matching lines, returned or not.
    pub matches: u64,
}

/// One line of a search result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultLine {
    /// Line number, counted from 1.
    pub number: u64,
    /// Text without the line ending, cut if it is too long.
    pub text: String,
    /// Whether the text was cut.
    pub is_cut: bool,
    /// Whether the line matches or is context.
    pub kind: LineKind,
}

/// The reason why a line is in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// The line matches.
    Match,
    /// The line is near a match.
    Context,
}

/// Counts of files and folders that were not searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    /// Files with a NUL byte in the first 8 KiB.
    pub binary: u64,
    /// Files and folders without read permission.
    pub unreadable: u64,
    /// Files with a line longer than 16 MiB.
    pub too_long_lines: u64,
    /// FIFOs, sockets, devices, and virtual folders of the kernel.
    pub special: u64,
    /// Entries that the scope hides.
    pub hidden: u64,
    /// Entries that the session's rules hide.
    pub excluded: LeftOut,
    /// Links. They are not followed; their targets are searched at their own paths.
    pub links: u64,
}

impl Skipped {
    /// Returns the sum of all counts.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.binary
            + self.unreadable
            + self.too_long_lines
            + self.special
            + self.hidden
            + self.excluded.total()
            + self.links
    }
}

/// Progress of a search or a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Number of files searched or entries visited.
    pub files: u64,
    /// Number of matches so far.
    pub matches: u64,
}

/// Callback for progress; called about ten times a second and once at the end.
pub type Watch<'a> = dyn Fn(Progress) + Send + Sync + 'a;

/// Searches a file, or all files in a folder.
///
/// # Errors
/// [`Error::InvalidPattern`], [`Error::InvalidGlob`], and errors of the backend about the
/// path itself. Stopping early is not an error; the results so far are returned.
pub async fn files(backend: &dyn Backend, request: Search, watch: &Watch<'_>) -> Result<Searched> {
    let Search {
        path,
        pattern,
        case,
        glob,
        collect,
        context,
        max_matches,
        max_line,
        deadline,
        cancel,
    } = request;
    let glob = glob
        .filter(|glob| !glob.is_empty())
        .map(|glob| filter(&glob))
        .transpose()?;
    let matcher = blocking(move || pattern::compile(&pattern, case)).await?;
    let job = Arc::new(Job::new(
        matcher,
        glob,
        collect,
        context,
        max_matches,
        max_line,
    ));
    let stat = backend.stat(&path).await?;
    let progress = || watch(job.progress());
    let work = async {
        if stat.kind != Kind::Directory {
            return one_file(backend, &path, &job).await;
        }
        for part in part::parts(backend, &path).await? {
            let mapping = PathMapping::of(&part);
            if mapping.announce(&part.path, &mut SearchVisitor::new(&job, &part.path)) == Next::Over
            {
                continue;
            }
            if part.backend.on_disk(&part.path).is_some() {
                let _permit = walk_permit().await;
                let job = Arc::clone(&job);
                blocking(move || {
                    let judge = Judge::new(&part.path, IgnoreFiles::Honour);
                    tree::disk::walk(&judge, &job.stop, || {
                        MappedVisitor::new(&mapping, SearchVisitor::new(&job, &part.path))
                    })
                })
                .await?;
            } else {
                one_by_one(&part, &mapping, &job).await?;
            }
        }
        Ok(())
    };
    supervise(work, &job.stop, deadline, &cancel, progress).await?;
    progress();
    Ok(job.searched())
}

/// A compiled glob that selects the files to search.
#[derive(Debug)]
pub(crate) struct Filter {
    glob: Glob,
    /// Whether the glob excludes files instead of selecting them.
    excludes: bool,
}

/// Compiles the file filter. `src/` matches everything in that folder; a leading `!`
/// excludes the matching files.
fn filter(glob: &str) -> Result<Filter> {
    let (glob, excludes) = match glob.strip_prefix('!') {
        Some(glob) if !glob.is_empty() => (glob, true),
        _ => (glob, false),
    };
    Ok(Filter {
        glob: compiled(glob)?,
        excludes,
    })
}

fn compiled(glob: &str) -> Result<Glob> {
    let inside = glob.ends_with('/').then(|| format!("{glob}**"));
    Glob::new(
        inside.as_deref().unwrap_or(glob),
        Anchored::AnyDepthByName,
        Dots::Match,
    )
}

async fn one_file(backend: &dyn Backend, path: &FilePath, job: &Arc<Job>) -> Result<()> {
    // Like the walk, this opens files on disk directly instead of through the backend: a
    // file that is too large to read can still be searched.
    let content = match backend.on_disk(path) {
        Some(_) => local::open_regular(path)?,
        None => backend.read(path).await?,
    };
    let mut searcher = FileSearcher::new(job);
    let end = blocking(move || Ok(searcher.search_file(b"", content.reader))).await?;
    match end {
        SearchEnd::Unreadable(source) => Err(Error::io("read", path.given(), source)),
        _ => Ok(()),
    }
}

async fn one_by_one(part: &Part<'_>, mapping: &PathMapping, job: &Arc<Job>) -> Result<()> {
    let Part { backend, path, .. } = part;
    let mut remote = RemoteWalk::new(*backend, Judge::new(path, IgnoreFiles::Honour)).await;
    let mut visitor = MappedVisitor::new(mapping, SearchVisitor::new(job, path));
    let mut opened = Vec::new();
    while let Some(files) = remote.folder(&mut visitor, &job.stop).await? {
        let mut files = files.into_iter();
        open_some(*backend, &mut files, &mut opened).await;
        // Smaller batches wait for the files of the next folder, because a thread for each
        // would cost more than the search.
        while opened.len() >= BATCH && !job.stop.is_set() {
            let search = search_all(visitor, std::mem::take(&mut opened));
            // Opens the next files while these are searched.
            let next = open_some(*backend, &mut files, &mut opened);
            let (searched, ()) = tokio::join!(search, next);
            visitor = searched?;
        }
    }
    if !job.stop.is_set() {
        search_all(visitor, opened).await?;
    }
    Ok(())
}

async fn search_all(
    mut visitor: MappedVisitor<SearchVisitor>,
    opened: Vec<Opened>,
) -> Result<MappedVisitor<SearchVisitor>> {
    blocking(move || {
        let mut room = Vec::new();
        for opened in opened {
            match opened {
                Some((below, reader)) => {
                    let below = visitor.mapping.whole(&below, &mut room);
                    visitor.visitor.searcher.search_file(below, reader);
                }
                None => visitor.skip(SkipReason::Unreadable),
            }
        }
        Ok(visitor)
    })
    .await
}

/// An open file, or `None` if it cannot be read.
type Opened = Option<(Vec<u8>, Box<dyn io::Read + Send>)>;

/// Opens the next files until a batch is complete. Ignores files that disappeared after
/// their folder was listed.
async fn open_some(
    backend: &dyn Backend,
    files: &mut (impl Iterator<Item = FileToOpen> + Send),
    opened: &mut Vec<Opened>,
) {
    while opened.len() < BATCH
        && let Some(file) = files.next()
    {
        match backend.read(&file.path).await {
            Ok(content) => opened.push(Some((file.below, content.reader))),
            Err(Error::NotFound { .. }) => {}
            Err(_) => opened.push(None),
        }
    }
}

/// Searches the files that one thread visits.
struct SearchVisitor {
    job: Arc<Job>,
    searcher: FileSearcher,
    memory: Memory,
    /// Maximum number of bytes to read: files in `/proc` and the like have no size, and
    /// some never end.
    limit: Option<u64>,
}

impl SearchVisitor {
    fn new(job: &Arc<Job>, start: &FilePath) -> Self {
        let pseudo = ["/proc", "/sys", "/dev"]
            .iter()
            .any(|folder| start.real().starts_with(folder));
        Self {
            job: Arc::clone(job),
            searcher: FileSearcher::new(job),
            memory: Memory::default(),
            limit: pseudo.then_some(8 << 20),
        }
    }
}

impl Visitor for SearchVisitor {
    fn visit(&mut self, entry: &WalkEntry<'_>) -> Next {
        if let Some(glob) = &self.job.glob {
            let matched = glob
                .glob
                .check(entry.folder(), entry.name(), &mut self.memory);
            let is_selected = match (entry.kind, glob.excludes) {
                (Kind::Directory, true) => true,
                (Kind::Directory, false) => matched.below,
                (_, excludes) => matched.matches != excludes,
            };
            if !is_selected {
                return Next::Over;
            }
        }
        match entry.kind {
            Kind::Other(_) => self.job.tally.special.add(1),
            Kind::Link => self.job.tally.links.add(1),
            Kind::File | Kind::Directory => return Next::Into,
        }
        Next::Over
    }

    fn should_enter(&mut self, folder: &WalkEntry<'_>) -> Next {
        self.visit(folder)
    }

    fn skip(&mut self, reason: SkipReason) {
        let tally = &self.job.tally;
        match reason {
            SkipReason::Unreadable => tally.unreadable.add(1),
            SkipReason::Hidden => tally.hidden.add(1),
            SkipReason::Filtered(ExclusionReason::Denied) => tally.denied.add(1),
            SkipReason::Filtered(ExclusionReason::NeedsApproval) => tally.asks.add(1),
            SkipReason::Pseudo => tally.special.add(1),
        }
    }
}

impl Opener for SearchVisitor {
    fn open(&mut self, below: &[u8], file: io::Result<std::fs::File>) {
        match (file, self.limit) {
            (Ok(file), None) => {
                self.searcher.search_file(below, file);
            }
            (Ok(file), Some(limit)) => {
                self.searcher.search_file(below, Bounded::new(file, limit));
            }
            (Err(error), _) if error.kind() == io::ErrorKind::NotFound => {}
            (Err(_), _) => self.skip(SkipReason::Unreadable),
        }
    }
}
