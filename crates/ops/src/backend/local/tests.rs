#![expect(
    clippy::disallowed_methods,
    reason = "tests look at the disk themselves"
)]

use super::*;
use crate::Access;
use crate::scope::{Mode, Scope, ScopeConfig};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use tempfile::TempDir;

fn disk() -> (TempDir, PathBuf, Scope) {
    let temp = TempDir::new().unwrap();
    let dir = temp.path().canonicalize().unwrap();
    let config = ScopeConfig {
        work_dir: dir.clone(),
        roots: Vec::new(),
        readable: Vec::new(),
        home: None,
        git_configs: Vec::new(),
        own: Vec::new(),
        protect: Vec::new(),
        temp: None,
        rules: Mode::Workspace.rules(),
    };
    let scope = Scope::disk(config).unwrap();
    (temp, dir, scope)
}

fn write(scope: &Scope, path: &str, bytes: &[u8], expect: &Expect) -> Result<Written> {
    replace::replace(
        &scope.resolve(path, Access::Write)?,
        bytes,
        expect,
        None,
        &replace::Swept::default(),
    )
}

#[test]
fn mode_bits_survive_a_replacement() {
    let (_temp, dir, scope) = disk();
    for mode in [0o755, 0o600, 0o4755, 0o640] {
        fs::write(dir.join("f"), "old").unwrap();
        fs::set_permissions(dir.join("f"), fs::Permissions::from_mode(mode)).unwrap();
        write(&scope, "f", b"new", &Expect::Anything).unwrap();
        assert_eq!(fs::metadata(dir.join("f")).unwrap().mode() & 0o7777, mode);
    }
}

#[test]
fn a_read_only_file_is_not_replaced() {
    let (_temp, dir, scope) = disk();
    fs::write(dir.join("f"), "old").unwrap();
    fs::set_permissions(dir.join("f"), fs::Permissions::from_mode(0o444)).unwrap();
    let error = write(&scope, "f", b"new", &Expect::Anything).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot replace f: it is read-only (mode 0444)"
    );
    assert_eq!(fs::read(dir.join("f")).unwrap(), b"old");
}

#[test]
fn extended_attributes_survive_a_replacement() {
    let (_temp, dir, scope) = disk();
    fs::write(dir.join("f"), "old").unwrap();
    let name = c"user.haft";
    match rustix::fs::setxattr(
        dir.join("f"),
        name,
        b"kept",
        rustix::fs::XattrFlags::empty(),
    ) {
        Err(rustix::io::Errno::NOTSUP) => return,
        set => set.unwrap(),
    }
    write(&scope, "f", b"new", &Expect::Anything).unwrap();
    let mut value = [0; 16];
    let length = rustix::fs::getxattr(dir.join("f"), name, &mut value).unwrap();
    assert_eq!(&value[..length], b"kept");
}

#[test]
fn a_link_stays_a_link_and_its_target_is_written() {
    let (_temp, dir, scope) = disk();
    fs::write(dir.join("real"), "old").unwrap();
    symlink("real", dir.join("link")).unwrap();
    write(&scope, "link", b"new", &Expect::Anything).unwrap();
    assert!(fs::symlink_metadata(dir.join("link")).unwrap().is_symlink());
    assert_eq!(fs::read(dir.join("real")).unwrap(), b"new");
}

#[test]
fn breaking_a_hard_link_is_reported() {
    let (_temp, dir, scope) = disk();
    fs::write(dir.join("f"), "old").unwrap();
    fs::hard_link(dir.join("f"), dir.join("other")).unwrap();
    assert_eq!(
        write(&scope, "f", b"new", &Expect::Anything)
            .unwrap()
            .links_broken,
        1
    );
    assert_eq!(fs::read(dir.join("other")).unwrap(), b"old");
}

#[test]
fn expectations_are_checked() {
    let (_temp, dir, scope) = disk();
    fs::write(dir.join("f"), "theirs").unwrap();
    assert!(matches!(
        write(&scope, "f", b"x", &Expect::Absent),
        Err(Error::AlreadyExists { .. })
    ));
    let expected = Expect::Exactly(Arc::from(&b"ours"[..]));
    assert!(matches!(
        write(&scope, "f", b"x", &expected),
        Err(Error::Contended { .. })
    ));
    assert!(matches!(
        write(&scope, "gone", b"x", &expected),
        Err(Error::Contended { .. })
    ));
    assert_eq!(fs::read(dir.join("f")).unwrap(), b"theirs");
    assert!(
        write(
            &scope,
            "f",
            b"x",
            &Expect::Exactly(Arc::from(&b"theirs"[..]))
        )
        .is_ok()
    );
}

