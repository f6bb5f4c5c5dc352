//! Measuring and removing layers. Commands decide what is in them, so permissions are no
//! obstacle, and links are not followed.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fchmod, fstat, openat, statat, unlinkat};
use rustix::io::Errno;
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// Size of a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes on the disk.
    pub bytes: u64,
    /// Whether there was no time to count the rest.
    pub is_partial: bool,
}

/// Deepest folder that is entered, because each level needs a descriptor.
const DEEPEST: usize = 200;

/// Returns the size of a folder and everything below.
pub(super) fn size(path: &Path, limit: Duration) -> Size {
    let mut size = Size::default();
    let until = Instant::now() + limit;
    if let Ok(folder) = open(rustix::fs::CWD, path) {
        measure(&folder, until, 0, &mut size);
    }
    size
}

fn measure(folder: &OwnedFd, until: Instant, depth: usize, size: &mut Size) {
    for (name, kind) in entries(folder) {
        if Instant::now() > until || depth > DEEPEST {
            size.is_partial = true;
            return;
        }
        if let Ok(found) = statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
            let blocks = u64::try_from(found.st_blocks).unwrap_or(0);
            size.bytes = size.bytes.saturating_add(blocks.saturating_mul(512));
        }
        if kind == FileType::Directory
            && let Ok(inner) = open(folder, &name)
        {
            measure(&inner, until, depth + 1, size);
        }
    }
}

/// Removes a folder and everything below, as far as possible.
pub(in crate::exec) fn remove(path: &Path) {
    if let Ok(folder) = open(rustix::fs::CWD, path) {
        clear(&folder, 0);
    }
    let _ = unlinkat(rustix::fs::CWD, path, AtFlags::REMOVEDIR);
}

fn clear(folder: &OwnedFd, depth: usize) {
    // Programs such as go make folders in their cache read-only.
    if let Ok(found) = fstat(folder)
        && found.st_mode & 0o700 != 0o700
    {
        let _ = fchmod(folder, Mode::RWXU);
    }
    for (name, kind) in entries(folder) {
        let removed = match kind {
            FileType::Directory => Err(Errno::ISDIR),
            _ => unlinkat(folder, &name, AtFlags::empty()),
        };
        if removed.is_err() && depth <= DEEPEST {
            if let Ok(inner) = open(folder, &name) {
                clear(&inner, depth + 1);
            }
            let _ = unlinkat(folder, &name, AtFlags::REMOVEDIR);
        }
    }
}

/// Opens a folder. If its permissions forbid that, changes them: the folder is in a layer.
fn open(at: impl AsFd, name: impl rustix::path::Arg + Copy) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(&at, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            rustix::fs::chmodat(&at, name, Mode::RWXU, AtFlags::empty())?;
            openat(&at, name, flags, Mode::empty())
        }
        opened => opened,
    }
}

fn entries(folder: &OwnedFd) -> Vec<(CString, FileType)> {
    let Ok(listed) = Dir::read_from(folder) else {
        return Vec::new();
    };
    listed
        .flatten()
        .filter(|entry| !matches!(entry.file_name().to_bytes(), b"." | b".."))
        .map(|entry| {
            let name = entry.file_name().to_owned();
            let kind = match entry.file_type() {
                FileType::Unknown => statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |found| {
                        FileType::from_raw_mode(found.st_mode)
                    }),
                kind => kind,
            };
            (name, kind)
        })
        .collect()
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests look at the disk themselves"
)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn shut_and_read_only_folders_are_measured_and_removed_and_links_are_not_followed() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("kept"), vec![1; 50_000]).unwrap();
        let layer = temp.path().join("layer");
        std::fs::create_dir_all(layer.join("a/b")).unwrap();
        std::fs::write(layer.join("a/b/file"), vec![1; 100_000]).unwrap();
        symlink(temp.path(), layer.join("a/link")).unwrap();
        for (folder, mode) in [("a/b", 0), ("a", 0o555)] {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(layer.join(folder), permissions).unwrap();
        }
        let found = size(&layer, Duration::from_secs(20));
        assert!((100_000..140_000).contains(&found.bytes), "{found:?}");
        assert!(!found.is_partial);
        remove(&layer);
        assert!(!layer.exists() && temp.path().join("kept").exists());
    }
}
