//! Each protocol version, with a client of its time.

use crate::client::{Client, call, cancelled, initialize};
use crate::tools::{Bench, late};
use serde_json::{Value, json};

/// Handshake, list and call, which are the same in all versions with a handshake.
async fn handshake(version: &str) -> Client {
    let bench = Bench::new();
    let mut client = Client::silent(bench.runtime.clone());
    let result = client.initialize(version).await;
    assert_eq!(result["protocolVersion"], version);
    assert_eq!(result["serverInfo"]["name"], "haft-test");
    assert_eq!(result["serverInfo"]["version"], "1.2.3");
    assert_eq!(
        result["capabilities"],
        json!({ "tools": { "listChanged": true } })
    );
    let listed = client.ask("tools/list", json!({})).await;
    let mut keys: Vec<_> = listed["result"]
        .as_object()
        .expect("a result")
        .keys()
        .collect();
    keys.sort();
    assert_eq!(keys, ["tools"], "only keys that this version has");
    client.call(5, "echo", json!({ "text": version })).await;
    assert_eq!(
        client.receive().await["result"],
        json!({ "content": [{ "type": "text", "text": version }], "isError": false })
    );
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
    client
}

#[tokio::test]
async fn version_2024_11_05() {
    handshake("2024-11-05").await.end().await;
}

#[tokio::test]
async fn version_2025_06_18() {
    handshake("2025-06-18").await.end().await;
}

#[tokio::test]
async fn version_2025_11_25() {
    handshake("2025-11-25").await.end().await;
}

#[tokio::test]
async fn version_2025_03_26_has_batches() {
    let mut client = handshake("2025-03-26").await;
    client
        .send(json!([
            call(1, "echo", json!({ "text": "a" })),
            { "jsonrpc": "2.0", "method": "notifications/what" },
            call(2, "nope", json!({})),
            7,
            call("three", "read", json!({ "path": "missing" })),
        ]))
        .await;
    let answers = client.receive().await;
    let answers = answers.as_array().expect("one array");
    assert_eq!(answers.len(), 4);
    let of = |id: Value| {
        answers
            .iter()
            .find(|answer| answer["id"] == id)
            .expect("answered")
    };
    assert_eq!(of(json!(1))["result"]["content"][0]["text"], "a");
    assert_eq!(of(json!(2))["error"]["code"], -32602);
    assert_eq!(of(json!("three"))["result"]["isError"], true);
    assert_eq!(of(Value::Null)["error"]["code"], -32600);

    client.send(json!([])).await;
    assert_eq!(client.receive().await["error"]["code"], -32600);
    client
        .send(json!([{ "jsonrpc": "2.0", "method": "notifications/what" }]))
        .await;
    client.alive().await;

    // A cancelled request does not keep its batch from completing.
    client
        .send(json!([
            call(8, "deaf", json!({})),
            call(9, "echo", json!({ "text": "b" }))
        ]))
        .await;
    client.send(cancelled(8)).await;
    let answers = client.receive().await;
    assert_eq!(answers.as_array().map(Vec::len), Some(1));
    assert_eq!(answers[0]["id"], 9);
    assert_eq!(client.end().await, [Value::Null; 0]);
}

#[tokio::test]
async fn an_unknown_version_is_answered_with_the_newest_one_with_a_handshake() {
    for version in ["1999-01-01", "2026-07-28", "2999-12-31", "draft"] {
        let bench = Bench::new();
        let mut client = Client::silent(bench.runtime.clone());
        let result = client.initialize(version).await;
        assert_eq!(result["protocolVersion"], "2025-11-25", "{version}");
        client.alive().await;
    }
}

#[tokio::test]
async fn a_client_need_not_wait_for_the_handshake() {
    let bench = Bench::new();
    for _ in 0..20 {
        let mut client = Client::silent(bench.runtime.clone());
        let lines = format!(
            "{}\n{}\n{}\n",
            initialize("2025-06-18"),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            call(1, "echo", json!({ "text": "early" }))
        );
        client.write(lines.as_bytes()).await;
        let answers = client.end().await;
        assert_eq!(answers.len(), 2);
        assert_eq!(answers[0]["id"], "init");
        assert_eq!(answers[1]["result"]["content"][0]["text"], "early");
    }
}

