//! One process at a time adds to a session.

use crate::bed::{begin, folder, messages, open, texts};
use haft_store::sessions::{Error, Filter};
use tempfile::TempDir;

fn edit(folder: &TempDir, statement: &str) {
    let connection = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
    connection.execute_batch(statement).unwrap();
}

#[tokio::test]
async fn what_is_in_use_is_not_given_twice() {
    let folder = folder();
    let sessions = open(&folder);
    let session = begin(&sessions);
    session.commit(messages(&["one"])).await.unwrap();
    let id = session.id().to_owned();
    for sessions in [&sessions, &open(&folder)] {
        let refused = sessions.take(&id).unwrap_err().to_string();
        let wanted = format!(
            "session {id} is in use by process {} (since ",
            std::process::id()
        );
        assert!(refused.starts_with(&wanted), "{refused}");
    }
    let clone = session.clone();
    drop(session);
    assert!(sessions.take(&id).is_err(), "a clone has it still");
    drop(clone);
    let (session, loaded) = sessions.take(&id).unwrap();
    assert_eq!(loaded.messages.len(), 1);
    session.commit(messages(&["two"])).await.unwrap();
    assert_eq!(texts(&sessions, &id), ["one", "two"]);
    drop(session);
    drop(sessions);
    let listed = open(&folder).list(&Filter::default()).unwrap();
    assert_eq!(listed[0].in_use_by, None);
}

/// Who is taken for dead and lives on cannot disturb its heir.
#[tokio::test]
async fn an_owner_that_lost_it_records_nothing_more() {
    let folder = folder();
    let sessions = open(&folder);
    let session = begin(&sessions);
    session.commit(messages(&["mine"])).await.unwrap();
    let id = session.id().to_owned();
    edit(&folder, "UPDATE sessions SET owner_start = owner_start - 1");
    let others = open(&folder);
    let (heir, _) = others.take(&id).unwrap();
    heir.commit(messages(&["the heir's"])).await.unwrap();
    let lost = session.commit(messages(&["mine too"])).await.unwrap_err();
    assert_eq!(lost, Error::Lost { id: id.clone() });
    // Giving back what is not one's own any more takes it from nobody.
    drop(session);
    drop(sessions);
    heir.commit(messages(&["again"])).await.unwrap();
    assert_eq!(texts(&others, &id), ["mine", "the heir's", "again"]);
    assert!(open(&folder).take(&id).is_err());
}

#[tokio::test]
async fn another_boot_is_another_process() {
    let folder = folder();
    let sessions = open(&folder);
    let session = begin(&sessions);
    session.commit(messages(&["one"])).await.unwrap();
    edit(
        &folder,
        "UPDATE sessions SET owner_boot = 'before the power ended'",
    );
    assert!(open(&folder).take(session.id()).is_ok());
}

#[tokio::test]
async fn one_that_was_deleted_takes_nothing_more() {
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
