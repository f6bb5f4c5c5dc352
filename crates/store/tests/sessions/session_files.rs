//! Files that only exist in a session.

use crate::bed::{begin, folder, messages, open};
use haft_store::sessions::{Batch, SessionFile, Sessions};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

fn file(path: &str, bytes: Option<&[u8]>) -> SessionFile {
    SessionFile {
        path: PathBuf::from(path),
        bytes: bytes.map(Into::into),
        modified: SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
    }
}

fn with(said: &str, files: Vec<SessionFile>) -> Batch {
    Batch {
        files,
        ..messages(&[said])
    }
}

/// Returns paths and the start of their files.
fn there(sessions: &Sessions, id: &str) -> Vec<(String, String)> {
    let files = sessions.files(id).unwrap().into_iter();
    let shown = files.map(|file| {
        let bytes = file.bytes.unwrap();
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(6)]).into_owned();
        (file.path.display().to_string(), text)
    });
    shown.collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = expected.iter();
    pairs.map(|(a, b)| ((*a).into(), (*b).into())).collect()
}

#[tokio::test]
async fn files_are_kept_exactly() {
    let folder = folder();
    let sessions = open(&folder);
    sessions.redact(["sk-a-secret-value".to_owned()]);
    let session = begin(&sessions);
    let bytes: Vec<u8> = (0..=255).chain(*b"sk-a-secret-value").collect();
    let odd = [file("a/b", Some(&bytes)), file("empty", Some(b""))];
    session.commit(with("one", odd.to_vec())).await.unwrap();
    let id = session.id().to_owned();
    drop((session, sessions));
    let sessions = open(&folder);
    assert_eq!(sessions.files(&id).unwrap(), odd);
    let (session, _) = sessions.resume(&id).unwrap();
    let gone = vec![file("a/b", None), file("new", Some(b"n"))];
    session.commit(with("two", gone)).await.unwrap();
    assert_eq!(there(&sessions, &id), pairs(&[("empty", ""), ("new", "n")]));
}

#[tokio::test]
async fn a_fork_has_the_files_at_its_message() {
    let folder = folder();
    let sessions = open(&folder);
    let session = begin(&sessions);
    let long = |letter: u8| vec![letter; 100_000];
    let mut ids = Vec::new();
    for batch in [
        with("0", vec![]),
        with(
            "1",
            vec![file("s", Some(b"one")), file("l", Some(&long(b'a')))],
        ),
        with(
            "2",
            vec![file("s", Some(b"two")), file("l", Some(&long(b'b')))],
        ),
        with("3", vec![file("s", None), file("t", Some(b"t"))]),
    ] {
        ids.extend(session.commit(batch).await.unwrap());
    }
    let fork = |from: &str, at: usize| sessions.fork(from, Some(ids[at])).unwrap();
    let id = session.id();
    assert_eq!(there(&sessions, &fork(id, 0)), []);
    // Only the newest version of a large file is kept.
    let first = [("l", "bbbbbb"), ("s", "one")];
    assert_eq!(there(&sessions, &fork(id, 1)), pairs(&first));
    let second = [("l", "bbbbbb"), ("s", "two")];
    let middle = fork(id, 2);
    assert_eq!(there(&sessions, &middle), pairs(&second));
    let last = [("l", "bbbbbb"), ("t", "t")];
    let late = sessions.fork(id, None).unwrap();
    assert_eq!(there(&sessions, &late), pairs(&last));

    // Each session continues on its own, and a fork of a fork may start before the fork.
    let (own, _) = sessions.resume(&middle).unwrap();
    let changed = vec![file("s", Some(b"mine"))];
    let mine = own.commit(with("other 3", changed)).await.unwrap();
    own.commit(with("other 4", vec![file("s", None)]))
        .await
        .unwrap();
    assert_eq!(there(&sessions, id), pairs(&last));
    assert_eq!(there(&sessions, &middle), pairs(&[("l", "bbbbbb")]));
    assert_eq!(there(&sessions, &fork(&middle, 1)), pairs(&first));
    assert_eq!(there(&sessions, &fork(&middle, 2)), pairs(&second));
    let again = sessions.fork(&middle, Some(mine[0])).unwrap();
    assert_eq!(
        there(&sessions, &again),
        pairs(&[("l", "bbbbbb"), ("s", "mine")])
    );

    // Files that forks need outlive the session.
    drop(session);
    let id = ids_of(&sessions, &late);
    sessions.delete(&id).unwrap();
    assert_eq!(there(&sessions, &late), pairs(&last));
    assert_eq!(there(&sessions, &fork(&middle, 1)), pairs(&first));
}

fn ids_of(sessions: &Sessions, fork: &str) -> String {
    sessions.load(fork).unwrap().info.forked_from.unwrap().0
}

/// Only changes are written, and large files are not kept twice.
#[tokio::test]
async fn the_record_does_not_grow_with_long_files() {
    let folder = folder();
    let sessions = open(&folder);
    let session = begin(&sessions);
    for turn in 0..40_u8 {
        let long = vec![turn; 1 << 20];
        let batch = with(&turn.to_string(), vec![file("long", Some(&long))]);
        session.commit(batch).await.unwrap();
    }
    let id = session.id().to_owned();
    assert_eq!(
        sessions.files(&id).unwrap()[0].bytes.as_deref().unwrap()[9],
        39
    );
    drop((session, sessions));
    let size = std::fs::metadata(folder.path().join("sessions.db")).unwrap();
    assert!(size.len() < 4 << 20, "{}", size.len());
}

/// A database from before such files existed gets the table when it is opened.
#[tokio::test]
async fn an_older_database_can_be_opened() {
    let folder = folder();
    let id = {
        let sessions = open(&folder);
        let session = begin(&sessions);
        session.commit(messages(&["one"])).await.unwrap();
        session.id().to_owned()
    };
    let path = folder.path().join("sessions.db");
    let raw = rusqlite::Connection::open(path).unwrap();
    raw.execute_batch("DROP TABLE files").unwrap();
    drop(raw);
    let sessions = open(&folder);
    let (session, _) = sessions.resume(&id).unwrap();
    assert!(sessions.files(&id).unwrap().is_empty());
    let batch = with("two", vec![file("a", Some(b"a"))]);
    session.commit(batch).await.unwrap();
    assert_eq!(there(&sessions, &id), pairs(&[("a", "a")]));
}
