//! Answers other than yes and no, and calls that always need approval.

use super::tests::{Bench, bench, person, rules};
use super::*;
use crate::prelude::*;
use crate::{FromSchema, Narrow};
use serde_json::json;
use std::time::Duration;

fn says(answer: ApprovalAnswer) -> Arc<dyn Approver> {
    person(move |_| Some(answer.clone()))
}

#[tokio::test]
async fn changed_arguments_are_checked_again_before_they_run() {
    let change = |command: &str| ApprovalAnswer::ApproveWith {
        arguments: json!({ "command": command }),
    };
    let one = bench(|builder| builder.policy(rules()).approver(says(change("echo safe"))));
    let reply = one.runtime.call("run", json!({ "command": "make" })).await;
    assert!(!reply.is_error(), "{}", reply.text());
    assert_eq!(*one.ran.lock().unwrap(), ["echo safe"]);
    let changed = &reply.details()["changed_arguments"];
    assert_eq!(*changed, json!({ "command": "echo safe" }));

    // A denied call stays denied, even if the user typed it.
    let one = bench(|builder| builder.policy(rules()).approver(says(change("rm -r x"))));
    let reply = one.runtime.call("run", json!({ "command": "make" })).await;
    assert!(reply.is_error() && reply.text().contains("denies this call"));
    assert!(one.ran.lock().unwrap().is_empty());

    // Arguments that do not match the schema are refused too.
    let wrong = ApprovalAnswer::ApproveWith {
        arguments: json!({ "command": [] , "other": 1 }),
    };
    let one = bench(|builder| builder.policy(rules()).approver(says(wrong)));
    let reply = one.runtime.call("run", json!({ "command": "make" })).await;
    assert!(reply.is_error());
    assert!(one.ran.lock().unwrap().is_empty());
}

#[tokio::test]
async fn always_is_asked_once() {
    let user = person(|_| Some(ApprovalAnswer::ForSession));
    let one = bench(|builder| builder.policy(rules()).approver(user.clone()));
    for _ in 0..3 {
        let reply = one
            .runtime
            .call("run", json!({ "command": "make all" }))
            .await;
        assert!(!reply.is_error(), "{}", reply.text());
    }
    assert_eq!(one.ran.lock().unwrap().len(), 3);
    assert_eq!(user.asked.lock().unwrap().len(), 1);
    let reply = one.runtime.call("run", json!({ "command": "rm x" })).await;
    assert!(reply.is_error());
}

#[tokio::test]
async fn a_postponed_call_runs_once_it_is_answered() {
    let one = bench(|builder| {
        builder
            .policy(rules())
            .approver(says(ApprovalAnswer::Later))
    });
    let call = || Call::new("run", json!({ "command": "make" })).id("c1");
    let reply = one.runtime.run(call()).await;
    assert!(reply.is_pending(), "{}", reply.text());
    assert!(one.ran.lock().unwrap().is_empty());
    let kinds: Vec<_> = one
        .events
        .lock()
        .unwrap()
        .iter()
        .map(|event| event["type"].clone())
        .collect();
    assert_eq!(kinds, ["approval_needed"]);

    let no = ApprovalAnswer::Reject { reason: None };
    let reply = one.runtime.run(call().answered(no)).await;
    assert!(reply.is_error() && !reply.is_pending());
    let reply = one
        .runtime
        .run(call().answered(ApprovalAnswer::Approve))
        .await;
    assert!(!reply.is_error(), "{}", reply.text());
    assert_eq!(*one.ran.lock().unwrap(), ["make"]);
}

