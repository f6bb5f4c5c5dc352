//! Opening files before a session exists, without blocking and, if requested, without
//! leaving a folder.

use crate::backend::local::handle::open_below;
use crate::scope;
use rustix::fd::AsFd;
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// An open regular file.
#[derive(Debug)]
pub struct Opened {
    /// Its path with all links resolved.
    pub real: PathBuf,
    file: File,
}

/// Identifies a version of a file without reading it. Every write or replacement changes
/// it, even one that restores the old content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, u64),
    changed: (i64, u64),
}

/// Opens a file anywhere.
///
/// # Errors
/// Errors of the system, and if it is not a regular file.
pub fn open(path: &Path) -> io::Result<Opened> {
    let fd = openat(CWD, path, FLAGS | OFlags::CLOEXEC, Mode::empty())?;
    let real = scope::real(path).unwrap_or_else(|| path.to_owned());
    regular(File::from(fd), real)
}

/// Opens a file in a folder. Follows links that stay in the folder.
///
/// # Errors
/// Errors of the system, if a link leaves the folder, and if it is not a regular file.
pub fn open_within(root: &Path, path: &Path) -> io::Result<Opened> {
    let (real, below) = within(root, path)?;
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, root, folder, Mode::empty())?;
    // All links are resolved now. One that appeared since then is not followed.
    let fd = open_below(root.as_fd(), &below, FLAGS)?;
    regular(File::from(fd), real)
}

/// Resolves all links of a path that must be in a folder.
///
/// # Errors
/// If a link leaves the folder.
pub fn real_within(root: &Path, path: &Path) -> io::Result<PathBuf> {
    within(root, path).map(|(real, _)| real)
}

/// Non-blocking, because opening a FIFO would wait forever.
const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// File system types of `/proc` and `/sys`.
const MADE_UP: [rustix::fs::FsWord; 2] = [0x9fa0, 0x6265_6572];

fn within(root: &Path, path: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let real = scope::real(path).ok_or(io::ErrorKind::NotFound)?;
    let folder = scope::real(root).ok_or(io::ErrorKind::NotFound)?;
    match real.strip_prefix(&folder) {
        Ok(below) => {
            let below = below.to_owned();
            Ok((real, below))
        }
        Err(_) => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("it is a link that leads out of {}", root.display()),
        )),
    }
}

fn regular(file: File, real: PathBuf) -> io::Result<Opened> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    // Reading some files of the kernel waits for the next event.
    let system = rustix::fs::fstatfs(&file)?;
    if MADE_UP.contains(&system.f_type) {
        return Err(io::Error::other("it is not a file on a disk"));
    }
    Ok(Opened { real, file })
}

impl Opened {
    /// Returns the current version of the file.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn state(&self) -> io::Result<State> {
        let stat = fstat(&self.file)?;
        Ok(State {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size.cast_unsigned(),
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        })
    }

    /// Reads the start of the file, with a single read.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn begin(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.file.read(into)
    }

    /// Reads the complete file.
    ///
    /// # Errors
    /// Errors of the system, and if the file is larger than `most`.
    pub fn read(&mut self, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        (&mut self.file)
            .take(most.saturating_add(1))
            .read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(io::Error::other(format!(
                "it is larger than {}",
                crate::text::size::size(most)
            )));
        }
        Ok(bytes)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_as_long_as_they_stay_in_the_folder() {
        let bed = tempfile::tempdir().unwrap();
        let root = bed.path().join("root");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(root.join("sub/a"), "inside").unwrap();
        std::fs::write(bed.path().join("secret"), "outside").unwrap();
        symlink("sub/a", root.join("relative")).unwrap();
        symlink(root.join("sub/a"), root.join("absolute")).unwrap();
        symlink("../secret", root.join("out")).unwrap();
        symlink(bed.path(), root.join("folder")).unwrap();
        let read = |name: &str| {
            open_within(&root, &root.join(name)).and_then(|mut opened| opened.read(100))
        };
        for name in ["sub/a", "relative", "absolute", "sub/../relative"] {
            assert_eq!(read(name).unwrap(), b"inside", "{name}");
        }
        for name in ["out", "folder/secret", "../secret", "folder/root/../secret"] {
            let error = read(name).unwrap_err().to_string();
            assert!(error.contains("leads out"), "{name}: {error}");
        }
        assert!(read("sub").is_err());
        // Reading it would wait for the kernel's next message.
        let error = open(Path::new("/proc/self/status")).unwrap_err();
        assert!(
            error.to_string().contains("not a file on a disk"),
            "{error}"
        );
        assert!(read("none").is_err());
    }

    #[test]
    fn only_regular_files_are_opened_and_without_blocking() {
        let bed = tempfile::tempdir().unwrap();
        let fifo = bed.path().join("fifo");
        rustix::fs::mknodat(
            CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        assert!(open(&fifo).is_err());
        assert!(open_within(bed.path(), &fifo).is_err());
        assert!(open(Path::new("/dev/zero")).is_err());
        std::fs::write(bed.path().join("large"), "12345").unwrap();
        let mut large = open(&bed.path().join("large")).unwrap();
        assert!(large.read(4).is_err());
    }

    #[test]
    fn replacing_a_file_and_restoring_it_changes_its_state() {
        let bed = tempfile::tempdir().unwrap();
        let file = bed.path().join("a");
        std::fs::write(&file, "one").unwrap();
        let state = || open(&file).unwrap().state().unwrap();
        let before = state();
        assert_eq!(before, state());
        let other = bed.path().join("b");
        std::fs::write(&other, "one").unwrap();
        std::fs::rename(&other, &file).unwrap();
        assert_ne!(before, state());
    }
}
