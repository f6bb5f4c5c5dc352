//! A database that cannot be used is reported and left unchanged.

use crate::bed::{begin, folder, messages, open, texts};
use haft_store::sessions::{Error, Filter, Sessions};
use haft_store::{Database, Problem};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Creates a closed database with a few hundred messages.
async fn filled() -> (TempDir, PathBuf, String) {
    let folder = folder();
    let sessions = open(&folder);
    let session = begin(&sessions);
    for number in 0..60 {
        let text = format!("{number}").repeat(1500);
        session.commit(messages(&[&text, "short"])).await.unwrap();
    }
    let id = session.id().to_owned();
    drop(session);
    drop(sessions);
    let file = folder.path().join("sessions.db");
    (folder, file, id)
}

fn refused(file: &Path) -> (Problem, String) {
    let error = Sessions::open(file).unwrap_err();
    (error.problem.clone(), error.to_string())
}

#[tokio::test]
async fn a_new_database_is_private() {
    let (folder, file, _) = filled().await;
    let sessions = open(&folder);
    begin(&sessions).commit(messages(&["x"])).await.unwrap();
    for suffix in ["", "-wal", "-shm"] {
        let name = format!("{}{suffix}", file.display());
        let mode = std::fs::metadata(&name).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_truncated_database_is_reported_and_kept() {
    let (folder, file, id) = filled().await;
    let whole = std::fs::read(&file).unwrap();
    for length in [0, 1, 50, 100, 4096, 5000] {
        std::fs::write(&file, &whole[..length]).unwrap();
        let (problem, text) = refused(&file);
        assert!(
            matches!(problem, Problem::Damaged { .. } | Problem::NotADatabase),
            "{length}: {problem:?}"
        );
        assert!(text.starts_with("the session database /"), "{text}");
        assert!(
            text.ends_with("nothing was changed; move it away, together with its -wal file, or restore it from a copy"),
            "{text}"
        );
        assert_eq!(std::fs::read(&file).unwrap(), &whole[..length]);
    }
    std::fs::write(&file, &whole).unwrap();
    assert_eq!(texts(&open(&folder), &id).len(), 120);
}

#[tokio::test]
async fn a_damaged_page_is_reported_and_stops_all_writes() {
    let (folder, file, id) = filled().await;
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[24 * 4096..].fill(0xA5);
    std::fs::write(&file, &bytes).unwrap();
    let sessions = open(&folder);
    let error = sessions.load(&id).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("sessions.db is damaged"), "{text}");
    assert!(text.contains("nothing was changed; move it away"), "{text}");
    let refused = begin(&sessions).commit(messages(&["new"])).await;
    assert!(
        matches!(refused, Err(Error::Database { .. })),
        "{refused:?}"
    );
    drop(sessions);
    assert_eq!(std::fs::read(&file).unwrap(), bytes, "left unchanged");
}

#[tokio::test]
async fn a_database_of_another_kind_is_refused() {
    let folder = folder();
    let file = folder.path().join("sessions.db");
    drop(Database::open(&file).unwrap());
    let (problem, text) = refused(&file);
    assert_eq!(problem, Problem::OtherKind { is: "store" });
    assert!(
        text.contains("is haft's store; nothing was changed; use another file"),
        "{text}"
    );

    let (_folder, file, _) = filled().await;
    let error = Database::open(&file).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("the store /") && text.contains("is haft's session database"),
        "{text}"
    );

    let folder = self::folder();
    let file = folder.path().join("sessions.db");
    let foreign = rusqlite::Connection::open(&file).unwrap();
    foreign.execute_batch("CREATE TABLE sessions (id)").unwrap();
    drop(foreign);
    assert_eq!(refused(&file).0, Problem::Foreign);
    std::fs::write(&file, "no database at all, but a text").unwrap();
    assert_eq!(refused(&file).0, Problem::NotADatabase);
}

#[tokio::test]
async fn a_newer_database_is_refused() {
    let (_folder, file, _) = filled().await;
    let newer = rusqlite::Connection::open(&file).unwrap();
    newer.execute_batch("PRAGMA user_version = 9").unwrap();
    drop(newer);
    let (problem, text) = refused(&file);
    assert_eq!(problem, Problem::Newer { found: 9, known: 1 });
    assert!(
        text.contains("was written by a newer version (schema 9, this one knows 1)"),
        "{text}"
    );
}

#[tokio::test]
async fn a_link_is_not_followed() {
    let (folder, file, _) = filled().await;
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let (problem, text) = refused(&link);
    assert!(matches!(problem, Problem::NotAFile { .. }), "{text}");
}

/// Runs this binary again as an ordinary user, whoever runs the tests.
#[tokio::test]
async fn a_read_only_database_is_reported() {
    const PLACE: &str = "HAFT_SESSIONS_READ_ONLY";
    if let Some(place) = std::env::var_os(PLACE) {
        let (problem, text) = refused(Path::new(&place));
        assert!(matches!(problem, Problem::ReadOnly { .. }), "{text}");
        return;
    }
    let (folder, file, _) = filled().await;
    let chmod = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    chmod(folder.path(), 0o777);
    chmod(&file, 0o444);
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "files::a_read_only_database_is_reported"])
        .env(PLACE, &file)
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
                "{output:?}"
            );
        }
        // In a home folder that the other user cannot access.
        Err(error) => assert!(root, "{error}"),
    }
}

/// A stale read transaction of another program does not hide new records.
#[tokio::test]
async fn a_removed_database_is_reported() {
    let folder = folder();
    let sessions = open(&folder);
    let session = begin(&sessions);
    session.commit(messages(&["one"])).await.unwrap();
    let file = folder.path().join("sessions.db");
    std::fs::rename(&file, folder.path().join("moved.db")).unwrap();
    let lost = session.commit(messages(&["two"])).await.unwrap_err();
    assert!(
        lost.to_string().contains("was moved, removed or replaced"),
        "{lost}"
    );
    std::fs::rename(folder.path().join("moved.db"), &file).unwrap();
    session.commit(messages(&["two"])).await.unwrap();
    assert_eq!(texts(&sessions, session.id()), ["one", "two"]);
    assert_eq!(sessions.list(&Filter::default()).unwrap().len(), 1);
}
