//! Requests, connections and sessions beyond the limits.

use super::bed::Bed;
use haft_testing::http::{Response, call};
use serde_json::json;
use std::io::Write;
use std::time::{Duration, Instant};

#[test]
fn a_body_that_is_too_long_is_refused_with_and_without_a_length() {
    let bed = Bed::new();
    let (client, _) = bed.client.initialize("2025-06-18", json!({}));
    // 100 MB with a Content-Length.
    let mut stream = client.connect();
    let head = client.head("POST", "/mcp", Some(100 << 20));
    stream.write_all(head.as_bytes()).expect("it listens");
    let piece = vec![b' '; 1 << 20];
    for _ in 0..100 {
        if stream.write_all(&piece).is_err() {
            break;
        }
    }
    assert_eq!(Response::read(stream).status, 413);
    // Chunked, without a length.
    let chunked = client.with("transfer-encoding", "chunked");
    let mut stream = chunked.connect();
    let head = chunked.head("POST", "/mcp", None);
    stream.write_all(head.as_bytes()).expect("it listens");
    for _ in 0..100 {
        let sent = stream
            .write_all(format!("{:x}\r\n", piece.len()).as_bytes())
            .and_then(|()| stream.write_all(&piece))
            .and_then(|()| stream.write_all(b"\r\n"));
        if sent.is_err() {
            break;
        }
    }
    assert_eq!(Response::read(stream).status, 413);
    // The longest allowed body.
    let text = "x".repeat((16 << 20) - call(1, "echo", json!({ "text": "" })).to_string().len());
    let reply = client.post(&call(1, "echo", json!({ "text": text })));
    assert_eq!(reply.status, 200);
    drop(reply);
    assert_eq!(client.call(2, "echo", json!({}))["id"], 2);
}

#[test]
fn a_head_that_is_too_long_is_refused() {
    let bed = Bed::new();
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let (client, _) = bed.client.initialize("2025-06-18", json!({}));
    let status = |head: &str| {
        let mut stream = client.connect();
        // The server may respond before it has read everything.
        let _ = stream.write_all((head.to_owned() + &ping).as_bytes());
        Response::read(stream).status
    };
    let length = client
        .with("x-long", "")
        .head("POST", "/mcp", Some(ping.len()))
        .len();
    let long = |bytes: usize| {
        let value = "x".repeat(bytes - length);
        let client = client.with("x-long", &value);
        client.head("POST", "/mcp", Some(ping.len()))
    };
    assert_eq!(long(32 << 10).len(), 32 << 10);
    assert_eq!(status(&long(32 << 10)), 200);
    for bytes in [(32 << 10) + 1, 33 << 10, 48 << 10, 64 << 10, 100 << 10] {
        assert_eq!(status(&long(bytes)), 431, "{bytes} bytes in one header");
    }
    let many = (0..60).fold(client.clone(), |client, number| {
        client.with(&format!("x-{number}"), &"x".repeat(700))
    });
    assert_eq!(status(&many.head("POST", "/mcp", Some(ping.len()))), 431);
    let path = format!("/mcp?{}", "x".repeat(33 << 10));
    assert_eq!(status(&client.head("POST", &path, Some(ping.len()))), 431);
    // In pieces, on a connection that was used before.
    let mut stream = client.connect();
    let good = client.head("POST", "/mcp", Some(ping.len())) + &ping;
    stream.write_all(good.as_bytes()).expect("it listens");
    let mut first = [0; 12];
    std::io::Read::read_exact(&mut stream, &mut first).expect("an answer");
    assert_eq!(&first, b"HTTP/1.1 200");
    for piece in long(64 << 10).as_bytes().chunks(1000) {
        if stream.write_all(piece).is_err() {
            break;
        }
    }
    let mut rest = Vec::new();
    let _ = std::io::Read::read_to_end(&mut stream, &mut rest);
    let rest = String::from_utf8_lossy(&rest);
    assert!(rest.contains("HTTP/1.1 431"), "{rest}");
}

#[test]
fn slow_clients_are_disconnected_and_do_not_delay_others() {
    let bed = Bed::within(|limits| {
        limits.head = Duration::from_millis(700);
        limits.transfer = Duration::from_millis(700);
    });
    let (client, _) = bed.client.initialize("2025-06-18", json!({}));
    let begun = Instant::now();
    // Some never finish their head, others never their body.
    let slow: Vec<_> = (0..100)
        .map(|number| {
            let mut stream = client.connect();
            let head = client.head("POST", "/mcp", Some(100));
            let part = if number % 2 == 0 {
                "POST /mcp HT"
            } else {
                &head
            };
            stream.write_all(part.as_bytes()).expect("it listens");
            stream
        })
        .collect();
    let mut calls = 0;
    while begun.elapsed() < Duration::from_millis(600) {
        let asked = Instant::now();
        assert_eq!(client.call(1, "echo", json!({}))["id"], 1);
        assert!(
            asked.elapsed() < Duration::from_millis(500),
            "{:?}",
            asked.elapsed()
        );
        calls += 1;
    }
    assert!(calls > 5, "{calls}");
    for (number, stream) in slow.into_iter().enumerate() {
        let answer = Response::try_read(stream);
        match number % 2 {
            0 => assert!(answer.is_none_or(|answer| answer.status == 408)),
            _ => assert_eq!(answer.expect("an answer").status, 408),
        }
    }
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn requests_beyond_the_rate_are_refused_until_it_recovers() {
    let bed = Bed::within(|limits| limits.rate = 50);
    let (client, _) = bed.client.initialize("2025-06-18", json!({}));
    let mut refused = 0;
    for id in 0..200 {
        let answer = client.post(&call(id, "echo", json!({})));
        match answer.status {
            200 => {}
            429 => {
                assert_eq!(answer.header("retry-after"), Some("1"));
                refused += 1;
            }
            status => panic!("{status}"),
        }
    }
    assert!(refused > 0);
    let begun = Instant::now();
    while client.post(&call(1, "echo", json!({}))).status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(2));
    }
}

