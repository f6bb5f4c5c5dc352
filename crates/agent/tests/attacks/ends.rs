//! However a run ends, it says so, and the agent can be asked again.

use crate::bed::{Bed, of, results, run, said};
use crate::kept::{begins, check_history, sessions};
use crate::scripted::{Next, Scripted, calls, text};
use async_trait::async_trait;
use haft::Reply;
use haft_agent::{Hooks, ToolCall};
use serde_json::json;
use std::sync::Arc;

/// Falls over where it is told to.
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
async fn a_hook_that_panics_ends_the_run_and_no_more() {
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
            // What a hook would have said or left out is not known: the model gets nothing.
            assert_eq!(events.last().unwrap()["text"], "Went on.", "{events:#?}");
            let result = &results(&model.last())[0];
            assert!(result.is_error && said(result).contains("a hook panicked"));
            assert!(!said(result).contains("first"));
            assert_eq!(
                of(&events, "tool_start").len(),
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
async fn a_model_that_panics_ends_the_run_and_no_more() {
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

/// Answers for every tool.
struct Instead;

#[async_trait]
impl Hooks for Instead {
    async fn before_tool(&self, call: &mut ToolCall) -> Option<Reply> {
        (call.id == "instead").then(|| Reply::from("from the hook"))
    }
}

#[tokio::test]
async fn a_reply_in_place_of_a_call_is_recorded() {
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
    let (_, call) = sessions.call(Some(crate::kept::ID), "instead").unwrap();
    assert!(call.reply.unwrap().contains("from the hook"));
}
