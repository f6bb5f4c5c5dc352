//! Replays a recorded session: the same text, the same calls, no network.

use crate::bed::{Bed, lines};
use haft_testing::model::{ModelReply, Turn};
use serde_json::json;

/// Messages that must be identical byte for byte, except for the date.
fn messages(jsonl: &str) -> String {
    let kept = lines(jsonl)
        .into_iter()
        .filter(|line| line["type"] == "message");
    let texts = kept.map(|line| line["message"].to_string());
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_recording_is_played_byte_for_byte() {
    for provider in [
        "anthropic",
        "openai-responses",
        "openai-completions",
        "google",
        "ollama",
    ] {
        let turns = vec![
            Turn::status(503, "busy"),
            ModelReply::text("I begin.")
                .reasoning("Thinking", "c2ln")
                .call(
                    "c1",
                    "write",
                    &json!({ "path": "a.txt", "content": "one\ntwo\n" }),
                )
                .call(
                    "c2",
                    "bash",
                    &json!({ "command": "echo hello; echo error >&2; exit 3" }),
                )
                .into(),
            ModelReply::calling(
                "c1",
                "edit",
                &json!({ "path": "a.txt", "old_text": "one", "new_text": "1" }),
            )
            .call("", "read", &json!({ "path": "missing.txt" }))
            .call("c9", "no_such_tool", &json!({}))
            .raw_call("c10", "read", "{\"path\": ")
            .into(),
            ModelReply::calling("c11", "read", &json!({ "path": "a.txt" })).into(),
            Turn::text("Done: \u{1f4a5}."),
        ];
        let bed = Bed::of(provider, turns);
        assert_eq!(bed.run(&[]).code, Some(0), "{provider}");
        let first = bed.says(&["sessions", "export", &bed.newest()]);

        // The same folder, another home.
        std::fs::remove_file(bed.work("a.txt")).unwrap();
        std::fs::write(bed.home("session.jsonl"), &first).unwrap();
        let asked = bed.server.count();
        bed.user(&format!(
            "provider: replay\nreplay: {}\n",
            bed.home("session.jsonl").display()
        ));
        let ran = bed.run(&[]);
        assert_eq!(
            (ran.code, ran.reason()),
            (Some(0), "done"),
            "{provider}: {ran:?}"
        );
        assert_eq!(bed.server.count(), asked);
        let second = bed.says(&["sessions", "export", &bed.newest()]);
        assert_eq!(messages(&first), messages(&second), "{provider}");
        assert_eq!(bed.read("a.txt"), "1\ntwo\n");

        // The replay ends with the recording.
        let more = bed.haft(&["resume", "And more"]);
        assert_eq!(more.code, Some(0), "a restart plays it again: {more:?}");
    }
}

#[test]
fn an_invalid_recording_is_an_error() {
    let bed = Bed::new(Vec::new());
    bed.user("provider: replay\nreplay: session.jsonl\n");
    let file = bed.home(".config/haft/session.jsonl");
    for (text, words) in [
        ("", "is empty"),
        ("nonsense\n", "line 1 of the recording is not valid"),
        ("{\"type\":\"message\"}\n", "line 1 of the recording"),
        (
            "{\"type\":\"session\",\"version\":2,\"id\":\"abcd\"}\n",
            "has version 2",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let ended = bed.haft(&["run", "Go"]);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.err.contains(words), "{words}: {ended:?}");
    }
    std::fs::write(
        &file,
        "{\"type\":\"session\",\"version\":1,\"id\":\"abcd\"}\n",
    )
    .unwrap();
    let ran = bed.run(&[]);
    assert_eq!((ran.code, ran.reason()), (Some(1), "failed"), "{ran:?}");
    assert!(
        ran.error()
            .contains("the recording has ended after 0 answers"),
        "{ran:?}"
    );
}
