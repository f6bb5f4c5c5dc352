//! The paths that rules close to a command. They are looked for when it starts: only
//! what is there can be covered.

use crate::scope::closing::{Closable, Closing, Extent, Why};
use crate::scope::rules::SYSTEM;
use rustix::fs::{AtFlags, CWD, FileType, statat};
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How many entries of folders are looked at. A large checkout with all that it
/// depends on has fewer.
const MOST_ENTRIES: usize = 400_000;

/// How many paths are covered: each is a mount of its own.
const MOST_PATHS: usize = 2_000;

/// What the kernel makes up: endless, and never a file that a rule means.
const PSEUDO: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A folder that changed this recently may change again without showing it.
const SETTLED: Duration = Duration::from_secs(2);

/// What was found in folders before, by rules.
#[derive(Debug, Default)]
pub(super) struct Found {
    version: u64,
    folders: HashMap<PathBuf, (Stamp, Inside)>,
}

/// What of a folder changes with what is in it, and can be set by nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    number: u64,
    changed: (i64, i64),
}

/// What in a folder matters.
#[derive(Debug, Clone, Default)]
struct Inside {
    /// All its entries, by number.
    entries: usize,
    /// What is closed.
    closed: Vec<OsString>,
    /// Links that are closed, by their name or by where they lead.
    links: Vec<OsString>,
    /// Folders that may hold something closed.
    folders: Vec<OsString>,
}

/// The paths to cover: real ones that are there.
///
/// # Errors
/// When there are too many to look at or to cover. It says which rule that is
/// about, and what to do.
pub(super) fn paths(
    closing: &dyn Closing,
    roots: &[PathBuf],
    found: &mut Found,
) -> Result<Vec<PathBuf>, String> {
    if found.version != closing.version() {
        *found = Found {
            version: closing.version(),
            folders: HashMap::new(),
        };
    }
    let mut search = Search {
        closing,
        roots,
        found,
        entries: 0,
        paths: Vec::new(),
    };
    let mut walked: Vec<PathBuf> = Vec::new();
    for (start, rule) in starts(closing.places(), roots) {
        // A walk looks for all rules at once.
        if !walked.iter().any(|walked| start.starts_with(walked)) {
            search.from(&start).map_err(|problem| problem.told(&rule))?;
            walked.push(start);
        }
    }
    Ok(search.paths)
}

/// Where to look, outer folders first. Where wildcards begin at the top of the disk,
/// only the folders that commands work in are walked.
fn starts(places: Vec<Closable>, roots: &[PathBuf]) -> Vec<(PathBuf, String)> {
    let mut starts: Vec<(PathBuf, String)> = Vec::new();
    for Closable { path, extent, rule } in places {
        let is_top = path.parent().is_none();
        if extent == Extent::Below {
            let inside = roots.iter().filter(|root| root.starts_with(&path));
            starts.extend(inside.map(|root| (root.clone(), rule.clone())));
        }
        if !is_top {
            starts.push((path, rule));
        }
    }
    starts.sort_by_key(|(path, _)| path.components().count());
    starts
}

struct Search<'a> {
    closing: &'a dyn Closing,
    roots: &'a [PathBuf],
    found: &'a mut Found,
    entries: usize,
    paths: Vec<PathBuf>,
}

enum Problem {
    WorkFolder,
    TooManyEntries,
    TooManyPaths,
}

impl Problem {
    fn told(&self, rule: &str) -> String {
        match self {
            Self::WorkFolder => format!(
                "{rule} closes the folder that commands work in; allow what they need in a rule before it"
            ),
            Self::TooManyEntries => format!(
                "what {rule} closes could not be found: there are more than {MOST_ENTRIES} files to look at; begin its path with the folder that it is about"
            ),
            Self::TooManyPaths => format!(
                "{rule} closes more than {MOST_PATHS} paths, which is more than can be hidden from a command; close whole folders instead (`folder/**`)"
            ),
        }
    }
}

