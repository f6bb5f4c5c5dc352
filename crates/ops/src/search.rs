//! Text search, line by line.
//!
//! On disk it uses ripgrep's engine with several threads; other backends are searched one file
//! after the other. Both select files by the same rules and return the same result every time:
//! the first matches in path order, and the total count. The parallel walk moves from handle to
//! handle, never by path name, for the reason given in [`crate::scope`].

mod board;
mod file;
mod go;
mod lines;
mod pattern;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod tree;

pub(crate) use board::Count;
pub use tree::IgnoreFiles;
pub use tree::stop::Stopped;

use crate::backend::local::{self, Bounded};
use crate::backend::{Kind, Part};
use crate::glob::pattern::{Anchored, Dots, Memory, Pattern as Glob};
use crate::scope::closing::{LeftOut, Why};
use crate::{Backend, Error, FilePath, Result};
use board::Job;
use file::{End, Seeker};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use tree::disk::Opener;
use tree::part::{self, Frame, Framed};
use tree::remote::{Remote, Wanted};
use tree::stop::{blocking, place};
use tree::{Judge, Met, Next, Passed, Visitor, supervise};

/// How many files of another backend are opened at a time, while as many are
/// searched.
const BATCH: usize = 32;

/// What to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// A regular expression; Go's `\Q…\E`, classes and octal numbers are understood.
    Regex(String),
    /// Text as it is.
    Literal(String),
}

/// Whether `a` is `A`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// It is not.
    Sensitive,
    /// It is.
    Insensitive,
}

/// What to keep of what is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collect {
    /// The first matching lines, with their context.
    Lines,
    /// Every file that matches and how often, without lines.
    Counts,
}

/// A search.
#[derive(Debug)]
pub struct Search {
    /// The file or folder to search; it is searched even if ignored.
    pub path: FilePath,
    /// What to look for.
    pub pattern: Pattern,
    /// Whether case matters.
    pub case: Case,
    /// Which files of a folder: without `/` by name at any depth, with `/` by
    /// the path from `path`.
    pub glob: Option<String>,
    /// What to keep.
    pub collect: Collect,
    /// How many lines to keep before and after each match.
    pub context: usize,
    /// How many matching lines to keep.
    pub max_matches: usize,
    /// How many characters of a line to keep: a longer one is cut around its
    /// first match, with `…` on the cut sides.
    pub max_line: usize,
    /// When to stop with what is there.
    pub deadline: Option<Instant>,
    /// Stops with what is there.
    pub cancel: CancellationToken,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Searched {
    /// Files with matches, in the byte order of their paths.
    pub files: Vec<FileMatches>,
    /// How many matching lines `files` holds.
    pub shown: u64,
    /// How many there are, everywhere.
    pub total: u64,
    /// How many files were searched to their end.
    pub searched: u64,
    /// What was not searched, and why.
    pub skipped: Skipped,
    /// Why the search ended early, if it did.
    pub stopped: Option<Stopped>,
}

/// The matches of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMatches {
    /// Its path from the folder that was searched; empty for a file that was
    /// asked for itself.
    pub below: PathBuf,
    /// Lines to show, in their order; none of them twice.
    pub lines: Vec<Line>,
    /// How many of its lines match, shown or not.
    pub matches: u64,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number, from 1.
    pub number: u64,
    /// Its text without the line ending, cut when it is long.
    pub text: String,
    /// Whether it was cut.
    pub is_cut: bool,
    /// Why it is here.
    pub kind: LineKind,
}

/// Why a line is in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// It matches.
    Match,
    /// It is near one that does.
    Context,
}

/// Files and folders that were not searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    /// Files with a NUL byte in their first 8 KiB.
    pub binary: u64,
    /// Files and folders that the system did not let be read.
    pub unreadable: u64,
    /// Files with a line of more than 16 MiB.
    pub too_long_lines: u64,
    /// FIFOs, sockets, devices, and folders the kernel makes up.
    pub special: u64,
    /// What the scope hides.
    pub hidden: u64,
    /// What the rules of the session close.
    pub closed: LeftOut,
    /// Links, which are not followed: what they point to is searched where it
    /// is.
    pub links: u64,
}

impl Skipped {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.binary
            + self.unreadable
            + self.too_long_lines
            + self.special
            + self.hidden
            + self.closed.total()
            + self.links
    }
}

/// How far a search or a walk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Files searched, or entries met.
    pub files: u64,
    /// Matches so far.
    pub matches: u64,
}

/// Who is told of progress: about ten times a second, and once at the end.
pub type Watch<'a> = dyn Fn(Progress) + Send + Sync + 'a;

/// Searches a file, or all files of a folder.
///
/// # Errors
/// [`Error::InvalidPattern`] and [`Error::InvalidGlob`] for what cannot be used, what
/// the backend says of the path itself. Being stopped is no error: what was
/// found until then is the answer.
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
            let frame = Frame::of(&part);
            if frame.announce(&part.path, &mut Seeking::new(&job, &part.path)) == Next::Over {
                continue;
            }
            if part.backend.on_disk(&part.path).is_some() {
                let _place = place().await;
                let job = Arc::clone(&job);
                blocking(move || {
                    let judge = Judge::new(&part.path, IgnoreFiles::Honour);
                    tree::disk::walk(&judge, &job.stop, || {
                        Framed::new(&frame, Seeking::new(&job, &part.path))
                    })
                })
                .await?;
            } else {
                one_by_one(&part, &frame, &job).await?;
            }
        }
        Ok(())
    };
    supervise(work, &job.stop, deadline, &cancel, progress).await?;
    progress();
    Ok(job.searched())
}

