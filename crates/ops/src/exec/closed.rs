//! The paths that rules close to a command. They are looked for when it starts: only
//! what is there can be covered.

mod found;

pub(super) use found::Found;

use crate::scope::closing::{Closable, Closing, Extent, Why};
use crate::scope::rules::SYSTEM;
use found::{Inside, Stamp};
use rustix::fs::{AtFlags, CWD, FileType, statat};
use rustix::io::Errno;
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// How many entries of folders are looked at. A large checkout with all that it
/// depends on has fewer.
const MOST_ENTRIES: usize = 400_000;

/// How many paths are covered: each is a mount of its own.
const MOST_PATHS: usize = 2_000;

/// How many entries are looked at in folders that only a link leads to, outside those
/// that commands work in: anybody can make a link to a whole disk.
const MOST_AWAY: usize = 20_000;

/// What the kernel makes up: endless, and never a file that a rule means.
const PSEUDO: [&str; 3] = ["/proc", "/sys", "/dev"];

/// What is to be kept from a command.
#[derive(Debug, Default)]
pub(super) struct Covered {
    /// What to cover: real paths that are there.
    pub(super) paths: BTreeSet<PathBuf>,
    /// Links to what is covered, which are to stay as they are.
    pub(super) links: Vec<PathBuf>,
}

/// What to cover.
///
/// # Errors
/// When there are too many to look at or to cover. It says which rule that is
/// about, and what to do.
pub(super) fn paths(
    closing: &dyn Closing,
    roots: &[PathBuf],
    found: &mut Found,
) -> Result<Covered, String> {
    found.begin(closing);
    let mut search = Search {
        closing,
        roots,
        found,
        entries: 0,
        away: 0,
        walked: HashSet::new(),
        covered: Covered::default(),
    };
    for (start, rule) in starts(closing.places(), roots) {
        search.from(&start).map_err(|problem| problem.told(&rule))?;
    }
    let Search { found, covered, .. } = search;
    let mut covered = covered;
    if let Some(led_to) = found.led_to.get(&found.version) {
        let is_there = |path: &&PathBuf| crate::scope::real(path).as_ref() == Some(path);
        let is_free = |path: &&PathBuf| !roots.iter().any(|root| root.starts_with(path));
        let known = led_to.iter().filter(is_there).filter(is_free);
        covered
            .paths
            .extend(known.filter(|path| kind(path).is_some()).cloned());
    }
    Ok(covered)
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
    /// Of these, those in folders outside the roots that a link led to.
    away: usize,
    /// Real folders, and what was looked for below them.
    walked: HashSet<(PathBuf, u64)>,
    covered: Covered,
}

/// A folder on the way of a walk.
struct Folder {
    /// As it was reached.
    named: PathBuf,
    real: PathBuf,
    reached: Reached,
}

