//! Calls of sub-agents that wait for approval and are answered later.

use crate::bed::{
    Bed, all, calls_tool, end, first_result, of_type, run, task, task_id, team, worker,
};
use crate::scripted::{Scripted, calls, text};
use async_trait::async_trait;
use haft::{ApprovalAnswer, Approver, Call, Question};
use haft_agent::record::SessionRecord;
use haft_agent::{Agent, Child, Records, Resumed, SubagentSpec, Subagents};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// An approver that postpones every answer.
struct Away;

#[async_trait]
impl Approver for Away {
    async fn ask(&self, _: &Question) -> ApprovalAnswer {
        ApprovalAnswer::Later
    }
}

/// Approves after a while.
#[derive(Default)]
struct Slow(Mutex<Duration>);

#[async_trait]
impl Approver for Slow {
    async fn ask(&self, _: &Question) -> ApprovalAnswer {
        let begun = Instant::now();
        tokio::time::sleep(Duration::from_millis(200)).await;
        *self.0.lock().unwrap() += begun.elapsed();
        ApprovalAnswer::Approve
    }
}

#[tokio::test]
async fn time_limits_pause_while_the_user_decides() {
    let bed = Bed::new();
    let child = Scripted::new([calls([("w", "write", writes("one"))]), text("Written.")]);
    let parent = Scripted::new([calls_tool("worker", "Write"), text("Ok.")]);
    let slow = Arc::new(Slow::default());
    let runtime = bed.runtime(|builder| builder.approver(slow.clone()).interrupt_on(["write"]));
    let team = team([worker("worker")], [("worker", child.clone())]);
    let agent = bed.agent_in(runtime, &parent, team).await;
    let begun = Instant::now();
    let events = run(&agent, "Go").await;
    let all = begun.elapsed();
    assert!(bed.has("one"));
    let thought = *slow.0.lock().unwrap();
    let ends: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "tool_end")
        .collect();
    assert_eq!(ends.len(), 2);
    for end in ends {
        let took = Duration::from_millis(end["duration_ms"].as_u64().unwrap());
        assert!(took + thought <= all, "{took:?} {thought:?} {all:?} {end}");
    }
}

fn writes(path: &str) -> Value {
    json!({ "path": path, "content": "new" })
}

async fn agent(bed: &Bed, parent: &Arc<Scripted>, subagents: Subagents) -> Agent {
    let runtime = bed.runtime(|builder| builder.approver(Arc::new(Away)).interrupt_on(["write"]));
    bed.agent_in(runtime, parent, subagents).await
}

async fn answer(agent: &Agent, call: &str, answer: ApprovalAnswer) -> Vec<Value> {
    let resumed = Resumed {
        answers: vec![(call.to_owned(), answer)],
        prompt: None,
    };
    all(agent.resume(resumed).await.unwrap()).await
}

#[tokio::test]
async fn the_parent_waits_with_the_sub_agent_and_both_continue() {
    let bed = Bed::new();
    let child = Scripted::new([
        calls([
            ("w1", "write", writes("one")),
            ("w2", "write", writes("two")),
        ]),
        calls([("w3", "write", writes("three"))]),
        text("Written."),
    ]);
    let parent = Scripted::new([calls_tool("worker", "Write"), text("Ok.")]);
    let agent = agent(
        &bed,
        &parent,
        team([worker("worker")], [("worker", child.clone())]),
    )
    .await;
    let events = run(&agent, "Go").await;
    assert_eq!(end(&events)["reason"], "approval");
    let needed = of_type(&events, "approval_needed", None);
    assert_eq!(needed.len(), 2);
    assert!(needed.iter().all(|one| one["parent"] == agent.session()));
    assert!(!bed.has("one"));

    // After both approvals it reaches the third call, which waits again.
    let events = answer(&agent, "ask", ApprovalAnswer::Approve).await;
    assert_eq!(end(&events)["reason"], "approval");
    assert!(bed.has("one") && bed.has("two") && !bed.has("three"));
    assert_eq!(parent.requests(), 1);

    let no = ApprovalAnswer::Reject {
        reason: Some("enough".to_owned()),
    };
    let events = answer(&agent, "ask", no).await;
    assert_eq!(end(&events)["text"], "Ok.");
    assert!(!bed.has("three"));
    assert!(
        first_result(&child).0.contains("enough"),
        "{:?}",
        first_result(&child)
    );
    assert!(first_result(&parent).0.starts_with("Written."));
    assert_eq!(child.requests(), 3);
}

