//! Which files are opened and which are refused; a refused file is left unchanged.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "all of it is test, which the lints see only in functions marked so"
)]

mod common;

use common::{folder, get, path, put, store};
use haft_ops::{Backend, Error};
use haft_store::{Database, OpenError, Problem, Store};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Opens a file that must be refused, and checks that it is unchanged and that the error is
/// helpful.
fn refused(path: &Path) -> Problem {
    let before = fs::read(path).ok();
    let error: OpenError = Database::open(path).unwrap_err();
    assert_eq!(fs::read(path).ok(), before, "left unchanged");
    let text = error.to_string();
    for part in [
        path.to_str().unwrap(),
        "nothing was changed",
        error.problem.remedy(),
    ] {
        assert!(text.contains(part), "{text}");
    }
    error.problem
}

/// Creates a closed database with some files.
async fn filled() -> TempDir {
    let folder = folder();
    let store = store(&folder);
    for number in 0..50 {
        let name = format!("d{}/f{number}", number % 5);
        put(&store, &name, &[b'x'; 5000]).await.unwrap();
    }
    folder
}

fn sql(path: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch(sql).unwrap();
}

#[tokio::test]
async fn a_new_database_is_private_and_persistent() {
    let temp = folder();
    let file = temp.path().join("a/b/store.db");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let store = Store::new(Database::open(&file).unwrap(), "n");
    put(&store, "f", b"kept").await.unwrap();
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(&temp.path().join("a/b/store.db-wal")), 0o600);
    assert_eq!(mode(&temp.path().join("a/b")), 0o700);
    assert_eq!(mode(&temp.path().join("a")), 0o700);
    drop(store);
    let left: Vec<_> = fs::read_dir(temp.path().join("a/b"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains(".new-"))
        .collect();
    assert_eq!(left, Vec::<String>::new(), "no temporary file is left");
    // When no process uses it, everything is in one file, so a copy is complete.
    let copy = temp.path().join("copy.db");
    fs::copy(&file, &copy).unwrap();
    let store = Store::new(Database::open(&copy).unwrap(), "n");
    assert_eq!(get(&store, "f").await.unwrap(), b"kept");
}