/// How a walk came to a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    Directly,
    /// By a link.
    Link,
    /// By a link that leads out of the roots.
    LinkAway,
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
        let kind = match statat(CWD, &real, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => FileType::from_raw_mode(stat.st_mode),
            // Its owner may open the folder later.
            Err(Errno::ACCESS) => {
                if let Some(shut) = crate::scope::shut_folder(&real) {
                    self.hide(shut, false)?;
                }
                return Ok(());
            }
            Err(_) => return Ok(()),
        };
        let is_link = start != real;
        let names = [start, real.as_path()];
        if self.is_whole(&names) {
            if self.hide(real, is_link)? && self::kind(start).is_some_and(|kind| kind.is_symlink())
            {
                self.covered.links.push(start.to_owned());
            }
        } else if kind.is_dir() {
            let reached = match is_link {
                true => Reached::Link,
                false => Reached::Directly,
            };
            self.walk(Folder {
                named: start.to_owned(),
                real,
                reached,
            })?;
        }
        Ok(())
    }

    /// Whether a path is closed with all that is in it.
    fn is_whole(&self, names: &[&Path]) -> bool {
        let closed = self.closing.closes(names);
        closed.is_some_and(|closed| closed.why == Why::Denied && !closed.open_inside)
    }

    /// Whether it is hidden: what commands need cannot be, where a link leads to it.
    fn hide(&mut self, real: PathBuf, by_link: bool) -> Result<bool, Problem> {
        let system = SYSTEM.iter().map(Path::new);
        let mut needed = self.roots.iter().map(PathBuf::as_path).chain(system);
        // Anybody can make a link to a folder without which no command runs.
        if by_link && needed.any(|needed| needed.starts_with(&real)) {
            return Ok(false);
        }
        if self.roots.iter().any(|root| root.starts_with(&real)) {
            return Err(Problem::WorkFolder);
        }
        let is_new = !self.covered.paths.contains(&real);
        if is_new && self.covered.paths.len() >= MOST_PATHS {
            return Err(Problem::TooManyPaths);
        }
        // Also if it was found by its own name already, which it has from the link.
        if by_link {
            let led_to = self.found.led_to.entry(self.found.version).or_default();
            if led_to.len() < MOST_PATHS {
                led_to.insert(real.clone());
            }
        }
        self.covered.paths.insert(real);
        Ok(true)
    }

    fn walk(&mut self, start: Folder) -> Result<(), Problem> {
        let mut folders = vec![start];
        while let Some(folder) = folders.pop() {
            let Folder {
                named,
                real,
                reached,
            } = &folder;
            let (reached, by_link) = (*reached, *reached != Reached::Directly);
            let names = [named.as_path(), real.as_path()];
            let is_made_up = PSEUDO.iter().any(|pseudo| real.starts_with(pseudo));
            let is_far = reached == Reached::LinkAway && self.away > MOST_AWAY;
            if is_made_up || is_far {
                continue;
            }
            let Some(standing) = self.found.standing(self.closing, names) else {
                continue;
            };
            // The same folder by another name, as far as the rules see.
            if !self.walked.insert((real.clone(), standing)) {
                continue;
            }
            let inside = match self.inside(&folder, standing)? {
                Looked::At(inside) => inside,
                Looked::Gone => continue,
                // Its owner may let himself in later.
                Looked::Shut => {
                    self.hide(real.clone(), by_link)?;
                    continue;
                }
            };
            if reached == Reached::LinkAway {
                self.away += inside.entries;
            }
            for name in inside.closed {
                self.hide(real.join(name), by_link)?;
            }
            for name in inside.links {
                let link = real.join(name);
                if let Some(target) = crate::scope::real(&link)
                    && kind(&target).is_some()
                    && self.hide(target, true)?
                {
                    self.covered.links.push(link);
                }
            }
            for name in inside.ways {
                let target = crate::scope::real(&real.join(&name));
                folders.extend(target.and_then(|target| self.follow(named.join(name), target)));
            }
            folders.extend(inside.folders.into_iter().map(|name| Folder {
                named: named.join(&name),
                real: real.join(&name),
                reached,
            }));
        }
        Ok(())
    }

    /// The folder that a link leads to, unless it holds what every command needs.
    fn follow(&self, named: PathBuf, target: PathBuf) -> Option<Folder> {
        let is_root = |root: &PathBuf| target.starts_with(root);
        let holds_root = |root: &PathBuf| root.starts_with(&target) && *root != target;
        let is_system =
            |system: &&str| target.starts_with(system) || Path::new(system).starts_with(&target);
        if !kind(&target)?.is_dir()
            || self.roots.iter().any(holds_root)
            || SYSTEM.iter().any(is_system)
        {
            return None;
        }
        let reached = match self.roots.iter().any(is_root) {
            true => Reached::Link,
            false => Reached::LinkAway,
        };
        Some(Folder {
            named,
            real: target,
            reached,
        })
    }

    /// What matters of what is in a folder, from memory if it has not changed since.
    fn inside(&mut self, folder: &Folder, standing: u64) -> Result<Looked, Problem> {
        let Folder { named, real, .. } = folder;
        let Some(stamp) = Stamp::of(real) else {
            return Ok(Looked::Gone);
        };
        let key = (real.clone(), standing);
        let known = self.found.folders.get(&key);
        if let Some((_, inside)) = known.filter(|(known, _)| *known == stamp) {
            self.entries += inside.entries;
            self.check()?;
            return Ok(Looked::At(inside.clone()));
        }
        let inside = match self.list(named, real)? {
            Looked::At(inside) => inside,
            other => return Ok(other),
        };
        if stamp.is_settled() {
            let known = (stamp, inside.clone());
            self.found.folders.insert(key, known);
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
            // Without the right to search it, its names can be listed, and no more.
            if inside.entries == 0 && crate::scope::shut_above(&entry.path()).is_some() {
                return Ok(Looked::Shut);
            }
            inside.entries += 1;
            self.entries += 1;
            self.check()?;
            let name = entry.file_name();
            let (named, real) = (named.join(&name), real.join(&name));
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let names = [named.as_path(), real.as_path()];
            let closed = self.closing.closes(&names);
            let closed = closed.filter(|closed| closed.why == Why::Denied);
            let may_hold = || self.closing.closes_below(&names);
            if kind.is_dir() {
                match closed {
                    Some(closed) if !closed.open_inside => inside.closed.push(name),
                    Some(_) => inside.folders.push(name),
                    None if may_hold() => inside.folders.push(name),
                    None => {}
                }
            } else if kind.is_symlink() {
                match closed {
                    Some(_) => inside.links.push(name),
                    None if may_hold() => inside.ways.push(name),
                    None => {}
                }
            } else if closed.is_some() {
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
