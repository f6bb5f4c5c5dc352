//! Builds the file system that the command sees.
//!
//! Every source is cloned first, while the original file system is still visible. Then
//! everything becomes read-only at once, and the clones are mounted on top. Cache folders get
//! the session's layers. What cannot be mounted there stays read-only, which is safe.

use super::known_paths::Kind;
use super::layout::{self, Entry, MountKind};
use super::syscalls::{Attributes, set_mount_attributes};
use super::{Error, Plan, Result, overlay};
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, symlinkat, unlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

/// Devices that programs expect, none of which reaches hardware.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Size in bytes of a command's shared memory, which uses the machine's memory.
const SHARED_MEMORY: &str = "268435456";

pub(super) const FOLDER: Mode = Mode::from_raw_mode(0o755);
const FILE: Mode = Mode::from_raw_mode(0o444);

/// Rebuilds the file system of the calling process, which must be alone in its mount
/// namespace and PID 1 of its PID namespace. Returns the cache folders that got a layer.
pub(super) fn build<'a>(plan: &'a Plan, layers: &[OwnedFd]) -> Result<Vec<&'a Path>> {
    let entries = layout::entries(plan)?;
    let whole = Path::new("/");
    set(CWD, whole, Attributes::Private)?;

    let mut trees = Vec::new();
    for entry in &entries {
        trees.push(source(plan, entry, layers)?);
    }
    let mut devices = Vec::new();
    for name in DEVICES {
        match clone_of(&Path::new("/dev").join(name)) {
            Ok(tree) => devices.push((name, tree)),
            // Some containers have no terminal. Without the other devices little works, and
            // the program that needs one reports that.
            Err(Errno::NOENT) => {}
            Err(error) => return Err(step("device", Path::new(name))(error)),
        }
    }
    scaffolds(plan, &entries, &mut trees)?;
    // If the whole disk is a root, paths that must not be written have their own mounts.
    let all_writable = entries
        .iter()
        .any(|entry| entry.path == whole && entry.used == MountKind::Writable);
    set(
        CWD,
        whole,
        if all_writable {
            Attributes::Tame
        } else {
            Attributes::ReadOnly
        },
    )?;

    // The covers must be in the tree to be cloned from. `/dev` exists everywhere, and
    // another mount hides them there later.
    let covers = scratch(&entries)?;
    attach(&covers, Path::new("/dev"))?;
    let mut layered = Vec::new();
    for (number, (entry, tree)) in entries.iter().zip(trees).enumerate() {
        if entry.path == whole {
            continue;
        }
        let tree = match tree {
            Source::Tree(tree) => tree,
            Source::Missing => continue,
            Source::Cover => clone_of(&Path::new("/dev").join(cover_name(number, entry)))
                .map_err(step("cover", &entry.path))?,
        };
        match (attach(&tree, &entry.path), entry.used) {
            (Ok(()), MountKind::Layer) => {
                layered.extend(plan.layers.iter().find(|path| **path == entry.path));
            }
            // The folder has gone, or there is no scaffold for it.
            (Err(_), MountKind::Layer | MountKind::Scaffold) => {}
            (attached, _) => attached?,
        }
    }
    small_dev(devices)?;
    let processes = made("proc", &[], read_only())?;
    attach(&processes, Path::new("/proc"))?;
    Ok(layered.into_iter().map(PathBuf::as_path).collect())
}

fn read_only() -> MountAttrFlags {
    MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC
}

/// What is mounted at an entry's path.
enum Source {
    Tree(OwnedFd),
    /// Nothing visible, cloned from the covers.
    Cover,
    /// It could not be made and is not needed for safety.
    Missing,
}

/// Returns what to mount at an entry's path.
fn source(plan: &Plan, entry: &Entry, layers: &[OwnedFd]) -> Result<Source> {
    let (path, attributes) = match entry.used {
        MountKind::Cover | MountKind::Hidden => return Ok(Source::Cover),
        MountKind::Layer => return Ok(layer(plan, entry, layers)),
        // Made when all of the machine's mounts are cloned.
        MountKind::Scaffold => return Ok(Source::Missing),
        MountKind::Temp => (&plan.temp, Attributes::Tame),
        MountKind::Pin | MountKind::Writable | MountKind::Own => (&entry.path, Attributes::Tame),
        MountKind::Readable | MountKind::Protected | MountKind::Inert => {
            (&entry.path, Attributes::ReadOnly)
        }
    };
    let attributes = match attributes {
        Attributes::Tame if entry.is_inert => Attributes::Inert,
        Attributes::ReadOnly if entry.is_inert => Attributes::InertReadOnly,
        other => other,
    };
    if entry.path == Path::new("/") {
        return Ok(Source::Cover);
    }
    let tree = clone_of(path).map_err(step("clone", path))?;
    plan.is_same(path, &tree)?;
    if entry.used == MountKind::Temp {
        make_points(&tree, Path::new("."), &entry.points).map_err(step("mount point", path))?;
    }
    set(tree.as_fd(), Path::new(""), attributes)?;
    Ok(Source::Tree(tree))
}

