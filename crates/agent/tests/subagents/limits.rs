//! Parallel sub-agents, their cost, and cancellation.

use crate::bed::{
    Bed, DecidingModel, ReceivedRequest, all, answer, children, end, first_result, of_type, team,
    text_answer, worker,
};
use crate::bed::{calls_tool, run, task};
use crate::scripted::{Next, Scripted, calls, text};
use haft_agent::{Agent, Handle, Message, ModelAnswer, Part, SubagentSpec, Subagents, ToolCall};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

fn ask_many(count: usize, tool: &str) -> ModelAnswer {
    let parts = (0..count).map(|n| {
        Part::Call(ToolCall {
            id: format!("{tool}{n}"),
            name: tool.to_owned(),
            arguments: json!({ "request": format!("work {n}") }),
        })
    });
    ModelAnswer {
        parts: parts.collect(),
        ..answer(calls([]))
    }
}

#[tokio::test]
async fn parallel_sub_agents_are_limited_and_all_finish() {
    let bed = Bed::new();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let gate = Arc::new(Semaphore::new(0));
    let child = {
        let (now, most, gate) = (now.clone(), most.clone(), gate.clone());
        DecidingModel::new(move |_| {
            let (now, most, gate) = (now.clone(), most.clone(), gate.clone());
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                gate.acquire().await.unwrap().forget();
                now.fetch_sub(1, Ordering::SeqCst);
                text_answer("Done.")
            }
        })
    };
    let parent = Scripted::new([Next::ModelReply(ask_many(20, "worker")), text("Ok.")]);
    let subagents = Subagents {
        max_at_once: 3,
        ..team([worker("worker")], [("worker", child)])
    };
    let runtime = bed.runtime(|builder| builder.concurrency(100));
    let agent = bed.agent_in(runtime, &parent, subagents).await;
    let mut events = agent.prompt("Go").await.unwrap();
    let mut started = 0;
    let mut ended = 0;
    while let Some(event) = events.next().await {
        let event = serde_json::to_value(&event).unwrap();
        let is_child = event["parent"].is_string();
        started += usize::from(is_child && event["type"] == "turn_start");
        ended += usize::from(is_child && event["type"] == "agent_end");
        // The next one may start once all permits are taken.
        if started - ended == 3 || started == 20 {
            gate.add_permits(1);
        }
    }
    assert_eq!((started, ended), (20, 20));
    assert_eq!(most.load(Ordering::SeqCst), 3);
    let results = crate::bed::results(&parent.last());
    assert_eq!(results.len(), 20);
    assert!(results.iter().all(|one| !one.is_error));
}

#[tokio::test]
async fn waiting_parents_do_not_block_their_sub_agents() {
    let bed = Bed::new();
    let asking = SubagentSpec {
        tools: Some(["read", "inner"].map(str::to_owned).into()),
        ..worker("outer")
    };
    let outer = DecidingModel::new(|received: ReceivedRequest| async move {
        match received.history.last() {
            Some(Message::Tool { results }) => {
                assert!(results.iter().all(|one| !one.is_error), "{results:?}");
                text_answer("All done.")
            }
            _ => ask_many(4, "inner"),
        }
    });
    let inner = DecidingModel::new(|_| async {
        tokio::task::yield_now().await;
        text_answer("Done.")
    });
    let parent = Scripted::new([Next::ModelReply(ask_many(8, "outer")), text("Ok.")]);
    let subagents = Subagents {
        max_at_once: 2,
        ..team(
            [asking, worker("inner")],
            [("outer", outer), ("inner", inner)],
        )
    };
    let runtime = bed.runtime(|builder| builder.concurrency(8));
    let agent = bed.agent_in(runtime, &parent, subagents).await;
    let events = tokio::time::timeout(Duration::from_secs(60), run(&agent, "Go"))
        .await
        .unwrap();
    assert_eq!(children(&events).len(), 8 + 32);
    assert_eq!(end(&events)["reason"], "done");
    // 2 turns of the agent, 2 of each outer sub-agent, 1 of each inner one.
    assert_eq!(end(&events)["usage"]["output"], 10 * (2 + 16 + 32));
}

#[tokio::test]
async fn stopping_the_agent_stops_its_sub_agents() {
    let bed = Bed::new();
    let child = Scripted::new([Next::Hangs("thinking"), Next::Hangs("more")]);
    let parent = Scripted::new([
        calls([
            task("a", "worker", None),
            task("b", "worker", None),
            task("c", "worker", None),
        ]),
        text("Never."),
    ]);
    let subagents = Subagents {
        max_at_once: 2,
        ..team([worker("worker")], [("worker", child)])
    };
    let agent = bed.agent(&parent, subagents).await;
    let mut events = agent.prompt("Go").await.unwrap();
    let mut seen = Vec::new();
    let mut begun = None;
    while let Some(event) = events.next().await {
        let event = serde_json::to_value(&event).unwrap();
        seen.push(event);
        let thinking = seen
            .iter()
            .filter(|one| one["type"] == "message_update" && one["parent"].is_string());
        if begun.is_none() && thinking.count() == 2 {
            begun = Some(Instant::now());
            agent.abort();
        }
    }
    // Nothing had to be abandoned after a timeout.
    assert!(begun.unwrap().elapsed() < Duration::from_millis(1200));
    assert_eq!(end(&seen)["reason"], "interrupted");
    let ends = of_type(&seen, "agent_end", None);
    assert_eq!(
        ends.iter().filter(|one| one["parent"].is_string()).count(),
        2
    );
    assert!(ends.iter().all(|one| one["reason"] == "interrupted"));
    let results = agent.history();
    let Message::Tool { results } = &**results.last().unwrap() else {
        panic!("no results")
    };
    assert_eq!(results.len(), 3);
    assert!(results.iter().all(|one| one.is_error));
    assert_eq!(parent.requests(), 1);
}

