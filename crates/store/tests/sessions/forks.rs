//! Forks share the history up to the fork, and nothing after it.

use crate::bed::{approval, begin, call, folder, messages, open, texts};
use haft_store::sessions::{Batch, Error};

#[tokio::test]
async fn a_fork_continues_independently() {
    let folder = folder();
    let sessions = open(&folder);
    let session = begin(&sessions);
    let first = Batch {
        state: Some("1".to_owned()),
        ..messages(&["one", "two"])
    };
    let ids = session.commit(first).await.unwrap();
    let second = Batch {
        calls: vec![call("c")],
        approvals: vec![approval("c")],
        state: Some("2".to_owned()),
        events: vec![(1, "{}".to_owned())],
        ..messages(&["three"])
    };
    session.commit(second).await.unwrap();

    let early = sessions.fork(session.id(), Some(ids[0])).unwrap();
    let middle = sessions.fork(session.id(), Some(ids[1])).unwrap();
    let late = sessions.fork(session.id(), None).unwrap();
    assert_eq!(texts(&sessions, &early), ["one"]);
    assert_eq!(texts(&sessions, &middle), ["one", "two"]);
    assert_eq!(texts(&sessions, &late), ["one", "two", "three"]);
    let state = |id: &str| sessions.load(id).unwrap().state;
    assert_eq!(state(&early), None, "no state was recorded yet");
    assert_eq!(state(&middle).as_deref(), Some("1"));
    assert_eq!(state(&late).as_deref(), Some("2"));
    let loaded = sessions.load(&late).unwrap();
    assert!(loaded.open_calls.is_empty() && loaded.approvals.is_empty());
    assert_eq!(loaded.last_seq, 0);
    assert_eq!(
        loaded.info.forked_from.map(|(from, _)| from).as_deref(),
        Some(session.id())
    );

    // Each session continues on its own.
    let (fork, _) = sessions.resume(&middle).unwrap();
    fork.commit(messages(&["other three"])).await.unwrap();
    session.commit(messages(&["four"])).await.unwrap();
    assert_eq!(texts(&sessions, &middle), ["one", "two", "other three"]);
    assert_eq!(
        texts(&sessions, session.id()),
        ["one", "two", "three", "four"]
    );

    // A fork of a fork, in its own part and in the shared one.
    let again = sessions.fork(&middle, None).unwrap();
    assert_eq!(texts(&sessions, &again), ["one", "two", "other three"]);
    let shared = sessions.fork(&again, Some(ids[0])).unwrap();
    assert_eq!(texts(&sessions, &shared), ["one"]);
    let chain = sessions.load(&again).unwrap().messages;
    for pair in chain.windows(2) {
        assert_eq!(pair[1].parent, Some(pair[0].id));
    }

    let elsewhere = sessions.load(session.id()).unwrap().messages[3].id;
    for at in [elsewhere, 0, -1, i64::MAX] {
        let refused = sessions.fork(&middle, Some(at));
        assert!(
            matches!(refused, Err(Error::UnknownMessage { .. })),
            "{refused:?}"
        );
    }
}
