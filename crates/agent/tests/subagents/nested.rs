//! Background tasks of sub-agents.

use crate::background::{Away, Guard, gated, start, until};
use crate::bed::{
    Bed, DecidingModel, ReceivedRequest, all, answer, calls_tool, children, end, first_result,
    of_type, run, team, text_answer, worker,
};
use crate::scripted::{Scripted, calls, text};
use haft::ApprovalAnswer;
use haft_agent::{Agent, Message, Model, Resumed, SubagentSpec, Subagents};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Starts a task in the background and answers with its result.
fn lead(tools: &Arc<Mutex<Vec<String>>>) -> Arc<DecidingModel> {
    let tools = Arc::clone(tools);
    DecidingModel::new(move |received: ReceivedRequest| {
        tools.lock().unwrap().clone_from(&received.tools);
        async move {
            let last = received.history.last().unwrap();
            let words = match last {
                Message::Tool { results } => results[0].content[0].as_text().unwrap(),
                Message::User { content, .. } => content[0].as_text().unwrap(),
                Message::Assistant(_) => "",
            };
            if words.starts_with("started task") {
                text_answer("It waits for its task.")
            } else if let Some(rest) = words.strip_prefix("[haft: background task ") {
                let (id, rest) = rest.split_once(' ').unwrap();
                match rest.contains("is done") {
                    true => answer(calls([("c", "check_task", json!({ "task_id": id }))])),
                    false => text_answer("It is not done."),
                }
            } else if matches!(last, Message::Tool { .. }) {
                text_answer(&format!("It received: {words}"))
            } else {
                answer(calls([start("nested")]))
            }
        }
    })
}

/// Creates a leader and a worker.
fn subagents(worker_model: Arc<dyn Model>, tools: &Arc<Mutex<Vec<String>>>) -> Subagents {
    let spec = SubagentSpec {
        tools: Some(vec!["write".to_owned(), "task".to_owned()]),
        ..worker("lead")
    };
    let models = [
        ("lead", lead(tools) as Arc<dyn Model>),
        ("worker", worker_model),
    ];
    Subagents {
        // A sub-agent that waits must not keep its own tasks from starting.
        max_at_once: 1,
        ..team([spec, worker("worker")], models)
    }
}

fn in_background(id: &'static str) -> (&'static str, &'static str, Value) {
    let (id, tool, mut arguments) = start(id);
    arguments["subagent_type"] = "lead".into();
    (id, tool, arguments)
}

#[tokio::test]
async fn a_sub_agent_replies_after_its_own_tasks_have_ended() {
    for is_background in [false, true] {
        let bed = Bed::new();
        let tools = Arc::default();
        let parent = match is_background {
            false => Scripted::new([calls_tool("lead", "Go"), text("Ok.")]),
            true => Scripted::new([calls([in_background("l")]), text("Started."), text("Ok.")]),
        };
        let gate = Arc::new(Semaphore::new(1));
        let agent = bed.agent(&parent, subagents(gated(&gate), &tools)).await;
        let agent = agent.waits_for_background(true);
        let events = tokio::time::timeout(Duration::from_secs(60), run(&agent, "Go"));
        let events = events.await.unwrap();
        assert_eq!(end(&events)["text"], "Ok.", "{events:?}");
        let [leads, works] = &children(&events)[..] else {
            panic!("{events:?}")
        };
        assert_eq!(
            of_type(&events, "agent_start", Some(works))[0]["parent"],
            leads.as_str()
        );
        let led = of_type(&events, "agent_end", Some(leads))[0];
        let text = led["text"].as_str().unwrap();
        assert!(text.starts_with("It received: Answer to Go on."), "{led}");
        // Four turns of the leader, one of the worker, and those of the agent.
        assert_eq!(led["usage"]["output"], 50);
        let own = if is_background { 30 } else { 20 };
        assert_eq!(end(&events)["usage"]["output"], 50 + own);
        let expected = ["write", "task", "check_task", "message_task", "cancel_task"];
        assert_eq!(*tools.lock().unwrap(), expected);
    }
}

#[tokio::test]
async fn stopping_the_agent_stops_background_tasks_of_its_sub_agents() {
    let bed = Bed::new();
    let dropped = Arc::new(AtomicUsize::new(0));
    let thinks = Arc::clone(&dropped);
    let works = DecidingModel::new(move |_| {
        let guard = Guard(Arc::clone(&thinks));
        async move {
            let _guard = guard;
            std::future::pending::<haft_agent::ModelAnswer>().await
        }
    });
    let parent = Scripted::new([calls_tool("lead", "Go"), text("Ok.")]);
    let agent = bed.agent(&parent, subagents(works, &Arc::default())).await;
    let mut events = agent.prompt("Go").await.unwrap();
    while let Some(event) = events.next().await {
        let event = serde_json::to_value(&event).unwrap();
        if event["type"] == "background_wait" {
            assert!(event["parent"].is_string(), "{event}");
            agent.abort();
        }
    }
    until(&agent, "interrupted").await;
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn approvals_of_nested_background_tasks_are_answered_later() {
    for (is_background, by_task) in [(false, false), (false, true), (true, false), (true, true)] {
        let bed = Bed::new();
        let works = DecidingModel::new(|received: ReceivedRequest| async move {
            match received.history.last() {
                Some(Message::Tool { .. }) => text_answer("Written."),
                _ => answer(calls([(
                    "w",
                    "write",
                    json!({ "path": "one", "content": "new" }),
                )])),
            }
        });
        let parent = match is_background {
            false => Scripted::new([calls_tool("lead", "Go")]),
            true => Scripted::new([
                calls([in_background("l")]),
                text("Started."),
                text("PendingApproval."),
            ]),
        };
        let runtime =
            bed.runtime(|builder| builder.approver(Arc::new(Away)).interrupt_on(["write"]));
        let team = subagents(works, &Arc::default());
        let agent: Agent = bed.agent_in(runtime, &parent, team).await;
        let agent = agent.waits_for_background(true);
        let events = run(&agent, "Go").await;
        assert_eq!(end(&events)["reason"], "approval", "{events:?}");
        assert!(!bed.has("one"));
        let questions = agent.pending_approvals();
        assert_eq!(questions.len(), 1, "{questions:?}");
        assert_eq!((&*questions[0].name, &*questions[0].tool), ("w", "write"));
        assert_eq!(questions[0].agent.as_deref(), Some("worker"));

        parent.also([text("All done.")]);
        let name = match by_task {
            true => questions[0].own.clone(),
            false => "w".to_owned(),
        };
        let resumed = Resumed {
            answers: vec![(name, ApprovalAnswer::Approve)],
            prompt: None,
        };
        let events = all(agent.resume(resumed).await.unwrap()).await;
        assert!(bed.has("one"), "{events:?}");
        assert_eq!(end(&events)["text"], "All done.", "{events:?}");
        assert_eq!(end(&events)["reason"], "done");
        assert!(agent.pending_approvals().is_empty());
        if !is_background {
            let (reply, is_error) = first_result(&parent);
            assert!(
                !is_error && reply.starts_with("It received: Written."),
                "{reply}"
            );
        }
    }
}
