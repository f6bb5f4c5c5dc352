//! The list of tools, and the results of calls.

use crate::client::{Client, call};
use crate::tools::Bench;
use serde_json::{Value, json};

#[tokio::test]
async fn the_list_has_the_runtimes_tools_in_order() {
    let bench = Bench::new();
    let definitions = bench.runtime.definitions();
    let mut client = Client::connect(bench.runtime.clone()).await;
    let listed = client.ask("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().expect("tools");
    assert_eq!(tools.len(), definitions.len());
    for (tool, definition) in tools.iter().zip(&definitions) {
        assert_eq!(tool["name"], definition.name);
        assert_eq!(tool["description"], definition.description);
        assert_eq!(tool["inputSchema"], definition.parameters);
    }
    // Key order is part of what a model sees.
    let schema = tools[0]["inputSchema"].to_string();
    assert_eq!(schema, definitions[0].parameters.to_string());
    let again = client.ask("tools/list", json!({})).await;
    assert_eq!(listed.to_string(), again.to_string());

    let hints = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name);
        tool.map_or(Value::Null, |tool| tool["annotations"].clone())
    };
    assert_eq!(hints("read"), json!({ "readOnlyHint": true }));
    assert_eq!(
        hints("write"),
        json!({ "readOnlyHint": false, "destructiveHint": true })
    );
    assert_eq!(client.end().await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_text_reply_is_one_text_block() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    client.call(1, "echo", json!({ "text": "hällo\n" })).await;
    assert_eq!(
        client.receive().await,
        json!({ "jsonrpc": "2.0", "id": 1, "result": {
            "content": [{ "type": "text", "text": "hällo\n" }], "isError": false,
        }})
    );
}

#[tokio::test]
async fn files_are_written_and_read_through_the_runtime() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    client
        .call(
            1,
            "write",
            json!({ "path": "a.txt", "content": "one\ntwo\n" }),
        )
        .await;
    assert_eq!(client.receive().await["result"]["isError"], false);
    let path = bench.dir.path().join("a.txt");
    assert_eq!(
        std::fs::read_to_string(path).expect("it is there"),
        "one\ntwo\n"
    );
    client.call(2, "read", json!({ "path": "a.txt" })).await;
    let read = client.receive().await;
    let text = read["result"]["content"][0]["text"].as_str().expect("text");
    assert!(text.contains("one\ntwo"), "{text}");
}

/// One grey pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg==";

#[tokio::test]
async fn images_are_separate_blocks() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    client.call(1, "picture", json!({})).await;
    let answer = client.receive().await;
    assert_eq!(
        answer["result"]["content"],
        json!([
            { "type": "text", "text": "look:" },
            { "type": "image", "data": PIXEL, "mimeType": "image/png" },
        ])
    );
    assert_eq!(answer["result"].get("structuredContent"), None);
}

#[tokio::test]
async fn only_a_json_object_is_structured_content() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    let object = r#"{ "zeta": 1, "alpha": [true, null] }"#;
    client.call(1, "echo", json!({ "text": object })).await;
    let answer = client.receive().await;
    assert_eq!(answer["result"]["content"][0]["text"], object);
    assert_eq!(
        answer["result"]["structuredContent"].to_string(),
        r#"{"zeta":1,"alpha":[true,null]}"#
    );
    for text in ["[1]", "1", "\"x\"", "null", "{oops}", "{} {}", "a {}", ""] {
        client.call(2, "echo", json!({ "text": text })).await;
        let answer = client.receive().await;
        assert_eq!(answer["result"].get("structuredContent"), None, "{text}");
    }
}

#[tokio::test]
async fn failures_and_invalid_arguments_are_tool_results() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    client
        .call(1, "read", json!({ "path": "missing.txt" }))
        .await;
    assert_eq!(client.receive().await["result"]["isError"], true);

    for arguments in [
        json!({}),
        json!({ "path": [1] }),
        json!([1]),
        json!("?!"),
        json!(7),
    ] {
        client.call(2, "read", arguments.clone()).await;
        let answer = client.receive().await;
        assert_eq!(answer["result"]["isError"], true, "{arguments}: {answer}");
        let text = answer["result"]["content"][0]["text"]
            .as_str()
            .expect("text");
        assert!(text.starts_with("validation error"), "{text}");
    }
}

#[tokio::test]
async fn a_repeated_argument_is_refused_like_on_the_command_line() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    client
        .write(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"write\",\"arguments\":{\"path\":\"a\",\"content\":\"x\",\"path\":\"b\"}}}\n")
        .await;
    let answer = client.receive().await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let text = answer["result"]["content"][0]["text"]
        .as_str()
        .expect("text");
    let words = "validation error: the arguments are not valid JSON: \"path\" is given twice";
    assert!(text.starts_with(words), "{text}");
    let written = |name: &str| bench.dir.path().join(name).exists();
    assert!(!written("a") && !written("b"));
}

#[tokio::test]
async fn arguments_may_be_omitted_or_be_text() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    let answer = client.ask("tools/call", json!({ "name": "echo" })).await;
    assert_eq!(answer["result"]["content"][0]["text"], "nothing");
    client.send(call(2, "echo", Value::Null)).await;
    let answer = client.receive().await;
    assert_eq!(answer["result"]["content"][0]["text"], "nothing");
    client
        .send(call(3, "echo", json!(r#"{"text":"hi"}"#)))
        .await;
    let answer = client.receive().await;
    assert_eq!(answer["result"]["content"][0]["text"], "hi");
}

#[tokio::test]
async fn an_unknown_tool_is_an_error_that_suggests_similar_names() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    client.call("x", "raed", json!({})).await;
    let answer = client.receive().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!("x"), &json!(-32602))
    );
    let message = answer["error"]["message"].as_str().expect("a message");
    assert!(
        message.contains("raed") && message.contains("did you mean read"),
        "{message}"
    );

    client.call("y", "qqq", json!({})).await;
    let answer = client.receive().await;
    let message = answer["error"]["message"].as_str().expect("a message");
    assert!(message.contains("there are: read"), "{message}");
    assert_eq!(answer.get("result"), None);
}

#[tokio::test]
async fn a_tool_that_panics_is_a_failed_call() {
    let bench = Bench::new();
    let broken = haft::FromSchema::new(
        "broken",
        "Breaks.",
        json!({ "type": "object", "properties": {} }),
        haft::Effect::Pure,
        |_, _| async { panic!("oh no") },
    );
    bench
        .runtime
        .tools()
        .add_any(std::sync::Arc::new(broken.expect("a good schema")))
        .expect("a new name");
    let mut client = Client::connect(bench.runtime.clone()).await;
    client.call(1, "broken", json!({})).await;
    let answer = client.receive().await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    client.alive().await;
}
