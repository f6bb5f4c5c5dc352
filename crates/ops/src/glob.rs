//! Finding files and folders by name.

mod keep;
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
use crate::scope::closing::{LeftOut, Why};
use crate::search::tree::disk::{self, Opener};
use crate::search::tree::part::{self, Frame, Framed};
use crate::search::tree::remote::Remote;
use crate::search::tree::stop::{blocking, place};
use crate::search::tree::{Judge, Leads, Met, Next, Passed, Visitor, supervise};
use crate::{Backend, Error, FilePath, Result};
use keep::Keep;
use memchr::memmem::Finder;
use pattern::{Memory, Pattern};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// Which entries are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matching {
    /// All.
    Everything,
    /// Those with this text in their name.
    NameContains(String),
    /// Those that a glob matches. With a final `/` only folders do.
    Glob {
        /// The glob: `*`, `?`, `[a-z]`, `**`, `{a,b}`, `{1..3}`.
        pattern: String,
        /// What it is compared with.
        anchored: Anchored,
    },
}

/// Which kinds of entries are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinds {
    /// Everything that is no folder and leads to none: other links, also broken ones,
    /// too.
    Files,
    /// Folders, and links to them.
    Directories,
    /// Both.
    Both,
}

/// Entries to find.
#[derive(Debug)]
pub struct Glob {
    /// The folder to look in.
    pub path: FilePath,
    /// Which entries.
    pub matching: Matching,
    /// What wildcards do about a leading dot.
    pub dots: Dots,
    /// Which kinds.
    pub kinds: Kinds,
    /// What to do about ignore files.
    pub ignored: IgnoreFiles,
    /// How many entries to keep.
    pub max: usize,
    /// When to stop with what is there.
    pub deadline: Option<Instant>,
    /// Stops with what is there.
    pub cancel: CancellationToken,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Globbed {
    /// The first entries, in the byte order of their paths as they are shown:
    /// the slash that ends a folder's path takes part in it.
    pub entries: Vec<Entry>,
    /// How many there are.
    pub total: u64,
    /// How many entries were looked at, folders not counted.
    pub visited: u64,
    /// What was not looked into, and why.
    pub skipped: Skipped,
    /// Why the walk ended early, if it did.
    pub stopped: Option<Stopped>,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path from the folder that was looked in.
    pub below: PathBuf,
    /// What it is. A link to a folder is one, though nobody goes into it; another link
    /// is a link.
    pub kind: Kind,
}

impl Entry {
    /// Whether it is a folder, or a link to one.
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.kind == Kind::Directory
    }
}

/// What was not looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    /// Folders that the system did not let be read.
    pub unreadable: u64,
    /// What the scope hides.
    pub hidden: u64,
    /// What the rules of the session close.
    pub closed: LeftOut,
    /// Folders that the kernel makes up, met from above.
    pub special: u64,
}

impl Skipped {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.unreadable + self.hidden + self.closed.total() + self.special
    }
}

/// Finds entries below a folder.
///
/// # Errors
/// [`Error::InvalidGlob`] for a glob that cannot be used,
/// [`Error::NotADirectory`] for a file. Being stopped is no error: what was
/// found until then is the answer.
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
    let wanted = Wanted::new(matching, dots, kinds)?;
    if backend.stat(&path).await?.kind != Kind::Directory {
        return Err(Error::NotADirectory {
            path: path.given().to_owned(),
        });
    }
    let keep = Arc::new(Keep::new(max));
    let progress = || watch(keep.progress());
    let wanted = Arc::new(wanted);
    let work = async {
        for part in part::parts(backend, &path).await? {
            let frame = Frame::of(&part);
            let mut looking = Looking::new(&wanted, &keep);
            let next = frame.announce(&part.path, &mut looking);
            looking.left();
            if next == Next::Over {
                continue;
            }
            if part.backend.on_disk(&part.path).is_some() {
                let _place = place().await;
                let (keep, wanted) = (Arc::clone(&keep), Arc::clone(&wanted));
                blocking(move || {
                    let judge = Judge::new(&part.path, ignored);
                    disk::walk(&judge, &keep.stop, || {
                        Framed::new(&frame, Looking::new(&wanted, &keep))
                    })
                })
                .await?;
            } else {
                let mut remote = Remote::new(part.backend, Judge::new(&part.path, ignored)).await;
                let mut looking = Framed::new(&frame, looking);
                while remote.folder(&mut looking, &keep.stop).await?.is_some() {}
            }
        }
        Ok(())
    };
    supervise(work, &keep.stop, deadline, &cancel, progress).await?;
    progress();
    Ok(keep.globbed())
}

