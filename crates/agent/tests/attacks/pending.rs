//! Pending calls in unusual situations.

use crate::bed::{Bed, all, of_type, run};
use crate::fixtures::{ID, begins, check_history, goes_on_with_yes, resumed_agent, sessions};
use crate::scripted::{Scripted, calls, text};
use async_trait::async_trait;
use haft::{ApprovalAnswer, Context, Effect, FromSchema, Reply};
use haft_agent::{Agent, Hooks, Resumed, ToolCall};
use haft_store::sessions::Sessions;
use serde_json::{Value, json};
use std::sync::Arc;

fn writes(path: &str) -> Value {
    json!({ "path": path, "content": "new" })
}

async fn answers(agent: &Agent, answers: &[(&str, ApprovalAnswer)]) -> Vec<Value> {
    let answers = answers.iter();
    let resumed = Resumed {
        answers: answers
            .map(|(id, answer)| ((*id).to_owned(), answer.clone()))
            .collect(),
        prompt: None,
    };
    all(agent.resume(resumed).await.unwrap()).await
}

#[tokio::test]
async fn a_new_prompt_does_not_approve_pending_calls() {
    let bed = Bed::new();
    let sessions = sessions(&bed);
    let model = Scripted::new([calls([("w", "write", writes("one"))])]);
    let agent = begins(&bed, &sessions, &model);
    let events = run(&agent, "Go").await;
    assert_eq!(events.last().unwrap()["reason"], "approval");
    model.also([text("Something else, then.")]);
    let events = run(&agent, "Something else").await;
    assert_eq!(events.last().unwrap()["reason"], "done", "{events:#?}");
    check_history(&model.last());
    assert!(!bed.folder.path().join("one").exists());
    assert!(agent.pending_calls().is_empty());
    drop(agent);
    assert!(
        resumed_agent(&bed, &sessions, &model)
            .pending_calls()
            .is_empty()
    );
}

#[tokio::test]
async fn a_final_reply_does_not_hide_pending_calls() {
    let bed = Bed::new();
    let sessions = sessions(&bed);
    let model = Scripted::new([calls([
        ("f", "finish", json!({})),
        ("w", "write", writes("one")),
    ])]);
    let agent = begins(&bed, &sessions, &model);
    let tool = FromSchema::new(
        "finish",
        "Ends it.",
        json!({ "type": "object" }),
        Effect::Pure,
        |_, _: Context| async move { Ok(Reply::final_answer("All done.")) },
    );
    agent.tools().add_any(Arc::new(tool.unwrap())).unwrap();
    let events = run(&agent, "Go").await;
    assert_eq!(events.last().unwrap()["reason"], "approval", "{events:#?}");
    assert_eq!(agent.pending_calls().len(), 1);
}

#[tokio::test]
async fn compaction_keeps_pending_calls() {
    let bed = Bed::new();
    let sessions = sessions(&bed);
    let model = Scripted::new([
        text("Hello."),
        calls([("w", "write", writes("one"))]),
        text("A summary."),
    ]);
    let agent = begins(&bed, &sessions, &model);
    run(&agent, "Hello").await;
    run(&agent, "Write").await;
    all(agent.compact().await.unwrap()).await;
    drop(agent);
    let agent = resumed_agent(&bed, &sessions, &model);
    assert_eq!(agent.pending_calls().len(), 1);
    model.also([text("Done.")]);
    let events = answers(&agent, &[("w", ApprovalAnswer::Approve)]).await;
    assert_eq!(events.last().unwrap()["text"], "Done.", "{events:#?}");
    check_history(&model.last());
    assert_eq!(bed.read("one"), "new");
}

/// A hook that changes the arguments of `write`.
struct Elsewhere;

#[async_trait]
impl Hooks for Elsewhere {
    async fn before_tool(&self, call: &mut ToolCall) -> Option<Reply> {
        call.arguments = writes("harmless");
        None
    }
}

#[tokio::test]
async fn the_call_runs_with_the_arguments_that_were_approved() {
    let bed = Bed::new();
    let sessions = sessions(&bed);
    let model = Scripted::new([calls([("w", "write", writes("harmful"))])]);
    let agent = begins(&bed, &sessions, &model).hooks(Arc::new(Elsewhere));
    let events = run(&agent, "Go").await;
    let asked = of_type(&events, "approval_needed");
    assert_eq!(asked[0]["arguments"]["path"], "harmless");
    drop(agent);
    model.also([text("Done.")]);
    let agent = resumed_agent(&bed, &sessions, &model).hooks(Arc::new(Elsewhere));
    assert_eq!(agent.pending_calls()[0].arguments["path"], "harmless");
    answers(&agent, &[("w", ApprovalAnswer::Approve)]).await;
    assert!(!bed.folder.path().join("harmful").exists());
    assert_eq!(bed.read("harmless"), "new");
}

#[tokio::test]
async fn a_call_interrupted_after_its_approval_is_not_pending_again() {
    let bed = Bed::new();
    let sessions = sessions(&bed);
    let model = Scripted::new([calls([
        ("w1", "write", writes("one")),
        ("slow", "slow", json!({})),
    ])]);
    let agent = begins(&bed, &sessions, &model);
    add_slow(&agent);
    let events = run(&agent, "Go").await;
    assert_eq!(events.last().unwrap()["reason"], "approval");
    // Only one call is answered, so the other is asked about again.
    answers(&agent, &[("w1", ApprovalAnswer::Approve)]).await;
    assert_eq!(bed.read("one"), "new");
    let resumed = Resumed {
        answers: vec![("slow".to_owned(), ApprovalAnswer::Approve)],
        prompt: None,
    };
    let mut events = agent.resume(resumed).await.unwrap();
    while let Some(event) = events.next().await {
        if crate::bed::json(&event)["type"] == "tool_update" {
            break;
        }
    }
    assert_eq!(undecided(&sessions), Vec::<String>::new());
}

/// A tool that never ends.
fn add_slow(agent: &Agent) {
    let slow = FromSchema::new(
        "slow",
        "Never ends.",
        json!({ "type": "object" }),
        Effect::Write,
        |_, cx: Context| async move {
            cx.update("begun");
            std::future::pending::<()>().await;
            Ok(Reply::from("never"))
        },
    );
    agent.tools().add_any(Arc::new(slow.unwrap())).unwrap();
}

/// Returns the calls that another process would find pending.
fn undecided(sessions: &Sessions) -> Vec<String> {
    let loaded = sessions.load(ID).unwrap();
    let undecided = loaded.approvals.iter().filter(|one| one.decision.is_none());
    undecided.map(|one| one.call_id.clone()).collect()
}

#[tokio::test]
async fn an_immediate_approval_is_recorded_before_the_call() {
    let bed = Bed::new();
    let sessions = sessions(&bed);
    let model = Scripted::new([calls([("slow", "slow", json!({}))])]);
    let agent = begins(&bed, &sessions, &model);
    add_slow(&agent);
    run(&agent, "Go").await;
    drop(agent);
    assert_eq!(undecided(&sessions), ["slow"]);
    let agent = goes_on_with_yes(&bed, &sessions, &model);
    add_slow(&agent);
    let mut events = agent.resume(Resumed::default()).await.unwrap();
    while let Some(event) = events.next().await {
        if crate::bed::json(&event)["type"] == "tool_update" {
            break;
        }
    }
    assert_eq!(undecided(&sessions), Vec::<String>::new());
}
