//! The records that a batch leaves.

use crate::bed::{
    approval, begin, call, decision, folder, messages, new, open, outcome, text_message,
};
use haft_store::sessions::{Batch, Error, Filter, NewSession, RecordItem, SessionKind};
use std::ops::ControlFlow;
use std::path::Path;

#[tokio::test]
async fn an_unused_session_leaves_no_record() {
    let folder = folder();
    let sessions = open(&folder);
    let session = begin(&sessions);
    let id = session.id().to_owned();
    drop(session);
    assert!(sessions.list(&Filter::default()).unwrap().is_empty());
    assert!(matches!(sessions.load(&id), Err(Error::Unknown { .. })));
    assert_eq!(sessions.newest(Path::new("/work")).unwrap(), None);
}

#[tokio::test]
async fn all_records_of_a_batch_are_kept_in_order() {
    let folder = folder();
    let sessions = open(&folder);
    let session = sessions
        .begin(NewSession {
            system: Some("Be brief.".to_owned()),
            parent: Some(("elsewhere".to_owned(), "c9".to_owned())),
            ..new()
        })
        .unwrap();
    let mut answer = text_message("assistant", "reading");
    answer.usage = Some((100, 20, Some(0.25)));
    let ids = session
        .commit(Batch {
            messages: vec![text_message("user", "  fix\n it "), answer],
            calls: vec![call("c1"), call("c2")],
            events: vec![(1, r#"{"type":"a"}"#.to_owned())],
            state: Some(r#"{"todos":[]}"#.to_owned()),
            ..Batch::default()
        })
        .await
        .unwrap();
    assert_eq!(ids.len(), 2);
    session
        .commit(Batch {
            messages: vec![text_message("tool", "done")],
            outcomes: vec![outcome("c1")],
            approvals: vec![approval("c2")],
            events: vec![(2, "{}".to_owned()), (5, "{}".to_owned())],
            ..Batch::default()
        })
        .await
        .unwrap();

    let loaded = sessions.load(session.id()).unwrap();
    assert_eq!(loaded.info.title.as_deref(), Some("fix it"));
    assert_eq!(loaded.info.system.as_deref(), Some("Be brief."));
    assert_eq!(
        loaded.info.parent,
        Some(("elsewhere".to_owned(), "c9".to_owned()))
    );
    let chain: Vec<_> = loaded.messages.iter().map(|m| (m.parent, m.id)).collect();
    assert_eq!(chain[0], (None, ids[0]));
    assert_eq!(chain[1], (Some(ids[0]), ids[1]));
    assert_eq!(chain[2].0, Some(ids[1]));
    assert_eq!(loaded.open_calls.len(), 1);
    assert_eq!(loaded.open_calls[0].call_id, "c2");
    assert!(loaded.open_calls[0].has_effect);
    assert_eq!(loaded.approvals.len(), 1);
    assert_eq!(loaded.approvals[0].decision, None);
    assert_eq!(loaded.state.as_deref(), Some(r#"{"todos":[]}"#));
    assert_eq!(loaded.last_seq, 5);
    assert_eq!(loaded.usage, (100, 20, Some(0.25)));

    let all = Filter {
        sub_agents: true,
        ..Filter::default()
    };
    let [summary] = &sessions.list(&all).unwrap()[..] else {
        panic!("one session");
    };
    assert_eq!((summary.messages, summary.turns, summary.calls), (3, 1, 2));
    assert_eq!((summary.tokens, summary.cost), (120, Some(0.25)));
    assert_eq!(
        (summary.waiting, summary.in_use_by),
        (1, Some(std::process::id()))
    );
    assert!(
        sessions.list(&Filter::default()).unwrap().is_empty(),
        "it is a sub-agent's"
    );

    let mut kinds = Vec::new();
    sessions
        .walk(session.id(), |entry| {
            kinds.push(match entry {
                RecordItem::Session(_) => "session",
                RecordItem::Message(_) => "message",
                RecordItem::Call(_) => "call",
                RecordItem::Event(_) => "event",
                _ => "other",
            });
            ControlFlow::Continue(())
        })
        .unwrap();
    let wanted = "session message message call call event message event event";
    assert_eq!(kinds.join(" "), wanted);
    let (id, found) = sessions.call(None, "c1").unwrap();
    assert_eq!(
        (id.as_str(), found.duration_ms),
        (session.id(), Some(7)),
        "{found:?}"
    );
    assert!(
        sessions
            .call(Some(session.id()), "c2")
            .unwrap()
            .1
            .reply
            .is_none()
    );
}

#[tokio::test]
async fn a_contradiction_rejects_the_whole_batch() {
    let folder = folder();
    let sessions = open(&folder);
    let session = begin(&sessions);
    let first = Batch {
        calls: vec![call("c1")],
        outcomes: vec![outcome("c1")],
        events: vec![(1, "{}".to_owned())],
        ..messages(&["one"])
    };
    session.commit(first).await.unwrap();
    let bad = [
        Batch {
            calls: vec![call("c1")],
            ..messages(&["two"])
        },
        Batch {
            outcomes: vec![outcome("c1")],
            ..messages(&["two"])
        },
        Batch {
            outcomes: vec![outcome("nobody made it")],
            ..messages(&["two"])
        },
        Batch {
            decisions: vec![decision("c1", "approve")],
            ..messages(&["two"])
        },
        Batch {
            events: vec![(2, "{}".to_owned()), (1, "{}".to_owned())],
            ..messages(&["two"])
        },
    ];
    for batch in bad {
        let shown = format!("{batch:?}");
        assert!(session.commit(batch).await.is_err(), "{shown}");
        let loaded = sessions.load(session.id()).unwrap();
        assert_eq!((loaded.messages.len(), loaded.last_seq), (1, 1), "{shown}");
    }
    session.commit(messages(&["two"])).await.unwrap();
    assert_eq!(sessions.load(session.id()).unwrap().messages.len(), 2);
}

#[tokio::test]
async fn batches_committed_together_are_all_or_nothing() {
    let folder = folder();
    let sessions = open(&folder);
    let session = begin(&sessions);
    let answer = Batch {
        calls: vec![call("c1")],
        ..messages(&["one"])
    };
    let results = |call_id| Batch {
        outcomes: vec![outcome(call_id)],
        ..messages(&["two", "three"])
    };
    let refused = vec![answer.clone(), results("nobody made it")];
    assert!(session.commit_all(refused).await.is_err());
    assert!(matches!(
        sessions.load(session.id()),
        Err(Error::Unknown { .. })
    ));
    let ids = session.commit_all(vec![answer, results("c1")]).await;
    let loaded = sessions.load(session.id()).unwrap();
    let kept: Vec<_> = loaded.messages.iter().map(|message| message.id).collect();
    assert_eq!((ids.unwrap(), kept.len()), (kept, 3));
    let (_, made) = sessions.call(Some(session.id()), "c1").unwrap();
    assert!(made.reply.is_some());
}

#[tokio::test]
async fn one_decision_answers_all_questions_about_a_call() {
    let folder = folder();
    let sessions = open(&folder);
    let session = begin(&sessions);
    let asked = Batch {
        calls: vec![call("a")],
        approvals: vec![approval("a")],
        ..messages(&["go"])
    };
    session.commit(asked).await.unwrap();
    let again = Batch {
        approvals: vec![approval("a")],
        ..Batch::default()
    };
    session.commit(again).await.unwrap();
    let waiting = || sessions.list(&Filter::default()).unwrap()[0].waiting;
    assert_eq!(waiting(), 1);
    let answered = Batch {
        decisions: vec![decision("a", "approve")],
        ..Batch::default()
    };
    session.commit(answered).await.unwrap();
    assert_eq!(waiting(), 0);
    let pending = sessions.load(session.id()).unwrap().approvals;
    assert!(
        pending.iter().all(|one| one.decision.is_some()),
        "{pending:?}"
    );
}

#[tokio::test]
async fn questions_wait_until_they_are_answered_or_obsolete() {
    let folder = folder();
    let sessions = open(&folder);
    let session = begin(&sessions);
    let waiting = || sessions.list(&Filter::default()).unwrap()[0].waiting;
    let asked = Batch {
        calls: vec![call("a"), call("b")],
        approvals: vec![approval("a"), approval("b")],
        ..messages(&["go"])
    };
    session.commit(asked).await.unwrap();
    assert_eq!(waiting(), 2);
    let answered = Batch {
        decisions: vec![decision("a", "approve")],
        ..Batch::default()
    };
    session.commit(answered).await.unwrap();
    assert_eq!(waiting(), 1);
    let pending = sessions.load(session.id()).unwrap().approvals;
    let decisions: Vec<_> = pending.iter().map(|one| one.decision.as_deref()).collect();
    assert_eq!(decisions, [Some("approve"), None]);
    let done = Batch {
        outcomes: vec![outcome("a"), outcome("b")],
        ..Batch::default()
    };
    session.commit(done).await.unwrap();
    assert_eq!(waiting(), 0, "a cancelled call has no open question");
    assert!(sessions.load(session.id()).unwrap().approvals.is_empty());
}

#[tokio::test]
async fn a_session_is_found_by_the_start_of_its_id() {
    let folder = folder();
    let sessions = open(&folder);
    for id in ["abcd-1", "abcd-2", "zzzzzz"] {
        let session = sessions
            .begin(NewSession {
                id: Some(id.to_owned()),
                ..new()
            })
            .unwrap();
        session.commit(messages(&["x"])).await.unwrap();
    }
    assert_eq!(sessions.find("zzzz").unwrap(), "zzzzzz");
    assert_eq!(sessions.find("abcd-1").unwrap(), "abcd-1");
    let told = |given: &str| sessions.find(given).unwrap_err().to_string();
    assert_eq!(
        told("abcd"),
        "several sessions begin with \"abcd\": abcd-1, abcd-2; give more of the id"
    );
    assert_eq!(
        told("zzz"),
        "session id too short: \"zzz\"; give at least 4 characters"
    );
    assert_eq!(
        told("zzyzzz"),
        "session not found: \"zzyzzz\"; did you mean \"zzzzzz\"?"
    );
    for hostile in [
        "'; DROP TABLE sessions; --",
        "%%%%",
        "____",
        "a\0bcd",
        "\u{7f}\u{7f}\u{7f}\u{7f}",
    ] {
        assert!(matches!(sessions.find(hostile), Err(Error::Unknown { .. })));
    }
    let taken = sessions
        .begin(NewSession {
            id: Some("zzzzzz".to_owned()),
            ..new()
        })
        .unwrap();
    let refused = taken.commit(messages(&["y"])).await;
    assert!(matches!(refused, Err(Error::BadId { .. })), "{refused:?}");
    assert_eq!(sessions.load("zzzzzz").unwrap().messages.len(), 1);
}

#[tokio::test]
async fn secrets_are_not_recorded() {
    let folder = folder();
    let sessions = open(&folder);
    let secret = "sk-canary\"\\é-1234";
    sessions.redact([secret.to_owned()]);
    let session = sessions
        .begin(NewSession {
            title: Some(format!("with {secret}")),
            system: Some(secret.to_owned()),
            ..new()
        })
        .unwrap();
    let json = serde_json::json!({ "key": secret }).to_string();
    let mut made = call("c1");
    made.arguments = json.clone();
    let mut came = outcome("c1");
    came.reply = json.clone();
    let mut asked = approval("c1");
    asked.question = json.clone();
    session
        .commit(Batch {
            messages: vec![text_message("user", secret)],
            calls: vec![made],
            outcomes: vec![came],
            approvals: vec![asked],
            decisions: vec![decision("c1", &json)],
            events: vec![(1, json.clone())],
            state: Some(json),
            ..Batch::default()
        })
        .await
        .unwrap();
    drop(session);
    drop(sessions);
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let found = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
        assert!(!found(b"sk-canary"));
        assert!(!found("é-1234".as_bytes()));
    }
    let sessions = open(&folder);
    let summary = &sessions.list(&Filter::default()).unwrap()[0];
    assert_eq!(summary.title.as_deref(), Some("with [redacted]"));
    // Secrets that were recorded before they were known are not shown either.
    sessions.redact(["replay-secret".to_owned(), "scripted-model".to_owned()]);
    let session = begin(&sessions);
    session
        .commit(messages(&["the later-known"]))
        .await
        .unwrap();
    sessions.redact(["later-known".to_owned()]);
    let mut shown = String::new();
    sessions
        .walk(session.id(), |entry| {
            shown.push_str(&format!("{entry:?}"));
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(shown.contains("the [redacted]") && !shown.contains("later-known"));
}

#[tokio::test]
async fn delayed_batches_are_written_within_a_moment_and_at_the_end() {
    let folder = folder();
    let sessions = open(&folder);
    let session = begin(&sessions);
    for number in 0..100 {
        let text = format!("{number} {}", "x".repeat(100_000));
        session.commit_soon(messages(&[&text])).await.unwrap();
    }
    // A batch that is waited for comes after all delayed ones.
    let ids = session.commit(messages(&["last"])).await.unwrap();
    let loaded = sessions.load(session.id()).unwrap();
    assert_eq!(loaded.messages.len(), 101);
    assert_eq!(loaded.messages[100].id, ids[0]);
    let id = session.id().to_owned();
    session.commit_soon(messages(&["later"])).await.unwrap();
    let begun = std::time::Instant::now();
    while sessions.load(&id).unwrap().messages.len() < 102 {
        assert!(begun.elapsed() < std::time::Duration::from_secs(5));
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    session
        .commit_soon(messages(&["at the end"]))
        .await
        .unwrap();
    drop(session);
    drop(sessions);
    assert_eq!(open(&folder).load(&id).unwrap().messages.len(), 103);
}

/// Concurrent sessions of one process, each all or nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rejected_batch_does_not_affect_others() {
    let folder = folder();
    let sessions = open(&folder);
    let tasks: Vec<_> = (0..40)
        .map(|number| {
            let session = begin(&sessions);
            tokio::spawn(async move {
                for round in 0..25 {
                    let good = Batch {
                        calls: vec![call(&format!("c{round}"))],
                        ..messages(&["good"])
                    };
                    session.commit(good).await.unwrap();
                    let bad = Batch {
                        outcomes: vec![outcome("nobody made it")],
                        ..messages(&["bad"])
                    };
                    assert!(session.commit(bad).await.is_err(), "{number}");
                }
                session.id().to_owned()
            })
        })
        .collect();
    for task in tasks {
        let id = task.await.unwrap();
        let loaded = sessions.load(&id).unwrap();
        assert_eq!((loaded.messages.len(), loaded.open_calls.len()), (25, 25));
    }
}

#[tokio::test]
async fn lists_can_be_limited_to_a_folder_and_a_kind() {
    let folder = folder();
    let sessions = open(&folder);
    for (kind, dir) in [
        (SessionKind::Agent, "/a"),
        (SessionKind::Call, "/a"),
        (SessionKind::Mcp, "/b"),
        (SessionKind::Agent, "/b"),
        (SessionKind::Agent, "/a"),
    ] {
        let session = sessions
            .begin(NewSession {
                kind,
                work_dir: dir.into(),
                ..new()
            })
            .unwrap();
        session.commit(messages(&[dir])).await.unwrap();
    }
    let count = |work_dir: Option<&str>, kinds: &[SessionKind], limit| {
        let filter = Filter {
            work_dir: work_dir.map(Into::into),
            kinds: kinds.to_vec(),
            limit,
            ..Filter::default()
        };
        sessions.list(&filter).unwrap().len()
    };
    assert_eq!(count(None, &[], None), 5);
    assert_eq!(count(Some("/a"), &[], None), 3);
    assert_eq!(count(Some("/a"), &[SessionKind::Agent], None), 2);
    assert_eq!(count(None, &[SessionKind::Call, SessionKind::Mcp], None), 2);
    assert_eq!(count(None, &[SessionKind::Agent], Some(1)), 1);
    let newest = sessions.newest(Path::new("/a")).unwrap().unwrap();
    let all = sessions.list(&Filter::default()).unwrap();
    assert_eq!(newest, all[0].id);
}