#[tokio::test]
async fn interrupt_on_asks_even_with_approve_auto() {
    let user = person(|_| Some(ApprovalAnswer::Approve));
    let one = bench(|builder| {
        let builder = builder.approve(Approve::Auto).interrupt_on(["run"]);
        builder.approver(user.clone())
    });
    let reply = one.runtime.call("run", json!({ "command": "ls" })).await;
    assert!(!reply.is_error(), "{}", reply.text());
    assert_eq!(user.asked.lock().unwrap().len(), 1);

    for approve in [Approve::Auto, Approve::Ask] {
        let alone = bench(|builder| builder.approve(approve).interrupt_on(["run"]));
        let reply = alone.runtime.call("run", json!({ "command": "ls" })).await;
        assert!(reply.text().contains("interrupt_on"), "{}", reply.text());
        assert!(alone.ran.lock().unwrap().is_empty());
    }
    let no = person(|_| {
        Some(ApprovalAnswer::Reject {
            reason: Some("not\nnow".to_owned()),
        })
    });
    let one = bench(|builder| builder.interrupt_on(["run"]).approver(no));
    let reply = one.runtime.call("run", json!({ "command": "ls" })).await;
    let text = reply.text();
    assert!(
        text.starts_with(
            "not approved: the user said no: not\\nnow (interrupt_on requires approval \
             for every call: run)\n"
        ),
        "{text}"
    );
}

#[tokio::test]
async fn an_inner_session_has_fewer_tools_and_asks_more() {
    let user = person(|_| Some(ApprovalAnswer::Reject { reason: None }));
    let outer = bench(|builder| builder.policy(rules()).approver(user.clone()));
    let inner = outer.runtime.narrowed(Narrow {
        id: "inner".to_owned(),
        granted: Vec::new(),
        tools: vec!["run".to_owned(), "no such tool".to_owned()],
        interrupt_on: ["run".to_owned()].into(),
        agent: Some("helper".to_owned()),
    });
    assert_eq!(inner.tools().names(), ["run"]);
    assert_eq!(inner.session(), "inner");
    let reply = inner.call("run", json!({ "command": "ls" })).await;
    assert!(reply.is_error(), "{}", reply.text());
    {
        let asked = user.asked.lock().unwrap();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].agent.as_deref(), Some("helper"));
    }
    let reply = inner.call("read", json!({ "path": "x" })).await;
    assert!(reply.text().contains("unknown tool"), "{}", reply.text());
    // The outer session is unchanged.
    let reply = outer.runtime.call("run", json!({ "command": "ls" })).await;
    assert!(!reply.is_error(), "{}", reply.text());
}

fn confirming(runtime: &Runtime, timeout: Duration) {
    let tool = FromSchema::new(
        "sure",
        "Asks first.",
        json!({ "type": "object" }),
        Effect::Pure,
        |_, cx: Context| async move {
            let yes = cx.confirm("Really?").await?;
            Ok(Reply::from(if yes { "done" } else { "left alone" }))
        },
    );
    let tool = tool.unwrap().with_timeout(Some(timeout));
    runtime.tools().add_any(Arc::new(tool)).unwrap();
}

#[tokio::test]
async fn a_tool_can_ask_the_user_while_it_runs() {
    let short = Duration::from_millis(20);
    for (approve, answer, expected) in [
        (Approve::Ask, ApprovalAnswer::Approve, "done"),
        (
            Approve::Ask,
            ApprovalAnswer::Reject { reason: None },
            "left alone",
        ),
        (Approve::Auto, ApprovalAnswer::Later, "done"),
        (Approve::Never, ApprovalAnswer::Approve, "left alone"),
    ] {
        let one = bench(|builder| builder.approve(approve).approver(says(answer)));
        confirming(&one.runtime, short);
        let reply = one.runtime.call("sure", json!({})).await;
        assert_eq!(reply.text(), expected, "{approve:?}");
    }
    let alone = bench(|builder| builder);
    confirming(&alone.runtime, short);
    assert_eq!(
        alone.runtime.call("sure", json!({})).await.text(),
        "left alone"
    );

    let one = bench(|builder| builder.approver(says(ApprovalAnswer::Later)));
    confirming(&one.runtime, short);
    let reply = one.runtime.call("sure", json!({})).await;
    assert!(
        reply.is_pending() && reply.text().contains("Really?"),
        "{}",
        reply.text()
    );
    let again = Call::new("sure", json!({})).answered_within(ApprovalAnswer::Approve);
    assert_eq!(one.runtime.run(again).await.text(), "done");
}

