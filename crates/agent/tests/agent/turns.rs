//! Turns, retries, limits, steering and cancellation.

use crate::bed::{Bed, json, kinds, of_type, result_text, results, run};
use crate::scripted::{Next, Scripted, calls, fails, text};
use haft::prelude::*;
use haft_agent::{Hooks, Message, ModelAnswer, ModelErrorKind, Origin, Stop, ToolCall};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[tokio::test]
async fn an_answer_without_calls_ends_the_run() {
    let bed = Bed::new();
    let model = Scripted::new([text("Hello.")]);
    let agent = bed.agent(&model).system("Be kind.");
    let events = run(&agent, "Hi").await;
    assert_eq!(
        kinds(&events),
        ["agent_start", "turn_start", "turn_end", "agent_end"]
    );
    let end = events.last().unwrap();
    assert_eq!(end["reason"], "done");
    assert_eq!(end["text"], "Hello.");
    assert_eq!(end["usage"]["input"], 100);
    assert_eq!(end["cost"], 0.01);
    assert_eq!(agent.last_text(), "Hello.");
}

#[tokio::test]
async fn calls_run_in_parallel_and_their_results_are_in_order() {
    let bed = Bed::new();
    bed.file("a.txt", "first").file("b.txt", "second");
    let model = Scripted::new([
        calls([
            ("1", "read", json!({ "path": "a.txt" })),
            ("2", "read", json!({ "path": "missing" })),
            ("3", "no_such_tool", json!({})),
            ("4", "read", json!({ "path": "b.txt" })),
        ]),
        text("Done."),
    ]);
    let agent = bed.agent(&model);
    let events = run(&agent, "Read").await;
    let results = results(&model.last());
    let ids: Vec<_> = results
        .iter()
        .map(|result| result.call_id.as_str())
        .collect();
    assert_eq!(ids, ["1", "2", "3", "4"]);
    let errors: Vec<_> = results.iter().map(|result| result.is_error).collect();
    assert_eq!(errors, [false, true, true, false]);
    assert_eq!(result_text(&results[0]), "first");
    assert_eq!(result_text(&results[3]), "second");
    assert_eq!(of_type(&events, "tool_start").len(), 3);
    assert_eq!(of_type(&events, "tool_end").len(), 3);
    assert_eq!(of_type(&events, "tool_denied").len(), 1);
}

#[tokio::test]
async fn repeated_and_missing_ids_become_unique() {
    let bed = Bed::new();
    bed.file("a.txt", "first").file("b.txt", "second");
    let read = |path: &str| json!({ "path": path });
    let model = Scripted::new([
        calls([("x", "read", read("a.txt")), ("x", "read", read("b.txt"))]),
        calls([("x", "read", read("b.txt")), ("", "read", read("a.txt"))]),
        text("Done."),
    ]);
    let agent = bed.agent(&model);
    run(&agent, "Read").await;
    let mut ids = Vec::new();
    for message in model.last() {
        if let Message::Tool { results } = message {
            ids.extend(results.into_iter().map(|result| result.call_id));
        }
    }
    let mut once = ids.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), 4, "{ids:?}");
}

#[tokio::test]
async fn only_transient_errors_are_retried() {
    for kind in [
        ModelErrorKind::Network,
        ModelErrorKind::Disconnected,
        ModelErrorKind::Status(429),
        ModelErrorKind::Status(503),
        ModelErrorKind::Truncated,
        ModelErrorKind::Empty,
        ModelErrorKind::Malformed,
    ] {
        let bed = Bed::new();
        let model = Scripted::new([fails(kind), fails(kind), text("Yes.")]);
        let events = run(&bed.agent(&model), "Hi").await;
        assert_eq!(of_type(&events, "retry").len(), 2, "{kind:?}");
        assert_eq!(events.last().unwrap()["reason"], "done");
        assert_eq!(model.requests(), 3);
    }
    for kind in [
        ModelErrorKind::Status(400),
        ModelErrorKind::Status(401),
        ModelErrorKind::Permanent,
    ] {
        let bed = Bed::new();
        let model = Scripted::new([fails(kind), text("No.")]);
        let events = run(&bed.agent(&model), "Hi").await;
        assert_eq!(model.requests(), 1, "{kind:?}");
        assert_eq!(events.last().unwrap()["reason"], "failed");
        assert_eq!(of_type(&events, "error").len(), 1);
    }
    let bed = Bed::new();
    let model = Scripted::new((0..9).map(|_| fails(ModelErrorKind::Status(500))));
    let events = run(&bed.agent(&model).max_retries(2), "Hi").await;
    assert_eq!(model.requests(), 3);
    let message = of_type(&events, "error")[0]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(message.ends_with("(tried 3 times)"), "{message}");
}

