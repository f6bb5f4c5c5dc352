//! Resuming a recorded session.

use crate::bed::{Bed, all, run};
use crate::scripted::{Scripted, calls, text};
use crate::turns::ChangingHooks;
use haft_agent::{Agent, Message, Resumed};
use haft_store::sessions::{NewSession, Session, SessionKind, Sessions, new_id};
use serde_json::json;
use std::sync::Arc;

pub(crate) fn begun(bed: &Bed, sessions: &Sessions) -> (String, Session) {
    let id = new_id();
    let session = sessions.begin(NewSession {
        id: Some(id.clone()),
        kind: SessionKind::Agent,
        work_dir: bed.folder.path().to_owned(),
        toolset: "standard".to_owned(),
        provider: "scripted".to_owned(),
        model: "m".to_owned(),
        title: None,
        parent: None,
        system: None,
    });
    (id, session.unwrap())
}

#[tokio::test]
async fn a_call_that_a_hook_replaces_is_recorded_too() {
    let bed = Bed::new();
    bed.file("b.txt", "text");
    let sessions = Sessions::open(bed.folder.path().join("sessions.db")).unwrap();
    let (id, session) = begun(&bed, &sessions);
    let model = Scripted::new([
        calls([
            ("1", "ls", json!({})),
            ("2", "read", json!({ "path": "a" })),
        ]),
        text("Done."),
    ]);
    let hooks = Arc::new(ChangingHooks {
        calls: std::sync::Mutex::default(),
    });
    let agent = bed.agent(&model).hooks(hooks).recorded(session);
    let events = run(&agent, "Go").await;
    assert_eq!(events.last().unwrap()["reason"], "done", "{events:?}");
    let loaded = sessions.load(&id).unwrap();
    assert_eq!(loaded.messages.len(), 4);
    assert!(loaded.open_calls.is_empty());
    let (_, recorded) = sessions.call(Some(&id), "1").unwrap();
    assert!(recorded.reply.unwrap().contains("no listing today"));
}

#[tokio::test]
async fn a_resumed_session_has_its_messages_and_its_compaction() {
    let bed = Bed::new();
    bed.file("a.txt", "text");
    let sessions = Sessions::open(bed.folder.path().join("sessions.db")).unwrap();
    let (id, session) = begun(&bed, &sessions);
    let read = || calls([("c", "read", json!({ "path": "a.txt" }))]);
    let model = Scripted::new([read(), text("One."), text("In short."), text("Two.")]);
    let agent = bed.agent(&model).recorded(session);
    run(&agent, "First").await;
    all(agent.compact().await.unwrap()).await;
    let events = run(&agent, "Second").await;
    let last = events.last().unwrap()["seq"].as_u64().unwrap();
    let said = agent.history();
    drop(agent);

    let (session, loaded) = sessions.resume(&id).unwrap();
    // The record has all messages.
    assert_eq!(loaded.messages.len(), 7);
    let model = Scripted::new([text("Three.")]);
    let runtime = bed.runtime(|builder| builder.session(&id));
    let agent = Agent::new(model.clone(), runtime);
    let agent = agent.resuming(session, &loaded).unwrap();
    let messages = |said: &[Arc<haft_agent::Message>]| -> Vec<Message> {
        said.iter().map(|message| Message::clone(message)).collect()
    };
    assert_eq!(messages(&agent.history()), messages(&said));
    assert!(!agent.has_work());
    let resumed = Resumed {
        answers: Vec::new(),
        prompt: Some("Third".into()),
    };
    let events = all(agent.resume(resumed).await.unwrap()).await;
    assert!(events[0]["seq"].as_u64().unwrap() > last);
    assert_eq!(events.last().unwrap()["text"], "Three.");
}
