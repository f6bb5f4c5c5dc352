//! Access control.

use super::bed::{Bed, TOKEN};
use haft_mcp::{BindError, HttpServer, HttpSettings, ServerName};
use haft_testing::http::{Response, call};
use serde_json::json;
use std::io::Write;

fn hello() -> Vec<u8> {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "t", "version": "0" },
        },
    })
    .to_string()
    .into_bytes()
}

/// Checks that pages of other origins may not read the response.
fn is_closed_to_pages(answer: &Response) {
    for (name, _) in &answer.headers {
        assert!(!name.starts_with("access-control-"), "{name}");
    }
}

#[test]
fn without_the_token_everything_is_refused() {
    let bed = Bed::new();
    let nobody = bed.client.without("authorization");
    for client in [
        nobody.clone(),
        nobody.with("authorization", "Bearer wrong"),
        nobody.with("authorization", &format!("Basic {TOKEN}")),
        nobody.with("x-token", TOKEN),
    ] {
        for (method, path) in [
            ("POST", "/mcp"),
            ("GET", "/mcp"),
            ("DELETE", "/mcp"),
            ("OPTIONS", "/mcp"),
            ("POST", "/"),
            ("GET", "/health"),
            ("POST", "/mcp?token=0123456789abcdef-token"),
        ] {
            let body = (method == "POST").then(hello);
            let answer = client.send(method, path, body.as_deref());
            assert_eq!(answer.status, 401, "{method} {path}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            assert_eq!(answer.header("mcp-session-id"), None);
            is_closed_to_pages(&answer);
        }
    }
    assert_eq!(bed.client.send("POST", "/mcp", Some(&hello())).status, 200);
}

#[test]
fn a_refusal_does_not_wait_for_the_body() {
    let bed = Bed::new();
    let nobody = bed.client.without("authorization");
    let mut stream = nobody.connect();
    let head = nobody.head("POST", "/mcp", Some(1 << 20));
    stream.write_all(head.as_bytes()).expect("it listens");
    assert_eq!(Response::read(stream).status, 401);
}

#[test]
fn another_host_or_origin_is_refused() {
    let bed = Bed::new();
    let port = bed.client.address.port();
    for host in [
        "evil.example".to_owned(),
        "localhost.evil.example".to_owned(),
        "192.0.2.7".to_owned(),
        format!("localhost.:{port}"),
        format!("[::1].evil.example:{port}"),
        format!("localhost:{port}@evil.example"),
    ] {
        let client = bed.client.with("host", &host);
        let answer = client.send("POST", "/mcp", Some(&hello()));
        assert_eq!(answer.status, 403, "{host}");
    }
    for host in [
        format!("localhost:{port}"),
        format!("[::1]:{port}"),
        "localhost".to_owned(),
        format!("localhost:{}", port ^ 1),
    ] {
        let client = bed.client.with("host", &host);
        let answer = client.send("POST", "/mcp", Some(&hello()));
        assert_eq!(answer.status, 200, "{host}");
    }
    let mut twice = bed.client.clone();
    twice
        .headers
        .push(("Host".to_owned(), "evil.example".to_owned()));
    assert_ne!(twice.send("POST", "/mcp", Some(&hello())).status, 200);
    let line = bed
        .client
        .send("POST", "http://evil.example/mcp", Some(&hello()));
    assert_eq!(line.status, 403);
    for origin in [
        "http://evil.example",
        "null",
        "https://localhost.evil",
        "http://localhost.:5173",
        "http://[::1].evil.example",
        "http://localhost:5173/",
    ] {
        let client = bed.client.with("origin", origin);
        let answer = client.send("POST", "/mcp", Some(&hello()));
        assert_eq!(answer.status, 403, "{origin}");
        is_closed_to_pages(&answer);
        let preflight = client
            .without("authorization")
            .with("access-control-request-method", "POST")
            .send("OPTIONS", "/mcp", None);
        assert_eq!(preflight.status, 403);
        is_closed_to_pages(&preflight);
    }
    let page = bed.client.with("origin", "http://localhost:5173");
    let answer = page.send("POST", "/mcp", Some(&hello()));
    assert_eq!(answer.status, 200);
    is_closed_to_pages(&answer);
}

#[test]
fn content_type_and_accept_are_checked() {
    let bed = Bed::new();
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonx",
        "",
    ] {
        let client = bed.client.with("content-type", kind);
        assert_eq!(
            client.send("POST", "/mcp", Some(&hello())).status,
            415,
            "{kind}"
        );
    }
    let client = bed.client.without("content-type");
    assert_eq!(client.send("POST", "/mcp", Some(&hello())).status, 415);
    let client = bed
        .client
        .with("content-type", "application/json; charset=utf-8");
    assert_eq!(client.send("POST", "/mcp", Some(&hello())).status, 200);
    for accept in ["application/json", "text/html"] {
        let client = bed.client.with("accept", accept);
        assert_eq!(client.send("POST", "/mcp", Some(&hello())).status, 406);
    }
    for path in ["/", "/mcp/", "/mcp/x", "/../mcp", "/MCP"] {
        assert_eq!(
            bed.client.send("POST", path, Some(&hello())).status,
            404,
            "{path}"
        );
    }
    for method in ["PUT", "PATCH", "OPTIONS", "HEAD"] {
        let answer = bed.client.send(method, "/mcp", None);
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.header("allow"), Some("GET, POST, DELETE"));
    }
}