#[test]
fn special_files_are_refused_at_once() {
    let (_temp, dir, scope) = disk();
    let fifo = dir.join("p");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.join("s")).unwrap();
    for (name, kind) in [
        ("p", "FIFO"),
        ("s", "socket"),
        ("/dev/zero", "character device"),
    ] {
        let path = scope.resolve(name, Access::Read).unwrap();
        let Err(Error::NotRegular { kind: found, .. }) = open_regular(&path) else {
            panic!("{name} was opened")
        };
        assert_eq!(found, kind);
    }
    for name in ["p", "s"] {
        assert!(matches!(
            write(&scope, name, b"x", &Expect::Anything),
            Err(Error::NotRegular { .. })
        ));
    }
}

#[test]
fn files_and_folders_are_not_interchangeable() {
    let (_temp, dir, scope) = disk();
    fs::write(dir.join("f"), "x").unwrap();
    fs::create_dir(dir.join("d")).unwrap();
    assert!(matches!(
        write(&scope, "d", b"x", &Expect::Anything),
        Err(Error::IsDirectory { .. })
    ));
    assert!(matches!(
        write(&scope, "f/x", b"x", &Expect::Anything),
        Err(Error::NotADirectory { .. })
    ));
    assert!(matches!(
        write(&scope, ".", b"x", &Expect::Anything),
        Err(Error::IsDirectory { .. })
    ));
    let read = |path: &str| open_regular(&scope.resolve(path, Access::Read).unwrap()).map(|_| ());
    assert!(matches!(read("d"), Err(Error::IsDirectory { .. })));
    assert!(matches!(read("f/x"), Err(Error::NotADirectory { .. })));
    assert!(matches!(
        list(&scope.resolve("f", Access::Read).unwrap()),
        Err(Error::NotADirectory { .. })
    ));
}

/// The handle was checked as a plain folder; a link that replaced it since then must not be
/// followed.
#[test]
fn a_link_that_appears_after_the_check_is_not_followed() {
    let (_temp, dir, scope) = disk();
    let outside = TempDir::new().unwrap();
    fs::write(outside.path().join("f"), "canary").unwrap();
    fs::create_dir(dir.join("d")).unwrap();
    fs::write(dir.join("d/f"), "mine").unwrap();
    let path = scope.resolve("d/f", Access::Write).unwrap();
    fs::remove_dir_all(dir.join("d")).unwrap();
    symlink(outside.path(), dir.join("d")).unwrap();
    assert!(matches!(open_regular(&path), Err(Error::NotAllowed { .. })));
    assert!(
        replace::replace(
            &path,
            b"x",
            &Expect::Anything,
            None,
            &replace::Swept::default()
        )
        .is_err()
    );
    assert_eq!(fs::read(outside.path().join("f")).unwrap(), b"canary");
}

#[test]
fn endless_files_in_proc_fail() {
    struct Endless;
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            buffer.fill(b'x');
            Ok(buffer.len())
        }
    }
    let mut bounded = Bounded {
        inner: Endless,
        left: 100_000,
    };
    assert_eq!(
        bounded
            .read_to_end(&mut Vec::new())
            .unwrap_err()
            .to_string(),
        "it has no end"
    );
    let (_temp, _, scope) = disk();
    let mut content = open_regular(&scope.resolve("/proc/cpuinfo", Access::Read).unwrap()).unwrap();
    let mut text = String::new();
    content.reader.read_to_string(&mut text).unwrap();
    assert!(!text.is_empty());
}

fn temporary_files(dir: &Path) -> usize {
    fs::read_dir(dir)
        .unwrap()
        .flatten()
        .filter(|entry| litter::is_temporary(entry.file_name().as_bytes()))
        .count()
}

#[test]
fn stale_temporary_files_are_removed_by_the_next_write_in_the_folder() {
    let (_temp, dir, scope) = disk();
    fs::create_dir(dir.join("d")).unwrap();
    fs::write(dir.join("d").join(replace::random_name()), "half").unwrap();
    fs::write(dir.join("d/.haft-notes.tmp"), "a file of the user").unwrap();
    write(&scope, "d/f", b"x", &Expect::Anything).unwrap();
    assert_eq!(temporary_files(&dir.join("d")), 0);
    assert!(
        dir.join("d/.haft-notes.tmp").exists(),
        "only names that a write uses are removed"
    );
}