#[tokio::test]
async fn an_earlier_no_counts_even_if_nothing_would_be_asked_now() {
    let no = || ApprovalAnswer::Reject { reason: None };
    let change = || ApprovalAnswer::ApproveWith {
        arguments: json!({ "command": "echo safe" }),
    };
    // Nothing would ask now: the session approves everything, or a rule allows the call.
    for (approve, command) in [
        (Approve::Auto, "make"),
        (Approve::Ask, "ls"),
        (Approve::Never, "ls"),
    ] {
        let one = bench(|builder| builder.approve(approve));
        let call = || Call::new("run", json!({ "command": command }));
        let reply = one.runtime.run(call().answered(no())).await;
        assert!(reply.is_error(), "{approve:?} {command}");
        assert!(one.ran.lock().unwrap().is_empty(), "{approve:?} {command}");
        let reply = one
            .runtime
            .run(call().answered(ApprovalAnswer::Approve))
            .await;
        assert!(!reply.is_error(), "{approve:?}: {}", reply.text());
        if approve == Approve::Auto {
            one.runtime.run(call().answered(change())).await;
            assert_eq!(*one.ran.lock().unwrap(), [command, "echo safe"]);
        }
    }
}

#[tokio::test]
async fn approving_a_call_does_not_answer_its_own_questions() {
    let one = bench(|builder| {
        builder
            .approver(says(ApprovalAnswer::Later))
            .interrupt_on(["sure"])
    });
    confirming(&one.runtime, Duration::from_secs(5));
    let call = || Call::new("sure", json!({}));
    let reply = one.runtime.run(call()).await;
    assert!(reply.is_pending() && !reply.text().contains("Really?"));
    let reply = one
        .runtime
        .run(call().answered(ApprovalAnswer::Approve))
        .await;
    assert!(
        reply.is_pending() && reply.text().contains("Really?"),
        "{}",
        reply.text()
    );
    let reply = one
        .runtime
        .run(call().answered_within(ApprovalAnswer::Approve))
        .await;
    assert_eq!(reply.text(), "done");
    let no = ApprovalAnswer::Reject { reason: None };
    let reply = one.runtime.run(call().answered_within(no)).await;
    assert_eq!(reply.text(), "left alone");
}

#[tokio::test]
async fn a_call_with_changed_arguments_does_not_wait_for_later_calls() {
    let mine = ApprovalAnswer::ApproveWith {
        arguments: json!({ "content": "mine" }),
    };
    let temp = tempfile::TempDir::new().unwrap();
    let runtime = Runtime::builder().dir(temp.path()).every_tool();
    let runtime = runtime.approver(says(mine)).interrupt_on(["write"]);
    let runtime = runtime.concurrency(1).build().unwrap();
    let write = |content: &str| Call::new("write", json!({ "path": "a", "content": content }));
    let all = runtime.run_all(vec![write("one"), write("two"), write("three")]);
    let replies = tokio::time::timeout(Duration::from_secs(20), all).await;
    let replies = replies.expect("the calls deadlocked");
    assert!(replies.iter().all(|reply| !reply.is_error()));
}

#[tokio::test]
async fn an_always_answer_is_limited_to_its_session() {
    let always = person(|_| Some(ApprovalAnswer::ForSession));
    let first = bench(|builder| builder.approver(Arc::clone(&always) as Arc<dyn Approver>));
    let run = async |runtime: &Runtime| {
        let reply = runtime.call("run", json!({ "command": "make" })).await;
        assert!(!reply.is_error(), "{}", reply.text());
        always.asked.lock().unwrap().len()
    };
    assert_eq!(run(&first.runtime).await, 1);
    assert_eq!(
        run(&first.runtime).await,
        1,
        "allowed for the rest of the session"
    );
    let other = first.runtime.sibling(crate::Sibling::default()).unwrap();
    assert_eq!(run(&other).await, 2, "asked about again in another session");
    assert_eq!(run(&other).await, 2);
    let denied = other.call("run", json!({ "command": "rm x" })).await;
    assert!(denied.text().contains("denies this call"));
}

