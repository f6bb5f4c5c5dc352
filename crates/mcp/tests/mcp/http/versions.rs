//! Each protocol version over HTTP.

use super::bed::Bed;
use crate::tools::late;
use haft_testing::http::{Client, call, stateless};
use serde_json::{Value, json};

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

#[test]
fn versions_with_a_handshake() {
    let bed = Bed::new();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let (client, result) = bed.client.initialize(version, json!({}));
        assert_eq!(result["protocolVersion"], version);
        assert_eq!(result["serverInfo"]["name"], "haft-test");
        let tools = json!({ "tools": { "listChanged": true } });
        assert_eq!(result["capabilities"], tools);
        let list = || {
            let ask = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
            client.post(&ask).message()["result"]["tools"].clone()
        };
        let tools = list();
        assert_eq!(tools, list(), "the order is stable");
        assert_eq!(tools[0]["name"], bed.bench.runtime.tools().names()[0]);
        let reply = client.call(5, "echo", json!({ "text": version }));
        let content = json!([{ "type": "text", "text": version }]);
        assert_eq!(
            reply["result"],
            json!({ "content": content, "isError": false })
        );
        // Arguments that are not an object are repaired or refused by the runtime.
        let mut odd = call(6, "echo", Value::Null);
        odd["params"]["arguments"] = json!("{\"text\": \"from text\"}");
        assert_eq!(text(&client.post(&odd).message()), "from text");
        let ping = client.post(&json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" }));
        assert_eq!(ping.message()["result"], json!({}));
        let wrong = client.with("mcp-protocol-version", "1999-01-01");
        assert_eq!(wrong.post(&call(8, "echo", json!({}))).status, 400);
    }
    for version in ["1999-01-01", "2026-07-28", "draft"] {
        let (_, result) = bed.client.initialize(version, json!({}));
        assert_eq!(result["protocolVersion"], "2025-11-25", "{version}");
    }
}

#[test]
fn version_2025_03_26_has_batches() {
    let bed = Bed::new();
    let (client, _) = bed.client.initialize("2025-03-26", json!({}));
    let answers = client
        .post(&json!([
            call(1, "echo", json!({ "text": "a" })),
            { "jsonrpc": "2.0", "method": "notifications/what" },
            call(2, "nope", json!({})),
            7,
            call("three", "echo", json!({ "text": "c" })),
        ]))
        .json();
    let answers = answers.as_array().expect("one array");
    assert_eq!(answers.len(), 4);
    let of = |id: Value| answers.iter().find(|answer| answer["id"] == id);
    assert_eq!(text(of(json!(1)).expect("answered")), "a");
    assert_eq!(of(json!(2)).expect("answered")["error"]["code"], -32602);
    assert_eq!(text(of(json!("three")).expect("answered")), "c");
    assert_eq!(of(Value::Null).expect("answered")["error"]["code"], -32600);
    let told = client.post(&json!([{ "jsonrpc": "2.0", "method": "notifications/what" }]));
    assert_eq!(told.status, 202);
    let (other, _) = bed.client.initialize("2025-06-18", json!({}));
    let refused = other.post(&json!([call(1, "echo", json!({}))]));
    assert_eq!(refused.status, 400);
    assert_eq!(refused.json()["error"]["code"], -32600);
}

fn post_sessionless(bed: &Bed, tool: &str, arguments: Value) -> (Client, Value) {
    let client = bed.client.alone("tools/call", Some(tool));
    (client, stateless(call(1, tool, arguments), json!({})))
}

