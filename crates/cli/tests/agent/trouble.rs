//! Failing providers: temporary errors are retried, permanent ones are reported at once.

use crate::bed::{Bed, Ran};
use haft_testing::model::{Ending, ModelReply, Turn};
use serde_json::json;
use std::time::{Duration, Instant};

/// A run with one retry and a short delay.
fn run(turns: Vec<Turn>) -> (Bed, Ran) {
    let bed = Bed::new(turns).and("max_retries: 1\n");
    let ran = bed.run(&[]);
    (bed, ran)
}

/// Checks that the run succeeds with one retry.
fn passes(trouble: Turn, reason: &str) {
    let (bed, ran) = run(vec![trouble, Turn::text("Done.")]);
    assert_eq!((ran.code, ran.reason()), (Some(0), "done"), "{ran:?}");
    let retries = ran.of("retry");
    assert_eq!(retries.len(), 1, "{ran:?}");
    let retry = retries[0];
    assert_eq!((&retry["attempt"], &retry["of"]), (&1.into(), &1.into()));
    assert!(
        retry["reason"].as_str().unwrap().contains(reason),
        "{retry}"
    );
    assert_eq!(bed.server.count(), 2);
    // Nothing of the failed attempt is in the conversation.
    let messages = bed.messages();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(
        messages[1]["parts"],
        json!([{ "type": "text", "text": "Done." }])
    );
}

/// Checks that the run fails without a retry.
fn fails(trouble: Turn, reason: &str) {
    let (bed, ran) = run(vec![trouble, Turn::text("Done.")]);
    assert_eq!((ran.code, ran.reason()), (Some(1), "failed"), "{ran:?}");
    assert!(ran.error().contains(reason), "{ran:?}");
    assert_eq!((ran.of("retry").len(), bed.server.count()), (0, 1));
    assert!(ran.err.starts_with("error: "), "{ran:?}");
    // The prompt is not lost: the session continues from there.
    let resumed = bed.resume(&[]);
    assert_eq!(
        (resumed.code, resumed.reason()),
        (Some(0), "done"),
        "{resumed:?}"
    );
}

#[test]
fn temporary_errors_are_retried() {
    passes(
        Turn::status(500, "oops"),
        "answered 500 Internal Server Error: oops",
    );
    passes(Turn::status(529, "overloaded"), "answered 529");
    passes(Turn::status(408, "slow"), "answered 408");
    passes(
        Turn::status(429, "slow down").header("retry-after", "0"),
        "answered 429",
    );
    passes(Turn::Closed, "broke the connection");
    passes(Turn::text(""), "with nothing in it");
    passes(Turn::text(" \n"), "");
    passes(Turn::Raw(String::new()), "");
    passes(
        Turn::Raw("<html>This is no stream</html>\n\n".to_owned()),
        "",
    );
    passes(
        Turn::Raw("data: {\"choices\": [{\"delta\": {\"content\"\n\n".to_owned()),
        "",
    );
    passes(Turn::Raw("\u{0}\u{1}\u{fffd}".repeat(5000)), "");
}

#[test]
fn permanent_errors_are_not_retried() {
    fails(
        Turn::status(400, "no such field"),
        "answered 400 Bad Request: no such field",
    );
    fails(
        Turn::status(401, "bad key"),
        "check the key in OPENAI_API_KEY",
    );
    fails(Turn::status(403, "not for you"), "answered 403");
    fails(
        Turn::status(404, "no such model"),
        "check the name of the model",
    );
    fails(
        Turn::status(302, "there").header("location", "http://192.0.2.1/"),
        "a redirect is not followed",
    );
}

/// A call runs only once its reply is complete.
#[test]
fn a_cut_stream_calls_nothing() {
    let says = || {
        ModelReply::text("I write.").call(
            "c1",
            "write",
            &json!({ "path": "half.txt", "content": "half" }),
        )
    };
    for ending in [Ending::Whole, Ending::Broken] {
        for after in [1, 60, 300, 600, 900] {
            let cut = Turn::Cut {
                reply: says(),
                after,
                ending,
            };
            let (bed, ran) = run(vec![cut, Turn::text("Done.")]);
            assert_eq!(
                (ran.code, ran.reason()),
                (Some(0), "done"),
                "{after} {ending:?} {ran:?}"
            );
            assert_eq!(ran.of("retry").len(), 1, "{after} {ending:?}");
            assert!(ran.of("tool_start").is_empty());
            assert!(!bed.work("half.txt").exists());
            assert_eq!(bed.messages().len(), 2);
        }
    }
}

