//! Files that are looked at before there is a session: opened without waiting for
//! anything, and without leaving a folder where that is asked for.

use crate::backend::local::handle::open_below;
use crate::scope;
use rustix::fd::AsFd;
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A regular file that was opened.
#[derive(Debug)]
pub struct Opened {
    /// Where it really is.
    pub real: PathBuf,
    file: File,
}

/// What tells one state of a file from another, without reading it. Whoever replaces a
/// file or writes to it makes another one, also if the old content comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, u64),
    changed: (i64, u64),
}

/// Opens a file, wherever it is.
///
/// # Errors
/// What the system says, and when it is not a regular file.
pub fn open(path: &Path) -> io::Result<Opened> {
    let fd = openat(CWD, path, FLAGS | OFlags::CLOEXEC, Mode::empty())?;
    let real = scope::real(path).unwrap_or_else(|| path.to_owned());
    regular(File::from(fd), real)
}

/// Opens a file of a folder. Links are followed as long as they stay in the folder.
///
/// # Errors
/// What the system says, when a link leads out of the folder, and when it is not a
/// regular file.
pub fn open_within(root: &Path, path: &Path) -> io::Result<Opened> {
    let (real, below) = within(root, path)?;
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, root, folder, Mode::empty())?;
    // Every link is resolved; one that has appeared since then is not followed.
    let fd = open_below(root.as_fd(), &below, FLAGS)?;
    regular(File::from(fd), real)
}

/// Where a path really is, if that is in a folder.
///
/// # Errors
/// When a link leads out of it.
pub fn real_within(root: &Path, path: &Path) -> io::Result<PathBuf> {
    within(root, path).map(|(real, _)| real)
}

/// Without waiting: a FIFO of that name would hold haft for ever.
const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// The file systems of `/proc` and `/sys`.
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
    // Some files that the kernel makes up wait for the next event when they are read.
    let system = rustix::fs::fstatfs(&file)?;
    if MADE_UP.contains(&system.f_type) {
        return Err(io::Error::other("it is not a file on a disk"));
    }
    Ok(Opened { real, file })
}

impl Opened {
    /// The state it is in.
    ///
    /// # Errors
    /// What the system says.
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

    /// How it begins, as far as one read gets.
    ///
    /// # Errors
    /// What the system says.
    pub fn begin(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.file.read(into)
    }

    /// All of it.
    ///
    /// # Errors
    /// What the system says, and when it is larger than `most`.
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
        // It would wait for the kernel's next message.
        let error = open(Path::new("/proc/self/status")).unwrap_err();
        assert!(
            error.to_string().contains("not a file on a disk"),
            "{error}"
        );
        assert!(read("none").is_err());
    }

    #[test]
    fn nothing_but_a_file_is_opened_and_nobody_waits_for_it() {
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
    fn a_file_that_was_replaced_and_put_back_is_in_another_state() {
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
