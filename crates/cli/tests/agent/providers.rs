//! Each protocol with the built command: two turns, an image, the same tools.

use crate::bed::{Bed, KEY, results};
use haft_testing::model::{ModelReply, Turn};
use serde_json::json;

const ALL: [&str; 5] = [
    "anthropic",
    "openai-responses",
    "openai-completions",
    "google",
    "ollama",
];

/// An image of one pixel.
const PIXEL: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0, 0,
    1, 0, 0, 0, 1, 8, 6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0d, b'I', b'D', b'A', b'T',
    0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0xf0, 0x1f, 0, 5, 0, 1, 0xff, 0x89, 0x99, 0x3d, 0x1d, 0, 0,
    0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];

#[test]
fn each_provider_works_with_tools() {
    for provider in ALL {
        let first = ModelReply::text("I look.")
            .call("c1", "read", &json!({ "path": "a.txt" }))
            .call("c2", "write", &json!({ "path": "b.txt", "content": "b" }));
        let bed = Bed::of(provider, vec![first.into(), Turn::text("Done.")]);
        std::fs::write(bed.work("a.txt"), "unmistakable").unwrap();
        let ran = bed.run(&[]);
        assert_eq!(
            (ran.code, ran.reason()),
            (Some(0), "done"),
            "{provider}: {ran:?}"
        );
        assert_eq!(ran.events[0]["provider"], provider);
        assert_eq!(ran.of("tool_end").len(), 2);
        assert_eq!(bed.read("b.txt"), "b");
        let last = ran.events.last().unwrap();
        assert_eq!(
            (&last["usage"]["input"], &last["usage"]["output"]),
            (&200.into(), &40.into()),
            "{provider}"
        );
        let sent = bed.server.received();
        assert_eq!(sent.len(), 2, "{provider}");
        // The key is sent in a header, and the second request has the results of the first.
        let has_key = sent[1].headers.iter().any(|(_, value)| value.contains(KEY));
        assert!(has_key && !sent[1].path.contains(KEY), "{provider}");
        let second = sent[1].json().to_string();
        assert!(
            second.contains("unmistakable") && second.contains("I look."),
            "{provider}: {second}"
        );
        for tool in ["read", "bash", "edit", "write"] {
            assert!(
                second.contains(&format!("\"{tool}\"")),
                "{provider}: {tool}"
            );
        }
        // The start of the conversation stays identical, so that caches can be used.
        assert_eq!(
            sent[0].json()["tools"],
            sent[1].json()["tools"],
            "{provider}"
        );
        assert_eq!(results(&bed.messages()).len(), 2);
    }
}

#[test]
fn each_provider_is_shown_images() {
    for provider in ALL {
        let first = ModelReply::calling("c1", "read", &json!({ "path": "pixel.png" }));
        let bed = Bed::of(provider, vec![first.into(), Turn::text("A pixel.")]);
        std::fs::write(bed.work("pixel.png"), PIXEL).unwrap();
        let ran = bed.run(&[]);
        assert_eq!(ran.code, Some(0), "{provider}: {ran:?}");
        let sent = bed.last_request().to_string();
        assert!(sent.contains("iVBORw0KGgo"), "{provider}: {sent}");
    }
}

/// Reasoning is shown, recorded, and sent back to its provider.
#[test]
fn reasoning_goes_back_where_it_came_from() {
    for provider in ["anthropic", "openai-responses", "google"] {
        let first = ModelReply::text("I look.")
            .reasoning("Let me think about it", "c2lnbmF0dXJl")
            .call("c1", "read", &json!({ "path": "a.txt" }));
        let bed = Bed::of(
            provider,
            vec![first.into(), Turn::text("Done."), Turn::text("More.")],
        );
        let ran = bed.run(&[]);
        assert_eq!(ran.code, Some(0), "{provider}: {ran:?}");
        let thought: String = ran
            .of("message_update")
            .iter()
            .filter(|event| event["kind"] == "reasoning")
            .map(|event| event["delta"].as_str().unwrap())
            .collect();
        assert_eq!(thought, "Let me think about it", "{provider}");
        assert!(
            bed.last_request().to_string().contains("c2lnbmF0dXJl"),
            "{provider}"
        );
        // After a restart too.
        bed.says(&["resume", "And now?", "--quiet"]);
        assert!(
            bed.last_request().to_string().contains("c2lnbmF0dXJl"),
            "{provider}"
        );
    }
}
