//! The record is written before events are emitted.

use crate::bed::{Bed, json, of_type, run};
use crate::scripted::{Scripted, calls, text};
use haft::prelude::*;
use haft_agent::Agent;
use haft_store::sessions::{NewSession, SessionKind, Sessions};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Creates a recorded agent, and returns its record.
fn recorded(bed: &Bed, model: &Arc<Scripted>) -> (Agent, Sessions) {
    let sessions = Sessions::open(bed.folder.path().join("sessions.db")).unwrap();
    let agent = bed.agent(model);
    let new = NewSession {
        id: Some(agent.session().to_owned()),
        kind: SessionKind::Agent,
        work_dir: bed.folder.path().to_owned(),
        toolset: "standard".to_owned(),
        provider: "scripted".to_owned(),
        model: "scripted".to_owned(),
        title: None,
        parent: None,
        system: None,
    };
    let session = sessions.begin(new).unwrap();
    (agent.recorded(session), sessions)
}

fn roles(sessions: &Sessions, agent: &Agent) -> Vec<String> {
    let looked = sessions.load(agent.session());
    let messages = looked.map_or(Vec::new(), |looked| looked.messages);
    let roles = messages.into_iter().map(|message| message.role);
    roles.collect()
}

/// A tool that notes what is recorded while it runs.
fn noting(agent: &Agent, sessions: &Sessions, effect: Effect) -> Arc<Mutex<Vec<usize>>> {
    let noted = Arc::new(Mutex::new(Vec::new()));
    let (into, sessions, id) = (noted.clone(), sessions.clone(), agent.session().to_owned());
    let work = move |_, _: Context| {
        let count = sessions.load(&id).unwrap().messages.len();
        into.lock().unwrap().push(count);
        async { Ok::<_, Error>(Reply::from("noted")) }
    };
    let schema = json!({ "type": "object" });
    let tool = haft::FromSchema::new("note", "Notes.", schema, effect, work).unwrap();
    agent.tools().add_any(Arc::new(tool)).unwrap();
    noted
}

#[tokio::test]
async fn results_of_reading_calls_are_recorded_before_their_events() {
    let bed = Bed::new();
    bed.file("a.txt", "first");
    let read = |id| calls([(id, "read", json!({ "path": "a.txt" }))]);
    let model = Scripted::new([read("1"), read("2"), text("Done.")]);
    let (agent, sessions) = recorded(&bed, &model);
    let mut events = agent.prompt("Read").await.unwrap();
    let mut ends = 0;
    while let Some(event) = events.next().await {
        let event = json(&event);
        if event["type"] == "tool_end" {
            ends += 1;
            let id = event["call_id"].as_str().unwrap();
            let (_, call) = sessions.call(Some(agent.session()), id).unwrap();
            assert!(call.reply.unwrap().contains("first"));
            let roles = roles(&sessions, &agent);
            assert!(roles.len() > 2 * ends, "{roles:?}");
        }
    }
    assert_eq!(ends, 2);
    let kept = [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ];
    assert_eq!(roles(&sessions, &agent), kept);
}

#[tokio::test]
async fn a_call_with_an_effect_starts_after_its_intent_is_recorded() {
    let bed = Bed::new();
    let model = Scripted::new([
        calls([("1", "note", json!({})), ("2", "note", json!({}))]),
        text("Done."),
    ]);
    let (agent, sessions) = recorded(&bed, &model);
    let noted = noting(&agent, &sessions, Effect::Write);
    let events = run(&agent, "Note").await;
    assert_eq!(of_type(&events, "tool_end").len(), 2);
    assert_eq!(*noted.lock().unwrap(), [2, 2]);
}

#[tokio::test]
async fn an_answer_is_recorded_before_slow_calls_end() {
    let bed = Bed::new();
    let model = Scripted::new([calls([("1", "wait", json!({}))]), text("Never.")]);
    let (agent, sessions) = recorded(&bed, &model);
    crate::turns::waiting(agent.runtime());
    let mut events = agent.prompt("Wait").await.unwrap();
    let begun = Instant::now();
    while roles(&sessions, &agent) != ["user", "assistant"] {
        assert!(begun.elapsed() < Duration::from_secs(20));
        tokio::task::yield_now().await;
    }
    agent.abort();
    while events.next().await.is_some() {}
    assert_eq!(roles(&sessions, &agent), ["user", "assistant", "tool"]);
}

#[tokio::test]
async fn arguments_are_recorded_as_repaired() {
    let bed = Bed::new();
    bed.file("a.txt", "first");
    let model = Scripted::new([
        calls([
            ("1", "read", json!({ "file_path": "a.txt" })),
            (
                "2",
                "write",
                json!({ "file_path": "b.txt", "content": "x" }),
            ),
            ("3", "read", json!({ "offset": 1 })),
        ]),
        text("Done."),
    ]);
    let (agent, sessions) = recorded(&bed, &model);
    run(&agent, "Read").await;
    let arguments = |id| {
        let (_, call) = sessions.call(Some(agent.session()), id).unwrap();
        call.arguments
    };
    assert_eq!(arguments("1"), r#"{"path":"a.txt"}"#);
    assert_eq!(arguments("2"), r#"{"content":"x","path":"b.txt"}"#);
    assert_eq!(arguments("3"), r#"{"offset":1}"#, "invalid, so as given");
}
