//! Several processes use one database and are killed while they write. A child is this
//! binary, started again; its environment says what to do.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "all of it is test, which the lints see only in functions marked so"
)]

mod common;

use common::{folder, get, path, put, store};
use haft_ops::backend::Expect;
use haft_ops::edit::{self, NoChange, Occurrences, Repairs, Replace};
use haft_ops::{Backend, Error};
use haft_store::{Database, Store};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROLE: &str = "HAFT_STORE_ROLE";
const FILE: &str = "HAFT_STORE_FILE";

fn child(role: &str, folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_process", "--nocapture"])
        .env(ROLE, role)
        .env(FILE, folder.join("store.db"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs the role of a child process. Does nothing when run as a test.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_process() {
    let Some(role) = std::env::var_os(ROLE) else {
        return;
    };
    let database = Database::open(std::env::var_os(FILE).unwrap()).unwrap();
    let store = Store::new(database, "test");
    match role.to_str().unwrap() {
        "write" => write_numbered(&store).await,
        "count" => count(&store).await,
        "edit" => edit_lines(&store).await,
        role => panic!("no role {role}"),
    }
}

fn content(number: usize) -> Vec<u8> {
    // Some fit into one page, some need many, some several parts.
    let size = if number.is_multiple_of(17) {
        2_500_000
    } else {
        number * 997 % 40_000
    };
    let text = format!("{number} ").into_bytes();
    text.into_iter().cycle().take(size).collect()
}

/// Writes until it is killed; one file is replaced repeatedly.
async fn write_numbered(store: &Store) {
    for number in 0.. {
        put(
            store,
            &format!("d{}/{number}", number % 7),
            &content(number),
        )
        .await
        .unwrap();
        put(store, "same", &content(number)).await.unwrap();
        println!("wrote {number}");
        std::io::stdout().flush().unwrap();
    }
}

const ROUNDS: u32 = 60;

async fn count(store: &Store) {
    let path = path("counter");
    for _ in 0..ROUNDS {
        loop {
            let old = get(store, "counter").await.unwrap();
            let number: u32 = std::str::from_utf8(&old).unwrap().parse().unwrap();
            let new = (number + 1).to_string().into_bytes();
            match store.write(&path, new, Expect::Exactly(old.into())).await {
                Ok(_) => break,
                Err(Error::Contended { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Each edit inserts a line before the last one.
async fn edit_lines(store: &Store) {
    for round in 0..ROUNDS {
        let line = format!("{}-{round}\nend\n", std::process::id());
        loop {
            let request = Replace {
                path: path("lines"),
                old: "end\n".to_owned(),
                new: line.clone(),
                occurrences: Occurrences::ExactlyOne,
                no_change: NoChange::Refuse,
                repairs: Repairs::Off,
            };
            match edit::replace(store, request).await {
                Ok(_) => break,
                Err(Error::Contended { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[tokio::test]
async fn acknowledged_writes_survive_a_kill() {
    let folder = folder();
    for round in 0..12_u64 {
        let mut child = child("write", folder.path());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines
            .by_ref()
            .map_while(Result::ok)
            .find(|line| line.starts_with("wrote"));
        assert!(first.is_some(), "the child has started to write");
        // At an arbitrary moment, early or late.
        std::thread::sleep(Duration::from_micros(
            round * round * 1300 + 700 * (round % 3),
        ));
        child.kill().unwrap();
        child.wait().unwrap();
        let last = lines
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("wrote ")?.parse::<usize>().ok())
            .last()
            .unwrap_or(0);
        let store = store(&folder);
        for number in 0..=last {
            let name = format!("d{}/{number}", number % 7);
            let kept = get(&store, &name).await.unwrap();
            assert!(kept == content(number), "round {round}: {name} is complete");
        }
        let same = get(&store, "same").await.unwrap();
        assert!(
            (last..=last + 2).any(|number| same == content(number)),
            "round {round}: one version of it, and none before the last"
        );
    }
}

#[tokio::test]
async fn no_update_of_concurrent_processes_is_lost() {
    let folder = folder();
    let store = store(&folder);
    put(&store, "counter", b"0").await.unwrap();
    put(&store, "lines", b"begin\nend\n").await.unwrap();
    let children: Vec<_> = ["count", "count", "edit", "edit"]
        .iter()
        .map(|role| child(role, folder.path()))
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
    let counted = get(&store, "counter").await.unwrap();
    assert_eq!(counted, (2 * ROUNDS).to_string().into_bytes());
    let lines = String::from_utf8(get(&store, "lines").await.unwrap()).unwrap();
    let mut lines: Vec<_> = lines.lines().collect();
    assert_eq!(lines.len(), 2 + 2 * ROUNDS as usize);
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 2 + 2 * ROUNDS as usize, "each edit once");
}

/// A lock that is never released: all writers fail together after the time limit, while
/// readers and the runtime continue.
#[tokio::test(flavor = "current_thread")]
async fn a_lock_of_another_process_is_reported() {
    let folder = folder();
    let store = store(&folder);
    put(&store, "f", b"old").await.unwrap();
    let holder = rusqlite::Connection::open(folder.path().join("store.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let began = Instant::now();
    let writers: Vec<_> = (0..20)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move { put(&store, &format!("n{number}"), b"new").await })
        })
        .collect();
    let abandoned = {
        let store = store.clone();
        tokio::spawn(async move { put(&store, "f", b"abandoned").await })
    };
    let mut slowest = Duration::ZERO;
    for _ in 0..100 {
        let tick = Instant::now();
        assert_eq!(get(&store, "f").await.unwrap(), b"old");
        tokio::time::sleep(Duration::from_millis(10)).await;
        slowest = slowest.max(tick.elapsed());
    }
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    abandoned.abort();
    for writer in writers {
        let error = writer.await.unwrap().unwrap_err();
        let text = error.to_string();
        assert!(
            text.ends_with("store.db is locked by another process; nothing was changed; try again"),
            "{text}"
        );
    }
    let waited = began.elapsed();
    assert!(
        waited > Duration::from_secs(4) && waited < Duration::from_secs(8),
        "{waited:?}"
    );
    holder.execute_batch("COMMIT").unwrap();
    put(&store, "g", b"new").await.unwrap();
    assert_eq!(
        get(&store, "f").await.unwrap(),
        b"old",
        "abandoned is not done"
    );
    let root = store.list(&path("/")).await.unwrap();
    assert_eq!(root.len(), 2);
}