#[test]
fn concurrent_creation_makes_one_database() {
    let folder = folder();
    let file = folder.path().join("store.db");
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let file = file.clone();
            std::thread::spawn(move || Database::open(file).map(drop))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_refused() {
    let temp = folder();
    let file = temp.path().join("store.db");
    fs::write(&file, "a diary, not a database\n".repeat(1000)).unwrap();
    assert_eq!(refused(&file), Problem::NotADatabase);
    fs::write(&file, "short").unwrap();
    assert_eq!(refused(&file), Problem::NotADatabase);
    fs::write(&file, "").unwrap();
    assert!(matches!(refused(&file), Problem::Damaged { .. }));
    fs::remove_file(&file).unwrap();
    sql(
        &file,
        "CREATE TABLE visits (url TEXT); PRAGMA user_version = 1",
    );
    assert_eq!(refused(&file), Problem::Foreign);
    assert!(matches!(refused(temp.path()), Problem::NotAFile { .. }));
    let link = temp.path().join("link.db");
    symlink(&file, &link).unwrap();
    assert!(matches!(refused(&link), Problem::NotAFile { .. }));
    symlink("nowhere", temp.path().join("dangling.db")).unwrap();
    let dangling = temp.path().join("dangling.db");
    assert!(matches!(refused(&dangling), Problem::NotAFile { .. }));
    assert!(!temp.path().join("nowhere").exists());
    assert!(matches!(
        refused(&file.join("below/store.db")),
        Problem::System { .. }
    ));
    let fifo = temp.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let error = Database::open(&fifo).unwrap_err();
    assert!(matches!(error.problem, Problem::NotAFile { .. }), "{error}");
}

#[tokio::test]
async fn a_link_in_a_parent_folder_is_followed() {
    let temp = folder();
    fs::create_dir(temp.path().join("real")).unwrap();
    symlink("real", temp.path().join("link")).unwrap();
    let database = Database::open(temp.path().join("link/store.db")).unwrap();
    assert!(database.path().ends_with("real/store.db"));
}

#[tokio::test]
async fn a_newer_database_is_refused() {
    let temp = filled().await;
    let file = temp.path().join("store.db");
    sql(&file, "PRAGMA user_version = 7");
    assert_eq!(refused(&file), Problem::Newer { found: 7, known: 1 });
    sql(&file, "PRAGMA user_version = 1; DROP TABLE parts");
    assert!(matches!(refused(&file), Problem::Damaged { .. }));
}

#[tokio::test]
async fn a_truncated_database_is_refused() {
    let temp = filled().await;
    let file = temp.path().join("store.db");
    let whole = fs::read(&file).unwrap();
    for length in [100, 1000, 8192, whole.len() / 2, whole.len() - 8192] {
        fs::write(&file, &whole[..length]).unwrap();
        let problem = refused(&file);
        assert!(
            matches!(problem, Problem::Damaged { .. } | Problem::NotADatabase),
            "{length}: {problem:?}"
        );
    }
    fs::write(&file, &whole).unwrap();
    assert_eq!(get(&store(&temp), "d0/f0").await.unwrap().len(), 5000);
}

/// Damage is not searched for, but once it is found nothing is written any more.
#[tokio::test]
async fn a_damaged_page_is_reported_and_stops_all_writes() {
    let temp = filled().await;
    let file = temp.path().join("store.db");
    let mut bytes = fs::read(&file).unwrap();
    let pages = bytes.len() / 8192;
    bytes[2 * 8192..].fill(0xA5);
    fs::write(&file, &bytes).unwrap();
    assert!(pages > 4);
    let store = store(&temp);
    let mut errors = 0;
    for number in 0..50 {
        let name = format!("d{}/f{number}", number % 5);
        if let Err(error) = get(&store, &name).await {
            let text = error.to_string();
            assert!(matches!(error, Error::Store { .. }), "{text}");
            assert!(text.contains("store.db is damaged"), "{text}");
            assert!(text.contains("nothing was changed; move it away"), "{text}");
            errors += 1;
        }
    }
    assert!(errors > 0);
    let refused = put(&store, "new", b"x").await;
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    drop(store);
    assert_eq!(fs::read(&file).unwrap(), bytes, "left unchanged");
}

/// The log of a missing database would be replayed into a new one.
#[tokio::test]
async fn a_log_without_its_database_is_refused() {
    let temp = folder();
    let store = store(&temp);
    put(&store, "f", b"x").await.unwrap();
    let file = temp.path().join("store.db");
    fs::rename(&file, temp.path().join("moved.db")).unwrap();
    let refused = Database::open(&file).unwrap_err();
    assert!(
        matches!(refused.problem, Problem::Orphan { .. }),
        "{refused}"
    );
    assert!(!file.exists());
    let lost = put(&store, "f", b"y").await.unwrap_err();
    assert!(lost.to_string().contains("was moved"), "{lost}");
    fs::rename(temp.path().join("moved.db"), &file).unwrap();
    put(&store, "f", b"z").await.unwrap();
    assert_eq!(get(&store, "f").await.unwrap(), b"z");
}

#[tokio::test]
async fn the_log_of_a_killed_process_is_recovered() {
    let temp = folder();
    let first = store(&temp);
    put(&first, "f", b"in the log").await.unwrap();
    // A copy of all files of an open database is equivalent to a crash.
    let crashed = temp.path().join("crashed");
    fs::create_dir(&crashed).unwrap();
    for name in ["store.db", "store.db-wal"] {
        fs::copy(temp.path().join(name), crashed.join(name)).unwrap();
    }
    drop(first);
    let store = Store::new(Database::open(crashed.join("store.db")).unwrap(), "test");
    assert_eq!(get(&store, "f").await.unwrap(), b"in the log");
    assert!(store.stat(&path("f")).await.is_ok());
}

#[tokio::test]
async fn an_exclusively_locked_database_is_reported() {
    let temp = filled().await;
    let file = temp.path().join("store.db");
    let holder = rusqlite::Connection::open(&file).unwrap();
    holder
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT")
        .unwrap();
    let began = std::time::Instant::now();
    // Not read as a plain file: closing it would release the locks.
    let error = Database::open(&file).unwrap_err();
    assert_eq!(error.problem, Problem::Locked);
    let waited = began.elapsed().as_secs();
    assert!((4..8).contains(&waited), "{waited} seconds");
    drop(holder);
    assert_eq!(get(&store(&temp), "d0/f0").await.unwrap().len(), 5000);
}

/// Runs this binary again as an ordinary user, whoever runs the tests.
#[test]
fn a_read_only_database_is_reported() {
    const PLACE: &str = "HAFT_STORE_READ_ONLY";
    if let Some(place) = std::env::var_os(PLACE) {
        for name in [
            "file/store.db",
            "folder/store.db",
            "folder/new.db",
            "folder/new/store.db",
        ] {
            let file = Path::new(&place).join(name);
            let error = Database::open(&file).unwrap_err();
            assert!(matches!(error.problem, Problem::ReadOnly { .. }), "{error}");
        }
        return;
    }
    let temp = folder();
    for name in ["file", "folder"] {
        let folder = temp.path().join(name);
        Database::open(folder.join("store.db")).unwrap();
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension != "db") {
                fs::remove_file(path).unwrap();
            }
        }
    }
    let chmod = |path: &str, mode| {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(temp.path().join(path), permissions).unwrap();
    };
    chmod("file/store.db", 0o444);
    chmod("file", 0o777);
    chmod("folder/store.db", 0o666);
    chmod("folder", 0o555);
    chmod("", 0o755);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "a_read_only_database_is_reported"])
        .env(PLACE, temp.path())
        .current_dir("/");
    let root = rustix::process::geteuid().is_root();
    if root {
        std::os::unix::process::CommandExt::uid(&mut command, 65534);
    }
    match command.output() {
        Ok(output) => {
            let stdout = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success() && stdout.contains("1 passed"),
                "{stdout}"
            );
        }
        // In a home folder that the other user cannot access.
        Err(error) => assert!(root, "{error}"),
    }
    chmod("folder", 0o755);
}

