//! The user of a client is asked before a call runs.

use crate::client::{Client, call, cancelled};
use crate::tools::Bench;
use haft::{Approve, Sibling};
use haft_testing::http::stateless;
use serde_json::{Value, json};

/// A session in which `echo` needs approval.
fn asking_bench() -> Bench {
    Bench::with(|builder| builder.interrupt_on(["echo"]))
}

fn elicitation() -> Value {
    json!({ "elicitation": {} })
}

/// Checks a question and returns its id.
fn question(message: &Value, expected: &[&str]) -> Value {
    assert_eq!(message["method"], "elicitation/create", "{message}");
    form(&message["params"], expected);
    message["id"].clone()
}

/// Checks the form of a question.
pub(crate) fn form(params: &Value, expected: &[&str]) {
    let text = params["message"].as_str().expect("a message");
    for expected in expected {
        assert!(text.contains(expected), "{expected:?} in {text:?}");
    }
    assert!(!text.contains('\u{1b}'), "{text:?}");
    let schema = &params["requestedSchema"];
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["required"], json!(["decision"]));
    let choice = &schema["properties"]["decision"];
    assert_eq!(choice["enum"], json!(["approve", "reject"]), "{choice}");
    assert_eq!(schema["properties"]["reason"]["type"], "string", "{schema}");
}

fn response(id: Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

#[tokio::test]
async fn only_an_approval_lets_the_call_run() {
    let bench = asking_bench();
    let mut client = Client::able(bench.runtime.clone(), "2025-06-18", elicitation()).await;
    for (number, result, runs) in [
        (
            1,
            json!({ "action": "accept", "content": { "decision": "approve" } }),
            true,
        ),
        (
            2,
            json!({ "action": "accept", "content": { "decision": "reject" } }),
            false,
        ),
        (3, json!({ "action": "accept", "content": {} }), false),
        (4, json!({ "action": "decline" }), false),
        (5, json!({ "action": "cancel" }), false),
    ] {
        client
            .call(
                number,
                "echo",
                json!({ "text": "line\nasked because: \u{1b}]0;x" }),
            )
            .await;
        let asked = client.receive().await;
        let id = question(
            &asked,
            &[
                "Allow echo to run?",
                "    asked because: \\x1b]0;x",
                "interrupt_on",
            ],
        );
        client.send(response(id, result.clone())).await;
        let answer = client.receive().await;
        assert_eq!(answer["id"], number);
        assert_eq!(answer["result"]["isError"], !runs, "{result}: {answer}");
    }
    // An error of the client is not an approval.
    client.call(6, "echo", json!({})).await;
    let asked = client.receive().await;
    let error = json!({ "code": -32603, "message": "no screen" });
    client
        .send(json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }))
        .await;
    assert_eq!(client.receive().await["result"]["isError"], true);
    client.end().await;
}

#[tokio::test]
async fn the_reply_contains_the_reason_of_a_rejection() {
    let bench = asking_bench();
    let mut client = Client::able(bench.runtime.clone(), "2025-06-18", elicitation()).await;
    client.call(1, "echo", json!({})).await;
    let id = question(&client.receive().await, &["echo"]);
    let content = json!({ "decision": "reject", "reason": "only in the test branch" });
    let no = json!({ "action": "accept", "content": content });
    client.send(response(id, no)).await;
    let answer = client.receive().await;
    assert_eq!(answer["result"]["isError"], true);
    let why = "the user said no: only in the test branch";
    assert!(text(&answer).contains(why), "{answer}");
    client.end().await;
}

#[tokio::test]
async fn a_running_tool_can_ask_for_confirmation() {
    let bench = Bench::with(|builder| builder.timeout(std::time::Duration::from_millis(300)));
    let mut client = Client::able(
        bench.runtime.clone(),
        "2025-11-25",
        json!({ "elicitation": { "form": {} } }),
    )
    .await;
    client.call(1, "confirms", json!({})).await;
    let asked = client.receive().await;
    let id = question(
        &asked,
        &[
            "confirms asks for confirmation",
            "Really?",
            "    asked because: \\x1b[2J",
        ],
    );
    // The user's time to answer does not count toward the time limit of the call.
    tokio::time::sleep(std::time::Duration::from_millis(2500)).await;
    let yes = json!({ "action": "accept", "content": { "decision": "approve" } });
    client.send(response(id, yes)).await;
    assert_eq!(text(&client.receive().await), "yes");
    client.end().await;
}

#[tokio::test]
async fn calls_are_refused_if_the_client_cannot_ask() {
    for capabilities in [json!({}), json!({ "elicitation": { "url": {} } })] {
        let bench = asking_bench();
        let mut client = Client::able(bench.runtime.clone(), "2025-11-25", capabilities).await;
        client.call(1, "echo", json!({})).await;
        let answer = client.receive().await;
        assert!(
            text(&answer).contains("no user can be asked here"),
            "{answer}"
        );
        client.call(2, "confirms", json!({})).await;
        assert_eq!(text(&client.receive().await), "no");
        client.end().await;
    }
    // A session that never asks does not ask here either.
    let bench = Bench::with(|builder| builder.interrupt_on(["echo"]).approve(Approve::Never));
    let mut client = Client::able(bench.runtime.clone(), "2025-11-25", elicitation()).await;
    client.call(1, "echo", json!({})).await;
    assert_eq!(client.receive().await["result"]["isError"], true);
    client.end().await;
}

