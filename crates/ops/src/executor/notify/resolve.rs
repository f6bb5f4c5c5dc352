//! Finding the file that a call means, as the command sees it.
//!
//! The result is a path without links in its parents. Three things make that quick: paths
//! from `/proc` have no links already, folders that were checked are remembered until a
//! call could put a link in their place, and only a path that contains a link or `..` is
//! followed step by step.

use super::calls::{Base, Empty, Last, Place};
use super::long;
use super::target::{self, Targets};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of links in a path, like the kernel's.
const MAX_LINKS: usize = 40;

/// Time and number of folders to remember. Programs outside may change them.
const MEMORY: Duration = Duration::from_secs(1);
const MAX_FOLDERS: usize = 10_000;

/// Number of calls of any command that could have put a link in the place of a folder.
static LINKS_MADE: AtomicU64 = AtomicU64::new(0);

/// Whether a call exchanged two files. A folder that was checked between the notification
/// of such a call and the call itself could be a link now.
static EXCHANGED: AtomicBool = AtomicBool::new(false);

/// Announces a call that may put a link in the place of a folder.
pub(super) fn forget_folders() {
    LINKS_MADE.fetch_add(1, Ordering::Relaxed);
}

/// Announces a call that exchanges two files. They are rare.
pub(super) fn forget_folders_for_good() {
    EXCHANGED.store(true, Ordering::Relaxed);
    forget_folders();
}

/// Meaning of `/` in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slash {
    /// The root of the file system.
    Root,
    /// The folder that the path starts from (`RESOLVE_IN_ROOT`).
    Base,
}

#[derive(Debug)]
pub(super) struct Resolver {
    targets: Targets,
    /// Folders without a link in their paths.
    real: HashSet<PathBuf>,
    /// State of `LINKS_MADE`, and time, for which `real` is valid.
    links_made: u64,
    since: Instant,
}

impl Resolver {
    pub(super) fn new() -> Self {
        Self {
            targets: Targets::default(),
            real: HashSet::new(),
            links_made: 0,
            since: Instant::now(),
        }
    }

    /// Returns the path of the file, or `None` if it is not recorded or the call cannot
    /// succeed.
    pub(super) fn resolve(
        &mut self,
        thread: u32,
        place: Place,
        last: Last,
        slash: Slash,
        covers: &dyn Fn(&Path) -> bool,
    ) -> io::Result<Option<PathBuf>> {
        let (base, text) = match place {
            Place::Open(number) => return self.open_file(thread, number, covers),
            Place::Path {
                base,
                address,
                empty,
            } => match target::path(thread, address)? {
                None => return Ok(None),
                Some(text) if text.is_empty() => {
                    return match (empty, base) {
                        (Empty::IsBase, Base::Fd(number)) => self.open_file(thread, number, covers),
                        (Empty::IsBase, Base::Cwd) => {
                            Ok(self.targets.cwd(thread)?.filter(|path| covers(path)))
                        }
                        (Empty::Fails, _) => Ok(None),
                    };
                }
                Some(text) => (base, text),
            },
        };
        self.follow(thread, base, &text, last, slash, covers)
    }

    /// Same as `resolve`, for a path that has been read already.
    pub(super) fn follow(
        &mut self,
        thread: u32,
        base: Base,
        text: &[u8],
        last: Last,
        slash: Slash,
        covers: &dyn Fn(&Path) -> bool,
    ) -> io::Result<Option<PathBuf>> {
        let is_absolute = text.starts_with(b"/") && slash == Slash::Root;
        let start = match (is_absolute, base) {
            (true, _) => Some(PathBuf::from("/")),
            (false, Base::Cwd) => self.targets.cwd(thread)?,
            (false, Base::Fd(number)) => self.targets.open_file(thread, number)?,
        };
        let Some(start) = start else {
            return Ok(None);
        };
        if slash == Slash::Root
            && let Some(plain) = plain(&start, text)
            && let Some(found) = self.quick(thread, &start, &plain, last, covers)?
        {
            return Ok(Some(plain).filter(|path| found && covers(path)));
        }
        let top = match slash {
            Slash::Root => PathBuf::from("/"),
            Slash::Base => start.clone(),
        };
        let found = self.walk(thread, start, text, last, &top)?;
        Ok(found.filter(|path| covers(path)))
    }

    /// Opens a folder as the command sees it. No part of the path may be a link.
    pub(super) fn open_folder(&mut self, thread: u32, folder: &Path) -> io::Result<OwnedFd> {
        let root = self.targets.root(thread)?;
        Ok(long::open_folder(root, below(folder))?)
    }

    fn open_file(
        &mut self,
        thread: u32,
        number: i32,
        covers: &dyn Fn(&Path) -> bool,
    ) -> io::Result<Option<PathBuf>> {
        let path = self.targets.open_file(thread, number)?;
        Ok(path.filter(|path| covers(path)))
    }

