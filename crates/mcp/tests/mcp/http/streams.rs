//! Messages that are sent while a call runs.

use super::bed::Bed;
use haft_testing::http::{call, stateless};
use serde_json::{Value, json};

fn with_progress(id: u32, tool: &str, token: &str) -> Value {
    let mut message = call(id, tool, json!({}));
    message["params"]["_meta"] = json!({ "progressToken": token });
    message
}

#[test]
fn progress_is_sent_on_the_stream_of_its_call() {
    let bed = Bed::new();
    let (client, _) = bed.client.initialize("2025-11-25", json!({}));
    let mut one = client.post(&with_progress(1, "wait", "a"));
    let mut other = client.post(&with_progress(2, "wait", "b"));
    for (stream, token) in [(&mut one, "a"), (&mut other, "b")] {
        assert!(stream.is_stream());
        let primer = stream.event().expect("an event id to resume from");
        assert!(
            primer.id.is_some() && primer.data.as_deref() == Some(""),
            "{primer:?}"
        );
        let (_, progress) = stream.next_message().expect("progress");
        assert_eq!(progress["method"], "notifications/progress");
        assert_eq!(progress["params"]["progressToken"], token);
        assert_eq!(progress["params"]["message"], "waiting");
    }
    bed.bench.release.add_permits(2);
    for (mut stream, id) in [(one, 1), (other, 2)] {
        let (_, answer) = stream.next_message().expect("an answer");
        assert_eq!(
            (answer["id"].clone(), &answer["result"]["isError"]),
            (json!(id), &json!(false))
        );
        assert_eq!(stream.event(), None, "the stream ends with the answer");
    }
    let updates = client.post(&with_progress(3, "updates", "c"));
    assert_eq!(updates.message()["result"]["content"][0]["text"], "done");
}

#[test]
fn older_clients_get_no_event_without_data() {
    let bed = Bed::new();
    let (client, _) = bed.client.initialize("2025-06-18", json!({}));
    let mut stream = client.post(&call(1, "wait", json!({})));
    let primer = stream.event().expect("an id");
    assert_eq!((primer.id.is_some(), primer.data), (true, None));
    bed.bench.release.add_permits(1);
    assert_eq!(stream.message()["id"], 1);
}

#[test]
fn progress_without_a_session() {
    let bed = Bed::new();
    let message = stateless(with_progress(1, "wait", "a"), json!({}));
    let mut stream = bed.client.alone("tools/call", Some("wait")).post(&message);
    let (_, progress) = stream.next_message().expect("progress");
    assert_eq!(progress["params"]["progressToken"], "a");
    bed.bench.release.add_permits(1);
    let (_, answer) = stream.next_message().expect("an answer");
    assert_eq!(answer["id"], 1);
}

#[test]
fn a_cancelled_call_ends_and_its_stream_with_it() {
    let bed = Bed::new();
    let (client, _) = bed.client.initialize("2025-06-18", json!({}));
    let mut stream = client.post(&call(1, "deaf", json!({})));
    bed.until_waiting(1);
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 },
    });
    assert_eq!(client.post(&cancel).status, 202);
    bed.until_waiting(0);
    assert_eq!(stream.next_message(), None);
}

#[test]
fn an_id_that_is_in_use_is_refused() {
    let bed = Bed::new();
    let (client, _) = bed.client.initialize("2025-06-18", json!({}));
    let _running = client.post(&call(1, "wait", json!({})));
    let second = client.post(&call(1, "echo", json!({}))).message();
    assert_eq!(second["error"]["code"], -32600, "{second}");
    // Another client may use the same id.
    let (other, _) = bed.client.initialize("2025-06-18", json!({}));
    let reply = other.call(1, "echo", json!({ "text": "mine" }));
    assert_eq!(reply["result"]["content"][0]["text"], "mine");
}

#[test]
fn calls_of_one_client_run_concurrently_and_each_session_has_its_own_memory() {
    let bed = Bed::new();
    let (one, _) = bed.client.initialize("2025-06-18", json!({}));
    let (other, _) = bed.client.initialize("2025-06-18", json!({}));
    let streams: Vec<_> = (0..20)
        .map(|id| one.post(&call(id, "wait", json!({}))))
        .collect();
    bed.until_waiting(20);
    let said = |client: &haft_testing::http::Client, text: &str| {
        let reply = client.call("r", "remembers", json!({ "text": text }));
        reply["result"]["content"][0]["text"].clone()
    };
    assert_eq!(said(&one, "a"), "null");
    assert_eq!(said(&other, "b"), "null");
    assert_eq!(said(&one, "c"), "\"a\"");
    bed.bench.release.add_permits(20);
    for stream in streams {
        assert_eq!(stream.message()["result"]["isError"], false);
    }
}
