//! Folders that contain far more than one task needs, such as a home folder. Tools there
//! could change what the user's shell runs next, or the system, so the user must choose
//! such a folder explicitly.

use crate::environment::Environment;
use crate::failure::Failure;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// System folders. Folders below them can be used.
const SYSTEM: [&str; 19] = [
    "/bin",
    "/dev",
    "/dev/shm",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/tmp",
    "/var",
    "/var/cache",
    "/var/lib",
    "/var/log",
    "/var/spool",
    "/var/tmp",
    "/private/tmp",
];

/// System folders that are off limits with everything below them, and the exceptions.
const SYSTEM_TREES: [&str; 3] = ["/boot", "/etc", "/usr"];
const EXCEPTIONS: [&str; 3] = ["/usr/src", "/usr/local/src", "/usr/home"];

/// Folders that contain home folders.
const HOMES: [&str; 2] = ["/home", "/Users"];

/// Describes a folder that is too broad; `None` if tools may use it.
pub(crate) fn describe(folder: &Path, environment: &Environment) -> Option<&'static str> {
    let account = environment.account_home();
    describe_among(folder, &environment.homes(), account.as_deref())
}

/// Whether a folder is one of the user's home folders, or contains the account's.
pub(crate) fn holds_home(folder: &Path, environment: &Environment) -> bool {
    let account = environment.account_home().map(|home| real(&home));
    let real = real(folder);
    real == Path::new("/")
        || environment.homes().iter().any(|home| same(folder, home))
        || account.is_some_and(|home| home.starts_with(&real))
}

/// Like [`describe`], for these home folders: `own` are all of the user's, `account` is
/// the one in the password database.
fn describe_among(folder: &Path, own: &[PathBuf], account: Option<&Path>) -> Option<&'static str> {
    let is = |other: &Path| same(folder, other);
    if is(Path::new("/")) {
        return Some("the root of the file system");
    }
    let own: Vec<PathBuf> = own.iter().map(|home| real(home)).collect();
    if own.iter().any(|home| is(home)) {
        return Some("your home folder");
    }
    // `HOME` may be set to a folder inside a project, whose own folder is fine.
    let account = account.map(real).unwrap_or_default();
    let above = account.ancestors().skip(1);
    // The root of the file system was checked above.
    let mut above = above.filter(|folder| folder.parent().is_some());
    if above.any(is) {
        return Some("a folder that contains your home folder");
    }
    let real = real(folder);
    let holds_homes = |folder: &Path| HOMES.iter().any(|homes| same(folder, Path::new(homes)));
    if holds_homes(&real) {
        return Some("the folder of all home folders");
    }
    if is(Path::new("/root")) || real.parent().is_some_and(holds_homes) {
        return Some("a home folder");
    }
    let is_below = |folder: &str| real.starts_with(folder) && real != Path::new(folder);
    let is_in_tree = SYSTEM_TREES.iter().any(|folder| real.starts_with(folder));
    let is_system = is_in_tree && !EXCEPTIONS.iter().any(|folder| is_below(folder));
    let mut system = SYSTEM.iter().map(Path::new);
    (is_system || system.any(is)).then_some("a system folder")
}

/// Error for a broad folder that the user did not choose, with the ways to choose it.
pub(crate) fn refusal(folder: &Path, description: &str) -> Failure {
    let folder = folder.display();
    Failure::usage(format!(
        "refusing to use {folder} as the work folder: it is {description}"
    ))
    .hint("change to a project's folder first, or name one with --dir")
    .hint(format!(
        "to allow this one: --dir {folder}, HAFT_DIR={folder}, or tools.work_dir in your own haft.yaml"
    ))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the work folder is checked before a scope exists"
)]
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.components().collect())
}

/// Whether two paths are the same folder, even through links or mounts.
#[expect(
    clippy::disallowed_methods,
    reason = "the work folder is checked before a scope exists"
)]
fn same(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino()));
    match (id(one), id(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => real(one) == real(other),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes its own folders")]
mod tests {
    use super::*;

    #[test]
    fn home_and_system_folders_are_too_broad() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join("people/me");
        std::fs::create_dir_all(home.join("project")).unwrap();
        std::fs::create_dir_all(temp.path().join("inner/home")).unwrap();
        let link = temp.path().join("link");
        std::os::unix::fs::symlink(&home, &link).unwrap();
        let gone = temp.path().join("people/gone");
        let own = [home.clone(), gone.clone(), temp.path().join("inner/home")];
        let describe = |path: &Path| describe_among(path, &own, Some(&home));
        for broad in [
            home.as_path(),
            &link,
            &home.join("project/.."),
            &temp.path().join("people"),
            temp.path(),
        ] {
            assert!(describe(broad).is_some(), "{}", broad.display());
        }
        for broad in [
            "/",
            "/..",
            "/etc",
            "/usr",
            "/usr/../var",
            "/usr/local/bin",
            "/usr/share/doc",
            "/etc/ssl",
            "/tmp",
            "/home",
            "/proc/self/root",
        ] {
            if Path::new(broad).exists() {
                assert!(describe(Path::new(broad)).is_some(), "{broad}");
            }
        }
        let beside = tempfile::tempdir().unwrap();
        for fine in [
            &home.join("project"),
            &gone.join("x"),
            &temp.path().join("inner"),
            &beside.path().to_owned(),
        ] {
            assert_eq!(describe(fine), None, "{}", fine.display());
        }
        for fine in [
            "/opt/x",
            "/srv",
            "/home/me/project",
            "/var/lib/x",
            "/workspace",
            "/usr/src/app",
        ] {
            assert_eq!(describe(Path::new(fine)), None, "{fine}");
        }
        assert!(describe(Path::new("/home/somebody")).is_some());
    }
}
