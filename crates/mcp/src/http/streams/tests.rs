use super::*;
use serde_json::{Value, json};

fn message(json: Value) -> ClientJsonRpcMessage {
    serde_json::from_value(json).expect("a message")
}

fn said(json: &Value) -> (ServerJsonRpcMessage, Vec<u8>) {
    let message = serde_json::from_value(json.clone()).expect("a message");
    (message, json.to_string().into_bytes())
}

fn ask(streams: &mut Streams, id: u32) -> (Number, Generation) {
    let ping = message(json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
    let (number, generation, doubled) = streams.answering([&ping].into_iter(), false);
    assert!(doubled.is_empty());
    (number, generation)
}

fn answer(streams: &mut Streams, id: u32, bytes: usize) {
    let (message, json) = said(&json!({
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
fn who_reads_nothing_is_given_no_more() {
    let mut streams = Streams::new();
    let first = ask(&mut streams, 1);
    let _second = ask(&mut streams, 2);
    answer(&mut streams, 1, 6 << 20);
    assert!(streams.have_room());
    answer(&mut streams, 2, 6 << 20);
    assert!(!streams.have_room(), "two answers wait");
    // One that was read gives way, though somebody could still come back for it.
    assert_eq!(read(&mut streams, first, 0).len(), 1);
    assert!(streams.have_room());
    assert_eq!(streams.resumed(first.0, 0), None, "it is gone");
}

#[test]
fn a_stream_is_taken_up_where_it_was_and_the_first_reader_ends() {
    let mut streams = Streams::new();
    let (number, first) = ask(&mut streams, 1);
    answer(&mut streams, 1, 1);
    let second = streams.resumed(number, 0).expect("it is there");
    assert_eq!(read(&mut streams, (number, first), 0), [""; 0]);
    let events = read(&mut streams, (number, second), 0);
    assert!(
        events.len() == 1 && events[0].starts_with("id: 1-1\ndata: {"),
        "{events:?}"
    );
    assert_eq!(streams.resumed(number, 2), None, "that was never said");
    // Who left long ago leaves nothing.
    assert!(!streams.left(number, first), "not the one who counts");
    assert!(!streams.left(number, second), "nothing is waited for");
    streams.sweep(Duration::ZERO);
    assert_eq!(streams.resumed(number, 0), None);
    assert!(streams.is_idle());
}

#[test]
fn what_nobody_waits_for_is_given_up_and_its_answer_dropped() {
    let mut streams = Streams::new();
    let (number, generation) = ask(&mut streams, 1);
    assert!(streams.left(number, generation));
    let again = streams.resumed(number, 0).expect("in time");
    assert!(
        streams.given_up(number, generation).is_empty(),
        "somebody came back"
    );
    assert!(streams.left(number, again));
    assert_eq!(streams.given_up(number, again).len(), 1);
    answer(&mut streams, 1, 1);
    assert!(streams.is_idle());
    // Its id can be used again.
    let next = ask(&mut streams, 1);
    assert_eq!(read(&mut streams, next, 0), [""; 0]);
}
