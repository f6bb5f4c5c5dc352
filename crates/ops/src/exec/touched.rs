//! What a command did to places that it had better not touch, where no kernel
//! could keep it from that: names that did not exist before, links, and at the
//! partial level everything that is protected.

use crate::executor::sandbox::{Confinement, Level, Watched, Why};
use crate::git::{Register, Running, Since};
use crate::private;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags, fstat, openat, openat2,
    readlinkat, renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many entries of a protected folder are compared.
const ENTRIES: usize = 2_000;

/// Something that a command did to a protected place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touched {
    /// It made something at a path that the person protects, which did not
    /// exist; that was moved out of the way.
    MovedOut {
        /// The protected path.
        path: PathBuf,
        /// Where what it made is now.
        to: PathBuf,
    },
    /// It made something that can make git or haft run things, or that the
    /// person protects and that could not be moved.
    Appeared {
        /// What.
        path: PathBuf,
    },
    /// It removed or replaced a link that the person protects, which leads where it
    /// led again.
    PutBack {
        /// The link.
        path: PathBuf,
    },
    /// It changed something that is protected.
    Changed {
        /// What.
        path: PathBuf,
    },
    /// A repository appeared: a `.git`, or a folder that is one itself.
    Repository {
        /// Where.
        path: PathBuf,
    },
    /// A repository lost `HEAD`, `objects` or `refs`, by which it is known.
    Dismantled {
        /// The repository.
        path: PathBuf,
    },
    /// It changed what git obeys in a repository that an earlier command made.
    Obeyed {
        /// What.
        path: PathBuf,
    },
    /// It left a rebase open that will run a command when somebody continues it.
    Unfinished {
        /// The list of steps.
        path: PathBuf,
        /// What git would run.
        command: String,
    },
    /// Not everything could be searched, so something may be unprotected.
    CutOff {
        /// How many folders were searched for repositories; nothing where it was
        /// other names of protected files that were searched for.
        folders: Option<usize>,
    },
}

/// How such places were before the command.
#[derive(Debug)]
pub(super) struct Before {
    watched: Vec<(Watched, State)>,
    protected: Vec<(PathBuf, State)>,
    /// What git obeys in repositories that commands made.
    made: Vec<(PathBuf, State)>,
    /// The commands that git would run when it is told to continue.
    left: Vec<(PathBuf, String)>,
    repositories: Vec<Arc<Register>>,
    /// What appears while this is watched for may be the command's work.
    running: Vec<Running>,
}

/// As much of a file or folder as tells whether it was changed. The time of the
/// last change cannot be set by anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Nothing,
    Link(Vec<u8>),
    /// A link took the place of a folder above: what is there has another name, which
    /// nobody watches.
    Behind(PathBuf),
    There(Vec<(PathBuf, [i64; 5])>),
}

impl State {
    fn is_behind(&self) -> bool {
        matches!(self, Self::Behind(_))
    }
}

impl Before {
    pub(super) fn look(confinement: &Confinement, repositories: &[Arc<Register>]) -> Self {
        let plan = &confinement.plan;
        let watched = plan.watched().iter();
        // At the full level the kernel sees to it.
        let protected = match confinement.strength.level {
            Level::Full => &[],
            Level::Partial => plan.protected(),
        };
        let now = |path: PathBuf| {
            let state = state(&path);
            (path, state)
        };
        Self {
            watched: watched
                .map(|watched| (watched.clone(), state(&watched.path)))
                .collect(),
            protected: protected.iter().cloned().map(now).collect(),
            made: repositories
                .iter()
                .flat_map(|one| one.made())
                .map(now)
                .collect(),
            left: commands_left(repositories),
            repositories: repositories.to_vec(),
            running: repositories.iter().map(Register::runs).collect(),
        }
    }

