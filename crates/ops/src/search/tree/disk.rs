//! The walk on local disks: several threads below an open handle.
//!
//! Folders are opened from their parent's handle, one name at a time and without following
//! links. So no path becomes too long, replacing a folder by a link cannot lead outside,
//! and the kernel resolves one name per file instead of a whole path.

mod unit;

use super::parent_rules::{self, Names, ParentRules};
use super::pool::Pool;
use super::{
    Judge, LinkTarget, Next, Rules, SkipReason, Stop, Verdict, Visitor, WalkEntry, enter_filtered,
};
use crate::backend::{Kind, local};
use crate::{Error, Result};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use unit::{Files, Folder, Unit};

const COMMON: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(COMMON);
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NOCTTY).union(COMMON);

/// A visitor that also receives open files.
pub(crate) trait Opener: Visitor {
    /// Receives a file for which `visit` returned [`Next::Into`].
    fn open(&mut self, below: &[u8], file: io::Result<std::fs::File>);
}

/// Walks everything below the judge's start with as many threads as ripgrep would use, each
/// with a visitor from `make`.
pub(crate) fn walk<V: Opener>(
    judge: &Judge<'_>,
    stop: &Stop,
    make: impl Fn() -> V + Sync,
) -> Result<()> {
    let start = judge.start();
    let top: OwnedFd = local::open_found(start, Path::new(""))
        .map_err(|source| Error::io("list", start.given(), source))?
        .into();
    let above = if judge.honours_ignore_files() {
        parent_rules::on_disk(start)
    } else {
        ParentRules::default()
    };
    let threads = std::thread::available_parallelism()
        .map_or(1, std::num::NonZero::get)
        .min(12);
    let first = Unit::Folder {
        parent: None,
        below: Vec::new(),
        name_at: 0,
        rules: above.rules,
    };
    let walk = Walk {
        judge,
        stop,
        top,
        prefix: &above.prefix,
        pool: Pool::new(first, threads),
        handles: Arc::new(AtomicUsize::new(0)),
        most_handles: most_handles(),
    };
    let work = || {
        let leave = AbandonOnDrop(&walk.pool);
        Worker::new(&walk, make()).run();
        std::mem::forget(leave);
    };
    std::thread::scope(|scope| {
        // This thread is one of them. If the system cannot start more, fewer threads do the
        // same work.
        for _ in 1..threads {
            if std::thread::Builder::new()
                .spawn_scoped(scope, work)
                .is_err()
            {
                walk.pool.abandon();
            }
        }
        work();
    });
    Ok(())
}

/// Lets the other threads finish if one panics or could not be started.
struct AbandonOnDrop<'a>(&'a Pool<Unit>);

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Returns the maximum number of open folders: a quarter of the process limit.
fn most_handles() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile)
        .current
        .unwrap_or(u64::MAX);
    usize::try_from(limit / 4)
        .unwrap_or(usize::MAX)
        .clamp(16, 1024)
}

struct Walk<'a> {
    judge: &'a Judge<'a>,
    stop: &'a Stop,
    top: OwnedFd,
    prefix: &'a [u8],
    pool: Pool<Unit>,
    handles: Arc<AtomicUsize>,
    most_handles: usize,
}

struct Worker<'w, V> {
    walk: &'w Walk<'w>,
    visitor: V,
    stack: Vec<Unit>,
    /// Buffer for the path of the current entry.
    path_buffer: Vec<u8>,
    /// Entries of the current folder.
    names: Vec<u8>,
    entries: Vec<(usize, usize, Kind)>,
}

impl<'w, V: Opener> Worker<'w, V> {
    fn new(walk: &'w Walk<'w>, visitor: V) -> Self {
        Self {
            walk,
            visitor,
            stack: Vec::new(),
            path_buffer: Vec::new(),
            names: Vec::new(),
            entries: Vec::new(),
        }
    }

