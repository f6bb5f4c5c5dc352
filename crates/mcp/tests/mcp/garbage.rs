//! The server answers any input and keeps running.

use crate::client::{Client, call, initialize};
use crate::tools::Bench;
use serde_json::{Value, json};

async fn expect_error(client: &mut Client, line: &[u8], code: i64, id: Value) {
    client.write(line).await;
    client.write(b"\n").await;
    let answer = client.receive().await;
    let shown = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
    assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
    assert_eq!(answer.get("id"), Some(&id), "{shown}: {answer}");
    assert_eq!(answer["jsonrpc"], "2.0");
    client.alive().await;
}

#[tokio::test]
async fn text_that_is_not_json_is_a_parse_error() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    let bomb = [b"{\"a\":".repeat(100_000), b"1".to_vec()].concat();
    let deep = b"[".repeat(1 << 20);
    let lines: &[&[u8]] = &[
        b"hello",
        b"{",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"",
        b"{\"jsonrpc\":\"2.0\"}}",
        b"\xff\xfe\x00",
        b"\x00",
        &bomb,
        &deep,
    ];
    for line in lines {
        expect_error(&mut client, line, -32700, Value::Null).await;
    }
    // If the id can be found, the error has it.
    for line in [
        &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"[..],
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\ud800"}}"#,
    ] {
        expect_error(&mut client, line, -32700, json!(1)).await;
    }
    assert_eq!(client.end().await, [Value::Null; 0]);
}

#[tokio::test]
async fn arguments_that_are_nested_too_deeply_are_refused() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{}{}}}}}"#,
        r#"{"a":"#.repeat(5000),
        "}".repeat(5001)
    );
    expect_error(&mut client, line.as_bytes(), -32700, Value::Null).await;
}

#[tokio::test]
async fn json_that_is_not_a_request_is_an_invalid_request() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    let lines = [
        ("1", -32600, Value::Null),
        ("null", -32600, Value::Null),
        ("\"text\"", -32600, Value::Null),
        ("{}", -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":7}"#, -32600, json!(7)),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":5}"#,
            -32600,
            json!("a"),
        ),
        (
            r#"{"jsonrpc":"1.0","id":7,"method":"tools/list"}"#,
            -32600,
            json!(7),
        ),
        (r#"{"id":7,"method":"tools/list"}"#, -32600, json!(7)),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#,
            -32600,
            Value::Null,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}"#,
            -32600,
            json!(1.5),
        ),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"tools/list"}"#,
            -32600,
            Value::Null,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","result":{}}"#,
            -32600,
            json!(7),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":[1]}"#,
            -32602,
            json!(7),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#,
            -32602,
            json!(7),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":5}}"#,
            -32602,
            json!(7),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}"#,
            -32602,
            json!(7),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"no/such"}"#,
            -32601,
            json!(7),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"a"},"argument":{"name":"a","value":"b"}}}"#,
            -32601,
            json!(7),
        ),
        ("[]", -32600, Value::Null),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]"#,
            -32600,
            Value::Null,
        ),
    ];
    for (line, code, id) in lines {
        expect_error(&mut client, line.as_bytes(), code, id).await;
    }
    assert_eq!(client.end().await, [Value::Null; 0]);
}

#[tokio::test]
async fn messages_that_need_no_response_get_none() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    for line in [
        "",
        "   \t",
        "\r",
        r#"{"jsonrpc":"2.0","method":"notifications/what"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":5}"#,
        r#"{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","error":"odd"}"#,
    ] {
        client.write(line.as_bytes()).await;
        client.write(b"\n").await;
        client.alive().await;
    }
    assert_eq!(client.end().await, [Value::Null; 0]);
}

#[tokio::test]
async fn windows_line_ends_and_a_byte_order_mark_are_accepted() {
    let bench = Bench::new();
    let mut client = Client::silent(bench.runtime.clone());
    let line = format!("\u{feff}{}\r\n", initialize("2025-06-18"));
    client.write(line.as_bytes()).await;
    assert_eq!(client.receive().await["id"], "init");
    client.alive().await;
}

#[tokio::test]
async fn a_line_that_is_too_long_is_answered_and_skipped() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    client
        .write(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":""#)
        .await;
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        client.write(&chunk).await;
    }
    client.write(b"\"}}}\n").await;
    let answer = client.receive().await;
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    assert_eq!(answer["id"], 1);
    // Some clients write the id last.
    client
        .write(br#"{"method":"tools/call","params":{"name":"echo","arguments":{"id":5,"text":""#)
        .await;
    for _ in 0..17 {
        client.write(&chunk).await;
    }
    client
        .write(b"\"}},\"jsonrpc\":\"2.0\",\"id\":\"two\"}\n")
        .await;
    let answer = client.receive().await;
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    assert_eq!(answer["id"], "two");
    client.alive().await;
    assert_eq!(client.end().await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_line_that_is_too_long_and_not_a_request_is_answered_too() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    let chunk = vec![b'x'; 17 << 20];
    client.write(&chunk).await;
    client.write(b"\n").await;
    let answer = client.receive().await;
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    assert_eq!(answer.get("id"), Some(&Value::Null));
    client.alive().await;
}

#[tokio::test]
async fn a_long_line_below_the_limit_is_accepted() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    let content = "x".repeat(8 << 20);
    client
        .call(1, "write", json!({ "path": "big.txt", "content": content }))
        .await;
    assert_eq!(client.receive().await["result"]["isError"], false);
    let written = std::fs::metadata(bench.dir.path().join("big.txt")).expect("it is there");
    assert_eq!(written.len(), 8 << 20);
}

#[tokio::test]
async fn input_may_end_in_the_middle_of_a_message() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    client.write(br#"{"jsonrpc":"2.0","id":1,"meth"#).await;
    let rest = client.end().await;
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0]["error"]["code"], -32700);
}

#[tokio::test]
async fn the_last_line_needs_no_line_feed() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    let last = call(1, "echo", json!({ "text": "last" })).to_string();
    client.write(last.as_bytes()).await;
    let rest = client.end().await;
    assert_eq!(rest[0]["result"]["content"][0]["text"], "last");
}

#[tokio::test]
async fn input_may_end_before_the_first_message() {
    let bench = Bench::new();
    let client = Client::silent(bench.runtime.clone());
    assert_eq!(client.end().await, [Value::Null; 0]);
}

#[tokio::test]
async fn an_id_that_is_in_use_is_refused() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    client.call(1, "wait", json!({})).await;
    client.call(1, "echo", json!({})).await;
    let answer = client.receive().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(1), &json!(-32600))
    );
    bench.release.add_permits(1);
    let answer = client.receive().await;
    assert_eq!(answer["result"]["content"][0]["text"], "released");
    client
        .call(1, "echo", json!({ "text": "free again" }))
        .await;
    let answer = client.receive().await;
    assert_eq!(answer["result"]["content"][0]["text"], "free again");
}