#[test]
fn stale_temporary_files_are_removed_at_the_next_start() {
    let (_temp, dir, _) = disk();
    let notes = dir.join("litter");
    let left = dir.join(replace::random_name());
    fs::write(&left, "half").unwrap();
    let precious = dir.join("precious.txt");
    fs::write(&precious, "x").unwrap();
    let dead = Litter::new(notes.clone());
    std::mem::forget(dead.note(&left).unwrap());
    std::mem::forget(dead.note(&precious).unwrap());
    assert_eq!(
        Litter::new(notes.clone()).sweep(),
        0,
        "files of a running process stay"
    );
    // Like a kill: the lock is released, the record stays.
    dead.abandon();
    assert_eq!(Litter::new(notes).sweep(), 1);
    assert!(!left.exists());
    assert!(precious.exists(), "records can remove only temporary files");
}

#[test]
fn a_failed_write_leaves_the_old_file_and_no_litter() {
    let (_temp, dir, scope) = disk();
    fs::write(dir.join("f"), "old").unwrap();
    let wrong = Expect::Exactly(Arc::from(&b"other"[..]));
    assert!(write(&scope, "f", &[b'x'; 100_000], &wrong).is_err());
    assert_eq!(fs::read(dir.join("f")).unwrap(), b"old");
    assert_eq!(temporary_files(&dir), 0);
}

#[test]
fn without_openat2_links_are_not_followed_either() {
    let (_temp, dir, scope) = disk();
    fs::create_dir_all(dir.join("a/b")).unwrap();
    fs::write(dir.join("a/b/f"), "x").unwrap();
    symlink("a", dir.join("l")).unwrap();
    let path = scope.resolve(".", Access::Read).unwrap();
    let root = path.root().dir().unwrap();
    let open = |below: &str| {
        handle::open_step_by_step(root, Path::new(below), OFlags::RDONLY | OFlags::CLOEXEC)
    };
    assert!(open("a/b/f").is_ok());
    assert!(open("l/b/f").is_err());
    assert!(open("a/../a/b/f").is_err());
}

#[test]
fn a_link_out_of_the_scope_reveals_nothing_about_its_target() {
    let temp = TempDir::new().unwrap();
    let dir = temp.path().canonicalize().unwrap();
    for folder in ["work", "out"] {
        fs::create_dir(dir.join(folder)).unwrap();
    }
    fs::write(dir.join("out/there"), "x").unwrap();
    fs::write(dir.join("work/near"), "x").unwrap();
    for (name, target) in [
        ("a", "../out/there"),
        ("b", "../out/missing"),
        ("c", "near"),
        ("d", "gone"),
    ] {
        symlink(target, dir.join("work").join(name)).unwrap();
    }
    let config = ScopeConfig {
        work_dir: dir.join("work"),
        roots: Vec::new(),
        readable: Vec::new(),
        home: None,
        git_configs: Vec::new(),
        own: Vec::new(),
        protect: Vec::new(),
        temp: None,
        rules: Mode::Strict.rules(),
    };
    let scope = Scope::disk(config).unwrap();
    let entries = list(&scope.resolve(".", Access::Read).unwrap()).unwrap();
    let through: Vec<Through> = entries
        .into_iter()
        .filter_map(|entry| Some(entry.target?.through))
        .collect();
    assert_eq!(
        through,
        [
            Through::Unseen,
            Through::Unseen,
            Through::To(Kind::File),
            Through::Broken
        ]
    );
}

/// A folder's default access control list must not be applied to an old file without one,
/// because it would give others access.
#[test]
fn a_folders_default_acl_is_not_applied_to_an_old_file() {
    let (_temp, dir, scope) = disk();
    fs::create_dir(dir.join("d")).unwrap();
    fs::write(dir.join("d/f"), "old").unwrap();
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, rights, id) in [
        (1u16, 7u16, u32::MAX),
        (2, 7, 65_534),
        (4, 5, u32::MAX),
        (0x10, 7, u32::MAX),
        (0x20, 4, u32::MAX),
    ] {
        list.extend(tag.to_le_bytes());
        list.extend(rights.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::setxattr(dir.join("d"), c"system.posix_acl_default", &list, flags).is_err() {
        return eprintln!("skipped: no support for access control lists");
    }
    write(&scope, "d/f", b"new", &Expect::Anything).unwrap();
    write(&scope, "d/g", b"new", &Expect::Anything).unwrap();
    let has_list = |name: &str| {
        rustix::fs::getxattr(dir.join(name), c"system.posix_acl_access", &mut [0u8; 256]).is_ok()
    };
    assert!(!has_list("d/f"), "the old file had no list");
    assert!(has_list("d/g"), "a new file gets the folder's default list");
}

#[test]
fn invalid_records_do_not_block() {
    let (_temp, dir, _) = disk();
    let notes = dir.join("litter");
    fs::create_dir(&notes).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        notes.join("pipe"),
        FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    symlink("/dev/zero", notes.join("endless")).unwrap();
    assert_eq!(Litter::new(notes).sweep(), 0);
}