#[tokio::test]
async fn each_call_is_answered_by_its_own_id() {
    let bed = Bed::new();
    let child = Scripted::new([
        calls([
            ("w1", "write", writes("one")),
            ("w2", "write", writes("two")),
        ]),
        text("Written."),
    ]);
    let parent = Scripted::new([calls_tool("worker", "Write"), text("Ok.")]);
    let team = team([worker("worker")], [("worker", child.clone())]);
    let agent = agent(&bed, &parent, team).await;
    run(&agent, "Go").await;
    let names = || -> Vec<_> {
        let waiting = agent.pending_approvals().into_iter();
        waiting.map(|one| (one.name, one.own)).collect()
    };
    let pair = |name: &str| (name.to_owned(), "ask".to_owned());
    assert_eq!(names(), [pair("w1"), pair("w2")]);
    let events = answer(&agent, "w2", ApprovalAnswer::Approve).await;
    assert_eq!(end(&events)["reason"], "approval");
    assert!(!bed.has("one") && bed.has("two"));
    assert_eq!(names(), [pair("w1")]);
    let arguments = json!({ "path": "three" });
    let events = answer(&agent, "w1", ApprovalAnswer::ApproveWith { arguments }).await;
    assert_eq!(end(&events)["text"], "Ok.");
    assert!(!bed.has("one") && bed.has("three"));
    assert!(names().is_empty());
}

#[tokio::test]
async fn approvals_reach_through_two_levels() {
    for by in ["ask", "w"] {
        answered_through_two_levels(by).await;
    }
}

async fn answered_through_two_levels(by: &str) {
    let bed = Bed::new();
    let asking = SubagentSpec {
        tools: Some(["read", "write", "task"].map(str::to_owned).into()),
        ..worker("outer")
    };
    let inner = Scripted::new([calls([("w", "write", writes("deep"))]), text("Deep.")]);
    let outer = Scripted::new([calls([task("t", "inner", None)]), text("Outer.")]);
    let parent = Scripted::new([calls_tool("outer", "Write"), text("Ok.")]);
    let subagents = team(
        [asking, worker("inner")],
        [("outer", outer.clone()), ("inner", inner.clone())],
    );
    let agent = agent(&bed, &parent, subagents).await;
    let events = run(&agent, "Go").await;
    let ends = of_type(&events, "agent_end", None);
    assert_eq!(ends.len(), 3);
    assert!(ends.iter().all(|one| one["reason"] == "approval"));
    let waits = agent.pending_approvals();
    assert_eq!(waits.len(), 1);
    assert_eq!((&*waits[0].name, &*waits[0].own), ("w", "ask"));
    assert_eq!(
        (&*waits[0].tool, waits[0].agent.as_deref()),
        ("write", Some("inner"))
    );
    // Once by its own id, and once by the id of the parent's call.
    let events = answer(&agent, by, ApprovalAnswer::Approve).await;
    assert_eq!(end(&events)["reason"], "done");
    assert!(bed.has("deep"));
    assert!(first_result(&outer).0.starts_with("Deep."));
}

