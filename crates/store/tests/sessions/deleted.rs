//! Deleting removes everything that no fork shares, and overwrites it.

use crate::bed::{begin, call, folder, messages, new, open, outcome, texts};
use haft_store::sessions::{Batch, Error, Filter, NewSession, Outcome, Sessions};
use tempfile::TempDir;

fn everything(folder: &TempDir) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        all.extend(std::fs::read(entry.unwrap().path()).unwrap());
    }
    all
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

async fn speak(sessions: &Sessions, new: NewSession, text: &str) -> String {
    let session = sessions.begin(new).unwrap();
    session
        .commit(Batch {
            calls: vec![call(text)],
            outcomes: vec![Outcome {
                output: Some(format!("/outputs/{text}")),
                ..outcome(text)
            }],
            events: vec![(1, format!("\"{text}\""))],
            state: Some(format!("\"{text}\"")),
            ..messages(&[text])
        })
        .await
        .unwrap();
    session.id().to_owned()
}

#[tokio::test]
async fn sessions_of_sub_agents_are_deleted_too() {
    let folder = folder();
    let sessions = open(&folder);
    let parent = speak(&sessions, new(), "the-parent").await;
    let below = |id: &str| NewSession {
        parent: Some((id.to_owned(), "the-parent".to_owned())),
        ..new()
    };
    let child = speak(&sessions, below(&parent), "the-child").await;
    let grandchild = speak(&sessions, below(&child), "the-grandchild").await;
    let other = speak(&sessions, new(), "the-other").await;
    let deleted = sessions.delete(&parent).unwrap();
    assert_eq!(deleted.sessions, [parent, child, grandchild]);
    assert!(deleted.still_needed.is_empty());
    let outputs: Vec<_> = deleted
        .outputs
        .iter()
        .map(|path| path.to_str().unwrap())
        .collect();
    assert_eq!(
        outputs,
        [
            "/outputs/the-parent",
            "/outputs/the-child",
            "/outputs/the-grandchild"
        ]
    );
    let left = sessions.list(&Filter::default()).unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].id, other);
    drop(sessions);
    let bytes = everything(&folder);
    for gone in ["the-parent", "the-child", "the-grandchild"] {
        assert!(!holds(&bytes, gone), "{gone} is overwritten");
    }
    assert!(holds(&bytes, "the-other"));
}

#[tokio::test]
async fn shared_history_stays_until_the_fork_is_deleted() {
    let folder = folder();
    let sessions = open(&folder);
    let session = begin(&sessions);
    let kept = Batch {
        calls: vec![call("kept-call")],
        outcomes: vec![Outcome {
            output: Some("/outputs/kept".to_owned()),
            ..outcome("kept-call")
        }],
        ..messages(&["kept-one"])
    };
    session.commit(kept).await.unwrap();
    let fork = sessions.fork(session.id(), None).unwrap();
    let gone = Batch {
        calls: vec![call("gone-call")],
        outcomes: vec![Outcome {
            output: Some("/outputs/gone".to_owned()),
            ..outcome("gone-call")
        }],
        ..messages(&["gone-two"])
    };
    session.commit(gone).await.unwrap();
    let id = session.id().to_owned();
    let refused = sessions.delete(&id).unwrap_err();
    assert!(matches!(refused, Error::InUse { .. }), "{refused}");
    drop(session);
    let deleted = sessions.delete(&id).unwrap();
    assert_eq!(deleted.outputs, [std::path::Path::new("/outputs/gone")]);
    assert_eq!(deleted.still_needed, [id]);
    assert_eq!(texts(&sessions, &fork), ["kept-one"]);

    let second = sessions.fork(&fork, None).unwrap();
    let deleted = sessions.delete(&fork).unwrap();
    assert!(deleted.outputs.is_empty());
    assert_eq!(texts(&sessions, &second), ["kept-one"]);
    let deleted = sessions.delete(&second).unwrap();
    assert_eq!(deleted.outputs, [std::path::Path::new("/outputs/kept")]);
    drop(sessions);
    let bytes = everything(&folder);
    assert!(!holds(&bytes, "kept-one") && !holds(&bytes, "gone-two"));
    // The session number is not reused.
    let sessions = open(&folder);
    let session = begin(&sessions);
    session.commit(messages(&["new"])).await.unwrap();
    assert_eq!(texts(&sessions, session.id()), ["new"]);
}
