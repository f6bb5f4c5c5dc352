//! Every run ends with an event, and the agent can be used again.

use crate::bed::{Bed, of_type, result_text, results, run};
use crate::fixtures::{begins, check_history, sessions};
use crate::scripted::{Next, Scripted, calls, text};
use async_trait::async_trait;
use haft::Reply;
use haft_agent::{Hooks, ToolCall};
use serde_json::json;
use std::sync::Arc;

/// A hook that panics at a chosen point.
struct Panics(&'static str);

#[async_trait]
impl Hooks for Panics {
    async fn before_agent(&self, prompt: &mut String) {
        assert!(self.0 != "agent" || prompt != "Go", "a hook fell over");
    }

    async fn before_tool(&self, _: &mut ToolCall) -> Option<Reply> {
        assert!(self.0 != "before", "a hook fell over");
        None
    }

    async fn after_tool(&self, _: &ToolCall, _: &mut Reply) {
        assert!(self.0 != "after", "a hook fell over");
    }
}

#[tokio::test]
async fn a_panicking_hook_only_ends_the_run() {
    for place in ["agent", "before", "after"] {
        let bed = Bed::new();
        bed.file("a", "first");
        let sessions = sessions(&bed);
        let model = Scripted::new([
            calls([("c", "read", json!({ "path": "a" }))]),
            text("Went on."),
        ]);
        let agent = begins(&bed, &sessions, &model).hooks(Arc::new(Panics(place)));
        let events = run(&agent, "Go").await;
        if place == "agent" {
            assert_eq!(events.last().unwrap()["reason"], "failed");
        } else {
            // The hook might have redacted the reply, so the model does not get it.
            assert_eq!(events.last().unwrap()["text"], "Went on.", "{events:#?}");
            let result = &results(&model.last())[0];
            assert!(result.is_error && result_text(result).contains("a hook panicked"));
            assert!(!result_text(result).contains("first"));
            assert_eq!(
                of_type(&events, "tool_start").len(),
                usize::from(place == "after")
            );
        }
        let model = Scripted::new([text("Here.")]);
        agent.set_model(model.clone());
        let events = run(&agent, "Again").await;
        assert_eq!(
            events.last().unwrap()["text"],
            "Here.",
            "{place}: {events:#?}"
        );
        check_history(&model.last());
    }
}

#[tokio::test]
async fn a_panicking_model_only_ends_the_run() {
    let bed = Bed::new();
    let sessions = sessions(&bed);
    let falls = || panic!("the model fell over");
    let model = Scripted::new([Next::After(Box::new(falls), Box::new(text("Never.")))]);
    let agent = begins(&bed, &sessions, &model);
    let events = run(&agent, "Go").await;
    assert_eq!(events.last().unwrap()["reason"], "failed");
    let model = Scripted::new([text("Here.")]);
    agent.set_model(model.clone());
    let events = run(&agent, "Again").await;
    assert_eq!(events.last().unwrap()["text"], "Here.", "{events:#?}");
}

/// A hook that replaces every call with a reply.
struct Instead;

#[async_trait]
impl Hooks for Instead {
    async fn before_tool(&self, call: &mut ToolCall) -> Option<Reply> {
        (call.id == "instead").then(|| Reply::from("from the hook"))
    }
}

#[tokio::test]
async fn a_reply_that_replaces_a_call_is_recorded() {
    let bed = Bed::new();
    bed.file("a", "first");
    let sessions = sessions(&bed);
    let model = Scripted::new([
        calls([
            ("instead", "read", json!({ "path": "a" })),
            ("really", "read", json!({ "path": "a" })),
        ]),
        text("Done."),
    ]);
    let agent = begins(&bed, &sessions, &model).hooks(Arc::new(Instead));
    let events = run(&agent, "Go").await;
    assert_eq!(events.last().unwrap()["text"], "Done.", "{events:#?}");
    let (_, call) = sessions.call(Some(crate::fixtures::ID), "instead").unwrap();
    assert!(call.reply.unwrap().contains("from the hook"));
}
