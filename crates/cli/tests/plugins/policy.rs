//! Rules apply to tools of plugins as to built-in ones.

use crate::bed::Bed;
use serde_json::json;

const STATS: &str = "serve(tool('stats'), lambda m: text('ran'))";

#[test]
fn a_tool_of_a_plugin_can_be_denied_and_asked_about() {
    let bed = Bed::with(&[("p", STATS)]);
    let plugins = json!([bed.plugin("p")]);
    assert_eq!(bed.reply_text("stats", &json!({})), "ran");
    let before = bed.calls("p").len();
    for rule in [
        json!({ "deny": "stats" }),
        json!({ "deny": "*", "effect": "execute" }),
        json!({ "ask": "*", "effect": "execute" }),
    ] {
        bed.configure(&json!({ "tools": { "plugins": plugins }, "policy": [rule] }));
        let answer = bed.call("stats", &json!({}));
        assert!(answer.is_error, "{rule}: {answer:?}");
        let why = bed.done(&["why", "stats", "{}"]);
        let reply = if rule.get("deny").is_some() {
            "deny"
        } else {
            "ask"
        };
        assert!(why.out.starts_with(reply), "{rule}: {why:?}");
    }
    assert_eq!(bed.calls("p").len(), before, "nothing reached it");
}

#[test]
fn why_knows_the_tools_of_plugins() {
    let bed = Bed::with(&[("p", STATS)]);
    let why = bed.done(&["why", "stats", "{\"numbers\": [1]}"]);
    assert!(why.out.starts_with("allow"), "{why:?}");
    assert_eq!(bed.haft(&["why", "no_such", "{}"]).code, Some(2));
    assert!(bed.calls("p").is_empty(), "nothing was called");
}