#[tokio::test]
async fn an_empty_answer_is_retried() {
    let bed = Bed::new();
    let empty = || Next::ModelReply(ModelAnswer::default());
    let model = Scripted::new([empty(), text("Now.")]);
    let events = run(&bed.agent(&model), "Hi").await;
    assert_eq!(of_type(&events, "retry").len(), 1);
    assert_eq!(events.last().unwrap()["text"], "Now.");
}

#[tokio::test]
async fn limits_stop_a_run() {
    let bed = Bed::new();
    bed.file("a.txt", "x");
    let turns = || (0..60).map(|n| calls([("c", "read", json!({ "path": format!("{n}") }))]));
    let model = Scripted::new(turns());
    let events = run(&bed.agent(&model).max_turns(4), "Go").await;
    assert_eq!(model.requests(), 4);
    assert_eq!(
        of_type(&events, "turn_limit_reached")[0]["reason"],
        "max_turns"
    );
    assert_eq!(events.last().unwrap()["reason"], "limit");

    let model = Scripted::new(turns());
    let events = run(&bed.agent(&model).max_tokens(Some(300)), "Go").await;
    assert_eq!(model.requests(), 3);
    assert_eq!(
        of_type(&events, "turn_limit_reached")[0]["reason"],
        "max_tokens"
    );

    let model = Scripted::new(turns());
    let events = run(&bed.agent(&model).max_cost(Some(0.015)), "Go").await;
    assert_eq!(model.requests(), 2);
    assert_eq!(
        of_type(&events, "turn_limit_reached")[0]["reason"],
        "max_cost"
    );
}

#[tokio::test]
async fn a_loop_leads_to_a_warning_and_then_to_a_stop() {
    let bed = Bed::new();
    bed.file("a.txt", "x");
    let same = (0..9).map(|_| calls([("c", "read", json!({ "path": "a.txt" }))]));
    let model = Scripted::new(same);
    let agent = bed.agent(&model);
    let events = run(&agent, "Go").await;
    assert_eq!(model.requests(), 5);
    assert_eq!(of_type(&events, "turn_limit_reached")[0]["reason"], "loop");
    let notes = model.last().into_iter().filter(|message| {
        matches!(
            message,
            Message::User {
                origin: Origin::Note,
                ..
            }
        )
    });
    assert_eq!(notes.count(), 2);
    // Every call has a result, so the conversation can continue.
    let last = agent.history();
    assert!(matches!(**last.last().unwrap(), Message::Tool { .. }));
}

#[tokio::test]
async fn steering_reaches_the_model_before_the_next_turn() {
    let bed = Bed::new();
    bed.file("a.txt", "x");
    let model = Scripted::new([]);
    let agent = bed.agent(&model);
    let steer = |text: &'static str, then: Next| {
        let handle = agent.handle();
        Next::After(Box::new(move || handle.steer(text)), Box::new(then))
    };
    let call = calls([("c", "read", json!({ "path": "a.txt" }))]);
    // The last answer has no calls, but the run continues because of the message.
    model.also([
        steer("Look at b too.", call),
        steer("And c.", text("One.")),
        text("Two."),
    ]);
    let seen = run(&agent, "Go").await;
    let steering: Vec<_> = of_type(&seen, "steering")
        .iter()
        .map(|event| event["text"].clone())
        .collect();
    assert_eq!(steering, ["Look at b too.", "And c."]);
    assert_eq!(model.requests(), 3);
    assert_eq!(agent.last_text(), "Two.");
}

#[tokio::test]
async fn a_second_prompt_during_a_run_is_refused() {
    let bed = Bed::new();
    let model = Scripted::new([Next::Hangs("thinking"), text("Hi.")]);
    let agent = bed.agent(&model);
    let mut events = agent.prompt("One").await.unwrap();
    assert!(agent.prompt("Two").await.is_err());
    while json(&events.next().await.unwrap())["type"] != "message_update" {}
    agent.abort();
    while let Some(event) = events.next().await {
        let event = json(&event);
        assert!(event["reason"] == "interrupted" || event["type"] == "turn_end");
    }
    let events = run(&agent, "Two").await;
    assert_eq!(events.last().unwrap()["text"], "Hi.");
    // The partial answer is part of the conversation.
    let partial = agent.history().iter().any(|message| match &**message {
        Message::Assistant(answer) => {
            answer.stop == Stop::Interrupted && answer.text() == "thinking"
        }
        _ => false,
    });
    assert!(partial);
}

