//! Measures opening sessions and recording in them.
//!
//! `cargo run --release -p haft-store --example session_speed`
#![expect(clippy::print_stdout, reason = "a measurement shows its result")]

use haft_store::sessions::{
    Batch, Call, NewMessage, NewSession, Outcome, Session, SessionKind, Sessions,
};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

const ROUNDS: usize = 2000;

fn main() -> Result<(), Failure> {
    let folder = tempfile::TempDir::new_in(".")?;
    let file = folder.path().join("sessions.db");
    let mut fresh = Vec::new();
    for number in 0..20 {
        let file = folder.path().join(format!("new{number}.db"));
        let begun = Instant::now();
        let sessions = Sessions::open(&file)?;
        fresh.push(begun.elapsed());
        drop(sessions);
    }
    show("open a new one", fresh);
    drop(Sessions::open(&file)?);
    let (mut opened, mut closed) = (Vec::new(), Vec::new());
    for _ in 0..50 {
        let begun = Instant::now();
        let sessions = Sessions::open(&file)?;
        opened.push(begun.elapsed());
        let session = begin(&sessions)?;
        session.commit_blocking(batch(0))?;
        let begun = Instant::now();
        drop(session);
        drop(sessions);
        closed.push(begun.elapsed());
    }
    show("open an existing one", opened);
    show("close it after a commit", closed);

    let sessions = Sessions::open(&file)?;
    let session = begin(&sessions)?;
    let mut blocking = Vec::new();
    for number in 0..ROUNDS {
        let begun = Instant::now();
        session.commit_blocking(batch(number))?;
        blocking.push(begun.elapsed());
    }
    show("commit, from a thread", blocking);
    show(
        "the same rows, without the thread that writes",
        direct(&folder.path().join("direct.db"))?,
    );

    let one = tokio::runtime::Builder::new_current_thread().build()?;
    let two = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()?;
    for (name, runtime) in [("one thread", one), ("two threads", two)] {
        runtime.block_on(async {
            let session = begin(&sessions)?;
            let mut alone = Vec::new();
            for number in 0..ROUNDS {
                let begun = Instant::now();
                session.commit(batch(number)).await?;
                alone.push(begun.elapsed());
            }
            show(&format!("commit, async, {name}"), alone);
            for tasks in [4, 16, 100] {
                let begun = Instant::now();
                let tasks: Vec<_> = (0..tasks)
                    .map(|_| Ok(tokio::spawn(several(begin(&sessions)?, 200))))
                    .collect::<Result<_, Failure>>()?;
                let count = tasks.len() * 200;
                for task in tasks {
                    task.await?.map_err(|error| error.to_string())?;
                }
                let took = begun.elapsed();
                println!(
                    "{} sessions at once, {name}: {:.1?} a commit",
                    count / 200,
                    took / u32::try_from(count)?
                );
            }
            let mut soon = Vec::new();
            for number in 0..ROUNDS {
                let begun = Instant::now();
                session.commit_soon(batch(number + ROUNDS)).await?;
                soon.push(begun.elapsed());
            }
            show("commit soon", soon);
            Ok::<(), Failure>(())
        })?;
    }
    Ok(())
}

async fn several(session: Session, rounds: usize) -> Result<(), haft_store::sessions::Error> {
    for number in 0..rounds {
        session.commit(batch(number)).await?;
    }
    Ok(())
}

/// Lower bound: the same bytes in three tables, one transaction each.
fn direct(file: &std::path::Path) -> Result<Vec<Duration>, Failure> {
    let connection = rusqlite::Connection::open(file)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE a (id INTEGER PRIMARY KEY, body TEXT);
         CREATE TABLE b (id INTEGER PRIMARY KEY, body TEXT);
         CREATE TABLE c (id INTEGER PRIMARY KEY, body TEXT);",
    )?;
    let mut took = Vec::new();
    for number in 0..ROUNDS {
        let batch = batch(number);
        let begun = Instant::now();
        connection.execute_batch("BEGIN IMMEDIATE")?;
        for (table, body) in ["a", "b", "c"].iter().zip([
            &batch.messages[0].body,
            &batch.calls[0].arguments,
            &batch.outcomes[0].reply,
        ]) {
            let insert = format!("INSERT INTO {table} (body) VALUES (?1)");
            connection.prepare_cached(&insert)?.execute([body])?;
        }
        connection.execute_batch("COMMIT")?;
        took.push(begun.elapsed());
    }
    Ok(took)
}

fn begin(sessions: &Sessions) -> Result<Session, Failure> {
    Ok(sessions.begin(NewSession {
        id: None,
        kind: SessionKind::Agent,
        work_dir: "/work".into(),
        toolset: "standard".to_owned(),
        provider: "replay".to_owned(),
        model: "scripted".to_owned(),
        title: None,
        parent: None,
        system: None,
    })?)
}

fn batch(number: usize) -> Batch {
    let call_id = format!("call-{number}");
    Batch {
        messages: vec![NewMessage {
            role: "assistant".to_owned(),
            body: format!("{{\"text\":\"{}\"}}", "words ".repeat(150)),
            usage: Some((1000, 50, Some(0.001))),
        }],
        calls: vec![Call {
            call_id: call_id.clone(),
            tool: "read".to_owned(),
            arguments: "{\"path\":\"src/main.rs\"}".to_owned(),
            has_effect: true,
        }],
        outcomes: vec![Outcome {
            call_id,
            reply: format!("{{\"text\":\"{}\"}}", "lines ".repeat(300)),
            is_error: false,
            duration_ms: 1,
            output: None,
        }],
        ..Batch::default()
    }
}

fn show(name: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let at = |part: usize| {
        took.get(took.len() * part / 100)
            .copied()
            .unwrap_or_default()
    };
    println!("{name}: median {:.1?}, 95 % below {:.1?}", at(50), at(95));
}