#[tokio::test]
async fn the_cost_of_sub_agents_counts_towards_the_limit() {
    let bed = Bed::new();
    bed.file("a.txt", "x");
    let child = Scripted::new(
        (0..50).map(|n| calls([("r", "read", json!({ "path": "a.txt", "limit": n + 1 }))])),
    );
    let parent = Scripted::new([calls_tool("worker", "Go"), text("Never.")]);
    let agent = Agent::new(parent.clone(), bed.runtime(|builder| builder)).max_cost(Some(0.045));
    let subagents = team([worker("worker")], [("worker", child.clone())]);
    let (agent, _) = agent.subagents(subagents).await.unwrap();
    let events = all(agent.prompt("Go").await.unwrap()).await;
    // One turn of the agent and four of the sub-agent, one cent each.
    assert_eq!(child.requests(), 4);
    assert_eq!(end(&events)["reason"], "limit");
    assert_eq!(
        of_type(&events, "turn_limit_reached", None)[0]["reason"],
        "max_cost"
    );
    let history = agent.history();
    let told = format!("{:?}", history.last().unwrap());
    assert!(
        told.contains("worker was stopped before it was done"),
        "{told}"
    );
    assert_eq!(parent.requests(), 1);
}

#[tokio::test]
async fn parallel_sub_agents_share_the_cost_limit() {
    let bed = Bed::new();
    bed.file("a.txt", "x");
    let answered = Arc::new(AtomicUsize::new(0));
    let handle: Arc<OnceLock<Handle>> = Arc::default();
    let child = {
        let (answered, handle) = (answered.clone(), handle.clone());
        DecidingModel::new(move |_| {
            let (answered, handle) = (answered.clone(), handle.clone());
            async move {
                // Not before the usage of the answers so far is counted.
                let before = answered.load(Ordering::SeqCst) as u64;
                while handle.get().unwrap().run_usage().0 < 110 * (before + 1) {
                    tokio::task::yield_now().await;
                }
                let turn = answered.fetch_add(1, Ordering::SeqCst) + 1;
                answer(calls([(
                    "r",
                    "read",
                    json!({ "path": "a.txt", "limit": turn }),
                )]))
            }
        })
    };
    let parent = Scripted::new([Next::ModelReply(ask_many(4, "worker")), text("Never.")]);
    let agent = Agent::new(parent.clone(), bed.runtime(|builder| builder)).max_cost(Some(0.2));
    let subagents = team([worker("worker")], [("worker", child)]);
    let (agent, _) = agent.subagents(subagents).await.unwrap();
    assert!(handle.set(agent.handle()).is_ok());
    let events = all(agent.prompt("Go").await.unwrap()).await;
    assert_eq!(end(&events)["reason"], "limit");
    // Nineteen were left for them, and the others may have been waiting for an answer.
    let answered = answered.load(Ordering::SeqCst);
    assert!((19..=19 + 3).contains(&answered), "{answered}");
}

#[tokio::test]
async fn a_running_task_cannot_be_continued() {
    let bed = Bed::new();
    let child = Scripted::new([text("First."), Next::Hangs("x")]);
    let parent = Scripted::new([calls([task("a", "worker", None)]), text("Ok.")]);
    let agent = bed
        .agent(&parent, team([worker("worker")], [("worker", child)]))
        .await;
    run(&agent, "Go").await;
    let id = crate::bed::task_id(&first_result(&parent).0);
    parent.also([calls([
        task("b", "worker", Some(&id)),
        task("c", "worker", Some(&id)),
    ])]);
    let mut events = agent.prompt("Go").await.unwrap();
    let mut refused = None;
    while let Some(event) = events.next().await {
        let event = serde_json::to_value(&event).unwrap();
        if event["type"] == "tool_end" {
            refused.get_or_insert(event);
            agent.abort();
        }
    }
    assert_eq!(refused.unwrap()["is_error"], true);
    let history = format!("{:?}", agent.history().last().unwrap());
    assert!(history.contains("is already running"), "{history}");
}

#[tokio::test]
async fn a_sub_agent_that_times_out_returns_its_text_and_can_continue() {
    let bed = Bed::new();
    let child = Scripted::new([Next::Hangs("Half of it.")]);
    let parent = Scripted::new([calls_tool("worker", "Go"), text("Ok.")]);
    let runtime = bed.runtime(|builder| builder.timeout(Duration::from_millis(200)));
    let subagents = team([worker("worker")], [("worker", child)]);
    let agent = bed.agent_in(runtime, &parent, subagents).await;
    let events = run(&agent, "Go").await;
    let (reply, is_error) = first_result(&parent);
    assert!(
        is_error && reply.contains("was stopped before it was done: timed out after 0.2 seconds"),
        "{reply}"
    );
    assert!(reply.contains("Half of it."), "{reply}");
    let id = &children(&events)[0];
    assert!(reply.contains(id), "{reply}");
    let known = agent.runtime().state().get("haft.subagents").unwrap();
    assert_eq!(known[id]["type"], "worker");
}