#[tokio::test]
async fn a_question_is_withdrawn_when_its_call_is_cancelled() {
    let bench = asking_bench();
    let mut client = Client::able(bench.runtime.clone(), "2025-06-18", elicitation()).await;
    client.call(1, "echo", json!({})).await;
    let asked = client.receive().await;
    client.send(cancelled(1)).await;
    let withdrawn = client.receive().await;
    assert_eq!(
        withdrawn["method"], "notifications/cancelled",
        "{withdrawn}"
    );
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    client.alive().await;
    client.end().await;
}

#[tokio::test]
async fn sibling_sessions_share_tools_and_nothing_else() {
    let bench = Bench::new();
    let one = bench
        .runtime
        .sibling(Sibling::default())
        .expect("a session");
    let other = one.sibling(Sibling::default()).expect("a session");
    assert_ne!(one.session(), other.session());
    let response = async |runtime: &haft::Runtime, text: &str| {
        let reply = runtime.call("remembers", json!({ "text": text })).await;
        reply.text()
    };
    assert_eq!(response(&one, "a").await, "null");
    assert_eq!(response(&other, "b").await, "null");
    assert_eq!(response(&one, "c").await, "\"a\"");
    other
        .tools()
        .add_any(crate::tools::late())
        .expect("a new name");
    assert!(one.tools().get("late").is_some());
    let bad = Sibling {
        id: Some("../x".to_owned()),
        ..Sibling::default()
    };
    assert!(one.sibling(bad).is_err());
}

/// Makes one attempt of a call, as a client of the newest version does.
async fn attempt(client: &mut Client, arguments: Value, again: Value) -> Value {
    let mut message = stateless(call("r", "echo", arguments), elicitation());
    if let Value::Object(again) = again {
        let params = message["params"].as_object_mut().expect("params");
        params.extend(again);
    }
    client.send(message).await;
    client.receive().await
}

#[tokio::test]
async fn version_2026_07_28_asks_between_two_attempts() {
    let bench = asking_bench();
    let mut client = Client::silent(bench.runtime.clone());
    let arguments = || json!({ "text": "hello" });
    let yes = json!({ "approval": { "action": "accept", "content": { "decision": "approve" } } });
    let first = attempt(&mut client, arguments(), Value::Null).await;
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    let asked = &first["result"]["inputRequests"]["approval"];
    assert_eq!(asked["method"], "elicitation/create");
    form(&asked["params"], &["Allow echo to run?", "text: hello"]);
    let state = first["result"]["requestState"].clone();
    let with = |state: &Value, responses: &Value| json!({ "requestState": state, "inputResponses": responses });
    let second = attempt(&mut client, arguments(), with(&state, &yes)).await;
    assert_eq!(text(&second), "hello", "{second}");

    // An answer counts once, and only for the call it was given for.
    let again = attempt(&mut client, arguments(), with(&state, &yes)).await;
    assert_eq!(again["error"]["code"], -32602, "{again}");
    let first = attempt(&mut client, arguments(), Value::Null).await;
    let state = first["result"]["requestState"].clone();
    let other = attempt(&mut client, json!({ "text": "rm" }), with(&state, &yes)).await;
    assert_eq!(other["error"]["code"], -32602, "{other}");
    let forged = attempt(&mut client, arguments(), with(&json!("forged"), &yes)).await;
    assert_eq!(forged["error"]["code"], -32602, "{forged}");
    let unasked = attempt(&mut client, arguments(), json!({ "inputResponses": yes })).await;
    assert_eq!(
        unasked["result"]["resultType"], "input_required",
        "{unasked}"
    );

    let first = attempt(&mut client, arguments(), Value::Null).await;
    let no = json!({ "approval": { "action": "decline" } });
    let second = attempt(
        &mut client,
        arguments(),
        with(&first["result"]["requestState"], &no),
    )
    .await;
    assert_eq!(second["result"]["isError"], true, "{second}");
    // Without an answer the question is asked again.
    let first = attempt(&mut client, arguments(), Value::Null).await;
    let second = attempt(
        &mut client,
        arguments(),
        with(&first["result"]["requestState"], &json!({})),
    )
    .await;
    assert_eq!(second["result"]["resultType"], "input_required", "{second}");

    // A client that cannot ask gets a refusal.
    client
        .send(stateless(call(9, "echo", arguments()), json!({})))
        .await;
    assert!(text(&client.receive().await).contains("no user can be asked here"));
    client.end().await;
}

#[tokio::test]
async fn a_call_may_need_approval_to_start_and_confirmation_later() {
    let bench = Bench::with(|builder| builder.interrupt_on(["confirms"]));
    let mut client = Client::silent(bench.runtime.clone());
    let yes = json!({ "approval": { "action": "accept", "content": { "decision": "approve" } } });
    let mut state = Value::Null;
    for expected in ["Allow confirms to run?", "confirms asks for confirmation"] {
        let mut message = stateless(call(1, "confirms", json!({})), elicitation());
        if !state.is_null() {
            message["params"]["requestState"] = state;
            message["params"]["inputResponses"] = yes.clone();
        }
        client.send(message).await;
        let answer = client.receive().await;
        form(
            &answer["result"]["inputRequests"]["approval"]["params"],
            &[expected],
        );
        state = answer["result"]["requestState"].clone();
    }
    let mut message = stateless(call(1, "confirms", json!({})), elicitation());
    message["params"]["requestState"] = state;
    message["params"]["inputResponses"] = yes;
    client.send(message).await;
    assert_eq!(text(&client.receive().await), "yes");
    client.end().await;
}