#[test]
fn sessions_beyond_the_limit_are_refused() {
    let bed = Bed::within(|limits| limits.sessions = 3);
    let clients: Vec<_> = (0..3)
        .map(|_| bed.client.initialize("2025-06-18", json!({})).0)
        .collect();
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "t", "version": "0" },
        },
    });
    let answer = bed.client.post(&hello);
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("1"))
    );
    assert_eq!(
        clients[0].call(1, "echo", json!({}))["id"],
        1,
        "the others go on"
    );
    assert_eq!(clients[0].send("DELETE", "/mcp", None).status, 204);
    assert_eq!(bed.client.post(&hello).status, 200);
}

#[test]
fn connections_beyond_the_limit_get_an_error() {
    let bed = Bed::within(|limits| limits.connections = 4);
    let (client, _) = bed.client.initialize("2025-06-18", json!({}));
    let held: Vec<_> = (0..4).map(|_| client.connect()).collect();
    let begun = Instant::now();
    // The server may need a moment to accept the waiting connections.
    loop {
        let refused = Response::try_read({
            let mut stream = client.connect();
            let _ = stream.write_all(client.head("GET", "/", None).as_bytes());
            stream
        });
        if refused.is_none_or(|answer| answer.status == 503) {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
    drop(held);
    let begun = Instant::now();
    loop {
        let mut stream = client.connect();
        let body = call(1, "echo", json!({})).to_string();
        let head = client.head("POST", "/mcp", Some(body.len()));
        let _ = stream.write_all((head + &body).as_bytes());
        if Response::try_read(stream).is_some_and(|answer| answer.status == 200) {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn bodies_in_progress_are_limited() {
    let bed = Bed::within(|limits| limits.bodies = 1 << 20);
    let (client, _) = bed.client.initialize("2025-06-18", json!({}));
    let large = |id: u32, tool: &str| call(id, tool, json!({ "text": "x".repeat(600 << 10) }));
    let running = client.post(&large(1, "wait"));
    bed.until_waiting(1);
    assert_eq!(client.post(&large(2, "echo")).status, 503);
    assert_eq!(
        client.call(3, "echo", json!({}))["id"],
        3,
        "there is room for this"
    );
    bed.bench.release.add_permits(1);
    assert_eq!(running.message()["id"], 1);
    assert_eq!(client.post(&large(4, "echo")).status, 200);
}

#[test]
fn many_sessions_make_many_calls_without_an_error() {
    let bed = Bed::new();
    let clients: Vec<_> = (0..100)
        .map(|_| bed.client.initialize("2025-11-25", json!({})).0)
        .collect();
    std::thread::scope(|scope| {
        for clients in clients.chunks(10) {
            scope.spawn(move || {
                for id in 0..30 {
                    for client in clients {
                        let reply = client.call(id, "echo", json!({ "text": "x" }));
                        assert_eq!(reply["result"]["content"][0]["text"], "x", "{reply}");
                    }
                }
            });
        }
    });
}

#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let bed = Bed::within(|limits| limits.stalled = Duration::from_millis(300));
    let line = format!("{}\n", "x".repeat(1000));
    std::fs::write(bed.bench.dir.path().join("a.txt"), line.repeat(45)).expect("a file");
    let (client, _) = bed.client.initialize("2025-06-18", json!({}));
    // Far more responses than fit into the socket buffers.
    const MANY: usize = 1000;
    let body = call(1, "read", json!({ "path": "a.txt" })).to_string();
    let head = client.head("POST", "/mcp", Some(body.len()));
    let mut stream = client.connect();
    stream
        .write_all((head + &body).repeat(MANY).as_bytes())
        .expect("it listens");
    let mut all = vec![0];
    std::io::Read::read_exact(&mut stream, &mut all).expect("an answer begins");
    // Until nothing more arrives, for much longer than the server waits.
    std::thread::sleep(Duration::from_secs(4));
    let begun = Instant::now();
    let _ = std::io::Read::read_to_end(&mut stream, &mut all);
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "it was closed before"
    );
    let answers = String::from_utf8_lossy(&all)
        .matches("HTTP/1.1 200")
        .count();
    assert!((1..MANY).contains(&answers), "{answers}");
    assert_eq!(client.call(2, "echo", json!({}))["id"], 2);
}