#[tokio::test]
async fn messages_after_the_handshake_use_the_negotiated_version() {
    let bench = Bench::new();
    let mut client = Client::silent(bench.runtime.clone());
    let lines = format!(
        "{}\n{}\n",
        initialize("2025-03-26"),
        json!([call(1, "echo", json!({ "text": "early" }))])
    );
    client.write(lines.as_bytes()).await;
    assert_eq!(client.receive().await["id"], "init");
    let answers = client.receive().await;
    assert_eq!(answers[0]["result"]["content"][0]["text"], "early");
}

#[tokio::test]
async fn before_the_handshake_only_ping_is_answered() {
    let bench = Bench::new();
    let mut client = Client::silent(bench.runtime.clone());
    // rmcp's own handshake would end here.
    client
        .send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
        .await;
    client.send(cancelled(1)).await;
    client.write(b"garbage\n").await;
    assert_eq!(client.receive().await["error"]["code"], -32700);
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
    let answer = client.ask("tools/list", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602);
    let message = answer["error"]["message"].as_str().expect("a message");
    assert!(message.starts_with("not initialized"), "{message}");
    client.initialize("2025-06-18").await;
    client.alive().await;
}

/// The metadata of a request of 2026-07-28.
fn meta(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

#[tokio::test]
async fn version_2026_07_28_has_no_handshake() {
    let bench = Bench::new();
    let mut client = Client::silent(bench.runtime.clone());
    let found = client
        .ask("server/discover", json!({ "_meta": meta("2026-07-28") }))
        .await;
    let versions = &found["result"]["supportedVersions"];
    assert!(versions.to_string().contains("2026-07-28"), "{found}");

    let listed = client
        .ask("tools/list", json!({ "_meta": meta("2026-07-28") }))
        .await;
    assert_eq!(listed["result"]["resultType"], "complete", "{listed}");
    assert_eq!(listed["result"]["tools"][0]["name"], "read");
    let said = json!({
        "name": "echo", "arguments": { "text": "stateless" }, "_meta": meta("2026-07-28"),
    });
    let answer = client.ask("tools/call", said).await;
    assert_eq!(answer["result"]["content"][0]["text"], "stateless");
    assert_eq!(answer["result"]["resultType"], "complete");

    let mut progress = meta("2026-07-28");
    progress["progressToken"] = json!(4);
    client
        .send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "wait", "_meta": progress } }))
        .await;
    assert_eq!(client.receive().await["params"]["progressToken"], 4);
    client.send(cancelled(1)).await;

    // Each request is independent: one without metadata is refused.
    assert_eq!(
        client.ask("tools/list", json!({})).await["error"]["code"],
        -32602
    );
    let strange = client
        .ask("tools/list", json!({ "_meta": meta("1999-01-01") }))
        .await;
    assert_eq!(strange["error"]["code"], -32022, "{strange}");
    client.end().await;
}

#[tokio::test]
async fn version_2026_07_28_subscribes_to_changes() {
    let bench = Bench::new();
    let mut client = Client::silent(bench.runtime.clone());
    client
        .send(json!({ "jsonrpc": "2.0", "id": "sub", "method": "subscriptions/listen",
            "params": { "notifications": { "toolsListChanged": true }, "_meta": meta("2026-07-28") } }))
        .await;
    let acknowledged = client.receive().await;
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    bench.runtime.tools().add_any(late()).expect("a new name");
    client.changed.notify();
    let changed = client.receive().await;
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(
        changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        "sub"
    );
    let begun = std::time::Instant::now();
    client.end().await;
    assert!(
        begun.elapsed().as_millis() < 400,
        "the shutdown does not wait for the subscription"
    );
}
