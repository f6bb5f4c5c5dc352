//! Ignore files above the start of a walk.
//!
//! In a repository, those up to its root apply; elsewhere those up to the root of the
//! scope, so that a stray file in the home folder has no effect. If they would exclude the
//! start folder itself or everything in it, none of them apply, because the caller asked
//! for it by name.

use super::rules::{IgnoreContents, MAX_BYTES, Rules};
use crate::backend::Kind;
use crate::{Backend, FilePath};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, statat};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Rules that apply at the start of a walk, and its path from their base.
#[derive(Debug, Default)]
pub(super) struct ParentRules {
    pub(super) rules: Rules,
    pub(super) prefix: Vec<u8>,
}

impl ParentRules {
    /// Combines the ignore files of the parent folders, outermost first. Each comes with
    /// the name of the next folder towards the start.
    fn new(way: Vec<(IgnoreContents, Vec<u8>)>) -> Self {
        let mut above = Self::default();
        for (found, name) in way {
            above.rules = above.rules.inside(&above.prefix, &found);
            if !above.prefix.is_empty() {
                above.prefix.push(b'/');
            }
            above.prefix.extend_from_slice(&name);
            if above.rules.ignore(&above.prefix, true) {
                return Self::default();
            }
        }
        // `dist/**` excludes everything in the folder, though not the folder itself.
        let mut anything = above.prefix.clone();
        anything.extend_from_slice(b"/\x01");
        if above.rules.ignore(&anything, false) && above.rules.ignore(&anything, true) {
            return Self::default();
        }
        above
    }
}

/// Reads them from disk by the real path, because a repository may start above the root of
/// the scope.
pub(super) fn on_disk(start: &FilePath) -> ParentRules {
    let is_repository = |folder: &Path| {
        [".git", ".jj"]
            .iter()
            .any(|name| statat(CWD, folder.join(name), AtFlags::SYMLINK_NOFOLLOW).is_ok())
    };
    let real = start.real();
    let root = start.root().path();
    let base = match real.ancestors().find(|folder| is_repository(folder)) {
        Some(repository) => repository,
        // The scope is the whole disk, so no folder above was meant as a project.
        None if root == Path::new("/") => return ParentRules::default(),
        None => root,
    };
    let Ok(way) = real.strip_prefix(base) else {
        return ParentRules::default();
    };
    let mut folder = base.to_owned();
    let mut found = Vec::new();
    for name in way {
        let flags = OFlags::RDONLY
            | OFlags::DIRECTORY
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::CLOEXEC;
        let files = openat(CWD, &folder, flags, Mode::empty())
            .map(|dir| read_from(&dir, &is_repository(&folder)));
        found.push((files.unwrap_or_default(), name.as_bytes().to_vec()));
        folder.push(name);
    }
    ParentRules::new(found)
}

/// Reads the ignore files of an open folder.
fn read_from(dir: &OwnedFd, repository: &bool) -> IgnoreContents {
    IgnoreContents {
        dot_ignore: read_rules(dir, b".ignore"),
        git_ignore: read_rules(dir, b".gitignore"),
        exclude: read_exclude(dir),
        repository: *repository,
    }
}

/// Reads an ignore file. Ignores everything but regular files: git does not follow links
/// there either, and a FIFO would block.
pub(super) fn read_rules(dir: &impl AsFd, name: &[u8]) -> Option<Vec<u8>> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let looked = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if !FileType::from_raw_mode(looked.st_mode).is_file() {
        return None;
    }
    let file = openat(dir, name, flags, Mode::empty()).ok()?;
    if !FileType::from_raw_mode(fstat(&file).ok()?.st_mode).is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::from(file)
        .take(MAX_BYTES)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes)
}

/// Reads the local excludes of a repository clone.
pub(super) fn read_exclude(dir: &impl AsFd) -> Option<Vec<u8>> {
    let flags =
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let git = openat(dir, ".git", flags, Mode::empty()).ok()?;
    let info = openat(&git, "info", flags, Mode::empty()).ok()?;
    read_rules(&info, b"exclude")
}

