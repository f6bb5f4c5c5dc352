//! Work folders that hold far more than one task needs: tools in them could change what
//! the person's shell runs next, or the system. Somebody has to name such a folder.

use crate::env;
use crate::exit::Failure;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Folders of the system. What lies below them may well be worked in.
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

/// Folders of the system in which everything counts, and those in them that do not.
const WHOLE: [&str; 3] = ["/boot", "/etc", "/usr"];
const OPEN: [&str; 3] = ["/usr/src", "/usr/local/src", "/usr/home"];

/// Where the home folders of a system lie.
const HOMES: [&str; 2] = ["/home", "/Users"];

/// What a folder is that is too much to be given to tools unasked.
pub(crate) fn what(folder: &Path) -> Option<&'static str> {
    what_among(folder, &env::homes(), env::account_home().as_deref())
}

/// Whether a folder is a home folder of the user's, or holds the account's, as `/` does.
pub(crate) fn holds_home(folder: &Path) -> bool {
    let account = env::account_home().map(|home| real(&home));
    let real = real(folder);
    real == Path::new("/")
        || env::homes().iter().any(|home| same(folder, home))
        || account.is_some_and(|home| home.starts_with(&real))
}

/// `own` are the user's home folders, `account` the one that the password database has.
fn what_among(folder: &Path, own: &[PathBuf], account: Option<&Path>) -> Option<&'static str> {
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
        return Some("a folder around your home folder");
    }
    let real = real(folder);
    let holds_homes = |folder: &Path| HOMES.iter().any(|homes| same(folder, Path::new(homes)));
    if holds_homes(&real) {
        return Some("where home folders lie");
    }
    if is(Path::new("/root")) || real.parent().is_some_and(holds_homes) {
        return Some("a home folder");
    }
    let is_below = |folder: &str| real.starts_with(folder) && real != Path::new(folder);
    let is_whole = WHOLE.iter().any(|folder| real.starts_with(folder));
    let is_system = is_whole && !OPEN.iter().any(|folder| is_below(folder));
    let mut system = SYSTEM.iter().map(Path::new);
    (is_system || system.any(is)).then_some("a folder of the system")
}

/// Says that tools do not get a folder unasked, and how to ask.
pub(crate) fn refusal(folder: &Path, what: &str) -> Failure {
    let folder = folder.display();
    Failure::usage(format!(
        "tools do not get {folder} as their work folder unasked: it is {what}"
    ))
    .hint("change to the folder of a project first, or name one with --dir")
    .hint(format!(
        "to allow this one: --dir {folder}, HAFT_DIR={folder}, or tools.work_dir in your own haft.yaml"
    ))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the work folder is judged before there is a scope"
)]
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.components().collect())
}

/// Whether two paths are one folder, by whatever links or mounts it is come to.
#[expect(
    clippy::disallowed_methods,
    reason = "the work folder is judged before there is a scope"
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
    fn what_is_wide_and_what_is_not() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join("people/me");
        std::fs::create_dir_all(home.join("project")).unwrap();
        std::fs::create_dir_all(temp.path().join("inner/home")).unwrap();
        let link = temp.path().join("link");
        std::os::unix::fs::symlink(&home, &link).unwrap();
        let gone = temp.path().join("people/gone");
        let own = [home.clone(), gone.clone(), temp.path().join("inner/home")];
        let what = |path: &Path| what_among(path, &own, Some(&home));
        for wide in [
            home.as_path(),
            &link,
            &home.join("project/.."),
            &temp.path().join("people"),
            temp.path(),
        ] {
            assert!(what(wide).is_some(), "{}", wide.display());
        }
        for wide in [
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
            if Path::new(wide).exists() {
                assert!(what(Path::new(wide)).is_some(), "{wide}");
            }
        }
        let beside = tempfile::tempdir().unwrap();
        for fine in [
            &home.join("project"),
            &gone.join("x"),
            &temp.path().join("inner"),
            &beside.path().to_owned(),
        ] {
            assert_eq!(what(fine), None, "{}", fine.display());
        }
        for fine in [
            "/opt/x",
            "/srv",
            "/home/me/project",
            "/var/lib/x",
            "/workspace",
            "/usr/src/app",
        ] {
            assert_eq!(what(Path::new(fine)), None, "{fine}");
        }
        assert!(what(Path::new("/home/somebody")).is_some());
    }
}
