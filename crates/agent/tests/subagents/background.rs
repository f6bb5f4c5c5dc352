//! Sub-agents in the background.

use crate::bed::{
    Bed, DecidingModel, ReceivedRequest, all, answer, children, end, first_result, of_type,
    results, run, team, text_answer, worker,
};
use crate::scripted::{Next, Scripted, calls, text};
use async_trait::async_trait;
use futures::StreamExt;
use haft::{ApprovalAnswer, Approver, Question};
use haft_agent::{Agent, Message, Model, Resumed, Subagents};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

pub(crate) fn start(id: &'static str) -> (&'static str, &'static str, Value) {
    let arguments = json!({
        "description": "work", "prompt": "Go on.", "subagent_type": "worker", "background": true,
    });
    (id, "task", arguments)
}

/// Returns the id in `started task ID (worker) …`.
pub(crate) fn started(reply: &str) -> String {
    let rest = reply.strip_prefix("started task ").unwrap();
    rest.split(' ').next().unwrap().to_owned()
}

/// A model that answers once the test allows it.
pub(crate) fn gated(gate: &Arc<Semaphore>) -> Arc<DecidingModel> {
    let gate = Arc::clone(gate);
    DecidingModel::new(move |received: ReceivedRequest| {
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.unwrap().forget();
            match received.history.last() {
                Some(Message::User { content, .. }) => {
                    text_answer(&format!("Answer to {}", content[0].as_text().unwrap()))
                }
                _ => text_answer("Nobody asked."),
            }
        }
    })
}

async fn agent(bed: &Bed, parent: &Arc<Scripted>, child: Arc<dyn Model>) -> Agent {
    bed.agent(parent, team([worker("worker")], [("worker", child)]))
        .await
}

/// Waits until the state of the session has this status for the only background task.
pub(crate) async fn until(agent: &Agent, status: &str) {
    let is_there = || {
        let all = agent.runtime().state().get("haft.subagents");
        all.is_some_and(|all| {
            all.to_string()
                .contains(&format!("\"background\":\"{status}\""))
        })
    };
    let waits = async {
        while !is_there() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waits)
        .await
        .unwrap();
}

fn notes(history: &[Message]) -> Vec<String> {
    let all = history.iter().map(|message| format!("{message:?}"));
    all.filter(|text| text.contains("[haft: background task"))
        .collect()
}

#[tokio::test]
async fn the_agent_continues_and_learns_of_the_end_once() {
    let bed = Bed::new();
    let gate = Arc::new(Semaphore::new(0));
    let parent = Scripted::new([calls([start("t")]), text("Meanwhile.")]);
    let agent = agent(&bed, &parent, gated(&gate)).await;
    let events = run(&agent, "Go").await;
    assert_eq!(end(&events)["text"], "Meanwhile.");
    let (reply, is_error) = first_result(&parent);
    assert!(!is_error, "{reply}");
    let id = started(&reply);
    assert!(notes(&parent.last()).is_empty());

    // It outlives the turn, and check_task finds it.
    parent.also([
        calls([
            ("list", "check_task", json!({})),
            ("one", "check_task", json!({ "task_id": id })),
        ]),
        text("Still at work."),
    ]);
    run(&agent, "Look").await;
    let looked = results(&parent.last());
    let said = |n: usize| looked[n].content[0].as_text().unwrap().to_owned();
    assert!(
        said(0).starts_with(&format!("{id}  worker: work  running")),
        "{}",
        said(0)
    );
    assert!(said(1).contains("has been running for"), "{}", said(1));

    let before = agent.usage();
    gate.add_permits(1);
    until(&agent, "done").await;
    assert_eq!(agent.usage().output, before.output + 10);
    parent.also([
        calls([("c", "check_task", json!({ "task_id": id }))]),
        text("Ok."),
        text("Ok again."),
    ]);
    let events = run(&agent, "And?").await;
    let told_of = of_type(&events, "background_task", None);
    assert_eq!(told_of.len(), 1);
    assert_eq!(told_of[0]["status"], "done");
    assert_eq!(told_of[0]["task_id"], id.as_str());
    assert_eq!(told_of[0]["description"], "work");
    let said = notes(&parent.last());
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains(&id) && said[0].contains("(worker: work) is done"),
        "{said:?}"
    );
    // Its text is returned as the result of a call, not in the user's role.
    assert!(!said[0].contains("Answer to"), "{said:?}");
    let (reply, is_error) = first_result(&parent);
    assert!(
        !is_error && reply.starts_with("Answer to Go on."),
        "{reply}"
    );
    run(&agent, "And now?").await;
    assert_eq!(notes(&parent.last()).len(), 1);
}