/// Reads them from any backend, up to its root.
pub(super) async fn on_backend(backend: &dyn Backend, start: &FilePath) -> ParentRules {
    let mut folders: Vec<&Path> = start.below().ancestors().collect();
    let mut base = folders.len().saturating_sub(1);
    for (index, folder) in folders.iter().enumerate() {
        if is_repository(backend, start, folder).await {
            base = index;
            break;
        }
    }
    // From the start up to the base. The files in the start folder itself come with its
    // listing.
    folders.truncate(base + 1);
    let mut way = Vec::new();
    for pair in folders.windows(2).rev() {
        let [inner, outer] = pair else { continue };
        let name = inner.file_name().unwrap_or_default().as_bytes().to_vec();
        let found = IgnoreContents {
            dot_ignore: content(backend, start, &outer.join(".ignore")).await,
            git_ignore: content(backend, start, &outer.join(".gitignore")).await,
            exclude: content(backend, start, &outer.join(".git/info/exclude")).await,
            repository: is_repository(backend, start, outer).await,
        };
        way.push((found, name));
    }
    ParentRules::new(way)
}

async fn is_repository(backend: &dyn Backend, start: &FilePath, folder: &Path) -> bool {
    for name in [".git", ".jj"] {
        if let Some(path) = start.in_same_root(&folder.join(name))
            && backend.stat(&path).await.is_ok()
        {
            return true;
        }
    }
    false
}

/// Reads an ignore file by its path below the root.
pub(super) async fn content(
    backend: &dyn Backend,
    start: &FilePath,
    below: &Path,
) -> Option<Vec<u8>> {
    let path = start.in_same_root(below)?;
    read(backend, path).await
}

/// Reads an ignore file.
pub(super) async fn read(backend: &dyn Backend, path: FilePath) -> Option<Vec<u8>> {
    let content = backend.read(&path).await.ok()?;
    if content.stat.kind != Kind::File {
        return None;
    }
    super::stop::blocking(move || {
        let mut bytes = Vec::new();
        // If reading fails, the part read so far still applies.
        let _ = content.reader.take(MAX_BYTES).read_to_end(&mut bytes);
        Ok(bytes)
    })
    .await
    .ok()
}

/// Reads the ignore files of a folder that was listed.
pub(super) async fn in_folder(
    backend: &dyn Backend,
    folder: &FilePath,
    names: Names,
) -> IgnoreContents {
    let file = |name: &str| folder.descendant(&PathBuf::from(name));
    let mut found = IgnoreContents {
        repository: names.repository,
        ..IgnoreContents::default()
    };
    if names.dot_ignore
        && let Some(path) = file(".ignore")
    {
        found.dot_ignore = read(backend, path).await;
    }
    if names.git_ignore
        && let Some(path) = file(".gitignore")
    {
        found.git_ignore = read(backend, path).await;
    }
    if names.git_folder
        && let Some(path) = file(".git/info/exclude")
    {
        found.exclude = read(backend, path).await;
    }
    found
}

/// Relevant names that occur in a listing.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each of the four names is present or absent"
)]
pub(super) struct Names {
    pub(super) dot_ignore: bool,
    pub(super) git_ignore: bool,
    pub(super) git_folder: bool,
    pub(super) repository: bool,
}

impl Names {
    pub(super) fn note(&mut self, name: &[u8], kind: Kind) {
        match name {
            b".ignore" => self.dot_ignore = kind == Kind::File,
            b".gitignore" => self.git_ignore = kind == Kind::File,
            b".git" => {
                self.git_folder = kind == Kind::Directory;
                self.repository = true;
            }
            b".jj" => self.repository = true,
            _ => {}
        }
    }

    /// Reads the ignore files of an open folder with this listing.
    pub(super) fn read_from(self, dir: &impl AsFd) -> IgnoreContents {
        IgnoreContents {
            dot_ignore: self
                .dot_ignore
                .then(|| read_rules(dir, b".ignore"))
                .flatten(),
            git_ignore: self
                .git_ignore
                .then(|| read_rules(dir, b".gitignore"))
                .flatten(),
            exclude: self.git_folder.then(|| read_exclude(dir)).flatten(),
            repository: self.repository,
        }
    }
}