/// Returns the command's copy of a layer.
fn layer(plan: &Plan, entry: &Entry, layers: &[OwnedFd]) -> Source {
    let at = plan.layers.iter().position(|path| *path == entry.path);
    let tree = at.and_then(|at| layers.get(at)?.try_clone().ok());
    let ready = tree.filter(|tree| {
        // An earlier command may have removed what other mounts need.
        make_points(tree, Path::new("."), &entry.points).is_ok()
    });
    ready.map_or(Source::Missing, Source::Tree)
}

/// Makes the scaffolds, for this command alone: the kernel does not notice changes below an
/// overlay that is already mounted. The missing folders are made in a file system of their
/// own, which takes the place of `/dev` until that gets its final one.
fn scaffolds(plan: &Plan, entries: &[Entry], trees: &mut [Source]) -> Result<()> {
    let dev = Path::new("/dev");
    if plan.scaffolds.is_empty() {
        return Ok(());
    }
    let points = made(
        "tmpfs",
        &[("mode", "0755"), ("size", "1048576")],
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV,
    )?;
    let fill = || {
        for (number, scaffold) in plan.scaffolds.iter().enumerate() {
            let name = number.to_string();
            mkdirat(&points, &name, FOLDER)?;
            let missing = scaffold.points.iter();
            let missing: Vec<_> = missing.map(|path| (path.clone(), Kind::Folder)).collect();
            make_points(&points, Path::new(&name), &missing)?;
        }
        Ok(())
    };
    fill().map_err(step("scaffold", dev))?;
    attach(&points, dev)?;
    for (entry, tree) in entries.iter().zip(trees) {
        let mut all = plan.scaffolds.iter();
        if entry.used == MountKind::Scaffold
            && let Some(at) = all.position(|scaffold| scaffold.folder == entry.path)
            && let Ok(merged) = overlay::merged(&entry.path, &dev.join(at.to_string()))
        {
            *tree = Source::Tree(merged);
        }
    }
    Ok(())
}

/// Clones the mounts at a path. The clone is not attached yet.
pub(super) fn clone_of(path: &Path) -> rustix::io::Result<OwnedFd> {
    let place = place(path)?;
    open_tree(
        &place,
        "",
        OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH
            | OpenTreeFlags::AT_RECURSIVE,
    )
}

/// Opens a real path. A link on the way means that something changed since the plan was
/// made.
fn place(path: &Path) -> rustix::io::Result<OwnedFd> {
    openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    )
}

pub(super) fn attach(tree: &OwnedFd, path: &Path) -> Result<()> {
    let target = place(path).map_err(step("mount point", path))?;
    move_mount(
        tree,
        "",
        &target,
        "",
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH,
    )
    .map_err(step("mount", path))
}

pub(super) fn set(folder: impl AsFd, path: &Path, attributes: Attributes) -> Result<()> {
    let text = if path == Path::new("/") { c"/" } else { c"" };
    set_mount_attributes(folder.as_fd(), text, attributes).map_err(step("mount attributes", path))
}

/// Creates a file system that is not attached yet.
pub(super) fn made(
    name: &'static str,
    options: &[(&str, &str)],
    flags: MountAttrFlags,
) -> Result<OwnedFd> {
    let options: Vec<_> = options
        .iter()
        .map(|(key, value)| (*key, Some(*value)))
        .collect();
    made_with(name, &options, flags).map_err(step("new file system", Path::new(name)))
}

/// Like [`made`]; options without a value are flags.
pub(super) fn made_with(
    name: &str,
    options: &[(&str, Option<&str>)],
    flags: MountAttrFlags,
) -> rustix::io::Result<OwnedFd> {
    let system = fsopen(name, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        match value {
            Some(value) => fsconfig_set_string(&system, *key, *value)?,
            None => fsconfig_set_flag(&system, *key)?,
        }
    }
    fsconfig_create(&system)?;
    fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, flags)
}

