//! Walking a tree for search and glob: one set of rules, two roads.
//!
//! The disk road reads folders with several threads below an open handle; the
//! other road asks any [`crate::Backend`] for one listing after the other. Both
//! ask the same [`Rules`] what to leave out and tell the same [`Visitor`] what
//! they met, so that they cannot disagree.

pub(crate) mod disk;
mod parents;
pub(crate) mod part;
mod pool;
pub(crate) mod remote;
mod rules;
pub(crate) mod stop;

pub(crate) use rules::Rules;
pub(crate) use stop::{Stop, supervise};

use crate::FilePath;
use crate::backend::Kind;
use crate::scope::closing::{Closed, Link, Why};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What a walk does about ignore files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoreFiles {
    /// `.gitignore`, `.ignore` and `.git/info/exclude` are obeyed, and the
    /// folders of version control are not entered.
    Honour,
    /// Everything is met.
    Disregard,
}

/// Folders (and the `.git` file of a worktree) that hold history, not work.
const VERSION_CONTROL: [&[u8]; 5] = [b".git", b".hg", b".svn", b".jj", b".bzr"];

/// Folders below `/` that the kernel makes up: endless, and not files.
const PSEUDO: [&[u8]; 3] = [b"dev", b"proc", b"sys"];

/// Something that a walk met and no rule left out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Met<'a> {
    /// Its path from where the walk began, parts joined by `/`.
    pub(crate) below: &'a [u8],
    /// Where its name begins in `below`.
    pub(crate) name_at: usize,
    /// What it is; a link is not followed.
    pub(crate) kind: Kind,
    /// Where it leads, for a visitor who wants to know that of links.
    pub(crate) leads: Leads,
}

/// Where a link leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leads {
    /// To a folder within reach.
    ToFolder,
    /// Elsewhere, or nobody looked, or it is no link.
    Elsewhere,
}

impl<'a> Met<'a> {
    /// Its name.
    pub(crate) fn name(&self) -> &'a [u8] {
        self.below.get(self.name_at..).unwrap_or_default()
    }

    /// The path of the folder it is in, without a final slash.
    pub(crate) fn folder(&self) -> &'a [u8] {
        self.below
            .get(..self.name_at.saturating_sub(1))
            .unwrap_or_default()
    }
}

/// Where a walk goes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Into a folder; a file is opened.
    Into,
    /// Past it.
    Over,
}

/// What a walk passed by without meeting it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed {
    /// A folder that could not be listed.
    Unreadable,
    /// Something the scope hides.
    Hidden,
    /// Something that rules close.
    Closed(Why),
    /// A folder the kernel makes up.
    Pseudo,
}

/// Who is told what a walk meets. On disk every thread has one of its own.
pub(crate) trait Visitor {
    /// Something was met; says whether to go into it.
    fn meet(&mut self, met: &Met<'_>) -> Next;

    /// Whether the walk goes through a folder that it is not told of, or by somebody
    /// else.
    fn enters(&mut self, folder: &Met<'_>) -> Next;

    /// Something was passed by.
    fn pass(&mut self, passed: Passed);

    /// Whether it wants to know where links lead.
    fn follows(&self) -> bool {
        false
    }

    /// All entries of a folder were met.
    fn left(&mut self) {}
}

/// What both roads ask about an entry before anyone is told of it.
pub(crate) struct Judge<'a> {
    start: &'a FilePath,
    ignored: IgnoreFiles,
    /// Whether the scope hides anything below the start at all. Most often it
    /// does not, and then no entry needs to be asked about.
    hides: bool,
    /// Whether rules judge what is found.
    closes: bool,
    at_top: bool,
}

/// What entries of a folder have to be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    hidden: bool,
    closed: bool,
}

/// What is to be done about an entry.
pub(crate) enum Verdict {
    /// Tell the visitor.
    Meet,
    /// Tell it, but do not go in.
    MeetOnly,
    /// Hidden by the scope.
    Hidden,
    /// Closed by a rule: not told of, though something below it may be open.
    Closed(Closed),
    /// Left out without a word: that is what the rules are for.
    Ignored,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(start: &'a FilePath, ignored: IgnoreFiles) -> Self {
        let on_disk = start.root().dir().is_some();
        Self {
            start,
            ignored,
            hides: start.hides_below(start.real()),
            closes: start.is_judged(),
            at_top: on_disk && start.real() == Path::new("/"),
        }
    }

    /// What entries of the folder at `below` have to be asked about.
    pub(crate) fn asks_in(&self, below: &[u8]) -> Asked {
        let folder = path(below);
        Asked {
            hidden: self.hides && self.start.hides_below(&self.start.real().join(folder)),
            closed: self.closes && self.start.closes_below(folder),
        }
    }

    /// Decides about an entry. `whole` is its path from the base of `rules`.
    pub(crate) fn decide(
        &self,
        met: &Met<'_>,
        whole: &[u8],
        rules: &Rules,
        asked: Asked,
    ) -> Verdict {
        let is_folder = met.kind == Kind::Directory;
        if self.ignored == IgnoreFiles::Honour {
            let name = met.name();
            let history = VERSION_CONTROL.contains(&name) && (is_folder || name == b".git");
            if history || rules.ignore(whole, is_folder) {
                return Verdict::Ignored;
            }
        }
        if asked.hidden && self.start.hides(&self.start.real().join(path(met.below))) {
            return Verdict::Hidden;
        }
        // A link may lead to what is closed from a folder where nothing is.
        let is_link = met.kind == Kind::Link;
        if asked.closed || self.closes && is_link {
            let link = if is_link { Link::Yes } else { Link::No };
            if let Some(closed) = self.start.closes(path(met.below), link) {
                return Verdict::Closed(closed);
            }
        }
        if self.at_top && is_folder && PSEUDO.contains(&met.below) {
            return Verdict::MeetOnly;
        }
        Verdict::Meet
    }

    /// Whether the link at `below` may be looked through.
    pub(crate) fn sees_through(&self, below: &[u8]) -> bool {
        self.start.sees_through(path(below).as_os_str())
    }

    pub(crate) fn honours(&self) -> bool {
        self.ignored == IgnoreFiles::Honour
    }

    pub(crate) fn start(&self) -> &'a FilePath {
        self.start
    }
}

/// Where a walk goes from something closed: into a folder that may hold open files.
pub(crate) fn through(
    closed: Closed,
    met: &Met<'_>,
    visitor: &mut (impl Visitor + ?Sized),
) -> Next {
    if closed.open_inside && met.kind == Kind::Directory {
        visitor.enters(met)
    } else {
        Next::Over
    }
}

/// Bytes of a path as a path.
pub(crate) fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