#[tokio::test]
async fn a_run_can_wait_for_background_tasks() {
    let bed = Bed::new();
    let gate = Arc::new(Semaphore::new(0));
    let parent = Scripted::new([calls([start("t")]), text("Started."), text("It has ended.")]);
    let agent = agent(&bed, &parent, gated(&gate)).await;
    let agent = agent.waits_for_background(true);
    let mut events = agent.prompt("Go").await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        let event = serde_json::to_value(&event).unwrap();
        if event["type"] == "background_wait" {
            assert_eq!(event["tasks"].as_array().unwrap().len(), 1);
            gate.add_permits(1);
        }
        seen.push(event);
    }
    assert_eq!(of_type(&seen, "background_wait", None).len(), 1);
    assert_eq!(end(&seen)["text"], "It has ended.");
    // The run ends once, after the sub-agent.
    assert_eq!(of_type(&seen, "agent_end", Some(agent.session())).len(), 1);
    assert_eq!(
        of_type(&seen, "agent_end", Some(&children(&seen)[0])).len(),
        1
    );
    assert_eq!(notes(&parent.last()).len(), 1);
    // Three turns of the agent, one of the sub-agent.
    assert_eq!(end(&seen)["usage"]["output"], 40);
}

#[tokio::test]
async fn stopping_a_waiting_run_stops_its_background_tasks() {
    let bed = Bed::new();
    let gate = Arc::new(Semaphore::new(0));
    let parent = Scripted::new([calls([start("t")]), text("Started.")]);
    let agent = agent(&bed, &parent, gated(&gate)).await;
    let agent = agent.waits_for_background(true);
    let mut events = agent.prompt("Go").await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        let event = serde_json::to_value(&event).unwrap();
        if event["type"] == "background_wait" {
            agent.abort();
        }
        seen.push(event);
    }
    assert_eq!(end(&seen)["reason"], "interrupted");
    let ends = of_type(&seen, "agent_end", Some(&children(&seen)[0]));
    assert_eq!(ends[0]["reason"], "interrupted");
    // The model learns of it when the session continues.
    parent.also([text("Ok.")]);
    run(&agent, "On").await;
    let said = notes(&parent.last());
    assert!(said[0].contains("was interrupted"), "{said:?}");
}

#[tokio::test]
async fn messages_steer_a_running_task_and_restart_an_ended_one() {
    let bed = Bed::new();
    let gate = Arc::new(Semaphore::new(0));
    let parent = Scripted::new([calls([start("t")]), text("Ok.")]);
    let agent = agent(&bed, &parent, gated(&gate)).await;
    run(&agent, "Go").await;
    let id = started(&first_result(&parent).0);
    let say = |text: &str| {
        let arguments = json!({ "task_id": id, "message": text });
        calls([("m", "message_task", arguments)])
    };
    let check = || {
        let arguments = json!({ "task_id": id, "wait": 60 });
        calls([("c", "check_task", arguments)])
    };
    parent.also([say("Also this."), text("Ok.")]);
    run(&agent, "Say").await;
    assert!(
        first_result(&parent).0.starts_with("delivered"),
        "{:?}",
        first_result(&parent)
    );
    gate.add_permits(2);
    parent.also([check(), text("Ok.")]);
    run(&agent, "Look").await;
    assert!(
        first_result(&parent).0.starts_with("Answer to Also this."),
        "{:?}",
        first_result(&parent)
    );
    parent.also([say("More."), check(), text("Ok.")]);
    gate.add_permits(1);
    run(&agent, "More").await;
    assert!(
        first_result(&parent).0.starts_with("Answer to More."),
        "{:?}",
        first_result(&parent)
    );
    // There is no update.
    parent.also([say(" "), text("Ok.")]);
    run(&agent, "Say").await;
    assert!(first_result(&parent).1);
}

#[tokio::test]
async fn a_task_is_cancelled_and_unknown_ids_are_errors() {
    let bed = Bed::new();
    let child = Scripted::new([Next::Hangs("thinking")]);
    let parent = Scripted::new([calls([start("t")]), text("Ok.")]);
    let agent = agent(&bed, &parent, child).await;
    run(&agent, "Go").await;
    let id = started(&first_result(&parent).0);
    let of_task = |tool: &str, id: &str| calls([("c", tool, json!({ "task_id": id }))]);
    parent.also([of_task("cancel_task", &id), text("Ok.")]);
    run(&agent, "Stop").await;
    assert!(
        first_result(&parent).0.starts_with("cancelled: task"),
        "{:?}",
        first_result(&parent)
    );
    parent.also([of_task("check_task", &id), text("Ok.")]);
    run(&agent, "Look").await;
    assert!(
        first_result(&parent).0.contains("was cancelled"),
        "{:?}",
        first_result(&parent)
    );
    // The model cancelled it itself, so there is no update.
    assert!(notes(&parent.last()).is_empty());
    for tool in ["check_task", "cancel_task"] {
        parent.also([of_task(tool, "0123456789ab"), text("Ok.")]);
        run(&agent, "Look").await;
        let (reply, is_error) = first_result(&parent);
        assert!(is_error && reply.contains("unknown task_id: "), "{reply}");
        assert!(!reply.contains("start a new one"), "{reply}");
    }
}