#[test]
fn an_unknown_session_is_not_found() {
    let bed = Bed::new();
    let (client, _) = bed.client.initialize("2025-06-18", json!({}));
    let own = client
        .headers
        .iter()
        .find(|(name, _)| name == "mcp-session-id")
        .map(|(_, id)| id.clone())
        .expect("a session");
    assert!(own.len() >= 32 && own.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let (other, _) = bed.client.initialize("2025-06-18", json!({}));
    assert_ne!(client.headers, other.headers);
    let short = own.get(..own.len() - 1).expect("ASCII").to_owned();
    for guess in [
        "",
        "0",
        "../..",
        "%2e%2e/sessions",
        &short,
        &own.to_uppercase(),
        &"a".repeat(5000),
    ] {
        let client = bed.client.with("mcp-session-id", guess);
        for answer in [
            client.post(&call(1, "echo", json!({}))),
            client.get(None),
            client.send("DELETE", "/mcp", None),
        ] {
            assert_eq!(answer.status, 404, "{guess}");
        }
    }
    let nobody = bed.client.post(&call(1, "echo", json!({})));
    assert_eq!(nobody.status, 400);
    assert_eq!(bed.client.get(None).status, 400);
}

#[test]
fn garbage_is_answered_and_affects_no_other_client() {
    let bed = Bed::new();
    let (client, _) = bed.client.initialize("2025-06-18", json!({}));
    for (garbage, code) in [
        (&b"not json"[..], -32700),
        (b"", -32700),
        (b"{\"jsonrpc\":\"2.0\"", -32700),
        (b"\xff\xfe", -32700),
        (b"7", -32600),
        (b"[]", -32600),
        (b"[1]", -32600),
        (b"{}", -32600),
        (
            b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
            -32600,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
            -32600,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{}}",
            -32602,
        ),
    ] {
        let answer = client.send("POST", "/mcp", Some(garbage));
        assert_eq!(answer.status, 400);
        assert_eq!(answer.json()["error"]["code"], code, "{garbage:?}");
    }
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    assert_eq!(client.send("POST", "/mcp", Some(&deep)).status, 400);
    let unknown = client.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "nope" }));
    assert_eq!(unknown.json()["error"]["code"], -32601);
    // A response without a request, and an unknown notification.
    let stray = client.post(&json!({ "jsonrpc": "2.0", "id": 99, "result": {} }));
    assert_eq!(stray.status, 202);
    let told = client.post(&json!({ "jsonrpc": "2.0", "method": "notifications/what" }));
    assert_eq!(told.status, 202);
    // Not HTTP at all.
    let mut stream = client.connect();
    stream
        .write_all(b"\x16\x03\x01hello\r\n\r\n")
        .expect("it listens");
    let answer = Response::try_read(stream);
    assert!(answer.is_none_or(|answer| answer.status == 400));
    let reply = client.call(2, "echo", json!({ "text": "still here" }));
    assert_eq!(reply["result"]["content"][0]["text"], "still here");
}

#[tokio::test]
async fn outside_loopback_a_token_is_required() {
    let sessions = || Err("none".to_owned());
    let name = ServerName::new("t", "0");
    let everywhere = "0.0.0.0:0".parse().expect("an address");
    let bound = HttpServer::bind(everywhere, HttpSettings::default(), name.clone(), sessions).await;
    assert!(matches!(bound, Err(BindError::NoToken(_))));
    let here = "127.0.0.1:0".parse().expect("an address");
    let server = HttpServer::bind(here, HttpSettings::default(), name.clone(), sessions)
        .await
        .expect("a port");
    let taken = HttpServer::bind(server.address(), HttpSettings::default(), name, sessions).await;
    let error = taken.map(|_| ()).expect_err("it is taken");
    assert!(
        error.to_string().contains("cannot listen on 127.0.0.1"),
        "{error}"
    );
}