/// Which entries are wanted, compiled.
struct Wanted {
    matching: Compiled,
    dots: Dots,
    kinds: Kinds,
}

enum Compiled {
    Everything,
    Contains(Box<Finder<'static>>),
    Glob(Pattern),
}

impl Wanted {
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

/// What a thread does with what it meets.
struct Looking<'a> {
    wanted: &'a Wanted,
    keep: &'a Keep,
    memory: Memory,
    batch: keep::Batch,
}

impl<'a> Looking<'a> {
    fn new(wanted: &'a Wanted, keep: &'a Keep) -> Self {
        Self {
            wanted,
            keep,
            memory: Memory::default(),
            batch: keep::Batch::default(),
        }
    }
}

impl Looking<'_> {
    /// Whether an entry is wanted, and whether anything below it can be.
    fn says(&mut self, met: &Met<'_>) -> (bool, bool) {
        match &self.wanted.matching {
            Compiled::Glob(glob) => {
                let said = glob.says(met.folder(), met.name(), &mut self.memory);
                let right_kind = counts_as(met) == Kind::Directory || !glob.only_folders;
                (said.matches && right_kind, said.below)
            }
            // No pattern that could say the dot.
            _ if self.wanted.dots == Dots::ExplicitOnly && met.name().starts_with(b".") => {
                (false, false)
            }
            Compiled::Everything => (true, true),
            Compiled::Contains(text) => (text.find(met.name()).is_some(), true),
        }
    }
}

/// A link to a folder counts as one.
fn counts_as(met: &Met<'_>) -> Kind {
    match met.leads {
        Leads::ToFolder => Kind::Directory,
        Leads::Elsewhere => met.kind,
    }
}

impl Visitor for Looking<'_> {
    fn meet(&mut self, met: &Met<'_>) -> Next {
        let is_folder = met.kind == Kind::Directory;
        self.batch.visited += u64::from(!is_folder);
        let (matches, below) = self.says(met);
        let kind = counts_as(met);
        let wanted = match self.wanted.kinds {
            Kinds::Both => true,
            Kinds::Directories => kind == Kind::Directory,
            Kinds::Files => kind != Kind::Directory,
        };
        if matches && wanted {
            self.batch.add(met, kind, self.keep);
        }
        if is_folder && below {
            Next::Into
        } else {
            Next::Over
        }
    }

    fn enters(&mut self, folder: &Met<'_>) -> Next {
        let (_, below) = self.says(folder);
        if below { Next::Into } else { Next::Over }
    }

    fn pass(&mut self, passed: Passed) {
        match passed {
            Passed::Unreadable => self.keep.unreadable.add(1),
            Passed::Hidden => self.keep.hidden.add(1),
            Passed::Closed(Why::Denied) => self.keep.denied.add(1),
            Passed::Closed(Why::Asks) => self.keep.asks.add(1),
            Passed::Pseudo => self.keep.special.add(1),
        }
    }

    fn follows(&self) -> bool {
        true
    }

    fn left(&mut self) {
        self.keep.take(&mut self.batch);
    }
}

impl Opener for Looking<'_> {
    /// No file is ever wanted open.
    fn open(&mut self, _below: &[u8], _file: std::io::Result<std::fs::File>) {}
}
