use super::*;
use serde_json::{Value, json};

fn message(json: Value) -> ClientJsonRpcMessage {
    serde_json::from_value(json).expect("a message")
}

fn server_message(json: &Value) -> (ServerJsonRpcMessage, Vec<u8>) {
    let message = serde_json::from_value(json.clone()).expect("a message");
    (message, json.to_string().into_bytes())
}

fn request(streams: &mut Streams, id: u32) -> (Number, Generation) {
    let ping = message(json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
    let (number, generation, duplicates) = streams.open_for_requests([&ping].into_iter(), false);
    assert!(duplicates.is_empty());
    (number, generation)
}

fn reply(streams: &mut Streams, id: u32, bytes: usize) {
    let (message, json) = server_message(&json!({
        "jsonrpc": "2.0", "id": id, "error": { "code": 1, "message": "x".repeat(bytes) },
    }));
    streams.route(&message, json);
}

fn read(
    streams: &mut Streams,
    (number, generation): (Number, Generation),
    after: u64,
) -> Vec<String> {
    let waker = futures::task::noop_waker();
    let cx = Context::from_waker(&waker);
    let mut after = after;
    let mut all = Vec::new();
    while let Poll::Ready(Some(event)) = streams.poll(number, generation, &mut after, &cx) {
        all.push(String::from_utf8(event.to_vec()).expect("text"));
    }
    all
}

#[test]
fn a_client_that_does_not_read_gets_no_more_room() {
    let mut streams = Streams::new();
    let first = request(&mut streams, 1);
    let _second = request(&mut streams, 2);
    reply(&mut streams, 1, 6 << 20);
    assert!(streams.have_room());
    reply(&mut streams, 2, 6 << 20);
    assert!(!streams.have_room(), "two replies are unread");
    // A reply that was read is dropped, although the client could still come back for it.
    assert_eq!(read(&mut streams, first, 0).len(), 1);
    assert!(streams.have_room());
    assert_eq!(streams.resume(first.0, 0), None, "it was dropped");
}

#[test]
fn a_stream_is_resumed_where_it_was_and_its_first_reader_ends() {
    let mut streams = Streams::new();
    let (number, first) = request(&mut streams, 1);
    reply(&mut streams, 1, 1);
    let second = streams.resume(number, 0).expect("it is there");
    assert_eq!(read(&mut streams, (number, first), 0), [""; 0]);
    let events = read(&mut streams, (number, second), 0);
    assert!(
        events.len() == 1 && events[0].starts_with("id: 1-1\ndata: {"),
        "{events:?}"
    );
    assert_eq!(streams.resume(number, 2), None, "no such event yet");
    // An abandoned stream is removed.
    assert!(
        !streams.reader_left(number, first),
        "only the newest reader counts"
    );
    assert!(!streams.reader_left(number, second), "nothing is missing");
    streams.sweep(Duration::ZERO);
    assert_eq!(streams.resume(number, 0), None);
    assert!(streams.is_idle());
}

#[test]
fn an_abandoned_request_is_cancelled_and_its_reply_dropped() {
    let mut streams = Streams::new();
    let (number, generation) = request(&mut streams, 1);
    assert!(streams.reader_left(number, generation));
    let again = streams.resume(number, 0).expect("in time");
    assert!(
        streams.take_abandoned(number, generation).is_empty(),
        "the client came back"
    );
    assert!(streams.reader_left(number, again));
    assert_eq!(streams.take_abandoned(number, again).len(), 1);
    reply(&mut streams, 1, 1);
    assert!(streams.is_idle());
    // The id can be reused.
    let next = request(&mut streams, 1);
    assert_eq!(read(&mut streams, next, 0), [""; 0]);
}
