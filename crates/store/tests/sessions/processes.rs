//! Several processes use one database and are killed while they write. A child is this
//! binary, started again; its environment says what to do.

use crate::bed::{call, folder, messages, new, open, open_at, outcome, text_message, texts};
use haft_store::sessions::{Batch, Error, NewSession, Session};
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const ROLE: &str = "HAFT_SESSIONS_ROLE";
const FOLDER: &str = "HAFT_SESSIONS_FOLDER";
const NAME: &str = "HAFT_SESSIONS_NAME";

/// Number of batches that a process records if it is not killed.
const ROUNDS: usize = 150;
/// Number of times that each competing process gets the session.
const TURNS: usize = 50;

fn child(role: &str, folder: &Path, name: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::child_process", "--nocapture"])
        .env(ROLE, role)
        .env(FOLDER, folder)
        .env(NAME, name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn lines(child: &mut Child) -> Lines<BufReader<ChildStdout>> {
    BufReader::new(child.stdout.take().unwrap()).lines()
}

fn say(line: &str) {
    println!("{line}");
    std::io::stdout().flush().unwrap();
}

/// Runs the role of a child process. Does nothing when run as a test.
#[tokio::test]
async fn child_process() {
    let Some(role) = std::env::var_os(ROLE) else {
        return;
    };
    let sessions = open_at(Path::new(&std::env::var_os(FOLDER).unwrap()));
    let name = std::env::var(NAME).unwrap();
    let begin = || {
        let id = Some(name.clone());
        sessions.begin(NewSession { id, ..new() }).unwrap()
    };
    match role.to_str().unwrap() {
        "record" => record(&begin(), usize::MAX).await,
        "some" => record(&begin(), ROUNDS).await,
        "hold" => {
            let (session, _) = sessions.resume(&name).unwrap();
            say("held");
            let _ = std::io::stdin().read(&mut [0]);
            let refused = session.commit(messages(&["after"])).await;
            say(&format!("{refused:?}"));
        }
        "fight" => {
            let mut turns = 0;
            while turns < TURNS {
                match sessions.resume(&name) {
                    Ok((session, loaded)) => {
                        let text = loaded.messages.len().to_string();
                        session.commit(messages(&[&text])).await.unwrap();
                        turns += 1;
                    }
                    // Another process has it now.
                    Err(Error::InUse { .. }) => std::thread::yield_now(),
                    Err(error) => panic!("{error}"),
                }
            }
        }
        role => panic!("no role {role}"),
    }
}

/// Each part of a batch contains the number of the batch.
async fn record(session: &Session, rounds: usize) {
    for number in 1..=rounds {
        let text = format!("{number} ").repeat(number * 37 % 900 + 1);
        let done = format!("c{}", number - 1);
        session
            .commit(Batch {
                messages: vec![
                    text_message("assistant", &text),
                    text_message("tool", &text),
                ],
                calls: vec![call(&format!("c{number}"))],
                outcomes: (number > 1).then(|| outcome(&done)).into_iter().collect(),
                events: vec![(number as u64, format!("{{\"n\":{number}}}"))],
                state: Some(number.to_string()),
                ..Batch::default()
            })
            .await
            .unwrap();
        say(&format!("recorded {number}"));
    }
}

fn number_in(line: &str) -> Option<usize> {
    line.rsplit_once("recorded ")?.1.parse().ok()
}

#[test]
fn acknowledged_records_survive_200_kills() {
    let folder = folder();
    let begun = Instant::now();
    let mut recorded = 0;
    for round in 0..200 {
        let name = format!("killed-{round:03}");
        let mut child = child("record", folder.path(), &name);
        let mut lines = lines(&mut child);
        // Most are killed after at least one batch; some while the session or even the file
        // is created.
        if round % 5 > 0 {
            let begun = lines.by_ref().map_while(Result::ok);
            assert!(begun.filter_map(|line| number_in(&line)).next().is_some());
        }
        std::thread::sleep(Duration::from_micros(fastrand::u64(..12_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let heard = lines
            .map_while(Result::ok)
            .filter_map(|line| number_in(&line));
        let acknowledged = heard.last().unwrap_or(usize::from(round % 5 > 0));

        let sessions = open(&folder);
        let loaded = match sessions.resume(&name) {
            // The session is free, because its owner is dead.
            Ok((_, loaded)) => loaded,
            Err(Error::Unknown { .. }) if acknowledged == 0 => continue,
            Err(error) => panic!("round {round}: {error}"),
        };
        let batches = loaded.messages.len() / 2;
        assert!(
            batches >= acknowledged,
            "round {round}: {batches}, {acknowledged}"
        );
        assert_eq!(loaded.messages.len(), batches * 2, "no partial batch");
        assert_eq!(loaded.last_seq, batches as u64);
        assert_eq!(loaded.state, Some(batches.to_string()));
        let open: Vec<_> = loaded.open_calls.iter().map(|call| &call.call_id).collect();
        assert_eq!(
            open,
            [&format!("c{batches}")],
            "the rest have their outcomes"
        );
        for (at, text) in texts(&sessions, &name).iter().enumerate() {
            let number = at / 2 + 1;
            assert!(*text == format!("{number} ").repeat(number * 37 % 900 + 1));
        }
        recorded += batches;
    }
    let connection = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
    let verdict: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(verdict, "ok");
    println!("200 kills, {recorded} batches, {:?}", begun.elapsed());
}

#[test]
fn processes_share_a_database() {
    let folder = folder();
    let sessions = open(&folder);
    let names: Vec<String> = (0..3).map(|number| format!("process-{number}")).collect();
    let children: Vec<_> = names
        .iter()
        .map(|name| child("some", folder.path(), name))
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
    for name in names {
        let loaded = sessions.load(&name).unwrap();
        assert_eq!(loaded.messages.len(), 2 * ROUNDS);
        assert_eq!(loaded.last_seq, ROUNDS as u64);
    }
}

#[tokio::test]
async fn processes_share_a_session_one_at_a_time() {
    let folder = folder();
    let sessions = open(&folder);
    let id = Some("shared".to_owned());
    let session = sessions.begin(NewSession { id, ..new() }).unwrap();
    session.commit(messages(&["0"])).await.unwrap();
    drop(session);
    let children: Vec<_> = (0..3)
        .map(|_| child("fight", folder.path(), "shared"))
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
    // Each recorded how much it had seen: no process missed another's records.
    let texts = texts(&sessions, "shared");
    assert_eq!(texts.len(), 1 + 3 * TURNS);
    for (at, text) in texts.iter().enumerate().skip(1) {
        assert_eq!(*text, at.to_string());
    }
}

#[tokio::test]
async fn the_session_of_a_killed_owner_can_be_resumed() {
    let folder = folder();
    let sessions = open(&folder);
    let id = Some("held".to_owned());
    let session = sessions.begin(NewSession { id, ..new() }).unwrap();
    session.commit(messages(&["one"])).await.unwrap();
    drop(session);
    // The lease is returned in the order of writes: before this one.
    let other = sessions.begin(new()).unwrap();
    other.commit(messages(&["other"])).await.unwrap();
    let mut child = child("hold", folder.path(), "held");
    let mut lines = lines(&mut child);
    assert!(
        lines
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line.ends_with("held"))
    );
    let refused = sessions.resume("held").unwrap_err();
    let Error::InUse { pid, .. } = refused else {
        panic!("{refused}");
    };
    assert_eq!(pid, child.id());
    assert!(matches!(sessions.delete("held"), Err(Error::InUse { .. })));
    child.kill().unwrap();
    child.wait().unwrap();
    let (session, loaded) = sessions.resume("held").unwrap();
    assert_eq!(loaded.messages.len(), 1);
    session.commit(messages(&["two"])).await.unwrap();
}