#[tokio::test]
async fn dropping_the_events_stops_the_run() {
    let bed = Bed::new();
    let model = Scripted::new([Next::Hangs("x"), text("Hi.")]);
    let agent = bed.agent(&model);
    drop(agent.prompt("One").await.unwrap());
    let begun = Instant::now();
    while agent.handle().is_busy() {
        assert!(begun.elapsed() < Duration::from_secs(5));
        tokio::task::yield_now().await;
    }
}

pub(crate) fn waiting(runtime: &haft::Runtime) {
    let tool = haft::FromSchema::new(
        "wait",
        "PendingApproval.",
        json!({ "type": "object" }),
        Effect::Pure,
        |_, cx: Context| async move {
            cx.cancel().cancelled().await;
            Ok::<_, Error>(Reply::from("stopped waiting"))
        },
    );
    runtime.tools().add_any(Arc::new(tool.unwrap())).unwrap();
}

#[tokio::test]
async fn stopping_during_calls_gives_every_call_its_result() {
    let bed = Bed::new();
    bed.file("a.txt", "x");
    let model = Scripted::new([
        calls([
            ("1", "read", json!({ "path": "a.txt" })),
            ("2", "wait", json!({})),
            ("3", "wait", json!({})),
        ]),
        text("Never."),
    ]);
    let agent = bed.agent(&model);
    waiting(agent.runtime());
    let mut events = agent.prompt("Go").await.unwrap();
    let mut seen = Vec::new();
    let mut begun = 0;
    while let Some(event) = events.next().await {
        let event = json(&event);
        begun += usize::from(event["type"] == "tool_start");
        if begun == 3 {
            agent.abort();
        }
        seen.push(event);
    }
    assert_eq!(seen.last().unwrap()["reason"], "interrupted");
    assert_eq!(of_type(&seen, "tool_end").len(), 3);
    assert_eq!(model.requests(), 1);
    let history: Vec<_> = agent
        .history()
        .iter()
        .map(|message| Message::clone(message))
        .collect();
    assert_eq!(results(&history).len(), 3);
}

#[tokio::test]
async fn a_tool_may_panic_and_a_tool_may_end_the_run() {
    let bed = Bed::new();
    let model = Scripted::new([
        calls([("1", "boom", json!({}))]),
        calls([("2", "finish", json!({}))]),
        text("Never."),
    ]);
    let agent = bed.agent(&model);
    let object = json!({ "type": "object" });
    let boom = haft::FromSchema::new(
        "boom",
        "Panics.",
        object.clone(),
        Effect::Pure,
        |_, _| async {
            panic!("as told");
        },
    );
    agent.tools().add_any(Arc::new(boom.unwrap())).unwrap();
    let last = haft::FromSchema::new("finish", "Ends.", object, Effect::Pure, |_, _| async {
        Ok(Reply::final_answer("All is well."))
    });
    agent.tools().add_any(Arc::new(last.unwrap())).unwrap();
    let events = run(&agent, "Go").await;
    assert_eq!(model.requests(), 2);
    assert_eq!(events.last().unwrap()["text"], "All is well.");
    assert_eq!(events.last().unwrap()["reason"], "done");
    assert!(result_text(&results(&model.last())[0]).contains("panicked"));
}

#[tokio::test]
async fn a_tool_added_during_a_run_is_available_in_the_next_turn() {
    let bed = Bed::new();
    bed.file("a.txt", "x");
    let model = Scripted::new([]);
    let agent = bed.agent(&model);
    let runtime = agent.runtime().clone();
    let call = calls([("1", "read", json!({ "path": "a.txt" }))]);
    model.also([
        Next::After(Box::new(move || waiting(&runtime)), Box::new(call)),
        text("Done."),
    ]);
    run(&agent, "Go").await;
    let tools = model.tools.lock().unwrap();
    assert!(!tools[0].contains(&"wait".to_owned()));
    assert_eq!(tools[1].last().unwrap(), "wait");
}

pub(crate) struct ChangingHooks {
    pub(crate) calls: Mutex<Vec<String>>,
}

