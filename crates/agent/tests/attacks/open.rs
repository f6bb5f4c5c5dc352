//! Calls that wait, and what else may happen meanwhile.

use crate::bed::{Bed, all, of, run};
use crate::kept::{ID, begins, check_history, goes_on, goes_on_with_yes, sessions};
use crate::scripted::{Scripted, calls, text};
use async_trait::async_trait;
use haft::{Answer, Context, Effect, FromSchema, Reply};
use haft_agent::{Agent, Hooks, Resumed, ToolCall};
use haft_store::sessions::Sessions;
use serde_json::{Value, json};
use std::sync::Arc;

fn writes(path: &str) -> Value {
    json!({ "path": path, "content": "new" })
}

async fn answers(agent: &Agent, answers: &[(&str, Answer)]) -> Vec<Value> {
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
async fn who_says_something_else_has_not_said_yes() {
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
    assert!(agent.waiting().is_empty());
    drop(agent);
    assert!(goes_on(&bed, &sessions, &model).waiting().is_empty());
}

#[tokio::test]
async fn a_final_answer_does_not_hide_what_waits() {
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
    assert_eq!(agent.waiting().len(), 1);
}

#[tokio::test]
async fn a_summary_leaves_what_waits() {
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
    let agent = goes_on(&bed, &sessions, &model);
    assert_eq!(agent.waiting().len(), 1);
    model.also([text("Done.")]);
    let events = answers(&agent, &[("w", Answer::Approve)]).await;
    assert_eq!(events.last().unwrap()["text"], "Done.", "{events:#?}");
    check_history(&model.last());
    assert_eq!(bed.read("one"), "new");
}

/// Changes what is written, and ends the process it is in, as far as a test can.
struct Elsewhere;

#[async_trait]
impl Hooks for Elsewhere {
    async fn before_tool(&self, call: &mut ToolCall) -> Option<Reply> {
        call.arguments = writes("harmless");
        None
    }
}

#[tokio::test]
async fn what_was_asked_about_is_what_is_made() {
    let bed = Bed::new();
    let sessions = sessions(&bed);
    let model = Scripted::new([calls([("w", "write", writes("harmful"))])]);
    let agent = begins(&bed, &sessions, &model).hooks(Arc::new(Elsewhere));
    let events = run(&agent, "Go").await;
    let asked = of(&events, "approval_needed");
    assert_eq!(asked[0]["arguments"]["path"], "harmless");
    drop(agent);
    model.also([text("Done.")]);
    let agent = goes_on(&bed, &sessions, &model).hooks(Arc::new(Elsewhere));
    assert_eq!(agent.waiting()[0].arguments["path"], "harmless");
    answers(&agent, &[("w", Answer::Approve)]).await;
    assert!(!bed.folder.path().join("harmful").exists());
    assert_eq!(bed.read("harmless"), "new");
}

#[tokio::test]
async fn one_that_was_answered_and_cut_off_does_not_wait_again() {
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
    // One is answered, so the other is asked about once more.
    answers(&agent, &[("w1", Answer::Approve)]).await;
    assert_eq!(bed.read("one"), "new");
    let resumed = Resumed {
        answers: vec![("slow".to_owned(), Answer::Approve)],
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

/// A tool that begins and never ends.
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

/// The calls that another process would find waiting if this one ended here.
fn undecided(sessions: &Sessions) -> Vec<String> {
    let loaded = sessions.look(ID).unwrap();
    let undecided = loaded.approvals.iter().filter(|one| one.decision.is_none());
    undecided.map(|one| one.call_id.clone()).collect()
}

#[tokio::test]
async fn a_yes_that_is_given_at_once_is_recorded_before_the_call() {
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
