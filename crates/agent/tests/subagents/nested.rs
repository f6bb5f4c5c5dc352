//! Sub-agents in the background of sub-agents.

use crate::background::{Away, Guard, gated, start, until};
use crate::bed::{
    Bed, Heard, Thinking, all, answer, asks, children, end, of, run, says, team, told, worker,
};
use crate::scripted::{Scripted, calls, text};
use haft::Answer;
use haft_agent::{Agent, Message, Model, Resumed, SubagentSpec, Subagents};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Has somebody work in the background, and answers with what came of it.
fn lead(tools: &Arc<Mutex<Vec<String>>>) -> Arc<Thinking> {
    let tools = Arc::clone(tools);
    Thinking::new(move |heard: Heard| {
        tools.lock().unwrap().clone_from(&heard.tools);
        async move {
            let last = heard.history.last().unwrap();
            let words = match last {
                Message::Tool { results } => results[0].content[0].as_text().unwrap(),
                Message::User { content, .. } => content[0].as_text().unwrap(),
                Message::Assistant(_) => "",
            };
            if words.starts_with("started task") {
                says("It waits for its task.")
            } else if let Some(rest) = words.strip_prefix("[haft: background task ") {
                let (id, rest) = rest.split_once(' ').unwrap();
                match rest.contains("is done") {
                    true => answer(calls([("c", "check_task", json!({ "task_id": id }))])),
                    false => says("It is not done."),
                }
            } else if matches!(last, Message::Tool { .. }) {
                says(&format!("It heard: {words}"))
            } else {
                answer(calls([start("nested")]))
            }
        }
    })
}

/// Somebody who leads, and somebody who works.
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
        // Whoever waits for others must not keep them from beginning.
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
async fn a_sub_agent_answers_when_its_own_tasks_have_ended() {
    for is_background in [false, true] {
        let bed = Bed::new();
        let tools = Arc::default();
        let parent = match is_background {
            false => Scripted::new([asks("lead", "Go"), text("Ok.")]),
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
            of(&events, "agent_start", Some(works))[0]["parent"],
            leads.as_str()
        );
        let led = of(&events, "agent_end", Some(leads))[0];
        let text = led["text"].as_str().unwrap();
        assert!(text.starts_with("It heard: Answer to Go on."), "{led}");
        // Four turns of the one, one of the other, and its own.
        assert_eq!(led["usage"]["output"], 50);
        let own = if is_background { 30 } else { 20 };
        assert_eq!(end(&events)["usage"]["output"], 50 + own);
        let expected = ["write", "task", "check_task", "message_task", "cancel_task"];
        assert_eq!(*tools.lock().unwrap(), expected);
    }
}

#[tokio::test]
async fn stopping_the_agent_stops_those_of_its_sub_agents() {
    let bed = Bed::new();
    let dropped = Arc::new(AtomicUsize::new(0));
    let thinks = Arc::clone(&dropped);
    let works = Thinking::new(move |_| {
        let guard = Guard(Arc::clone(&thinks));
        async move {
            let _guard = guard;
            std::future::pending::<haft_agent::Answer>().await
        }
    });
    let parent = Scripted::new([asks("lead", "Go"), text("Ok.")]);
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
async fn what_such_a_task_asks_a_person_is_answered_later() {
    for (is_background, by_task) in [(false, false), (false, true), (true, false), (true, true)] {
        let bed = Bed::new();
        let works = Thinking::new(|heard: Heard| async move {
            match heard.history.last() {
                Some(Message::Tool { .. }) => says("Written."),
                _ => answer(calls([(
                    "w",
                    "write",
                    json!({ "path": "one", "content": "new" }),
                )])),
            }
        });
        let parent = match is_background {
            false => Scripted::new([asks("lead", "Go")]),
            true => Scripted::new([
                calls([in_background("l")]),
                text("Started."),
                text("Waits."),
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
        let questions = agent.questions();
        assert_eq!(questions.len(), 1, "{questions:?}");
        assert_eq!((&*questions[0].name, &*questions[0].tool), ("w", "write"));
        assert_eq!(questions[0].agent.as_deref(), Some("worker"));

        parent.also([text("All done.")]);
        let name = match by_task {
            true => questions[0].own.clone(),
            false => "w".to_owned(),
        };
        let resumed = Resumed {
            answers: vec![(name, Answer::Approve)],
            prompt: None,
        };
        let events = all(agent.resume(resumed).await.unwrap()).await;
        assert!(bed.has("one"), "{events:?}");
        assert_eq!(end(&events)["text"], "All done.", "{events:?}");
        assert_eq!(end(&events)["reason"], "done");
        assert!(agent.questions().is_empty());
        if !is_background {
            let (reply, is_error) = told(&parent);
            assert!(
                !is_error && reply.starts_with("It heard: Written."),
                "{reply}"
            );
        }
    }
}