    fn run(mut self) {
        while let Some(unit) = self.stack.pop().or_else(|| self.walk.pool.take()) {
            if self.walk.stop.is_set() {
                continue;
            }
            match unit {
                Unit::Folder {
                    parent,
                    below,
                    name_at,
                    rules,
                } => {
                    self.list(parent.as_deref(), below, name_at, &rules);
                    drop(parent);
                }
                Unit::Files {
                    folder,
                    files,
                    from,
                    to,
                } => self.open(&folder, &files, from, to),
            }
            self.share();
        }
    }

    /// Gives the older half of this thread's work away if another thread is waiting. Older
    /// folders are nearer to the top, so there is more below them.
    fn share(&mut self) {
        if self.stack.len() > 1 && self.walk.pool.is_hungry() {
            let half = self.stack.len() / 2;
            self.walk.pool.give(self.stack.drain(..half));
        }
    }

    fn list(&mut self, parent: Option<&Folder>, below: Vec<u8>, name_at: usize, rules: &Rules) {
        let opened = match parent {
            Some(parent) => {
                let name = below.get(name_at..).unwrap_or_default();
                self.at(parent, |dir| openat(dir, name, FOLDER, Mode::empty()))
            }
            None => openat(&self.walk.top, ".", FOLDER, Mode::empty()),
        };
        let handle = match opened {
            Ok(handle) => handle,
            // It disappeared or is no longer a folder, which is not a read error.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return,
            Err(_) => return self.visitor.skip(SkipReason::Unreadable),
        };
        let Ok(names) = self.read_entries(&handle) else {
            return self.visitor.skip(SkipReason::Unreadable);
        };
        let walk = self.walk;
        self.path_buffer.clear();
        self.path_buffer.extend_from_slice(walk.prefix);
        append(&mut self.path_buffer, &below);
        let rules = if walk.judge.honours_ignore_files() {
            rules.inside(&self.path_buffer, &names.read_from(&handle))
        } else {
            rules.clone()
        };
        self.visit_entries(handle, below, &rules);
    }