/// Which files of a folder are searched.
#[derive(Debug)]
pub(crate) struct Filter {
    glob: Glob,
    /// Whether it names those that are left out.
    leaves_out: bool,
}

/// Compiles the filter of file names. `src/` means all that is in it, and with `!`
/// before it those files are left out.
fn filter(glob: &str) -> Result<Filter> {
    let (glob, leaves_out) = match glob.strip_prefix('!') {
        Some(glob) if !glob.is_empty() => (glob, true),
        _ => (glob, false),
    };
    Ok(Filter {
        glob: compiled(glob)?,
        leaves_out,
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
    // As the walk does, which asks no backend for a file of the disk: one that is too
    // large to be read can still be searched.
    let content = match backend.on_disk(path) {
        Some(_) => local::open_regular(path)?,
        None => backend.read(path).await?,
    };
    let mut seeker = Seeker::new(job);
    let end = blocking(move || Ok(seeker.seek(b"", content.reader))).await?;
    match end {
        End::Unreadable(source) => Err(Error::io("read", path.given(), source)),
        _ => Ok(()),
    }
}

async fn one_by_one(part: &Part<'_>, frame: &Frame, job: &Arc<Job>) -> Result<()> {
    let Part { backend, path, .. } = part;
    let mut remote = Remote::new(*backend, Judge::new(path, IgnoreFiles::Honour)).await;
    let mut seeking = Framed::new(frame, Seeking::new(job, path));
    let mut opened = Vec::new();
    while let Some(wanted) = remote.folder(&mut seeking, &job.stop).await? {
        let mut wanted = wanted.into_iter();
        open_some(*backend, &mut wanted, &mut opened).await;
        // Fewer wait for those of the next folder: a thread for each would cost
        // more than the search.
        while opened.len() >= BATCH && !job.stop.is_set() {
            let search = seek_all(seeking, std::mem::take(&mut opened));
            // The next ones are opened while these are searched.
            let next = open_some(*backend, &mut wanted, &mut opened);
            let (searched, ()) = tokio::join!(search, next);
            seeking = searched?;
        }
    }
    if !job.stop.is_set() {
        seek_all(seeking, opened).await?;
    }
    Ok(())
}

async fn seek_all(mut seeking: Framed<Seeking>, opened: Vec<Opened>) -> Result<Framed<Seeking>> {
    blocking(move || {
        let mut room = Vec::new();
        for opened in opened {
            match opened {
                Some((below, reader)) => {
                    let below = seeking.frame.whole(&below, &mut room);
                    seeking.visitor.seeker.seek(below, reader);
                }
                None => seeking.pass(Passed::Unreadable),
            }
        }
        Ok(seeking)
    })
    .await
}

/// A file to search, or that it cannot be read.
type Opened = Option<(Vec<u8>, Box<dyn io::Read + Send>)>;

/// Opens the next files, until a batch is open. One that is gone since its folder
/// was listed is nothing.
async fn open_some(
    backend: &dyn Backend,
    wanted: &mut (impl Iterator<Item = Wanted> + Send),
    opened: &mut Vec<Opened>,
) {
    while opened.len() < BATCH
        && let Some(file) = wanted.next()
    {
        match backend.read(&file.path).await {
            Ok(content) => opened.push(Some((file.below, content.reader))),
            Err(Error::NotFound { .. }) => {}
            Err(_) => opened.push(None),
        }
    }
}

/// What a thread does with what it meets.
struct Seeking {
    job: Arc<Job>,
    seeker: Seeker,
    memory: Memory,
    /// Files of `/proc` and its kin have no size, and some no end.
    limit: Option<u64>,
}

impl Seeking {
    fn new(job: &Arc<Job>, start: &FilePath) -> Self {
        let pseudo = ["/proc", "/sys", "/dev"]
            .iter()
            .any(|folder| start.real().starts_with(folder));
        Self {
            job: Arc::clone(job),
            seeker: Seeker::new(job),
            memory: Memory::default(),
            limit: pseudo.then_some(8 << 20),
        }
    }
}

impl Visitor for Seeking {
    fn meet(&mut self, met: &Met<'_>) -> Next {
        if let Some(glob) = &self.job.glob {
            let said = glob.glob.says(met.folder(), met.name(), &mut self.memory);
            let wanted = match (met.kind, glob.leaves_out) {
                (Kind::Directory, true) => true,
                (Kind::Directory, false) => said.below,
                (_, leaves_out) => said.matches != leaves_out,
            };
            if !wanted {
                return Next::Over;
            }
        }
        match met.kind {
            Kind::Other(_) => self.job.tally.special.add(1),
            Kind::Link => self.job.tally.links.add(1),
            Kind::File | Kind::Directory => return Next::Into,
        }
        Next::Over
    }

    fn enters(&mut self, folder: &Met<'_>) -> Next {
        self.meet(folder)
    }

    fn pass(&mut self, passed: Passed) {
        let tally = &self.job.tally;
        match passed {
            Passed::Unreadable => tally.unreadable.add(1),
            Passed::Hidden => tally.hidden.add(1),
            Passed::Closed(Why::Denied) => tally.denied.add(1),
            Passed::Closed(Why::Asks) => tally.asks.add(1),
            Passed::Pseudo => tally.special.add(1),
        }
    }
}

impl Opener for Seeking {
    fn open(&mut self, below: &[u8], file: io::Result<std::fs::File>) {
        match (file, self.limit) {
            (Ok(file), None) => {
                self.seeker.seek(below, file);
            }
            (Ok(file), Some(limit)) => {
                self.seeker.seek(below, Bounded::new(file, limit));
            }
            (Err(error), _) if error.kind() == io::ErrorKind::NotFound => {}
            (Err(_), _) => self.pass(Passed::Unreadable),
        }
    }
}
