//! Clients that disconnect, and their calls.

use super::bed::Bed;
use haft_testing::http::{call, stateless};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn a_client_that_reconnects_in_time_gets_all_messages() {
    let bed = Bed::new();
    let (client, _) = bed.client.initialize("2025-11-25", json!({}));
    let mut message = call(1, "wait", json!({}));
    message["params"]["_meta"] = json!({ "progressToken": "p" });
    let mut stream = client.post(&message);
    let primer = stream.event().and_then(|event| event.id).expect("an id");
    let (progressed, _) = stream.next_message().expect("progress");
    stream.hang_up();
    // The call continues and ends without a client.
    bed.until_waiting(1);
    bed.bench.release.add_permits(1);
    bed.until_waiting(0);
    let mut again = client.get(Some(&progressed));
    let (last, answer) = again.next_message().expect("the answer");
    assert_eq!(answer["result"]["content"][0]["text"], "released");
    assert_eq!(again.next_message(), None);
    // A client that lost everything can read from the start.
    let mut whole = client.get(Some(&primer));
    let (first, progress) = whole.next_message().expect("progress");
    assert_eq!(
        (first, &progress["method"]),
        (progressed, &json!("notifications/progress"))
    );
    assert_eq!(whole.next_message().map(|(id, _)| id), Some(last.clone()));
    // After the last event there is nothing, and unknown streams are empty.
    for id in [last.as_str(), "99-0", "x", "1-99", "18446744073709551616-1"] {
        let mut nothing = client.get(Some(id));
        assert_eq!(
            (nothing.status, nothing.next_message()),
            (200, None),
            "{id}"
        );
    }
}

#[test]
fn an_abandoned_call_is_cancelled_in_time() {
    let bed = Bed::within(|limits| limits.resume = Duration::from_millis(400));
    let (client, _) = bed.client.initialize("2025-11-25", json!({}));
    let mut stream = client.post(&call(1, "deaf", json!({})));
    let id = stream.event().and_then(|event| event.id).expect("an id");
    bed.until_waiting(1);
    stream.hang_up();
    // A client that reconnects keeps the call alive.
    std::thread::sleep(Duration::from_millis(200));
    let again = client.get(Some(&id));
    std::thread::sleep(Duration::from_millis(600));
    bed.until_waiting(1);
    let begun = Instant::now();
    again.hang_up();
    bed.until_waiting(0);
    assert!(
        begun.elapsed() >= Duration::from_millis(400),
        "{:?}",
        begun.elapsed()
    );
    // The session continues, and the id may be reused.
    let reply = client.call(1, "echo", json!({ "text": "on" }));
    assert_eq!(reply["result"]["content"][0]["text"], "on");
    let mut late = client.get(Some(&id));
    assert_eq!(late.next_message(), None);
}

#[test]
fn a_client_may_disconnect_before_the_first_event() {
    let bed = Bed::within(|limits| limits.resume = Duration::from_millis(100));
    let (client, _) = bed.client.initialize("2025-11-25", json!({}));
    let mut stream = client.connect();
    let body = call(1, "deaf", json!({})).to_string();
    let head = client.head("POST", "/mcp", Some(body.len()));
    std::io::Write::write_all(&mut stream, (head + &body).as_bytes()).expect("it listens");
    bed.until_waiting(1);
    drop(stream);
    bed.until_waiting(0);
}

#[test]
fn a_call_without_a_session_ends_with_its_connection() {
    let bed = Bed::new();
    let message = stateless(call(1, "deaf", json!({})), json!({}));
    let stream = bed.client.alone("tools/call", Some("deaf")).post(&message);
    assert!(stream.is_stream());
    bed.until_waiting(1);
    let begun = Instant::now();
    stream.hang_up();
    bed.until_waiting(0);
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn the_end_of_a_session_ends_its_calls() {
    let bed = Bed::new();
    let (client, _) = bed.client.initialize("2025-06-18", json!({}));
    let (other, _) = bed.client.initialize("2025-06-18", json!({}));
    let mut own = client.post(&call(1, "deaf", json!({})));
    let others = other.post(&call(1, "wait", json!({})));
    let mut standing = client.get(None);
    bed.until_waiting(2);
    assert_eq!(client.send("DELETE", "/mcp", None).status, 204);
    bed.until_waiting(1);
    let (_, told) = own.next_message().expect("the error of the cancelled call");
    assert_eq!(told["error"]["code"], -32603, "{told}");
    assert_eq!(own.next_message(), None);
    assert_eq!(standing.next_message(), None);
    assert_eq!(client.post(&call(2, "echo", json!({}))).status, 404);
    assert_eq!(client.send("DELETE", "/mcp", None).status, 404);
    bed.bench.release.add_permits(1);
    assert_eq!(others.message()["result"]["isError"], false);
}

#[test]
fn the_server_ends_with_all_running_calls() {
    let bed = Bed::new();
    let mut streams = Vec::new();
    for _ in 0..10 {
        let (client, _) = bed.client.initialize("2025-06-18", json!({}));
        for id in 0..5 {
            streams.push(client.post(&call(id, "deaf", json!({}))));
        }
        streams.push(client.get(None));
    }
    bed.until_waiting(50);
    let waiting = std::sync::Arc::clone(&bed.bench.waiting);
    let took = bed.end();
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(waiting.load(std::sync::atomic::Ordering::SeqCst), 0);
    // Each client gets an error, or at least its connection is closed.
    for mut stream in streams {
        if let Some((_, told)) = stream.next_message() {
            assert_eq!(told["error"]["code"], -32603, "{told}");
            assert_eq!(stream.next_message(), None);
        }
    }
}

#[test]
fn an_unused_session_expires() {
    let bed = Bed::within(|limits| limits.idle = Duration::from_millis(1500));
    let (unused, _) = bed.client.initialize("2025-06-18", json!({}));
    let (busy, _) = bed.client.initialize("2025-06-18", json!({}));
    let (listening, _) = bed.client.initialize("2025-06-18", json!({}));
    let running = busy.post(&call(1, "wait", json!({})));
    let _stream = listening.get(None);
    let begun = Instant::now();
    let is_there = |client: &haft_testing::http::Client| {
        client
            .post(&json!({ "jsonrpc": "2.0", "method": "notifications/what" }))
            .status
            != 404
    };
    let ask = unused.with("last-event-id", "x");
    // A request would count as use, so only the end of the stream is observed.
    std::thread::sleep(Duration::from_millis(3200));
    assert!(!is_there(&ask), "after {:?}", begun.elapsed());
    assert!(is_there(&busy) && is_there(&listening));
    bed.bench.release.add_permits(1);
    assert_eq!(running.message()["result"]["isError"], false);
}