    /// Reads all names first, because ignore files among them apply to the others.
    fn read_entries(&mut self, handle: &OwnedFd) -> io::Result<Names> {
        self.names.clear();
        self.entries.clear();
        let mut special = Names::default();
        for entry in Dir::read_from(handle)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => match statat(handle, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => local::kind(FileType::from_raw_mode(stat.st_mode)),
                    Err(_) => continue,
                },
                known => local::kind(known),
            };
            if name.starts_with(b".") {
                if kind == Kind::File && local::litter::is_temporary(name) {
                    continue;
                }
                special.note(name, kind);
            }
            let from = self.names.len();
            self.names.extend_from_slice(name);
            self.entries.push((from, self.names.len(), kind));
        }
        Ok(special)
    }

    fn visit_entries(&mut self, handle: OwnedFd, below: Vec<u8>, rules: &Rules) {
        let walk = self.walk;
        let checks = walk.judge.checks_in(&below);
        let below_at = if walk.prefix.is_empty() {
            0
        } else {
            walk.prefix.len() + 1
        };
        if !self.path_buffer.is_empty() {
            self.path_buffer.push(b'/');
        }
        let folder_length = self.path_buffer.len();
        let mut files = Files::default();
        let mut inner = Vec::new();
        for &(from, to, kind) in &self.entries {
            let name = self.names.get(from..to).unwrap_or_default();
            self.path_buffer.truncate(folder_length);
            self.path_buffer.extend_from_slice(name);
            let path = self.path_buffer.get(below_at..).unwrap_or_default();
            let name_at = folder_length - below_at;
            let entry = WalkEntry {
                below: path,
                name_at,
                kind,
                link_target: LinkTarget::Other,
            };
            let next = match walk.judge.decide(&entry, &self.path_buffer, rules, checks) {
                Verdict::Ignored => continue,
                Verdict::Hidden => {
                    self.visitor.skip(SkipReason::Hidden);
                    continue;
                }
                Verdict::Filtered(exclusion) => {
                    self.visitor.skip(SkipReason::Filtered(exclusion.why));
                    enter_filtered(exclusion, &entry, &mut self.visitor)
                }
                Verdict::Visit if kind == Kind::Link && self.visitor.needs_link_targets() => {
                    let link_target = link_target(walk.judge, &handle, &entry);
                    self.visitor.visit(&WalkEntry {
                        link_target,
                        ..entry
                    })
                }
                Verdict::Visit => self.visitor.visit(&entry),
                Verdict::VisitOnly => {
                    self.visitor.visit(&entry);
                    self.visitor.skip(SkipReason::Pseudo);
                    Next::Over
                }
            };
            match kind {
                Kind::Directory if next == Next::Into => inner.push((path.to_vec(), name_at)),
                Kind::File if next == Next::Into => files.push(name),
                _ => {}
            }
        }
        self.visitor.leave_folder();
        if files.ends.is_empty() && inner.is_empty() {
            return;
        }
        let keep = walk.handles.fetch_add(1, Ordering::Relaxed) < walk.most_handles;
        if !keep {
            walk.handles.fetch_sub(1, Ordering::Relaxed);
        }
        let folder = Arc::new(Folder {
            below,
            handle: keep.then_some(handle),
            handles: Arc::clone(&walk.handles),
        });
        for (below, name_at) in inner {
            self.stack.push(Unit::Folder {
                parent: Some(Arc::clone(&folder)),
                below,
                name_at,
                rules: rules.clone(),
            });
        }
        let to = files.ends.len();
        if to > 0 {
            self.stack.push(Unit::Files {
                folder,
                files: Arc::new(files),
                from: 0,
                to,
            });
        }
    }

    fn open(&mut self, folder: &Arc<Folder>, files: &Arc<Files>, mut from: usize, mut to: usize) {
        let reopened;
        let dir = match &folder.handle {
            Some(handle) => handle,
            None => match self.reopen(&folder.below) {
                Ok(handle) => {
                    reopened = handle;
                    &reopened
                }
                Err(_) => return self.visitor.skip(SkipReason::Unreadable),
            },
        };
        self.path_buffer.clear();
        self.path_buffer.extend_from_slice(&folder.below);
        if !self.path_buffer.is_empty() {
            self.path_buffer.push(b'/');
        }
        let folder_length = self.path_buffer.len();
        while from < to && !self.walk.stop.is_set() {
            // One file may be as large as all the others, so let other threads take the
            // rest.
            if to - from > 1 && self.walk.pool.is_hungry() {
                let middle = from + (to - from) / 2;
                let rest = Unit::Files {
                    folder: Arc::clone(folder),
                    files: Arc::clone(files),
                    from: middle,
                    to,
                };
                self.walk.pool.give([rest]);
                to = middle;
            }
            let name = files.name(from);
            self.path_buffer.truncate(folder_length);
            self.path_buffer.extend_from_slice(name);
            let file = openat(dir, name, FILE, Mode::empty())
                .map(std::fs::File::from)
                .map_err(io::Error::from);
            self.visitor.open(&self.path_buffer, file);
            from += 1;
        }
    }

    /// Runs an action on the handle of a folder, and reopens the folder if necessary.
    fn at<T>(
        &self,
        folder: &Folder,
        act: impl FnOnce(BorrowedFd<'_>) -> rustix::io::Result<T>,
    ) -> rustix::io::Result<T> {
        match &folder.handle {
            Some(handle) => act(handle.as_fd()),
            None => act(self.reopen(&folder.below)?.as_fd()),
        }
    }

    fn reopen(&self, below: &[u8]) -> rustix::io::Result<OwnedFd> {
        let mut handle = openat(&self.walk.top, ".", FOLDER, Mode::empty())?;
        for name in below
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
        {
            handle = openat(&handle, name, FOLDER, Mode::empty())?;
        }
        Ok(handle)
    }
}

fn link_target(judge: &Judge<'_>, folder: &OwnedFd, link: &WalkEntry<'_>) -> LinkTarget {
    let is_folder = |stat: rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode).is_dir();
    // The cheap check first. The result is used only if the link may be resolved.
    if statat(folder, link.name(), AtFlags::empty()).is_ok_and(is_folder)
        && judge.sees_through(link.below)
    {
        LinkTarget::Folder
    } else {
        LinkTarget::Other
    }
}

fn append(path: &mut Vec<u8>, part: &[u8]) {
    if !path.is_empty() && !part.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(part);
}
