//! Behaviour specific to files in a database.
#![expect(clippy::disallowed_methods, reason = "a test starts itself once more")]

mod common;

use common::{folder, get, path, put, store};
use haft_ops::backend::Expect;
use haft_ops::{Backend, Error};
use haft_store::{Database, MAX_FILE, Store};
use std::process::Command;

#[tokio::test]
async fn a_file_that_is_too_large_is_refused_before_it_is_copied() {
    let folder = folder();
    let store = store(&folder);
    put(&store, "f", b"old").await.unwrap();
    let size = usize::try_from(MAX_FILE).unwrap() + 1;
    // Zero pages that are never touched use no memory.
    let written = store
        .write(&path("f"), vec![0; size], Expect::Anything)
        .await;
    assert!(matches!(
        written,
        Err(Error::TooLarge {
            limit: MAX_FILE,
            ..
        })
    ));
    assert_eq!(get(&store, "f").await.unwrap(), b"old");
}

#[tokio::test]
async fn the_creation_time_is_kept() {
    let folder = folder();
    let store = store(&folder);
    let times = || -> (i64, i64) {
        let connection = rusqlite::Connection::open(folder.path().join("store.db")).unwrap();
        let sql = "SELECT created_at, modified_at FROM files";
        connection
            .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
    };
    put(&store, "f", b"one").await.unwrap();
    let (created, modified) = times();
    assert_eq!(created, modified);
    put(&store, "f", b"two").await.unwrap();
    let (kept, changed) = times();
    assert_eq!(kept, created);
    assert!(changed > modified);
}

#[tokio::test]
async fn replaced_and_removed_content_is_deleted() {
    let folder = folder();
    let store = store(&folder);
    for size in [0, 10, 3 << 20, 1 << 20, (1 << 20) + 1, 5] {
        put(&store, "f", &vec![7; size]).await.unwrap();
        assert_eq!(get(&store, "f").await.unwrap(), vec![7; size]);
    }
    put(&store, "g", b"").await.unwrap();
    store.remove(&path("f")).await.unwrap();
    let connection = rusqlite::Connection::open(folder.path().join("store.db")).unwrap();
    let parts: i64 = connection
        .query_row("SELECT count(*) FROM parts", [], |row| row.get(0))
        .unwrap();
    assert_eq!(parts, 1);
    // A new file does not reuse the content of another one, although the last one is empty.
    put(&store, "h", b"new").await.unwrap();
    assert_eq!(get(&store, "g").await.unwrap(), b"");
}

#[tokio::test]
async fn two_connections_to_one_file_see_each_others_writes() {
    let folder = folder();
    let (one, other) = (store(&folder), store(&folder));
    for number in 0..50_u8 {
        put(&one, "f", &[number]).await.unwrap();
        assert_eq!(get(&other, "f").await.unwrap(), [number]);
    }
    drop(one);
    put(&other, "f", b"after").await.unwrap();
    drop(other);
    assert_eq!(get(&store(&folder), "f").await.unwrap(), b"after");
}

/// A full disk, simulated by a limit on the file size. A shell sets the limit, so that any
/// user can run the test.
#[tokio::test]
async fn a_full_disk_is_reported_and_keeps_the_old_content() {
    const FILE: &str = "HAFT_STORE_BOUNDED";
    if let Some(file) = std::env::var_os(FILE) {
        let store = Store::new(Database::open(file).unwrap(), "test");
        let text = put(&store, "f", &[1; 3_000_000])
            .await
            .unwrap_err()
            .to_string();
        assert!(text.contains("nothing was changed"), "{text}");
        assert_eq!(get(&store, "f").await.unwrap(), b"old");
        put(&store, "small", b"still fits").await.unwrap();
        return;
    }
    let folder = folder();
    put(&store(&folder), "f", b"old").await.unwrap();
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 1000; exec \"$0\" --exact a_full_disk_is_reported_and_keeps_the_old_content"])
        .arg(std::env::current_exe().unwrap())
        .env(FILE, folder.path().join("store.db"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let store = store(&folder);
    assert_eq!(get(&store, "f").await.unwrap(), b"old");
    assert_eq!(get(&store, "small").await.unwrap(), b"still fits");
}