/// SQLite treats a log with such a header as empty, and overwrites it.
#[tokio::test]
async fn a_log_with_a_damaged_header_is_reported_and_kept() {
    let temp = folder();
    let first = store(&temp);
    put(&first, "f", b"in the log").await.unwrap();
    let whole = fs::read(temp.path().join("store.db-wal")).unwrap();
    let crashed = |name: &str, log: &[u8]| {
        let folder = temp.path().join(name);
        fs::create_dir(&folder).unwrap();
        fs::copy(temp.path().join("store.db"), folder.join("store.db")).unwrap();
        fs::write(folder.join("store.db-wal"), log).unwrap();
        folder.join("store.db")
    };
    let damaged = |at: usize| {
        let mut log = whole.clone();
        log[at] ^= 0x40;
        log
    };
    let zeroed = [vec![0; 32], whole[32..].to_vec()].concat();
    // The magic number, the version, the page size, the salts, and both checksums.
    let mut logs: Vec<_> = [0, 3, 6, 10, 17, 22, 25, 31].map(damaged).into();
    logs.push(zeroed);
    // Truncated within the header, and without a header.
    logs.extend([1, 20, 31].map(|end| whole[..end].to_vec()));
    logs.push(vec![7; 100]);
    for (number, log) in logs.iter().enumerate() {
        let file = crashed(&format!("damaged{number}"), log);
        let problem = refused(&file);
        assert!(
            matches!(&problem, Problem::DamagedLog { log } if log == "store.db-wal"),
            "{number} {problem:?}"
        );
        let left = fs::read(file.with_file_name("store.db-wal")).unwrap();
        assert!(left == *log, "the log is kept");
        // After moving the log away, the database can be used without it.
        fs::remove_file(file.with_file_name("store.db-wal")).unwrap();
        Database::open(&file).unwrap();
    }
    // Nothing can have been lost in these.
    for (number, log) in [&[][..], &whole[..32], &whole[..100]].iter().enumerate() {
        Database::open(crashed(&format!("short{number}"), log)).unwrap();
    }
    let taken_up = Store::new(Database::open(crashed("whole", &whole)).unwrap(), "test");
    assert_eq!(get(&taken_up, "f").await.unwrap(), b"in the log");
    // A database in use has a valid log, even after the log was restarted.
    for number in 0..400 {
        put(&first, &format!("g{number}"), &[b'x'; 9000])
            .await
            .unwrap();
    }
    Database::open(temp.path().join("store.db")).unwrap();
}

