//! Odd calls: each one gets exactly one result.

use crate::bed::{Bed, Ran, calls, results};
use haft_testing::model::{ModelReply, Turn};
use serde_json::{Value, json};
use std::collections::HashSet;

/// Runs these calls, then ends.
fn made(says: ModelReply) -> (Bed, Ran) {
    let bed = Bed::new(vec![says.into(), Turn::text("Done.")]).and("max_retries: 0\n");
    for at in 0..3 {
        std::fs::write(bed.work(&format!("{at}.txt")), format!("file {at}")).unwrap();
    }
    let ran = bed.run(&[]);
    assert_eq!((ran.code, ran.reason()), (Some(0), "done"), "{ran:?}");
    (bed, ran)
}

/// Checks that each call has one result, in order.
fn paired(bed: &Bed) -> Vec<(String, String)> {
    let messages = bed.messages();
    let (calls, results) = (calls(&messages), results(&messages));
    let answered: Vec<_> = results.iter().map(|(id, _)| id.clone()).collect();
    assert_eq!(calls, answered);
    let distinct: HashSet<_> = calls.iter().collect();
    assert_eq!(distinct.len(), calls.len(), "{calls:?}");
    // The provider receives the same.
    let request = bed.last_request();
    let sent = request["messages"].as_array().unwrap();
    let heard: Vec<_> = sent
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["tool_call_id"].as_str().unwrap().to_owned())
        .collect();
    let asked: Vec<_> = sent
        .iter()
        .filter_map(|message| message["tool_calls"].as_array())
        .flatten()
        .map(|call| call["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(heard, asked);
    assert_eq!(heard.len(), results.len());
    results
}

fn file(at: usize) -> Value {
    json!({ "path": format!("{at}.txt") })
}

#[test]
fn duplicate_and_missing_ids() {
    let (bed, _) = made(
        ModelReply::calling("c", "read", &file(0))
            .call("c", "read", &file(1))
            .call("c", "read", &file(2)),
    );
    let texts: Vec<_> = paired(&bed).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["file 0", "file 1", "file 2"]);
    let (bed, _) = made(ModelReply::calling("", "read", &file(0)).call("", "read", &file(1)));
    let texts: Vec<_> = paired(&bed).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["file 0", "file 1"]);
}

/// Some servers restart ids in each turn.
#[test]
fn call_ids_that_restart_with_each_turn() {
    for provider in [
        "openai-completions",
        "anthropic",
        "openai-responses",
        "google",
        "ollama",
    ] {
        let turns = (0..3).map(|at| ModelReply::calling("call_0", "read", &file(at)).into());
        let bed = Bed::of(
            provider,
            turns.chain([Turn::text("Done.")]).collect::<Vec<_>>(),
        );
        for at in 0..3 {
            std::fs::write(bed.work(&format!("{at}.txt")), format!("file {at}")).unwrap();
        }
        let ran = bed.run(&[]);
        assert_eq!(ran.code, Some(0), "{provider}: {ran:?}");
        let messages = bed.messages();
        assert_eq!(calls(&messages).len(), 3);
        assert_eq!(
            calls(&messages).iter().collect::<HashSet<_>>().len(),
            3,
            "{messages:?}"
        );
        let texts: Vec<_> = results(&messages)
            .into_iter()
            .map(|(_, text)| text)
            .collect();
        assert_eq!(texts, ["file 0", "file 1", "file 2"]);
    }
}

#[test]
fn invalid_tools_and_arguments() {
    let says = ModelReply::calling("c1", "reed", &file(0))
        .raw_call("c3", "read", "{\"path\": \"0.txt")
        .raw_call("c4", "read", "")
        .raw_call("c5", "read", "[1, 2]")
        .raw_call("c6", "read", "null")
        .call("c7", "read", &json!({ "path": 7, "nonsense": true }))
        .call("c8", "x".repeat(10_000), &json!({}))
        .call("c9", "read", &file(1));
    let (bed, ran) = made(says);
    let texts = paired(&bed);
    assert!(texts[0].1.contains("read"), "{texts:?}");
    assert_eq!(texts[7].1, "file 1");
    for (id, text) in &texts[..7] {
        assert!(
            !text.trim().is_empty() && text.len() < 20_000,
            "{id}: {text}"
        );
    }
    assert_eq!(ran.of("tool_denied").len() + ran.of("tool_end").len(), 8);
}

#[test]
fn a_hundred_calls_in_one_answer() {
    let says = (0..100).fold(ModelReply::default(), |says, at| {
        says.call(format!("c{at}"), "read", &file(at % 3))
    });
    let (bed, ran) = made(says);
    let results = paired(&bed);
    for (at, (id, text)) in results.iter().enumerate() {
        assert_eq!((id, text), (&format!("c{at}"), &format!("file {}", at % 3)));
    }
    assert_eq!(ran.of("tool_end").len(), 100);
}

/// Writes to one file happen in order.
#[test]
fn calls_that_depend_on_each_other_keep_their_order() {
    let says = (0..20).fold(ModelReply::default(), |says, at| {
        says.call(
            format!("c{at}"),
            "write",
            &json!({ "path": "one.txt", "content": at.to_string() }),
        )
    });
    let (bed, _) = made(says);
    paired(&bed);
    assert_eq!(bed.read("one.txt"), "19");
}

#[test]
fn an_answer_of_five_megabytes() {
    let text = "word ".repeat(1 << 20);
    let mut raw = String::new();
    for piece in text.as_bytes().chunks(1 << 14) {
        let delta = json!({ "content": String::from_utf8_lossy(piece) });
        let chunk = json!({ "id": "x", "choices": [{ "index": 0, "delta": delta }] });
        raw.push_str(&format!("data: {chunk}\n\n"));
    }
    raw.push_str("data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    let bed = Bed::new(vec![Turn::Raw(raw)]);
    let ended = bed.haft(&["run", "Go"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(
        ended.out.trim_end() == text.trim_end(),
        "{} bytes",
        ended.out.len()
    );
}

#[test]
fn an_output_of_ten_megabytes() {
    let command = json!({ "command": "yes 'a line of output' | head -c 10000000" });
    let (bed, ran) = made(ModelReply::calling("c1", "bash", &command));
    let end = ran.of("tool_end")[0];
    assert_eq!(
        (&end["is_error"], &end["truncated"]),
        (&false.into(), &true.into()),
        "{end}"
    );
    let results = paired(&bed);
    assert!(results[0].1.len() < 100_000);
    let whole = bed.says(&["sessions", "output", "c1"]);
    assert_eq!(whole.len(), 10_000_000);
}

/// The model gets its own text back unchanged.
#[test]
fn text_with_special_characters() {
    let odd = "quotes \" \\ \u{0}\u{7f}\u{2028}\u{202e} 💥 \r\n\tend";
    let says =
        ModelReply::text(odd).call("c1", "write", &json!({ "path": "odd.txt", "content": odd }));
    let (bed, _) = made(says);
    paired(&bed);
    assert_eq!(bed.read("odd.txt"), odd);
    assert!(
        bed.last_request()["messages"][2]["content"]
            .to_string()
            .contains("💥")
    );
    let messages = bed.messages();
    assert_eq!(messages[1]["parts"][0]["text"], odd);
}