#[async_trait::async_trait]
impl Hooks for ChangingHooks {
    async fn before_agent(&self, prompt: &mut String) {
        prompt.push_str(" please");
    }

    async fn before_tool(&self, call: &mut ToolCall) -> Option<Reply> {
        self.calls.lock().unwrap().push(call.name.clone());
        match call.name.as_str() {
            "ls" => Some(Reply::from("no listing today")),
            _ => {
                call.arguments = json!({ "path": "b.txt" });
                None
            }
        }
    }

    async fn after_tool(&self, _: &ToolCall, reply: &mut Reply) {
        *reply = Reply::from(reply.text().replace("secret", "[hidden]"));
    }
}

#[tokio::test]
async fn hooks_change_prompts_calls_and_replies() {
    let bed = Bed::new();
    bed.file("b.txt", "a secret");
    let model = Scripted::new([
        calls([
            ("1", "ls", json!({})),
            ("2", "read", json!({ "path": "a.txt" })),
        ]),
        text("Done."),
    ]);
    let hooks = Arc::new(ChangingHooks {
        calls: Mutex::default(),
    });
    let agent = bed.agent(&model).hooks(hooks.clone());
    run(&agent, "Go").await;
    let results = results(&model.last());
    assert_eq!(result_text(&results[0]), "no listing today");
    assert_eq!(result_text(&results[1]), "a [hidden]");
    assert_eq!(*hooks.calls.lock().unwrap(), ["ls", "read"]);
    assert_eq!(model.last()[0], Message::prompt("Go please"));
}

#[tokio::test]
async fn a_long_conversation_is_compacted_and_continues() {
    let bed = Bed::new();
    bed.file("a.txt", &"word ".repeat(800));
    // The model reports 110 tokens per turn.
    let mut script = Vec::new();
    for n in 0..2 {
        script.push(calls([(
            "c",
            "read",
            json!({ "path": "a.txt", "limit": 100 + n }),
        )]));
    }
    script.push(text("The summary."));
    script.push(text("Done."));
    let model = Scripted::with_window(script, Some(130));
    let agent = bed.agent(&model);
    let events = run(&agent, "Do it").await;
    let shortened = of_type(&events, "compaction");
    assert_eq!(shortened.len(), 1, "{:?}", kinds(&events));
    assert!(shortened[0]["before"].as_u64() > shortened[0]["after"].as_u64());
    let Message::User { content, origin } = &model.last()[0] else {
        panic!("{:?}", model.last());
    };
    assert_eq!(*origin, Origin::Summary);
    assert!(format!("{content:?}").contains("The summary."));
    assert_eq!(events.last().unwrap()["text"], "Done.");
}

#[tokio::test]
async fn a_conversation_too_long_for_the_model_is_compacted_once() {
    let bed = Bed::new();
    bed.file("a.txt", "x");
    let model = Scripted::new([
        calls([("c", "read", json!({ "path": "a.txt" }))]),
        fails(ModelErrorKind::TooLong),
        fails(ModelErrorKind::TooLong),
        text("Done."),
    ]);
    let events = run(&bed.agent(&model), "Do it").await;
    assert_eq!(of_type(&events, "compaction").len(), 1);
    assert_eq!(events.last().unwrap()["text"], "Done.", "{events:?}");
}

/// The missing part of the answer might have changed the meaning of its calls.
#[tokio::test]
async fn the_calls_of_a_truncated_answer_do_not_run() {
    for (stop, why) in [
        (Stop::Length, "maximum number of tokens"),
        (Stop::Refusal, "withheld"),
        (Stop::Interrupted, "interrupted"),
    ] {
        let bed = Bed::new();
        let write = json!({ "path": "made.txt", "content": "x" });
        let Next::ModelReply(answer) = calls([("1", "write", write)]) else {
            panic!("an answer");
        };
        let cut = Next::ModelReply(ModelAnswer { stop, ..answer });
        let model = Scripted::new([cut, text("I see.")]);
        let events = run(&bed.agent(&model), "Go").await;
        assert_eq!(events.last().unwrap()["text"], "I see.", "{events:#?}");
        assert_eq!(of_type(&events, "tool_start").len(), 0);
        assert!(!bed.folder.path().join("made.txt").exists(), "{stop:?}");
        let results = results(&model.last());
        assert!(results[0].is_error);
        let text = result_text(&results[0]);
        assert!(text.contains("did not run") && text.contains(why), "{text}");
    }
}