    /// Watches for what another one watches for as well. Both must have been compared
    /// just now.
    pub(super) fn join(&mut self, other: Self) {
        let Self {
            watched,
            protected,
            made,
            left,
            repositories,
            running,
        } = other;
        let is_new =
            |list: &[(PathBuf, State)], path: &Path| list.iter().all(|(known, _)| known != path);
        for (one, state) in watched {
            if self.watched.iter().all(|(known, _)| known.path != one.path) {
                self.watched.push((one, state));
            }
        }
        for (path, state) in protected {
            if is_new(&self.protected, &path) {
                self.protected.push((path, state));
            }
        }
        for (path, state) in made {
            if is_new(&self.made, &path) {
                self.made.push((path, state));
            }
        }
        // A root that is watched already is busy already.
        for (register, running) in repositories.into_iter().zip(running) {
            let is_known = |known: &Arc<Register>| Arc::ptr_eq(known, &register);
            if !self.repositories.iter().any(is_known) {
                self.repositories.push(register);
                self.running.push(running);
            }
        }
        for one in left {
            if !self.left.contains(&one) {
                self.left.push(one);
            }
        }
    }

    /// What is otherwise now; what must not be there is moved below `out`. Looked
    /// at again later, it tells what happened since.
    pub(super) fn compare(&mut self, out: Option<&Path>) -> Vec<Touched> {
        let mut touched = Vec::new();
        let roots: Vec<_> = self.repositories.iter().map(|one| one.root()).collect();
        // A link above the roots is no command's.
        let is_ours = |link: &Path| {
            let mut roots = roots.iter();
            roots.any(|root| link.starts_with(root) && link != *root)
        };
        for (Watched { path, why }, before) in &mut self.watched {
            let now = state(path);
            if now == *before {
                continue;
            }
            let path = path.clone();
            touched.push(match (&*before, why) {
                // Whatever the path is for, nobody wants it to lead elsewhere.
                (State::Nothing, why) if *why == Why::Listed || now.is_behind() => {
                    moved_out(path, &now, out, is_ours)
                }
                (State::Nothing, _) => Touched::Appeared { path },
                (State::Link(target), Why::Listed) if put_back(&path, target, &now, out) => {
                    Touched::PutBack { path }
                }
                _ => Touched::Changed { path },
            });
        }
        for (path, before) in &self.protected {
            if state(path) != *before {
                touched.push(Touched::Changed { path: path.clone() });
            }
        }
        for (path, before) in &self.made {
            if state(path) != *before {
                touched.push(Touched::Obeyed { path: path.clone() });
            }
        }
        touched.extend(self.appeared(&touched));
        let left = commands_left(&self.repositories);
        for (path, command) in left.iter().filter(|one| !self.left.contains(one)) {
            touched.push(Touched::Unfinished {
                path: path.clone(),
                command: command.clone(),
            });
        }
        self.left = left;
        // What was told once is how it is from now on.
        for (watched, before) in &mut self.watched {
            *before = state(&watched.path);
        }
        for (path, before) in self.protected.iter_mut().chain(&mut self.made) {
            *before = state(path);
        }
        touched
    }

    /// The repositories that nobody has named yet.
    fn appeared(&self, told: &[Touched]) -> Vec<Touched> {
        let looked = self.repositories.iter().map(|one| one.look(Since::Command));
        let new = looked.flat_map(|looked| looked.new);
        let lost = self.repositories.iter().flat_map(|one| one.lost());
        let lost = lost.map(|path| Touched::Dismantled { path });
        let is_told = |path: &Path| {
            told.iter()
                .any(|one| matches!(one, Touched::Appeared { path: told } if told == path))
        };
        new.filter(|path| !is_told(path))
            .map(|path| Touched::Repository { path })
            .chain(lost)
            .collect()
    }
}

fn commands_left(repositories: &[Arc<Register>]) -> Vec<(PathBuf, String)> {
    repositories
        .iter()
        .flat_map(|one| one.commands_left())
        .collect()
}

/// The folder a path is in, with no link followed on the way, and its name there.
/// A command may have put one in the way that leads to what it must not reach.
fn place(path: &Path) -> Option<(OwnedFd, &OsStr)> {
    let folder = openat2(
        CWD,
        path.parent()?,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    );
    Some((folder.ok()?, path.file_name()?))
}

/// Moves something to a free name below a folder of ours.
fn move_out(path: &Path, out: &Path) -> Option<PathBuf> {
    let (folder, name) = place(path)?;
    private::folder(out).ok()?;
    for number in 1..1_000 {
        let to = out.join(format!("moved-{number}-{}", name.to_string_lossy()));
        match renameat_with(&folder, name, CWD, &to, RenameFlags::NOREPLACE) {
            Ok(()) => return Some(to),
            Err(Errno::EXIST) => {}
            Err(Errno::XDEV) => return copy_out(&folder, name, &to).then_some(to),
            Err(_) => return None,
        }
    }
    None
}