/// SQLite treats the log as ending at the first page that it cannot use.
#[tokio::test]
async fn a_log_with_commits_after_damage_is_reported_and_kept() {
    let temp = folder();
    let first = store(&temp);
    for number in 0..5 {
        put(&first, &format!("f{number}"), b"in the log")
            .await
            .unwrap();
    }
    let whole = fs::read(temp.path().join("store.db-wal")).unwrap();
    let page = u32::from_be_bytes(whole[8..12].try_into().unwrap()) as usize;
    let frame = 24 + page;
    let frames = (whole.len() - 32) / frame;
    assert!(frames > 5, "{frames}");
    let crashed = |name: &str, log: &[u8]| {
        let folder = temp.path().join(name);
        fs::create_dir(&folder).unwrap();
        fs::copy(temp.path().join("store.db"), folder.join("store.db")).unwrap();
        fs::write(folder.join("store.db-wal"), log).unwrap();
        folder.join("store.db")
    };
    let flipped = |at: usize| {
        let mut log = whole.clone();
        log[at] ^= 1;
        log
    };
    let middle = 32 + frames / 2 * frame;
    let mut zeroed = whole.clone();
    zeroed[32..32 + frame].fill(0);
    // A page number, a commit mark, a salt, a checksum, and page content.
    let mut logs: Vec<_> = [32, 36, 40, 48, 32 + 24 + 100, middle + 30, middle + 17]
        .map(flipped)
        .into();
    logs.push(zeroed);
    for (number, log) in logs.iter().enumerate() {
        let file = crashed(&format!("damaged{number}"), log);
        let problem = refused(&file);
        assert!(
            matches!(&problem, Problem::DamagedLog { log } if log == "store.db-wal"),
            "{number} {problem:?}"
        );
        let left = fs::read(file.with_file_name("store.db-wal")).unwrap();
        assert!(left == *log, "the log is kept");
        fs::remove_file(file.with_file_name("store.db-wal")).unwrap();
        Database::open(&file).unwrap();
    }
    // The partial end after a crash, and the remains of an older log, are fine.
    let last = 32 + (frames - 1) * frame;
    let mut older = whole.clone();
    older.extend_from_slice(&whole[32..]);
    for copy in 0..frames {
        older[whole.len() + copy * frame + 8] ^= 1;
    }
    let fine = [
        whole[..last + 24].to_vec(),
        whole[..last + frame / 2].to_vec(),
        flipped(last + 60),
        [&whole[..], &[0; 5000]].concat(),
        older,
        whole.clone(),
    ];
    for (number, log) in fine.iter().enumerate() {
        let file = crashed(&format!("fine{number}"), log);
        let taken_up = Store::new(Database::open(file).unwrap(), "test");
        assert_eq!(
            get(&taken_up, "f0").await.unwrap(),
            b"in the log",
            "{number}"
        );
    }
}

/// A log is not read from the start while another process has it open.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_log_of_a_database_in_use_is_not_scanned() {
    let temp = folder();
    let first = store(&temp);
    put(&first, "f", b"x").await.unwrap();
    put(&first, "g", b"x").await.unwrap();
    let log = temp.path().join("store.db-wal");
    let mut bytes = fs::read(&log).unwrap();
    bytes[32 + 16] ^= 1;
    fs::write(&log, &bytes).unwrap();
    Database::open(temp.path().join("store.db")).unwrap();
}

/// For example after a copy with a permissive umask.
#[tokio::test]
async fn permissions_of_other_users_are_removed() {
    let temp = folder();
    let first = store(&temp);
    put(&first, "f", b"x").await.unwrap();
    let files = ["store.db", "store.db-wal", "store.db-shm"].map(|name| temp.path().join(name));
    for file in &files {
        fs::set_permissions(file, fs::Permissions::from_mode(0o666)).unwrap();
    }
    let again = Database::open(temp.path().join("store.db")).unwrap();
    for file in &files {
        let mode = fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
    drop(again);
    // A file that is not one of our databases is left unchanged.
    let other = temp.path().join("other.db");
    fs::write(&other, [b'x'; 4096]).unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o666)).unwrap();
    refused(&other);
    let mode = fs::metadata(&other).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o666);
}
