//! Limits of a run: turns, tokens, cost, loops.

use crate::bed::{Bed, Ran};
use haft_testing::model::{ModelReply, Tokens, Turn};
use serde_json::{Value, json};

/// A model that never stops, with a new call each time.
fn endless(_: &Value, number: usize) -> Turn {
    let call = json!({ "path": format!("{number}.txt") });
    ModelReply::calling(format!("c{number}"), "read", &call)
        .tokens(Tokens {
            input: 90_000,
            output: 10_000,
            ..Tokens::default()
        })
        .into()
}

fn stopped(ran: &Ran, limit: &str) {
    assert_eq!((ran.code, ran.reason()), (Some(1), "limit"), "{ran:?}");
    let reached = ran.of("turn_limit_reached");
    assert_eq!(reached.len(), 1);
    assert_eq!(reached[0]["reason"], limit);
}

#[test]
fn turns() {
    let bed = Bed::new(endless).and("max_turns: 3\n");
    let ran = bed.run(&[]);
    stopped(&ran, "max_turns");
    assert_eq!((ran.of("turn_end").len(), bed.server.count()), (3, 3));
    let printed = bed.haft(&["run", "Go"]);
    assert!(
        printed.err.ends_with("stopped: max_turns reached\n"),
        "{printed:?}"
    );
    // It continues when resumed.
    let ran = bed.resume(&[]);
    stopped(&ran, "max_turns");
    assert_eq!(ran.of("turn_end").len(), 3);
}

#[test]
fn tokens() {
    let bed = Bed::new(endless).and("max_tokens: 250000\nmodel: huge\n");
    let bed_lines = bed.model_lines("openai-completions") + "max_tokens: 250000\n";
    bed.user(&bed_lines.replace("scripted", "gpt-4.1"));
    let ran = bed.run(&[]);
    stopped(&ran, "max_tokens");
    assert_eq!(ran.of("turn_end").len(), 3);
}

#[test]
fn money() {
    let bed = Bed::of("anthropic", endless);
    let lines = bed
        .model_lines("anthropic")
        .replace("scripted", "claude-sonnet-4-5");
    // 90,000 tokens at $3 and 10,000 at $15 per million are $0.42 per turn.
    bed.user(&(lines + "max_cost: 0.8\n"));
    let ran = bed.run(&[]);
    stopped(&ran, "max_cost");
    assert_eq!(ran.of("turn_end").len(), 2, "{ran:?}");
    let cost = ran.events.last().unwrap()["cost"].as_f64().unwrap();
    assert!((cost - 0.84).abs() < 1e-9, "{cost}");
}

#[test]
fn circles() {
    let same = |_: &Value, number: usize| -> Turn {
        ModelReply::calling(format!("c{number}"), "read", &json!({ "path": "none.txt" })).into()
    };
    let bed = Bed::new(same);
    let ran = bed.run(&[]);
    stopped(&ran, "loop");
    assert_eq!((ran.of("turn_end").len(), bed.server.count()), (5, 5));
    let reported: Vec<_> = bed
        .server
        .received()
        .iter()
        .map(|request| {
            request
                .json()
                .to_string()
                .matches("[haft: the last")
                .count()
        })
        .collect();
    assert_eq!(reported, [0, 0, 0, 1, 2]);
    let printed = bed.haft(&["run", "Go"]);
    assert_eq!(printed.code, Some(1));
    assert!(
        printed
            .err
            .contains("the model keeps repeating the same calls with the same results"),
        "{printed:?}"
    );
}

/// A call that polls is not a loop, and neither is one that follows the advice.
#[test]
fn no_circles() {
    let waits = |request: &Value, number: usize| -> Turn {
        if number == 7 {
            return Turn::text("Done.");
        }
        let reported = request.to_string().contains("[haft: the last");
        let path = if reported { "other.txt" } else { "none.txt" };
        ModelReply::calling(format!("c{number}"), "read", &json!({ "path": path })).into()
    };
    let bed = Bed::new(waits);
    let ran = bed.run(&[]);
    assert_eq!((ran.code, ran.reason()), (Some(0), "done"), "{ran:?}");
    let counts = |_: &Value, number: usize| -> Turn {
        if number == 8 {
            return Turn::text("Done.");
        }
        ModelReply::calling(
            format!("c{number}"),
            "bash",
            &json!({ "command": "echo x >> n; wc -l < n" }),
        )
        .into()
    };
    let bed = Bed::new(counts);
    let ran = bed.run(&[]);
    assert_eq!((ran.code, ran.reason()), (Some(0), "done"), "{ran:?}");
    assert_eq!(bed.read("n").lines().count(), 8);
}
