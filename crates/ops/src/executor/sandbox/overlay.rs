//! Overlay file systems, which show a folder with additions in front of it.

use super::mounts::made_with;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::MountAttrFlags;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// A writable layer over a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerSource {
    /// The folder that is shown below and never changed.
    pub lower: std::path::PathBuf,
    /// The folder that receives everything written.
    pub upper: std::path::PathBuf,
    /// An empty folder beside `upper`, for the kernel.
    pub work: std::path::PathBuf,
}

/// Mounts a writable layer, not attached yet.
pub(super) fn layer(source: &LayerSource) -> rustix::io::Result<OwnedFd> {
    let [lower, upper, work] = [
        open(&source.lower)?,
        open(&source.upper)?,
        open(&source.work)?,
    ];
    let (lower, upper, work) = (name(&lower), name(&upper), name(&work));
    let options = [
        ("lowerdir", Some(lower.as_str())),
        ("upperdir", Some(upper.as_str())),
        ("workdir", Some(work.as_str())),
        ("userxattr", None),
        // Nothing is synced, not even at the end: it is a cache.
        ("volatile", None),
        ("index", Some("off")),
    ];
    made_with("overlay", &options, tame())
}

/// Mounts a folder with the folders of another one added to it, read-only and not attached
/// yet.
pub(super) fn merged(folder: &Path, more: &Path) -> rustix::io::Result<OwnedFd> {
    let (folder, more) = (open(folder)?, open(more)?);
    let lower = format!("{}:{}", name(&folder), name(&more));
    let options = [("lowerdir", Some(lower.as_str())), ("userxattr", None)];
    let flags = tame() | MountAttrFlags::MOUNT_ATTR_RDONLY;
    made_with("overlay", &options, flags)
}

fn tame() -> MountAttrFlags {
    MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV
}

fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty())
}

/// Returns a short name of an open folder. An option has at most 255 bytes, and in a path
/// some characters would have to be escaped.
fn name(folder: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", folder.as_raw_fd())
}