#[test]
fn version_2026_07_28_needs_no_session() {
    let bed = Bed::new();
    let (client, message) = post_sessionless(&bed, "echo", json!({ "text": "alone" }));
    let answer = client.post(&message);
    assert_eq!(answer.header("mcp-session-id"), None);
    let answer = answer.message();
    assert_eq!(text(&answer), "alone");
    assert_eq!(answer["result"]["resultType"], "complete");
    let discover = stateless(
        json!({ "jsonrpc": "2.0", "id": 2, "method": "server/discover" }),
        json!({}),
    );
    let found = bed.client.alone("server/discover", None).post(&discover);
    assert_eq!(
        found.message()["result"]["capabilities"]["tools"]["listChanged"],
        true
    );
    // Requests without a session share one tool session, with its memory.
    let (client, message) = post_sessionless(&bed, "remembers", json!({ "text": "x" }));
    assert_eq!(text(&client.post(&message).message()), "null");
    assert_eq!(text(&client.post(&message).message()), "\"x\"");
    let (session, _) = bed.client.initialize("2025-11-25", json!({}));
    assert_eq!(text(&session.call(1, "remembers", json!({}))), "null");
    // There are no streams besides responses, and no sessions to end.
    let newer = bed.client.with("mcp-protocol-version", "2026-07-28");
    assert_eq!(newer.get(None).status, 405);
    assert_eq!(newer.send("DELETE", "/mcp", None).status, 405);
    let told = stateless(
        json!({ "jsonrpc": "2.0", "method": "notifications/what" }),
        json!({}),
    );
    let client = bed.client.alone("notifications/what", None);
    assert_eq!(client.post(&told).status, 202);
}

#[test]
fn version_2026_07_28_checks_its_headers() {
    let bed = Bed::new();
    let (client, message) = post_sessionless(&bed, "echo", json!({ "text": "x" }));
    assert_eq!(client.post(&message).status, 200);
    let base64 = client.with("mcp-name", "=?base64?ZWNobw==?=");
    assert_eq!(base64.post(&message).status, 200);
    for wrong in [
        client.without("mcp-method"),
        client.with("mcp-method", "tools/list"),
        client.without("mcp-name"),
        client.with("mcp-name", "read"),
        client.with("mcp-name", "=?base64?!?="),
        client.without("mcp-protocol-version"),
        client.with("mcp-protocol-version", "2025-11-25"),
    ] {
        let answer = wrong.post(&message);
        assert_eq!(answer.status, 400);
        let error = answer.json();
        assert_eq!(error["error"]["code"], -32020, "{error}");
        assert_eq!(error["id"], 1);
    }
    let bare = client.post(&call(1, "echo", json!({})));
    assert_eq!(
        (bare.status, &bare.json()["error"]["code"]),
        (400, &json!(-32602))
    );
    let unknown = stateless(
        json!({ "jsonrpc": "2.0", "id": 1, "method": "nope" }),
        json!({}),
    );
    let answer = bed.client.alone("nope", None).post(&unknown);
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (404, &json!(-32601))
    );
    let mut later = message.clone();
    later["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2999-01-01");
    let answer = client
        .with("mcp-protocol-version", "2999-01-01")
        .post(&later);
    assert_eq!(answer.status, 400);
    assert_eq!(answer.json()["error"]["code"], -32022);
}

#[test]
fn version_2026_07_28_subscribes_to_changes() {
    let bed = Bed::new();
    let listen = stateless(
        json!({
            "jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen",
            "params": { "notifications": { "toolsListChanged": true } },
        }),
        json!({}),
    );
    let mut stream = bed.client.alone("subscriptions/listen", None).post(&listen);
    assert!(stream.is_stream());
    let (_, acknowledged) = stream.next_message().expect("an acknowledgment");
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    bed.bench
        .runtime
        .tools()
        .add_any(late())
        .expect("a new name");
    let (_, changed) = stream.next_message().expect("a notification");
    assert_eq!(changed["method"], "notifications/tools/list_changed");
}

#[test]
fn a_session_is_notified_of_changes_on_its_own_stream() {
    let bed = Bed::new();
    let (client, _) = bed.client.initialize("2025-06-18", json!({}));
    let mut stream = client.get(None);
    assert!(stream.is_stream());
    bed.bench
        .runtime
        .tools()
        .add_any(late())
        .expect("a new name");
    let (_, changed) = stream.next_message().expect("a notification");
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    bed.changed.notify();
    let (last, changed) = stream.next_message().expect("a notification");
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    // A broken stream is resumed where it was.
    stream.hang_up();
    bed.changed.notify();
    let mut stream = client.get(Some(&last));
    let (next, changed) = stream.next_message().expect("the missed notification");
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_ne!(next, last);
}