/// Creates one small file system that contains the covers of all entries.
fn scratch(entries: &[Entry]) -> Result<OwnedFd> {
    let tree = made(
        "tmpfs",
        &[("mode", "0755"), ("size", "1048576")],
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV,
    )?;
    let fill = || -> rustix::io::Result<()> {
        mkdirat(&tree, "folder", FOLDER)?;
        empty_file(&tree, Path::new("file"))?;
        for (number, entry) in entries.iter().enumerate() {
            if is_own_cover(entry) {
                let name = cover_name(number, entry);
                mkdirat(&tree, &name, FOLDER)?;
                make_points(&tree, &name, &entry.points)?;
            }
        }
        Ok(())
    };
    fill().map_err(step("cover", Path::new("/dev")))?;
    set(tree.as_fd(), Path::new(""), Attributes::ReadOnly)?;
    Ok(tree)
}

fn is_own_cover(entry: &Entry) -> bool {
    matches!(entry.used, MountKind::Cover | MountKind::Hidden) && !entry.points.is_empty()
}

fn cover_name(number: usize, entry: &Entry) -> PathBuf {
    if is_own_cover(entry) {
        PathBuf::from(format!("cover{number}"))
    } else if entry.kind == Kind::Folder {
        PathBuf::from("folder")
    } else {
        PathBuf::from("file")
    }
}

/// Creates empty folders and files as mount points, step by step below the handle, without
/// following links.
fn make_points(tree: &OwnedFd, below: &Path, points: &[(PathBuf, Kind)]) -> rustix::io::Result<()> {
    for (path, kind) in points {
        let mut folder = step_into(tree, below)?;
        let mut parts = path
            .components()
            .filter(|part| matches!(part, Component::Normal(_)))
            .peekable();
        while let Some(part) = parts.next() {
            let name: &Path = part.as_ref();
            if parts.peek().is_none() && *kind != Kind::Folder {
                empty_file(&folder, name)?;
                break;
            }
            folder = match mkdirat(&folder, name, FOLDER) {
                Ok(()) => step_into(&folder, name)?,
                Err(Errno::EXIST) => match step_into(&folder, name) {
                    Ok(inner) => inner,
                    // An earlier command created something there.
                    Err(_) => {
                        unlinkat(&folder, name, AtFlags::empty())?;
                        mkdirat(&folder, name, FOLDER)?;
                        step_into(&folder, name)?
                    }
                },
                Err(error) => return Err(error),
            };
        }
    }
    Ok(())
}

fn step_into(folder: &OwnedFd, name: &Path) -> rustix::io::Result<OwnedFd> {
    openat(
        folder,
        name,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

fn empty_file(folder: &OwnedFd, name: &Path) -> rustix::io::Result<()> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    match openat(folder, name, flags, FILE) {
        Ok(_) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error),
    }
}

fn small_dev(devices: Vec<(&str, OwnedFd)>) -> Result<()> {
    let dev = Path::new("/dev");
    let tree = made(
        "tmpfs",
        &[("mode", "0755"), ("size", SHARED_MEMORY)],
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV,
    )?;
    let fill = || -> rustix::io::Result<()> {
        for (name, _) in &devices {
            empty_file(&tree, Path::new(name))?;
        }
        for (name, target) in DEVICE_LINKS {
            symlinkat(target, &tree, name)?;
        }
        mkdirat(&tree, "pts", FOLDER)?;
        mkdirat(&tree, "shm", FOLDER)?;
        // The process's umask must not reduce the permissions.
        rustix::fs::chmodat(
            &tree,
            "shm",
            Mode::from_raw_mode(0o1777),
            rustix::fs::AtFlags::empty(),
        )
    };
    fill().map_err(step("devices", dev))?;
    attach(&tree, dev)?;
    for (name, device) in devices {
        attach(&device, &dev.join(name))?;
    }
    let terminals = made(
        "devpts",
        &[("ptmxmode", "0666"), ("mode", "0620")],
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC,
    )?;
    attach(&terminals, &dev.join("pts"))
}

fn step(step: &'static str, path: &Path) -> impl FnOnce(Errno) -> Error {
    let path = path.to_owned();
    move |error| Error::Step {
        step,
        path: Some(path),
        source: error.into(),
    }
}