#[tokio::test]
async fn questions_name_the_sub_agent_and_the_call() {
    let bed = Bed::new();
    let child = Scripted::new([calls([("w", "write", writes("a\u{202e}b"))])]);
    let parent = Scripted::new([]);
    let agent = agent(&bed, &parent, team([worker("worker")], [("worker", child)])).await;
    let call = Call::new("worker", json!({ "request": "Write" })).id("ask");
    let reply = agent.runtime().run(call).await;
    assert!(reply.is_pending());
    assert!(
        reply
            .text()
            .contains(r#"sub-agent worker wants write {"path":"a\u{202e}b","content":"new"}"#),
        "{}",
        reply.text()
    );
}

/// A record that cannot restore sessions.
#[derive(Default)]
struct Lost {
    begun: Mutex<Vec<Child>>,
    restored: Mutex<Vec<Child>>,
}

impl Records for Lost {
    fn begin(&self, child: &Child) -> Result<Option<Arc<dyn SessionRecord>>, String> {
        self.begun.lock().unwrap().push(child.clone());
        Ok(None)
    }

    fn restore(&self, agent: Agent, child: &Child) -> Result<Agent, String> {
        assert_eq!(agent.session(), child.id);
        self.restored.lock().unwrap().push(child.clone());
        Err("the disk is on fire".to_owned())
    }
}

#[tokio::test]
async fn another_process_restores_it_from_the_record() {
    let bed = Bed::new();
    let records = Arc::new(Lost::default());
    let child = Scripted::new([text("Done.")]);
    let parent = Scripted::new([calls([task("t", "worker", None)]), text("Ok.")]);
    let with = |records: Option<Arc<dyn Records>>| Subagents {
        records,
        ..team([worker("worker")], [("worker", child.clone())])
    };
    let first = agent(&bed, &parent, with(Some(records.clone()))).await;
    run(&first, "Go").await;
    let id = task_id(&first_result(&parent).0);
    {
        let begun = records.begun.lock().unwrap();
        assert_eq!(begun.len(), 1);
        assert_eq!((&*begun[0].id, &*begun[0].parent), (&*id, first.session()));
        assert_eq!((&*begun[0].call_id, &*begun[0].kind), ("t", "worker"));
        assert!(begun[0].system.contains("You work for another agent"));
    }
    let remembered = first.runtime().state().snapshot();
    let session = first.session().to_owned();
    drop(first);

    for records in [None, Some(records.clone() as Arc<dyn Records>)] {
        let is_recorded = records.is_some();
        let runtime = bed.runtime(|builder| {
            builder
                .session(session.clone())
                .remembering(remembered.clone())
        });
        let again = bed.agent_in(runtime, &parent, with(records)).await;
        parent.also([calls([task("u", "worker", Some(&id))]), text("Ok.")]);
        run(&again, "Go").await;
        let (reply, is_error) = first_result(&parent);
        assert!(is_error, "{reply}");
        let why = match is_recorded {
            true => "the disk is on fire",
            false => "was not recorded",
        };
        assert!(reply.contains(why), "{reply}");
    }
    let restored = records.restored.lock().unwrap();
    assert_eq!(restored.len(), 1);
    assert_eq!((&*restored[0].id, &*restored[0].parent), (&*id, &*session));
}

/// A record that cannot create sessions.
struct Full;

impl Records for Full {
    fn begin(&self, _: &Child) -> Result<Option<Arc<dyn SessionRecord>>, String> {
        Err("the disk is full".to_owned())
    }

    fn restore(&self, _: Agent, _: &Child) -> Result<Agent, String> {
        Err("nothing was recorded".to_owned())
    }
}

#[tokio::test]
async fn a_sub_agent_that_cannot_be_recorded_does_not_start() {
    let bed = Bed::new();
    let child = Scripted::new([text("Done.")]);
    let parent = Scripted::new([calls_tool("worker", "Go"), text("Ok.")]);
    let subagents = Subagents {
        records: Some(Arc::new(Full)),
        ..team([worker("worker")], [("worker", child.clone())])
    };
    let agent = bed.agent(&parent, subagents).await;
    run(&agent, "Go").await;
    let (reply, is_error) = first_result(&parent);
    assert!(
        is_error && reply.contains("was not started: the disk is full"),
        "{reply}"
    );
    assert_eq!(child.requests(), 0);
}

#[tokio::test]
async fn changed_arguments_apply_to_one_call_only() {
    let bed = Bed::new();
    let child = Scripted::new([
        calls([
            ("w1", "write", writes("one")),
            ("w2", "write", writes("two")),
        ]),
        text("Written."),
    ]);
    let parent = Scripted::new([calls_tool("worker", "Write"), text("Ok.")]);
    let team = team([worker("worker")], [("worker", child.clone())]);
    let agent = agent(&bed, &parent, team).await;
    run(&agent, "Go").await;
    // The user sees everything that they approve.
    let asked = agent.question("ask").unwrap();
    assert!(
        asked.has_begun && asked.question.contains("\"one\"") && asked.question.contains("\"two\"")
    );
    let changed = ApprovalAnswer::ApproveWith {
        arguments: json!({ "path": "mine" }),
    };
    let events = answer(&agent, "ask", changed).await;
    assert_eq!(end(&events)["reason"], "approval");
    assert!(!bed.has("mine") && !bed.has("one") && !bed.has("two"));
    let events = answer(&agent, "ask", ApprovalAnswer::Approve).await;
    assert_eq!(end(&events)["text"], "Ok.");
    assert!(bed.has("one") && bed.has("two"));
}

#[tokio::test]
async fn approving_a_sub_agent_does_not_approve_its_calls() {
    let bed = Bed::new();
    let child = Scripted::new([calls([("w", "write", writes("one"))]), text("Written.")]);
    let parent = Scripted::new([calls_tool("worker", "Write"), text("Ok.")]);
    let runtime = bed.runtime(|builder| {
        let builder = builder.approver(Arc::new(Away));
        builder.interrupt_on(["write", "worker"])
    });
    let team = team([worker("worker")], [("worker", child.clone())]);
    let agent = bed.agent_in(runtime, &parent, team).await;
    run(&agent, "Go").await;
    assert!(!agent.question("ask").unwrap().has_begun);
    assert_eq!(child.requests(), 0);
    let events = answer(&agent, "ask", ApprovalAnswer::Approve).await;
    assert_eq!(end(&events)["reason"], "approval");
    assert!(agent.question("ask").unwrap().has_begun && !bed.has("one"));
    let no = ApprovalAnswer::Reject { reason: None };
    let events = answer(&agent, "ask", no).await;
    assert_eq!(end(&events)["text"], "Ok.");
    assert!(!bed.has("one"));
    assert_eq!(child.requests(), 2);
}

#[tokio::test]
async fn an_unanswered_sub_agent_does_not_start_over() {
    let bed = Bed::new();
    let one = Scripted::new([calls([("w", "write", writes("one"))]), text("One.")]);
    let two = Scripted::new([calls([("w", "write", writes("two"))]), text("Two.")]);
    let parent = Scripted::new([
        calls([task("t1", "first", None), task("t2", "second", None)]),
        text("Ok."),
    ]);
    let team = team(
        [worker("first"), worker("second")],
        [("first", one.clone()), ("second", two.clone())],
    );
    let agent = agent(&bed, &parent, team).await;
    run(&agent, "Go").await;
    assert_eq!((one.requests(), two.requests()), (1, 1));
    let events = answer(&agent, "t1", ApprovalAnswer::Approve).await;
    assert_eq!(end(&events)["reason"], "approval");
    assert!(bed.has("one") && !bed.has("two"));
    assert_eq!((one.requests(), two.requests()), (2, 1));
    let events = answer(&agent, "t2", ApprovalAnswer::Approve).await;
    assert_eq!(end(&events)["text"], "Ok.");
    assert!(bed.has("two"));
    assert_eq!((one.requests(), two.requests()), (2, 2));
}
