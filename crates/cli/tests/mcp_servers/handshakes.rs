//! The start of a conversation with a server: programs get `initialize` first, and one whose
//! answer is of no use is started again without it.

use crate::bed::Bed;
use crate::servers::{ECHO, Web};
use serde_json::{Value, json};

/// A server of 2026-07-28, with `initialize` only if a test adds it.
const MODERN: &str = r#"
def modern(message, versions=["2026-07-28"], **more):
    answer(message["id"], dict({"resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "supportedVersions": versions, "capabilities": {"tools": {}},
        "serverInfo": {"name": me, "version": "2"}}, **more))
def stateless(on_initialize):
    for message in messages():
        method = message.get("method")
        if method == "initialize": on_initialize(message)
        elif method == "server/discover": modern(message)
        elif method == "tools/list":
            answer(message["id"], {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [tool("echo")]})
        elif method == "tools/call":
            answer(message["id"], dict(text("fine"), resultType="complete"))
        elif "id" in message: error(message["id"], -32601, "unknown method")
"#;

fn methods(bed: &Bed, name: &str) -> Vec<String> {
    let got = bed.got(name);
    let method = |message: &Value| message["method"].as_str().unwrap_or("").to_owned();
    got.iter().map(method).collect()
}

#[test]
fn a_program_gets_initialize_first_and_only_once() {
    // Older SDKs end at a request that they do not know.
    let bed = Bed::serving(&[(
        "old",
        r#"
def hello(message):
    answer(message["id"], {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {"name": me, "version": "1"}})
def end(message): "id" in message and os._exit(1)
serve([tool("echo")], echo, end)
"#,
    )]);
    bed.reply_text("old_echo", &json!({}));
    bed.reply_text("old_echo", &json!({}));
    assert_eq!(methods(&bed, "old")[0], "initialize");
    assert_eq!(bed.starts("old"), 2);
}

#[test]
fn a_server_that_refuses_initialize_is_started_without_it_and_that_is_remembered() {
    for refusal in [
        "lambda m: error(m['id'], -32601, 'no such method')",
        "lambda m: error(m['id'], -32000, 'unsupported', )",
        "lambda m: answer(m['id'], {})",
        "lambda m: answer(m['id'], None)",
        "lambda m: answer(m['id'], ['2026-07-28'])",
        "lambda m: raw('{\"jsonrpc\": \"2.0\", \"id\": %d}\\n' % m['id'])",
    ] {
        let bed = Bed::serving(&[("new", &format!("{MODERN}stateless({refusal})"))]);
        assert_eq!(bed.reply_text("new_echo", &json!({})), "fine", "{refusal}");
        assert_eq!(bed.starts("new"), 2, "{refusal}");
        assert_eq!(bed.reply_text("new_echo", &json!({})), "fine", "{refusal}");
        assert_eq!(bed.starts("new"), 3, "{refusal}");
        let report = bed.done(&["mcp", "test", "new"]).out;
        assert!(report.contains("protocol 2026-07-28"), "{report}");
        assert_eq!(bed.starts("new"), 4, "{refusal}");
    }
}

#[test]
fn a_server_that_offers_both_is_started_in_the_newer_way_the_next_time() {
    let bed = Bed::serving(&[("both", &format!("{MODERN}stateless(hello)"))]);
    bed.done(&["mcp", "test", "both"]);
    let first = methods(&bed, "both");
    assert_eq!(first[0], "initialize");
    let report = bed.done(&["mcp", "test", "both"]).out;
    assert!(report.contains("protocol 2026-07-28"), "{report}");
    assert_eq!(methods(&bed, "both")[first.len()], "server/discover");
    assert_eq!(bed.starts("both"), 2);
}

#[test]
fn what_worked_before_is_given_up_when_it_works_no_longer() {
    let bed = Bed::serving(&[("s", &format!("{MODERN}stateless(hello)"))]);
    bed.done(&["mcp", "test", "s"]);
    bed.done(&["mcp", "test", "s"]);
    for now in [
        "def end(message): 'id' in message and os._exit(1)\nserve([tool('echo')], echo, end)"
            .to_owned(),
        format!(
            "{MODERN}def other(m):\n  if m['method'] == 'server/discover': modern(m, ['2025-06-18'])\n  else: return False\n  return True\nserve([tool('echo')], echo, other)"
        ),
        ECHO.to_owned(),
    ] {
        bed.server("s", &now);
        let report = bed.done(&["mcp", "test", "s", "--yes"]).out;
        assert!(report.contains("protocol 2025-11-25"), "{report}");
    }
}

#[test]
fn a_slow_server_is_not_confused_by_what_waits_in_its_input() {
    // It answers everything at once when it is ready.
    let body = format!("{MODERN}time.sleep(4)\nstateless(hello)");
    let bed = Bed::serving(&[("slow", &body)]);
    assert_eq!(bed.reply_text("slow_echo", &json!({})), "fine");
    assert_eq!(bed.starts("slow"), 1);
}

#[test]
fn odd_answers_to_discover_over_http_lead_to_initialize() {
    for odd in [
        "{}",
        "None",
        "[]",
        "{'supportedVersions': ['2025-06-18'], 'capabilities': {}, 'resultType': 'complete', 'ttlMs': 0, 'cacheScope': 'private', 'serverInfo': {'name': 'x', 'version': '1'}}",
        "{'supportedVersions': ['2026-07-28'], 'capabilities': {}, 'serverInfo': {'name': 'x', 'version': '1'}}",
    ] {
        for kind in ["application/json", "text/event-stream"] {
            let web = Web::start(&format!(
                r#"
class Odd(Base):
    def do_POST(self):
        message = json.loads(self.body())
        self.heard(body=message)
        if "id" not in message: return self.send(202)
        answer = reply(message)
        if message["method"] == "server/discover": answer = {{"jsonrpc": "2.0", "id": message["id"], "result": {odd}}}
        body = json.dumps(answer)
        if "{kind}" == "text/event-stream": body = "event: message\ndata: " + body + "\n\n"
        self.send(200, body.encode(), "{kind}")
    def do_GET(self): self.send(405)
run(Odd)
"#
            ));
            let bed = Bed::new();
            bed.configure(&json!({ "tools": { "mcp": { "web": { "url": web.url("/mcp") } } } }));
            let text = bed.reply_text("web_echo", &json!({ "words": "x" }));
            assert_eq!(text, r#"{"words": "x"}"#, "{odd} {kind}");
        }
    }
}
