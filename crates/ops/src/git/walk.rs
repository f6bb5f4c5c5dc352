//! One folder of a tree, looked at for repositories.

use super::is;
use super::shape::{Shape, is_whole};
use rustix::fs::{AtFlags, CWD, FileType, statat};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The kernel's own trees, where the whole disk is a root.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// The clock that changes are stamped with may be this late.
const COARSE: Duration = Duration::from_millis(50);

/// Tells one state of a folder from another: which one it is, and when something in
/// it last came, went or was renamed. Nothing where it changed a moment ago: the next
/// change would look the same.
pub(super) type Stamp = Option<(u64, i64, i64)>;

/// What a folder has.
pub(super) struct Visit {
    pub(super) stamp: Stamp,
    /// Whether what is in it stays hidden until its owner, who may also be the owner of
    /// the commands, opens it.
    pub(super) is_closed: bool,
    pub(super) is_repository: bool,
    pub(super) has_dot_git: bool,
    pub(super) folders: Vec<PathBuf>,
}

#[expect(
    clippy::cast_possible_wrap,
    reason = "the kernel's types differ between architectures"
)]
pub(super) fn stamp(folder: &Path) -> Option<Stamp> {
    let stat = statat(CWD, folder, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if !FileType::from_raw_mode(stat.st_mode).is_dir() {
        return None;
    }
    let (seconds, nanos) = (stat.st_ctime as i64, stat.st_ctime_nsec as i64);
    let changed = Duration::new(
        u64::try_from(seconds).unwrap_or(0),
        u32::try_from(nanos).unwrap_or(0),
    );
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    if now < changed + COARSE {
        return Some(None);
    }
    Some(Some((stat.st_ino as u64, seconds, nanos)))
}

/// Lists a folder; none where there is none. One that cannot be listed is asked for the
/// names that matter.
#[expect(
    clippy::disallowed_methods,
    reason = "finds what to protect; a scope would refuse to look into some of it"
)]
pub(super) fn visit(folder: &Path) -> Option<Visit> {
    let stamp = stamp(folder)?;
    let mut shape = Shape::default();
    let mut visit = Visit {
        stamp,
        is_closed: false,
        is_repository: false,
        has_dot_git: false,
        folders: Vec::new(),
    };
    let Ok(entries) = std::fs::read_dir(folder) else {
        visit.is_closed = is_ours(folder);
        // Asked again each time.
        visit.stamp = None;
        visit.is_repository = Shape::of(folder).is_repository();
        visit.has_dot_git = super::kind(&folder.join(".git")).is_some();
        return Some(visit);
    };
    for (at, entry) in entries.flatten().enumerate() {
        let (name, kind) = (entry.file_name(), entry.file_type().ok());
        // Without the right to search it, its names can be listed, and no more.
        if at == 0 && super::is_out_of_reach(&entry.path()) {
            visit.is_closed = is_ours(folder);
            visit.stamp = None;
        }
        shape.see(&name, kind.into());
        visit.has_dot_git |= name == ".git";
        if kind.is_some_and(|kind| kind.is_dir()) {
            let path = folder.join(&name);
            if !KERNEL.iter().any(|kernel| path == Path::new(kernel)) {
                visit.folders.push(path);
            }
        }
    }
    shape.look_closer(folder);
    visit.is_repository = shape.is_repository();
    if folder.ends_with("objects") && folder.parent().is_some_and(is_whole) {
        let is_kept = |path: &PathBuf| path.file_name().is_some_and(holds_objects);
        visit.folders.retain(|path| !is_kept(path));
    }
    Some(visit)
}

/// Whether git keeps objects in a folder of that name below `objects`. Those are not
/// looked into: a large project has many, and nobody else puts anything there.
fn holds_objects(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    is(name, "pack")
        || is(name, "info")
        || bytes.len() == 2 && bytes.iter().all(u8::is_ascii_hexdigit)
}

/// Whether we could change who may list a folder.
fn is_ours(folder: &Path) -> bool {
    let owner = statat(CWD, folder, AtFlags::SYMLINK_NOFOLLOW).map(|stat| stat.st_uid);
    owner.is_ok_and(|owner| owner == rustix::process::geteuid().as_raw())
}