#[test]
fn a_requested_delay_is_honoured() {
    let busy = Turn::status(429, "slow down").header("retry-after", "2");
    let begun = Instant::now();
    let (_, ran) = run(vec![busy, Turn::text("Done.")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.of("retry")[0]["delay_ms"], 2000);
    assert!(begun.elapsed() >= Duration::from_secs(2));
    // It does not wait an hour.
    let begun = Instant::now();
    let busy = Turn::status(429, "come back later").header("retry-after", "3600");
    let (_, ran) = run(vec![busy, Turn::text("Done.")]);
    assert_eq!((ran.code, ran.reason()), (Some(1), "failed"), "{ran:?}");
    assert!(ran.error().contains("come back later"), "{ran:?}");
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn retries_are_limited() {
    let bed = Bed::new(|_: &serde_json::Value, _: usize| Turn::status(503, "down"))
        .and("max_retries: 2\n");
    let ran = bed.run(&[]);
    assert_eq!((ran.code, ran.reason()), (Some(1), "failed"), "{ran:?}");
    assert_eq!((ran.of("retry").len(), bed.server.count()), (2, 3));
    assert!(ran.error().contains("tried 3 times"), "{ran:?}");
    let bed = bed.and("max_retries: 0\n");
    let ended = bed.haft(&["run", "Go"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{ended:?}");
    assert_eq!(bed.server.count(), 4);
}

#[test]
fn an_unreachable_provider() {
    let bed = Bed::new(Vec::new());
    let gone = haft_testing::model::Scripted::start(Vec::new()).url();
    bed.user(&format!(
        "provider: ollama\nmodel: m\nbase_url: \"{gone}\"\nmax_retries: 1\n"
    ));
    let ran = bed.run(&[]);
    assert_eq!((ran.code, ran.reason()), (Some(1), "failed"), "{ran:?}");
    assert!(
        ran.error().contains("cannot be reached") && ran.error().contains("ollama serve"),
        "{ran:?}"
    );
    assert_eq!(ran.of("retry").len(), 1);
}

/// An answer that the provider truncated must not be used.
#[test]
fn an_answer_that_reached_its_limit_says_so() {
    let mut says = ModelReply::text("As far as I c");
    says.stop = Some("length".to_owned());
    let (bed, ran) = run(vec![says.into()]);
    assert_eq!((ran.code, ran.reason()), (Some(1), "failed"), "{ran:?}");
    assert!(ran.error().contains("the answer was truncated"), "{ran:?}");
    assert_eq!(bed.messages().len(), 2);
}

#[test]
fn a_conversation_that_is_too_long_is_made_shorter() {
    let number = |number: usize| json!({ "path": format!("{number}.txt") });
    let mut turns: Vec<Turn> = (0..4)
        .map(|at| ModelReply::calling(format!("c{at}"), "read", &number(at)).into())
        .collect();
    turns.push(Turn::status(
        400,
        "This model's maximum context length is 8192 tokens",
    ));
    turns.push(Turn::text("We read some files."));
    turns.push(Turn::text("Done."));
    let bed = Bed::new(turns);
    for at in 0..4 {
        std::fs::write(bed.work(&format!("{at}.txt")), "word ".repeat(400)).unwrap();
    }
    let ran = bed.run(&[]);
    assert_eq!((ran.code, ran.reason()), (Some(0), "done"), "{ran:?}");
    let compactions = ran.of("compaction");
    assert_eq!(compactions.len(), 1);
    assert!(compactions[0]["after"].as_u64() < compactions[0]["before"].as_u64());
    let sent = bed.last_request()["messages"].to_string();
    assert!(
        sent.contains("We read some files.") && !sent.contains("\"c0\""),
        "{sent}"
    );
    // The record is complete, and the session continues from the summary.
    let exported = serde_json::to_string(&bed.exported()).unwrap();
    assert!((0..4).all(|at| exported.contains(&format!("\"c{at}\""))));
    let bed_says = bed.haft(&["resume", "More of it"]);
    assert!(bed_says.err.contains("the script is over"), "{bed_says:?}");
    let sent = bed.last_request()["messages"].to_string();
    assert!(
        sent.contains("We read some files.") && !sent.contains("\"c0\""),
        "{sent}"
    );
}

/// A model unknown to haft, configured by the user and by the project.
#[test]
fn the_window_of_a_model_can_be_given() {
    let turns = || -> Vec<Turn> {
        let used = haft_testing::model::Tokens {
            input: 7_000,
            ..Default::default()
        };
        let read = |id: &str| ModelReply::calling(id, "read", &json!({ "path": id })).tokens(used);
        vec![
            read("c0").into(),
            read("c1").into(),
            Turn::text("Summary or end."),
            Turn::text("Done."),
        ]
    };
    let compactions = |own: &str, project: &str| {
        let bed = Bed::new(turns()).and(own);
        bed.project(project);
        let ran = bed.run(&[]);
        assert_eq!((ran.code, ran.reason()), (Some(0), "done"), "{ran:?}");
        ran.of("compaction").len()
    };
    assert_eq!(compactions("", ""), 0);
    assert_eq!(compactions("context_window: 8192\n", ""), 1);
    assert_eq!(compactions("context_window: 9000\n", ""), 0);
    // A project may shorten conversations, not let them grow.
    assert_eq!(compactions("", "context_window: 8192\n"), 1);
    let both = compactions("context_window: 8192\n", "context_window: 1000000\n");
    assert_eq!(both, 1);
    let bed = Bed::new(turns()).and("context_window: 8\n");
    let wrong = bed.haft(&["run", "Go"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("context_window must be"), "{wrong:?}");
}

/// The reported token usage shows when the context is nearly full.
#[test]
fn a_conversation_that_is_nearly_too_long_is_made_shorter() {
    let full = haft_testing::model::Tokens {
        input: 120_000,
        ..Default::default()
    };
    let number = |number: usize| json!({ "path": format!("{number}.txt") });
    let turns = vec![
        ModelReply::calling("c0", "read", &number(0)).into(),
        ModelReply::calling("c1", "read", &number(1))
            .tokens(full)
            .into(),
        Turn::text("We read two files."),
        Turn::text("Done."),
    ];
    let bed = Bed::new(turns);
    let ran = bed.run(&[]);
    assert_eq!((ran.code, ran.reason()), (Some(0), "done"), "{ran:?}");
    assert_eq!(ran.of("compaction").len(), 1);
    assert!(
        bed.last_request()["messages"]
            .to_string()
            .contains("We read two files.")
    );
    // Calls and their results stay together.
    let sent = bed.last_request()["messages"].as_array().unwrap().clone();
    let calls = sent
        .iter()
        .filter_map(|message| message["tool_calls"].as_array())
        .flatten()
        .count();
    let results = sent
        .iter()
        .filter(|message| message["role"] == "tool")
        .count();
    assert_eq!(calls, results, "{sent:?}");
}
