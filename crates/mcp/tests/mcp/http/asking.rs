//! The user of a client is asked over HTTP.

use super::bed::Bed;
use crate::asking::form;
use crate::tools::Bench;
use haft_testing::http::{call, stateless};
use serde_json::{Value, json};

fn asking_bed() -> Bed {
    let bench = Bench::with(|builder| builder.interrupt_on(["echo"]));
    Bed::of(bench, |_| {})
}

fn response(id: &Value, decision: &str) -> Value {
    let result = json!({ "action": "accept", "content": { "decision": decision } });
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

#[test]
fn the_question_is_sent_on_the_stream_of_its_call() {
    let bed = asking_bed();
    for version in ["2025-06-18", "2025-11-25"] {
        let (client, _) = bed.client.initialize(version, json!({ "elicitation": {} }));
        let mut standing = client.get(None);
        for (decision, is_error) in [("approve", false), ("reject", true)] {
            let mut stream = client.post(&call(1, "echo", json!({ "text": "hello" })));
            assert!(stream.is_stream());
            let (_, asked) = stream.next_message().expect("a question");
            assert_eq!(asked["method"], "elicitation/create");
            form(&asked["params"], &["Allow echo to run?", "text: hello"]);
            assert_eq!(client.post(&response(&asked["id"], decision)).status, 202);
            let (_, answer) = stream.next_message().expect("an answer");
            assert_eq!(answer["result"]["isError"], is_error, "{answer}");
        }
        bed.changed.notify();
        let (_, first) = standing.next_message().expect("a notification");
        assert_eq!(
            first["method"], "notifications/tools/list_changed",
            "and nothing before"
        );
    }
}

#[test]
fn another_client_cannot_answer() {
    let bed = asking_bed();
    let (client, _) = bed
        .client
        .initialize("2025-11-25", json!({ "elicitation": {} }));
    let (other, _) = bed
        .client
        .initialize("2025-11-25", json!({ "elicitation": {} }));
    let mut stream = client.post(&call(1, "echo", json!({})));
    let (_, asked) = stream.next_message().expect("a question");
    assert_eq!(other.post(&response(&asked["id"], "approve")).status, 202);
    assert_eq!(client.post(&response(&asked["id"], "reject")).status, 202);
    assert_eq!(stream.message()["result"]["isError"], true);
}

#[test]
fn a_question_waits_for_a_client_that_reconnects() {
    let bed = asking_bed();
    let (client, _) = bed
        .client
        .initialize("2025-11-25", json!({ "elicitation": {} }));
    let mut stream = client.post(&call(1, "echo", json!({ "text": "x" })));
    let primer = stream.event().and_then(|event| event.id).expect("an id");
    stream.hang_up();
    let mut again = client.get(Some(&primer));
    let (_, asked) = again.next_message().expect("the question");
    assert_eq!(client.post(&response(&asked["id"], "approve")).status, 202);
    assert_eq!(again.message()["result"]["content"][0]["text"], "x");
}

#[test]
fn calls_are_refused_if_the_client_cannot_ask() {
    let bed = asking_bed();
    let (client, _) = bed.client.initialize("2025-11-25", json!({}));
    let reply = client.call(1, "echo", json!({}));
    let text = reply["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default();
    assert!(text.contains("no user can be asked here"), "{reply}");
}

#[test]
fn version_2026_07_28_asks_between_two_requests() {
    let bed = asking_bed();
    let client = bed.client.alone("tools/call", Some("echo"));
    let can = json!({ "elicitation": { "form": {} } });
    let message = || stateless(call(1, "echo", json!({ "text": "hello" })), can.clone());
    let first = client.post(&message()).message();
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    form(
        &first["result"]["inputRequests"]["approval"]["params"],
        &["echo"],
    );
    let mut again = message();
    again["params"]["requestState"] = first["result"]["requestState"].clone();
    again["params"]["inputResponses"] =
        json!({ "approval": { "action": "accept", "content": { "decision": "approve" } } });
    let second = client.post(&again).message();
    assert_eq!(second["result"]["content"][0]["text"], "hello", "{second}");
    let third = client.post(&again).message();
    assert_eq!(
        third["error"]["code"], -32602,
        "an answer counts once: {third}"
    );
}