/// Moves out what appeared at a path, or the link that leads there now.
fn moved_out(
    path: PathBuf,
    now: &State,
    out: Option<&Path>,
    is_ours: impl Fn(&Path) -> bool,
) -> Touched {
    let made = match now {
        State::Behind(link) => link,
        State::Nothing | State::Link(_) | State::There(_) => &path,
    };
    let out = out.filter(|_| is_ours(made));
    match out.and_then(|out| move_out(made, out)) {
        Some(to) => Touched::MovedOut { path, to },
        None => Touched::Appeared { path },
    }
}

/// Lets a link lead where it led; what took its place is moved out of the way.
fn put_back(path: &Path, target: &[u8], now: &State, out: Option<&Path>) -> bool {
    let is_free = match now {
        State::Nothing => true,
        State::Link(_) | State::There(_) => out.and_then(|out| move_out(path, out)).is_some(),
        // The folder that held it is gone.
        State::Behind(_) => false,
    };
    is_free && place(path).is_some_and(|(folder, name)| symlinkat(target, folder, name).is_ok())
}

/// To another disk: only what has a content of its own, by the handle that was
/// looked at.
fn copy_out(folder: &OwnedFd, name: &OsStr, to: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let made = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let copy = || -> std::io::Result<()> {
        let from = openat(folder, name, flags, Mode::empty())?;
        if !FileType::from_raw_mode(fstat(&from)?.st_mode).is_file() {
            return Err(std::io::ErrorKind::Unsupported.into());
        }
        let mut to = File::from(openat(CWD, to, made, Mode::RUSR | Mode::WUSR)?);
        private::close(&to)?;
        std::io::copy(&mut File::from(from), &mut to)?;
        Ok(unlinkat(folder, name, AtFlags::empty())?)
    };
    copy().is_ok()
}

fn state(path: &Path) -> State {
    let Some((folder, name)) = place(path) else {
        return link_above(path).map_or(State::Nothing, State::Behind);
    };
    let Ok(stat) = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
        return State::Nothing;
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => {
            let target = readlinkat(&folder, name, Vec::new()).unwrap_or_default();
            State::Link(target.into_bytes())
        }
        FileType::Directory => {
            let mut entries = vec![(PathBuf::new(), facts(&stat))];
            collect(path, Path::new(""), &mut entries);
            entries.sort();
            State::There(entries)
        }
        _ => State::There(vec![(PathBuf::new(), facts(&stat))]),
    }
}

/// The first link on the way to a path. It was real when it was looked for, so that
/// somebody put the link there since.
fn link_above(path: &Path) -> Option<PathBuf> {
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    let is_link = |folder: &&Path| {
        statat(CWD, *folder, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_symlink())
    };
    above.into_iter().find(is_link).map(Path::to_owned)
}

#[expect(
    clippy::disallowed_methods,
    reason = "names and times of what is protected; no content is read"
)]
fn collect(root: &Path, below: &Path, entries: &mut Vec<(PathBuf, [i64; 5])>) {
    let Ok(listed) = std::fs::read_dir(root.join(below)) else {
        return;
    };
    for entry in listed.flatten() {
        if entries.len() >= ENTRIES {
            return;
        }
        let below = below.join(entry.file_name());
        let Ok(stat) = statat(CWD, root.join(&below), AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        entries.push((below.clone(), facts(&stat)));
        if FileType::from_raw_mode(stat.st_mode).is_dir() {
            collect(root, &below, entries);
        }
    }
}

#[expect(
    clippy::cast_possible_wrap,
    reason = "compared for being the same, never for being larger"
)]
fn facts(stat: &rustix::fs::Stat) -> [i64; 5] {
    // A folder's own times change with what happens in it, which is compared
    // entry by entry.
    let is_folder = FileType::from_raw_mode(stat.st_mode).is_dir();
    let time = |value: i64| if is_folder { 0 } else { value };
    [
        stat.st_ino as i64,
        i64::from(stat.st_mode),
        time(stat.st_size),
        time(stat.st_ctime),
        time(stat.st_ctime_nsec as i64),
    ]
}
