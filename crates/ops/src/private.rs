//! Folders and files that only their owner can access, whatever the umask is.

use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, chmodat,
    fchmod, flock, fstat, futimens, mkdirat, openat, statat,
};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// The number of attempts to lock a folder that another process may be removing, and the
/// pause between them.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// A folder that is in use. It stays locked, and is not removed, as long as this value lives.
/// Its modification time says when it was last used.
#[derive(Debug)]
pub(crate) struct FolderLock(OwnedFd);

impl FolderLock {
    /// Holds the folder, and makes it if it is missing. Any number of sessions can hold it.
    ///
    /// # Errors
    /// Errors of the system, and if another process does not release the folder.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        for _ in 0..TRIES {
            folder(path)?;
            if let Some(held) = Self::locked(path, FlockOperation::NonBlockingLockShared)? {
                held.touch();
                return Ok(held);
            }
            std::thread::sleep(PAUSE);
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Holds a folder exclusively, unless another session holds it.
    pub(crate) fn try_exclusive(path: &Path) -> Option<Self> {
        let locked = Self::locked(path, FlockOperation::NonBlockingLockExclusive);
        locked.ok().flatten()
    }

    /// Returns a copy of the handle that holds the lock. The folder stays locked as long as
    /// there is a copy, in whichever process.
    pub(crate) fn handle(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }

    fn locked(path: &Path, operation: FlockOperation) -> io::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = match openat(CWD, path, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            file => file?,
        };
        match flock(&file, operation) {
            Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(None),
            locked => locked?,
        }
        // It may have been removed before it was locked.
        let now = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
        let (here, now) = (fstat(&file)?, now.ok());
        let is_same = now.is_some_and(|now| (now.st_dev, now.st_ino) == (here.st_dev, here.st_ino));
        Ok(is_same.then_some(Self(file)))
    }

    /// Records that the folder is in use now.
    fn touch(&self) {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        };
        let times = Timestamps {
            last_access: now,
            last_modification: now,
        };
        let _ = futimens(&self.0, &times);
    }
}

impl Drop for FolderLock {
    /// Records that the folder was in use until now.
    fn drop(&mut self) {
        self.touch();
    }
}

/// Creates a folder and its missing parents, accessible only to their owner. Removes other
/// users' access to a folder that exists. Refuses a link and a folder of another user,
/// because its content cannot be trusted.
///
/// # Errors
/// Errors of the system.
pub fn folder(path: &Path) -> io::Result<()> {
    create_missing(path)?;
    check(path)
}

/// Creates a folder and its missing parents. Leaves existing ones unchanged.
pub(crate) fn create_missing(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path
        .ancestors()
        .take_while(|folder| {
            statat(CWD, *folder, AtFlags::SYMLINK_NOFOLLOW)
                .is_err_and(|errno| errno == Errno::NOENT)
        })
        .collect();
    for folder in missing.into_iter().rev() {
        match mkdirat(CWD, folder, Mode::RWXU) {
            // The umask may have removed permissions that the owner needs.
            Ok(()) => chmodat(CWD, folder, Mode::RWXU, AtFlags::empty())?,
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Opens a file with the given options, accessible only to its owner. Removes other users'
/// access to a file that exists.
///
/// # Errors
/// Errors of the system.
#[expect(
    clippy::disallowed_methods,
    reason = "haft's own files, outside every scope"
)]
pub fn file(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let open = || options.clone().mode(0o600).open(path);
    let file = match open() {
        // Another process has just created it with a umask that denies its owner access.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && make_accessible(path) => {
            open()?
        }
        file => file?,
    };
    close(&file)?;
    Ok(file)
}

/// Removes other users' access to an open file, if it belongs to the current user.
///
/// # Errors
/// Errors of the system.
pub fn close(file: impl AsFd) -> io::Result<()> {
    let stat = fstat(&file)?;
    let is_ours = stat.st_uid == rustix::process::geteuid().as_raw();
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if is_ours && is_file && stat.st_mode & 0o777 != 0o600 {
        fchmod(&file, Mode::RUSR | Mode::WUSR)?;
    }
    Ok(())
}

