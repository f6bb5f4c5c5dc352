//! Fixtures: a folder, an agent in it, and its events.

use crate::scripted::Scripted;
use haft::{Content, Runtime};
use haft_agent::{Agent, Event, Events, Message, ToolResult};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Bed {
    pub(crate) folder: tempfile::TempDir,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        Self { folder }
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> &Self {
        std::fs::write(self.folder.path().join(name), text).unwrap();
        self
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    pub(crate) fn runtime(&self, set: impl FnOnce(haft::Builder) -> haft::Builder) -> Runtime {
        let builder = Runtime::builder().dir(self.folder.path()).every_tool();
        set(builder).build().unwrap()
    }

    pub(crate) fn agent(&self, model: &Arc<Scripted>) -> Agent {
        Agent::new(model.clone(), self.runtime(|builder| builder)).backoff(Duration::from_millis(1))
    }
}

/// Collects all events until the end.
pub(crate) async fn all(mut events: Events) -> Vec<Value> {
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        seen.push(json(&event));
    }
    check(&seen);
    seen
}

pub(crate) fn json(event: &Event) -> Value {
    serde_json::to_value(event).unwrap()
}

pub(crate) fn kinds(events: &[Value]) -> Vec<&str> {
    let kinds = events.iter().map(|event| event["type"].as_str().unwrap());
    kinds.filter(|kind| *kind != "message_update").collect()
}

pub(crate) fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events
        .iter()
        .filter(|event| event["type"] == kind)
        .collect()
}

pub(crate) async fn run(agent: &Agent, prompt: &str) -> Vec<Value> {
    all(agent.prompt(prompt).await.unwrap()).await
}

/// Checks the invariants of a run: the order of events and their pairs.
fn check(events: &[Value]) {
    let mut last = 0;
    let mut open: Vec<String> = Vec::new();
    let mut in_turn = false;
    for event in events {
        let seq = event["seq"].as_u64().unwrap();
        assert!(seq > last, "seq does not rise: {event}");
        last = seq;
        let kind = event["type"].as_str().unwrap();
        match kind {
            "turn_start" => {
                assert!(!in_turn, "a turn within a turn: {event}");
                in_turn = true;
            }
            "turn_end" => {
                assert!(in_turn && open.is_empty(), "{event}, open: {open:?}");
                in_turn = false;
            }
            "tool_start" => {
                assert!(in_turn, "{event}");
                open.push(event["call_id"].as_str().unwrap().to_owned());
            }
            "tool_end" => {
                let id = event["call_id"].as_str().unwrap();
                let at = open.iter().position(|open| open == id);
                open.remove(at.unwrap_or_else(|| panic!("an end without a start: {event}")));
            }
            _ => {}
        }
    }
    assert_eq!(events.first().unwrap()["type"], "agent_start");
    assert_eq!(events.last().unwrap()["type"], "agent_end");
    assert!(!in_turn && open.is_empty(), "{open:?}");
}

/// Returns the results in the last message that has any.
pub(crate) fn results(history: &[Message]) -> Vec<ToolResult> {
    let found = history.iter().rev().find_map(|message| match message {
        Message::Tool { results } => Some(results.clone()),
        _ => None,
    });
    found.unwrap()
}

pub(crate) fn result_text(result: &ToolResult) -> String {
    let texts = result.content.iter().map(|block| match block {
        Content::Text { text } => text.clone(),
        _ => "[picture]".to_owned(),
    });
    texts.collect::<Vec<_>>().join("\n")
}
