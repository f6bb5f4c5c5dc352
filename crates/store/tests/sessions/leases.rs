//! Only one process at a time writes to a session.

use crate::bed::{begin, folder, messages, open, texts};
use haft_store::sessions::{Error, Filter};
use tempfile::TempDir;

fn edit(folder: &TempDir, statement: &str) {
    let connection = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
    connection.execute_batch(statement).unwrap();
}

#[tokio::test]
async fn a_session_in_use_cannot_be_resumed() {
    let folder = folder();
    let sessions = open(&folder);
    let session = begin(&sessions);
    session.commit(messages(&["one"])).await.unwrap();
    let id = session.id().to_owned();
    for sessions in [&sessions, &open(&folder)] {
        let refused = sessions.resume(&id).unwrap_err().to_string();
        let wanted = format!(
            "session {id} is in use by process {} (since ",
            std::process::id()
        );
        assert!(refused.starts_with(&wanted), "{refused}");
    }
    let clone = session.clone();
    drop(session);
    assert!(sessions.resume(&id).is_err(), "a clone still owns it");
    drop(clone);
    let (session, loaded) = sessions.resume(&id).unwrap();
    assert_eq!(loaded.messages.len(), 1);
    session.commit(messages(&["two"])).await.unwrap();
    assert_eq!(texts(&sessions, &id), ["one", "two"]);
    drop(session);
    drop(sessions);
    let listed = open(&folder).list(&Filter::default()).unwrap();
    assert_eq!(listed[0].in_use_by, None);
}

/// An owner that is wrongly considered dead cannot interfere with its successor.
#[tokio::test]
async fn an_owner_that_lost_its_lease_cannot_record() {
    let folder = folder();
    let sessions = open(&folder);
    let session = begin(&sessions);
    session.commit(messages(&["mine"])).await.unwrap();
    let id = session.id().to_owned();
    edit(&folder, "UPDATE sessions SET owner_start = owner_start - 1");
    let others = open(&folder);
    let (heir, _) = others.resume(&id).unwrap();
    heir.commit(messages(&["the heir's"])).await.unwrap();
    let lost = session.commit(messages(&["mine too"])).await.unwrap_err();
    assert_eq!(lost, Error::Lost { id: id.clone() });
    // Returning a lost lease does not affect the new owner.
    drop(session);
    drop(sessions);
    heir.commit(messages(&["again"])).await.unwrap();
    assert_eq!(texts(&others, &id), ["mine", "the heir's", "again"]);
    assert!(open(&folder).resume(&id).is_err());
}

#[tokio::test]
async fn a_process_of_another_boot_is_not_alive() {
    let folder = folder();
    let sessions = open(&folder);
    let session = begin(&sessions);
    session.commit(messages(&["one"])).await.unwrap();
    edit(
        &folder,
        "UPDATE sessions SET owner_boot = 'before the power ended'",
    );
    assert!(open(&folder).resume(session.id()).is_ok());
}

#[tokio::test]
async fn a_deleted_session_accepts_no_records() {
    let folder = folder();
    let sessions = open(&folder);
    let session = begin(&sessions);
    session.commit(messages(&["one"])).await.unwrap();
    let id = session.id().to_owned();
    edit(&folder, "UPDATE sessions SET lease = NULL");
    open(&folder).delete(&id).unwrap();
    let gone = session.commit(messages(&["two"])).await.unwrap_err();
    assert_eq!(gone, Error::Deleted { id });
    assert!(sessions.list(&Filter::default()).unwrap().is_empty());
}