/// Makes a file of the current user accessible after opening it failed; returns whether
/// that helped.
fn make_accessible(path: &Path) -> bool {
    let Ok(stat) = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) else {
        return false;
    };
    let is_ours = stat.st_uid == rustix::process::geteuid().as_raw();
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    is_ours
        && is_file
        && stat.st_mode & 0o600 != 0o600
        && chmodat(CWD, path, Mode::RUSR | Mode::WUSR, AtFlags::empty()).is_ok()
}

/// Checks one of haft's own folders, if it exists: a user who can change its content could
/// change what haft trusts. Removes other users' access as far as possible.
///
/// # Errors
/// If it is a link, not a folder, or belongs to another user.
pub fn check_own_folder(path: &Path) -> io::Result<()> {
    let stat = match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(()),
        stat => stat?,
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => {}
        FileType::Symlink => return Err(io::Error::other("it is a link")),
        _ => return Err(io::Error::other("it is not a folder")),
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it belongs to another user"));
    }
    if stat.st_mode & 0o077 != 0 {
        // On a read-only disk nothing can be changed anyway.
        let _ = chmodat(CWD, path, Mode::RWXU, AtFlags::empty());
    }
    Ok(())
}

/// Checks that a folder exists and belongs to the current user, and removes other users'
/// access.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Err(io::Error::other("it is not a folder"));
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it belongs to another user"));
    }
    if stat.st_mode & 0o777 != 0o700 {
        chmodat(CWD, path, Mode::RWXU, AtFlags::empty())?;
    }
    Ok(())
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests look at the disk themselves"
)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    #[test]
    fn a_new_or_existing_folder_is_closed_to_others() {
        let temp = tempfile::TempDir::new().unwrap();
        let inner = temp.path().join("a/b");
        folder(&inner).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&inner), mode(&temp.path().join("a"))), (0o700, 0o700));
        std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(0o777)).unwrap();
        folder(&inner).unwrap();
        assert_eq!(mode(&inner), 0o700);
    }

    #[test]
    fn an_existing_folder_belongs_to_the_user_or_is_refused() {
        let temp = tempfile::TempDir::new().unwrap();
        let inner = temp.path().join("a");
        check_own_folder(&inner).unwrap();
        std::fs::create_dir(&inner).unwrap();
        std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(0o777)).unwrap();
        check_own_folder(&inner).unwrap();
        assert_eq!(std::fs::metadata(&inner).unwrap().mode() & 0o777, 0o700);
        symlink(&inner, temp.path().join("link")).unwrap();
        let refused = check_own_folder(&temp.path().join("link"))
            .unwrap_err()
            .to_string();
        assert_eq!(refused, "it is a link");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&inner, Some(65_534), None).unwrap();
            let refused = check_own_folder(&inner).unwrap_err().to_string();
            assert_eq!(refused, "it belongs to another user");
        }
    }

    #[test]
    fn links_and_files_are_refused() {
        let temp = tempfile::TempDir::new().unwrap();
        symlink("/tmp", temp.path().join("link")).unwrap();
        std::fs::write(temp.path().join("file"), "x").unwrap();
        assert!(folder(&temp.path().join("link")).is_err());
        assert!(folder(&temp.path().join("file")).is_err());
    }

    #[test]
    fn a_file_is_accessible_to_its_owner_only_whatever_its_old_mode() {
        let temp = tempfile::TempDir::new().unwrap();
        let path = temp.path().join("file");
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        drop(file(&options, &path).unwrap());
        assert_eq!(mode(), 0o600);
        for other in [0o666, 0o644, 0o000, 0o400] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(other)).unwrap();
            drop(file(&options, &path).unwrap());
            assert_eq!(mode(), 0o600, "{other:o}");
        }
        // The mode of anything but a regular file does not change.
        let null = Path::new("/dev/null");
        let before = std::fs::metadata(null).unwrap().permissions().mode();
        drop(file(&options, null).unwrap());
        assert_eq!(
            std::fs::metadata(null).unwrap().permissions().mode(),
            before
        );
    }
}