    /// Checks a path without `..`. Returns `None` if it contains a link that must be
    /// followed, and otherwise whether the call can succeed.
    fn quick(
        &mut self,
        thread: u32,
        start: &Path,
        plain: &Path,
        last: Last,
        covers: &dyn Fn(&Path) -> bool,
    ) -> io::Result<Option<bool>> {
        let parent = plain.parent().unwrap_or(plain);
        if parent != start && !self.is_known(parent) {
            let root = self.targets.root(thread)?;
            match long::open_folder(root, below(parent)) {
                Ok(_) => self.remember(parent),
                // Another thread may be creating it; recording too much does no harm.
                Err(Errno::NOENT) => return Ok(Some(true)),
                Err(Errno::NOTDIR) => return Ok(Some(false)),
                Err(_) => return Ok(None),
            }
        }
        if last == Last::Kept || (last == Last::Unknown && covers(plain)) {
            return Ok(Some(true));
        }
        let root = self.targets.root(thread)?;
        match long::stat(root, below(plain)) {
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Symlink => Ok(None),
            _ => Ok(Some(true)),
        }
    }

    /// Whether a folder was checked before and has not changed since.
    fn is_known(&mut self, folder: &Path) -> bool {
        let links_made = LINKS_MADE.load(Ordering::Relaxed);
        if links_made != self.links_made || self.since.elapsed() > MEMORY {
            self.real.clear();
            self.links_made = links_made;
            self.since = Instant::now();
        }
        self.real.contains(folder)
    }

    fn remember(&mut self, folder: &Path) {
        // Processes come and go, and the numbers of their folders are used again.
        if !folder.starts_with("/proc") && !EXCHANGED.load(Ordering::Relaxed) {
            if self.real.len() >= MAX_FOLDERS {
                self.real.clear();
            }
            self.real.insert(folder.to_owned());
        }
    }

    /// Follows a path step by step, as the kernel would for the command. `start` contains no
    /// links.
    fn walk(
        &mut self,
        thread: u32,
        start: PathBuf,
        text: &[u8],
        last: Last,
        top: &Path,
    ) -> io::Result<Option<PathBuf>> {
        let mut real = start;
        let mut rest: Vec<Vec<u8>> = Vec::new();
        push(&mut rest, text);
        let mut links = 0;
        while let Some(part) = rest.pop() {
            match part.as_slice() {
                b"" | b"." => continue,
                b".." => {
                    if real != top {
                        real.pop();
                    }
                    continue;
                }
                _ => {}
            }
            let next = real.join(OsStr::from_bytes(&part));
            if rest.is_empty() && last == Last::Kept {
                return Ok(Some(next));
            }
            if real == Path::new("/proc") && matches!(part.as_slice(), b"self" | b"thread-self") {
                real.push(self.itself(thread, &part)?);
                continue;
            }
            let root = self.targets.root(thread)?;
            match long::read_link(root, below(&next)) {
                Ok(target) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Ok(None);
                    }
                    if real.starts_with("/proc") && real != Path::new("/proc") {
                        // A link of the kernel to an open file, which has no links itself.
                        match target::living(target.into_bytes()) {
                            Some(path) => real = path,
                            None => return Ok(None),
                        }
                    } else {
                        if target.to_bytes().starts_with(b"/") {
                            real = top.to_owned();
                        }
                        push(&mut rest, target.to_bytes());
                    }
                }
                // Not a link, or missing.
                Err(Errno::INVAL | Errno::NOENT) => real = next,
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(real))
    }

    /// Returns the name of the process's own folder in its `/proc`.
    fn itself(&self, thread: u32, name: &[u8]) -> io::Result<PathBuf> {
        let (process, task) = self.targets.own_numbers(thread)?;
        Ok(match name {
            b"self" => PathBuf::from(process),
            _ => PathBuf::from(format!("{process}/task/{task}")),
        })
    }
}

/// Adds the parts of a path, the first one last.
fn push(rest: &mut Vec<Vec<u8>>, text: &[u8]) {
    rest.extend(text.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec));
}

/// Returns an absolute path relative to the root folder.
fn below(path: &Path) -> &Path {
    match path.strip_prefix("/") {
        Ok(path) if !path.as_os_str().is_empty() => path,
        _ => Path::new("."),
    }
}

/// Joins a path to the folder it starts from. `None` if it contains a part that cannot be
/// removed without looking: `..`, or a slash or dot at the end, which follows a link.
fn plain(start: &Path, text: &[u8]) -> Option<PathBuf> {
    let mut path = Vec::with_capacity(start.as_os_str().len() + text.len() + 1);
    path.extend(start.as_os_str().as_bytes());
    if path == b"/" {
        path.clear();
    }
    let mut is_named = false;
    for part in text.split(|byte| *byte == b'/') {
        is_named = false;
        match part {
            b"" | b"." => {}
            b".." => return None,
            name => {
                is_named = true;
                path.push(b'/');
                path.extend(name);
            }
        }
    }
    let path: PathBuf = OsStr::from_bytes(&path).into();
    is_named.then_some(path)
}