#[tokio::test]
async fn running_and_queued_tasks_are_limited() {
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
    let ids = [
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q",
    ];
    let parent = Scripted::new([calls(ids.map(start)), text("Ok.")]);
    let subagents = Subagents {
        max_at_once: 2,
        ..team([worker("worker")], [("worker", child)])
    };
    let agent = bed.agent(&parent, subagents).await;
    run(&agent, "Go").await;
    let replies = results(&parent.last());
    let refused: Vec<_> = replies.iter().filter(|one| one.is_error).collect();
    assert_eq!(refused.len(), 1);
    let words = refused[0].content[0].as_text().unwrap();
    assert!(
        words.contains("too many background tasks (16/16)"),
        "{words}"
    );
    gate.add_permits(16);
    let agent = agent.waits_for_background(true);
    parent.also((0..20).map(|_| text("Ok.")));
    run(&agent, "Wait").await;
    assert_eq!(notes(&parent.last()).len(), 16);
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

/// Counts its drops.
pub(crate) struct Guard(pub(crate) Arc<AtomicUsize>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_task_ends_with_the_agent_and_is_reported_as_interrupted() {
    let bed = Bed::new();
    let dropped = Arc::new(AtomicUsize::new(0));
    let thinks = Arc::clone(&dropped);
    let child = DecidingModel::new(move |_| {
        let guard = Guard(Arc::clone(&thinks));
        async move {
            let _guard = guard;
            std::future::pending::<haft_agent::ModelAnswer>().await
        }
    });
    let parent = Scripted::new([calls([start("t")]), text("Ok.")]);
    let first = agent(&bed, &parent, child.clone()).await;
    run(&first, "Go").await;
    let id = started(&first_result(&parent).0);
    until(&first, "running").await;
    let (state, session) = (
        first.runtime().state().snapshot(),
        first.session().to_owned(),
    );
    drop(first);
    let gone = async {
        while dropped.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), gone)
        .await
        .unwrap();

    // Another process continues the session.
    let runtime = bed.runtime(|builder| builder.session(session).remembering(state));
    let subagents = team([worker("worker")], [("worker", child as Arc<dyn Model>)]);
    let again = bed.agent_in(runtime, &parent, subagents).await;
    parent.also([
        calls([("c", "check_task", json!({ "task_id": id }))]),
        text("Ok."),
    ]);
    let events = run(&again, "On").await;
    assert_eq!(
        of_type(&events, "background_task", None)[0]["status"],
        "interrupted"
    );
    let said = notes(&parent.last());
    assert!(
        said[0].contains(&id) && said[0].contains("was interrupted"),
        "{said:?}"
    );
    assert!(
        first_result(&parent).0.contains("is interrupted"),
        "{:?}",
        first_result(&parent)
    );
}

/// An approver that postpones every answer.
pub(crate) struct Away;

#[async_trait]
impl Approver for Away {
    async fn ask(&self, _: &Question) -> ApprovalAnswer {
        ApprovalAnswer::Later
    }
}

#[tokio::test]
async fn approvals_of_a_background_task_are_answered_later() {
    for by_task in [false, true] {
        let bed = Bed::new();
        let child = DecidingModel::new(|received: ReceivedRequest| async move {
            match received.history.last() {
                Some(Message::Tool { .. }) => text_answer("Written."),
                _ => answer(calls([(
                    "w",
                    "write",
                    json!({ "path": "one", "content": "new" }),
                )])),
            }
        });
        let parent = Scripted::new([calls([start("t")]), text("Started."), text("It waits.")]);
        let runtime =
            bed.runtime(|builder| builder.approver(Arc::new(Away)).interrupt_on(["write"]));
        let subagents = team([worker("worker")], [("worker", child)]);
        let agent = bed.agent_in(runtime, &parent, subagents).await;
        let agent = agent.waits_for_background(true);
        let events = run(&agent, "Go").await;
        assert_eq!(end(&events)["reason"], "approval");
        assert!(!bed.has("one") && agent.has_work());
        let questions = agent.pending_approvals();
        assert_eq!(questions.len(), 1);
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
        assert_eq!(end(&events)["text"], "All done.");
        assert_eq!(end(&events)["reason"], "done");
        assert!(agent.pending_approvals().is_empty());
    }
}

#[tokio::test]
async fn background_events_arrive_while_the_agent_is_idle() {
    let bed = Bed::new();
    let gate = Arc::new(Semaphore::new(0));
    let child = {
        let gate = Arc::clone(&gate);
        DecidingModel::new(move |received: ReceivedRequest| {
            let gate = Arc::clone(&gate);
            async move {
                if let Some(Message::Tool { .. }) = received.history.last() {
                    return text_answer("Looked.");
                }
                gate.acquire().await.unwrap().forget();
                answer(calls([("look", "ls", json!({}))]))
            }
        })
    };
    let parent = Scripted::new([calls([start("t")]), text("Started."), text("Ok.")]);
    let agent = agent(&bed, &parent, child).await;
    let mut watched = agent.watch_background();
    let events = run(&agent, "Go").await;
    assert!(children(&events).is_empty(), "{events:?}");
    let id = started(&first_result(&parent).0);
    gate.add_permits(1);
    let mut seen = Vec::new();
    loop {
        let event = tokio::time::timeout(Duration::from_secs(60), watched.next());
        let event = serde_json::to_value(event.await.unwrap().unwrap()).unwrap();
        let is_end = event["type"] == "background_task" && event["status"] != "running";
        seen.push(event);
        if is_end {
            break;
        }
    }
    let (first, last) = (&seen[0], seen.last().unwrap());
    for (event, status) in [(first, "running"), (last, "done")] {
        assert_eq!(event["status"], status, "{seen:?}");
        assert_eq!(event["task_id"], id.as_str());
        assert_eq!(event["session"], agent.session());
    }
    for kind in ["agent_start", "tool_start", "tool_end", "agent_end"] {
        assert_eq!(of_type(&seen, kind, Some(&id)).len(), 1, "{kind}: {seen:?}");
    }
    // The run emits the event too, when the model learns of the end.
    let events = run(&agent, "And?").await;
    assert_eq!(
        of_type(&events, "background_task", None)[0]["status"],
        "done"
    );
}

#[tokio::test]
async fn a_task_without_a_permit_is_queued() {
    let bed = Bed::new();
    let gate = Arc::new(Semaphore::new(0));
    let parent = Scripted::new([
        calls([start("a"), start("b")]),
        calls([("c", "check_task", json!({}))]),
        text("Ok."),
    ]);
    let subagents = Subagents {
        max_at_once: 1,
        ..team([worker("worker")], [("worker", gated(&gate) as _)])
    };
    let agent = bed.agent(&parent, subagents).await;
    let events = run(&agent, "Go").await;
    let statuses: Vec<_> = of_type(&events, "tool_end", None)
        .iter()
        .filter(|event| event["tool"] == "task")
        .map(|event| event["details"]["task_status"].clone())
        .collect();
    assert_eq!(statuses, ["running", "queued"]);
    let (listed, _) = first_result(&parent);
    assert!(
        listed.contains("running: starting") || listed.contains("running: turn 1"),
        "{listed}"
    );
    assert!(listed.ends_with("worker: work  queued"), "{listed}");
}

#[tokio::test]
async fn a_check_without_an_id_waits_for_the_first_end() {
    let bed = Bed::new();
    let gate = Arc::new(Semaphore::new(1));
    let look = |wait: i64| calls([("c", "check_task", json!({ "wait": wait }))]);
    let parent = Scripted::new([calls([start("a"), start("b")]), look(60), text("Ok.")]);
    let agent = agent(&bed, &parent, gated(&gate)).await;
    run(&agent, "Go").await;
    let (listed, is_error) = first_result(&parent);
    assert!(!is_error, "{listed}");
    let with = |status: &str| listed.lines().filter(|line| line.contains(status)).count();
    assert_eq!((with("  done"), with("  running")), (1, 1), "{listed}");
    // Values out of range are clamped.
    parent.also([look(-1), text("Ok.")]);
    run(&agent, "Look").await;
    let (listed, is_error) = first_result(&parent);
    assert!(!is_error && listed.contains("  running"), "{listed}");
    gate.add_permits(1);
    parent.also([look(100_000), text("Ok.")]);
    run(&agent, "Look").await;
    let (listed, is_error) = first_result(&parent);
    assert!(!is_error && !listed.contains("  running"), "{listed}");
}