#[tokio::test]
async fn a_call_can_have_its_own_approver() {
    let without_approver = bench(|builder| builder);
    let own = person(|_| Some(ApprovalAnswer::Approve));
    let call = Call::new("run", json!({ "command": "make" }));
    let reply = without_approver.runtime.run(call.clone()).await;
    assert!(
        reply.text().contains("no user can be asked"),
        "{}",
        reply.text()
    );
    let asks = call.approver(Arc::clone(&own) as Arc<dyn Approver>);
    assert!(!without_approver.runtime.run(asks.clone()).await.is_error());
    let question = own.asked.lock().unwrap()[0].clone();
    assert!(
        question.reason().contains("haft.yaml:3 requires approval"),
        "{}",
        question.reason()
    );
    // It takes precedence over the session's approver, and covers inner calls too.
    let sessions = person(|_| Some(ApprovalAnswer::Reject { reason: None }));
    let inner = FromSchema::new(
        "outer",
        "Calls another.",
        json!({ "type": "object", "properties": {} }),
        Effect::Pure,
        |_, cx: Context| async move { Ok(cx.call_tool("run", json!({ "command": "make" })).await) },
    );
    let both = bench(|builder| {
        let builder = builder.approver(Arc::clone(&sessions) as Arc<dyn Approver>);
        builder.any_tool(Arc::new(inner.unwrap()))
    });
    assert!(!both.runtime.run(asks).await.is_error());
    let outer = Call::new("outer", json!({})).approver(Arc::clone(&own) as Arc<dyn Approver>);
    let reply = both.runtime.run(outer).await;
    assert!(!reply.is_error(), "{}", reply.text());
    assert_eq!(own.asked.lock().unwrap().len(), 3);
    assert!(sessions.asked.lock().unwrap().is_empty());
}

/// Waits before each yes and records the total waiting time.
#[derive(Default)]
struct Slow(std::sync::Mutex<Duration>);

#[async_trait]
impl Approver for Slow {
    async fn ask(&self, _: &Question) -> ApprovalAnswer {
        let begun = std::time::Instant::now();
        tokio::time::sleep(Duration::from_millis(100)).await;
        *self.0.lock().unwrap() += begun.elapsed();
        ApprovalAnswer::Approve
    }
}

/// Makes a call and checks that no reported duration includes the time the user took.
async fn excludes_waiting_time(slow: &Slow, bench: &Bench, tool: &str, asked: usize) {
    let begun = std::time::Instant::now();
    let reply = bench.runtime.call(tool, json!({ "command": "make" })).await;
    let all = begun.elapsed();
    assert!(!reply.is_error(), "{tool}: {}", reply.text());
    let thought = std::mem::take(&mut *slow.0.lock().unwrap());
    let events = std::mem::take(&mut *bench.events.lock().unwrap());
    let of = |kind: &'static str| events.iter().filter(move |event| event["type"] == kind);
    assert_eq!(of("approval_needed").count(), asked, "{tool}");
    let ends: Vec<_> = of("tool_end").collect();
    assert!(!ends.is_empty());
    for end in ends {
        let took = Duration::from_millis(end["duration_ms"].as_u64().unwrap());
        assert!(
            took + thought <= all,
            "{tool}: {took:?} {thought:?} {all:?}"
        );
    }
}

#[tokio::test]
async fn durations_exclude_the_time_the_user_takes() {
    let slow = Arc::new(Slow::default());
    let one = bench(|builder| builder.approver(slow.clone()));
    excludes_waiting_time(&slow, &one, "run", 1).await;

    confirming(&one.runtime, Duration::from_secs(60));
    excludes_waiting_time(&slow, &one, "sure", 1).await;

    // Calls that a tool makes, in this session and in an inner one.
    let around = FromSchema::new(
        "around",
        "Calls others.",
        json!({ "type": "object" }),
        Effect::Pure,
        |_, cx: Context| async move {
            let arguments = json!({ "command": "make" });
            let first = cx.call_tool("run", arguments.clone()).await;
            let inner = cx.narrowed(Narrow {
                id: "inner".to_owned(),
                tools: vec!["run".to_owned(), "sure".to_owned()],
                ..Narrow::default()
            });
            let second = inner.call("run", arguments).await;
            let third = inner.call("sure", json!({})).await;
            Ok(Reply::from(format!(
                "{} {} {}",
                first.text(),
                second.text(),
                third.text()
            )))
        },
    );
    one.runtime
        .tools()
        .add_any(Arc::new(around.unwrap()))
        .unwrap();
    excludes_waiting_time(&slow, &one, "around", 3).await;
}