impl Search<'_> {
    fn from(&mut self, start: &Path) -> Result<(), Problem> {
        let Some(real) = crate::scope::real(start) else {
            return Ok(());
        };
        let Some(kind) = kind(&real) else {
            return Ok(());
        };
        let names = [start, real.as_path()];
        if self.is_whole(&names) {
            return self.hide(real.clone(), start != real);
        }
        if kind.is_dir() {
            self.walk(start.to_owned(), real)?;
        }
        Ok(())
    }

    /// Whether a path is closed with all that is in it.
    fn is_whole(&self, names: &[&Path]) -> bool {
        let closed = self.closing.closes(names);
        closed.is_some_and(|closed| closed.why == Why::Denied && !closed.open_inside)
    }

    fn is_denied(&self, names: &[&Path]) -> bool {
        let closed = self.closing.closes(names);
        closed.is_some_and(|closed| closed.why == Why::Denied)
    }

    fn hide(&mut self, real: PathBuf, is_target: bool) -> Result<(), Problem> {
        let system = SYSTEM.iter().map(Path::new);
        let mut needed = self.roots.iter().map(PathBuf::as_path).chain(system);
        // Anybody can make a link to a folder without which no command runs.
        if is_target && needed.any(|needed| needed.starts_with(&real)) {
            return Ok(());
        }
        if self.roots.iter().any(|root| root.starts_with(&real)) {
            return Err(Problem::WorkFolder);
        }
        if self.paths.len() >= MOST_PATHS {
            return Err(Problem::TooManyPaths);
        }
        self.paths.push(real);
        Ok(())
    }

    fn walk(&mut self, named: PathBuf, real: PathBuf) -> Result<(), Problem> {
        let mut folders = vec![(named, real)];
        while let Some((named, real)) = folders.pop() {
            let is_made_up = PSEUDO.iter().any(|pseudo| real.starts_with(pseudo));
            if is_made_up || !self.closing.closes_below(&[&named, &real]) {
                continue;
            }
            let inside = match self.inside(&named, &real)? {
                Looked::At(inside) => inside,
                Looked::Gone => continue,
                // Its owner may let himself in later.
                Looked::Shut => {
                    self.hide(real, false)?;
                    continue;
                }
            };
            for name in inside.closed {
                self.hide(real.join(name), false)?;
            }
            for name in inside.links {
                if let Some(target) = crate::scope::real(&real.join(name))
                    && kind(&target).is_some()
                {
                    self.hide(target, true)?;
                }
            }
            let below = inside.folders.into_iter();
            folders.extend(below.map(|name| (named.join(&name), real.join(&name))));
        }
        Ok(())
    }

    /// What matters of what is in a folder, from memory if it has not changed since.
    fn inside(&mut self, named: &Path, real: &Path) -> Result<Looked, Problem> {
        let Some(stamp) = stamp(real) else {
            return Ok(Looked::Gone);
        };
        let known = self.found.folders.get(real);
        if let Some((_, inside)) = known.filter(|(known, _)| *known == stamp) {
            self.entries += inside.entries;
            self.check()?;
            return Ok(Looked::At(inside.clone()));
        }
        let inside = match self.list(named, real)? {
            Looked::At(inside) => inside,
            other => return Ok(other),
        };
        if is_settled(stamp) {
            let known = (stamp, inside.clone());
            self.found.folders.insert(real.to_owned(), known);
        }
        Ok(Looked::At(inside))
    }

    fn check(&self) -> Result<(), Problem> {
        if self.entries > MOST_ENTRIES {
            return Err(Problem::TooManyEntries);
        }
        Ok(())
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "looks for what is to be covered; no content is read"
    )]
    fn list(&mut self, named: &Path, real: &Path) -> Result<Looked, Problem> {
        let entries = match std::fs::read_dir(real) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Looked::Gone),
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
                return Ok(Looked::Gone);
            }
            Err(_) => return Ok(Looked::Shut),
        };
        let mut inside = Inside::default();
        for entry in entries {
            let Ok(entry) = entry else {
                return Ok(Looked::Shut);
            };
            inside.entries += 1;
            self.entries += 1;
            self.check()?;
            let name = entry.file_name();
            let (named, real) = (named.join(&name), real.join(&name));
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let names = [named.as_path(), real.as_path()];
            if kind.is_symlink() {
                if self.is_denied(&names) {
                    inside.links.push(name);
                }
            } else if kind.is_dir() {
                if self.is_whole(&names) {
                    inside.closed.push(name);
                } else if self.closing.closes_below(&names) || self.is_denied(&names) {
                    inside.folders.push(name);
                }
            } else if self.is_denied(&names) {
                inside.closed.push(name);
            }
        }
        Ok(Looked::At(inside))
    }
}

enum Looked {
    At(Inside),
    /// It is not there any more.
    Gone,
    /// It cannot be listed.
    Shut,
}

fn kind(path: &Path) -> Option<FileType> {
    let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

fn stamp(folder: &Path) -> Option<Stamp> {
    let stat = statat(CWD, folder, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    FileType::from_raw_mode(stat.st_mode)
        .is_dir()
        .then_some(())?;
    #[expect(
        clippy::useless_conversion,
        reason = "the types differ between architectures"
    )]
    Some(Stamp {
        device: stat.st_dev.into(),
        number: stat.st_ino.into(),
        changed: (
            stat.st_ctime.into(),
            i64::try_from(stat.st_ctime_nsec).unwrap_or(0),
        ),
    })
}

/// Whether a folder changed so long ago that another change would show.
fn is_settled(stamp: Stamp) -> bool {
    let Ok(seconds) = u64::try_from(stamp.changed.0) else {
        return false;
    };
    let changed = UNIX_EPOCH + Duration::from_secs(seconds);
    SystemTime::now()
        .duration_since(changed)
        .is_ok_and(|since| since > SETTLED)
}
