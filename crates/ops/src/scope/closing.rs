//! What the rules of a session close beyond what a scope does.
//!
//! The scope knows no rules. Whoever judges calls hands a [`Closing`] to the paths
//! of a call, and everything that is found from such a path (by a walk, a listing or
//! a look for similar names) is judged by it. Commands, which name no paths, have
//! what it closes covered.

use super::{FilePath, Last, links};
use std::ffi::OsStr;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Judges paths that no call has named. One path may have several names: as it was
/// reached and as it really is. All of them are absolute, and all of them count.
pub trait Closing: fmt::Debug + Send + Sync {
    /// Whether a path is closed, and why.
    fn closes(&self, names: &[&Path]) -> Option<Closed>;

    /// Whether anything below a folder may be closed: asked once for a folder, it
    /// spares a walk the question for every entry.
    fn closes_below(&self, names: &[&Path]) -> bool;

    /// A number for what is closed below a folder: where it is the same for two names
    /// of a folder, the same is closed below both.
    fn standing(&self, names: &[&Path]) -> u64 {
        let mut hasher = DefaultHasher::new();
        names.hash(&mut hasher);
        hasher.finish()
    }

    /// Where on the disk something may be closed.
    fn places(&self) -> Vec<Closable>;

    /// The same number for the same rules.
    fn version(&self) -> u64;

    /// Another number when links lead elsewhere that the rules name, so that the same
    /// rules close something else.
    fn ways(&self) -> u64 {
        0
    }
}

/// Why a path is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed {
    /// What the rules say about it.
    pub why: Why,
    /// Whether something below it may be open all the same.
    pub open_inside: bool,
}

/// What rules say about a path that is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is denied.
    Denied,
    /// A person would have to be asked.
    Asks,
}

/// A place where something may be closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closable {
    /// Where to look.
    pub path: PathBuf,
    /// How far.
    pub extent: Extent,
    /// The rule, and where it is written.
    pub rule: String,
}

/// How far a rule reaches from where its wildcards begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The rule names this path, or all of this folder.
    Itself,
    /// Only a walk finds what it is about.
    Below,
}

/// How many paths were left out because they are closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Those that are denied.
    pub denied: u64,
    /// Those that a person would have to be asked about.
    pub asks: u64,
}

impl LeftOut {
    /// Counts one.
    pub fn add(&mut self, why: Why) {
        match why {
            Why::Denied => self.denied += 1,
            Why::Asks => self.asks += 1,
        }
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.denied + self.asks
    }
}

/// Who judges what is found from a path, and the name by which the path was reached.
#[derive(Debug, Clone)]
pub(super) struct Lid {
    closing: Arc<dyn Closing>,
    named: PathBuf,
}

impl Lid {
    pub(super) fn descend(&self, below: &Path) -> Self {
        Self {
            closing: Arc::clone(&self.closing),
            named: self.named.join(below),
        }
    }
}

impl FilePath {
    /// The same path; what is found from it is judged. `named` is what the caller
    /// meant by it, before any link is followed.
    #[must_use]
    pub fn judged_by(mut self, closing: Arc<dyn Closing>, named: PathBuf) -> Self {
        self.lid = Some(Lid { closing, named });
        self
    }

    /// The same path, judged as what lies at `below` in a folder is.
    pub(crate) fn judged_like(mut self, folder: &Self, below: &Path) -> Self {
        self.lid = folder.lid.as_ref().map(|lid| lid.descend(below));
        self
    }

    /// Whether anything that is found from this path may be closed.
    pub(crate) fn is_judged(&self) -> bool {
        self.lid.is_some()
    }

    /// Whether this path itself is closed.
    #[must_use]
    pub fn closed(&self) -> Option<Closed> {
        let lid = self.lid.as_ref()?;
        lid.closing.closes(&[&lid.named, &self.real])
    }

    /// Whether anything in the folder at `below`, or further down, may be closed.
    pub(crate) fn closes_below(&self, below: &Path) -> bool {
        self.lid.as_ref().is_some_and(|lid| {
            let (named, real) = (lid.named.join(below), self.real.join(below));
            lid.closing.closes_below(&[&named, &real])
        })
    }

    /// Whether what lies at `below` in this folder is closed. A link is judged by
    /// where it leads as well.
    pub(crate) fn closes(&self, below: &Path, link: Link) -> Option<Closed> {
        let lid = self.lid.as_ref()?;
        let (named, real) = (lid.named.join(below), self.real.join(below));
        let target = match link {
            Link::No => None,
            Link::Yes => self.target(below),
        };
        let mut names = vec![named.as_path(), real.as_path()];
        names.extend(target.as_deref());
        lid.closing.closes(&names)
    }

    /// Whether an entry of this folder is closed, whoever holds it.
    #[must_use]
    pub fn closes_entry(&self, name: &OsStr, link: Link) -> Option<Closed> {
        self.lid.as_ref()?;
        let own = self.closes(Path::new(name), link);
        own.or_else(|| self.descend(Path::new(name))?.closed())
    }

    /// Whether a name in the folder of this path is closed.
    pub(crate) fn closes_beside(&self, name: &OsStr) -> bool {
        self.lid.as_ref().is_some_and(|lid| {
            let (named, real) = (
                lid.named.with_file_name(name),
                self.real.with_file_name(name),
            );
            let target = links::real_path(&real, Last::Follow, self.guard.rules().reading);
            let target = target.unwrap_or_else(|_| real.clone());
            lid.closing.closes(&[&named, &real, &target]).is_some()
        })
    }

    fn target(&self, below: &Path) -> Option<PathBuf> {
        self.root.dir()?;
        let reading = self.guard.rules().reading;
        let real = links::real_below(&self.real, below, Last::Follow, reading);
        real.ok().map(|real| real.path)
    }
}

/// Whether an entry is a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// It is one.
    Yes,
    /// It is none.
    No,
}
