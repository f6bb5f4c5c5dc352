//! Tests with real readers and writers.

#![expect(
    clippy::disallowed_methods,
    reason = "tests look at the disk themselves"
)]

use super::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

/// A content of many pages, all lines of which are the same.
fn content_of(letter: u8, length: usize) -> Vec<u8> {
    let line = [b"# ".as_slice(), &[letter; 29], b"\n"].concat();
    line.into_iter().cycle().take(length).collect()
}

fn replaced(path: &Path, old: &[u8], new: &[u8]) -> Outcome {
    Config::open(path).unwrap().replace(old, new).unwrap()
}

#[test]
fn a_content_of_any_length_is_replaced_in_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let before = fs::metadata(&path).unwrap();
    let mut old = Vec::new();
    for length in [10, 4096, 3, 4097, 0, 100_000, 99_999, 5000, 1] {
        let new = content_of(b'n', length);
        assert_eq!(replaced(&path, &old, &new), Outcome::Published);
        assert_eq!(fs::read(&path).unwrap(), new);
        old = new;
    }
    let after = fs::metadata(&path).unwrap();
    assert_eq!((after.ino(), after.mode()), (before.ino(), before.mode()));
}

#[test]
fn what_another_program_wrote_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    fs::write(&path, "theirs").unwrap();
    assert_eq!(replaced(&path, b"before", b"ours"), Outcome::Changed);
    assert_eq!(fs::read(&path).unwrap(), b"theirs");
    // Renamed over it after it was opened.
    let config = Config::open(&path).unwrap();
    fs::write(folder.path().join("new"), "theirs").unwrap();
    fs::rename(folder.path().join("new"), &path).unwrap();
    assert_eq!(
        config.replace(b"theirs", b"ours").unwrap(),
        Outcome::Changed
    );
    assert_eq!(fs::read(&path).unwrap(), b"theirs");
}

#[test]
fn nothing_is_written_while_somebody_has_the_file_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    fs::write(&path, "old").unwrap();
    let reader = fs::File::open(&path).unwrap();
    let error = Config::open(&path).unwrap().replace(b"old", b"new");
    assert!(error.unwrap_err().to_string().contains("keeps it open"));
    assert_eq!(fs::read(&path).unwrap(), b"old");
    drop(reader);
    assert_eq!(replaced(&path, b"old", b"new"), Outcome::Published);
}

#[test]
fn a_file_with_two_names_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    fs::write(&path, "old").unwrap();
    fs::hard_link(&path, folder.path().join("backup")).unwrap();
    assert!(
        Config::open(&path)
            .unwrap()
            .replace(b"old", b"new")
            .is_err()
    );
    assert_eq!(fs::read(&path).unwrap(), b"old");
}

/// A reader reads in several steps, as git does.
#[test]
fn readers_see_the_old_or_the_new_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let all = [(b'a', 3000), (b'b', 9000), (b'c', 20_000)].map(|(l, n)| content_of(l, n));
    fs::write(&path, &all[0]).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let read = fs::read(&path).unwrap();
                    assert!(all.contains(&read), "{}", read.len());
                    // The writer has to get a turn.
                    std::thread::sleep(Duration::from_micros(300));
                }
            });
        }
        for round in 0..300 {
            let (old, new) = (&all[round % 3], &all[(round + 1) % 3]);
            assert_eq!(replaced(&path, old, new), Outcome::Published);
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn only_execute_permissions_are_set() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(set_mode(&path, 0o100_744).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o744);
    for mode in [0o666, 0o4744, 0, 0o1644] {
        assert!(!set_mode(&path, mode).unwrap(), "{mode:o}");
    }
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o744);
}

#[test]
fn links_and_special_files_are_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("git")).unwrap();
    fs::write(at("git/config"), "kept").unwrap();
    symlink("config", at("git/link")).unwrap();
    symlink("git", at("other")).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(CWD, at("git/pipe"), fifo, Mode::RWXU, 0).unwrap();
    for path in ["git/link", "other/config", "git/pipe", "git/none", "git"] {
        assert!(Config::open(&at(path)).is_err(), "{path}");
    }
    let git: OwnedFd = fs::File::open(at("git")).unwrap().into();
    for name in ["link", "pipe", "none", "../git/config", "."] {
        assert!(prepared(&git, OsStr::new(name)).is_err(), "{name}");
    }
    assert_eq!(prepared(&git, OsStr::new("config")).unwrap(), b"kept");
}
