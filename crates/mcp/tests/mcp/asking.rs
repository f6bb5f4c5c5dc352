//! A person behind the client is asked before a call.

use crate::client::{Client, call, cancelled};
use crate::tools::Bench;
use haft::{Approve, Sibling};
use haft_testing::http::stateless;
use serde_json::{Value, json};

/// A session in which a call of `echo` waits for a person.
fn careful() -> Bench {
    Bench::with(|builder| builder.interrupt_on(["echo"]))
}

fn can() -> Value {
    json!({ "elicitation": {} })
}

/// Checks a question and gives its id.
fn question(message: &Value, about: &[&str]) -> Value {
    assert_eq!(message["method"], "elicitation/create", "{message}");
    form(&message["params"], about);
    message["id"].clone()
}

/// Checks what is asked.
pub(crate) fn form(params: &Value, about: &[&str]) {
    let text = params["message"].as_str().expect("a message");
    for about in about {
        assert!(text.contains(about), "{about:?} in {text:?}");
    }
    assert!(!text.contains('\u{1b}'), "{text:?}");
    let schema = &params["requestedSchema"];
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["required"], json!(["decision"]));
    let choice = &schema["properties"]["decision"];
    assert_eq!(choice["enum"], json!(["approve", "reject"]), "{choice}");
    assert_eq!(schema["properties"]["reason"]["type"], "string", "{schema}");
}

fn said(id: Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

#[tokio::test]
async fn who_says_yes_lets_it_run_and_everything_else_is_no() {
    let bench = careful();
    let mut client = Client::able(bench.runtime.clone(), "2025-06-18", can()).await;
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
                "echo wants to run",
                "    asked because: \\x1b]0;x",
                "interrupt_on",
            ],
        );
        client.send(said(id, result.clone())).await;
        let answer = client.receive().await;
        assert_eq!(answer["id"], number);
        assert_eq!(answer["result"]["isError"], !runs, "{result}: {answer}");
    }
    // A client that fails at asking has not said yes.
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
async fn the_reason_of_a_rejection_is_in_the_reply() {
    let bench = careful();
    let mut client = Client::able(bench.runtime.clone(), "2025-06-18", can()).await;
    client.call(1, "echo", json!({})).await;
    let id = question(&client.receive().await, &["echo"]);
    let content = json!({ "decision": "reject", "reason": "only in the test branch" });
    let no = json!({ "action": "accept", "content": content });
    client.send(said(id, no)).await;
    let answer = client.receive().await;
    assert_eq!(answer["result"]["isError"], true);
    let why = "the user said no: only in the test branch";
    assert!(text(&answer).contains(why), "{answer}");
    client.end().await;
}

#[tokio::test]
async fn what_a_tool_asks_while_it_runs_is_asked_too() {
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
        &["confirms runs", "Really?", "    asked because: \\x1b[2J"],
    );
    // The time of a person is not the time of the call.
    tokio::time::sleep(std::time::Duration::from_millis(2500)).await;
    let yes = json!({ "action": "accept", "content": { "decision": "approve" } });
    client.send(said(id, yes)).await;
    assert_eq!(text(&client.receive().await), "yes");
    client.end().await;
}

#[tokio::test]
async fn who_cannot_be_asked_is_refused_as_before() {
    for capabilities in [json!({}), json!({ "elicitation": { "url": {} } })] {
        let bench = careful();
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
    // And a session that never asks does not.
    let bench = Bench::with(|builder| builder.interrupt_on(["echo"]).approve(Approve::Never));
    let mut client = Client::able(bench.runtime.clone(), "2025-11-25", can()).await;
    client.call(1, "echo", json!({})).await;
    assert_eq!(client.receive().await["result"]["isError"], true);
    client.end().await;
}

#[tokio::test]
async fn a_question_is_withdrawn_when_its_call_is_cancelled() {
    let bench = careful();
    let mut client = Client::able(bench.runtime.clone(), "2025-06-18", can()).await;
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
async fn sessions_beside_each_other_share_tools_and_nothing_else() {
    let bench = Bench::new();
    let one = bench
        .runtime
        .sibling(Sibling::default())
        .expect("a session");
    let other = one.sibling(Sibling::default()).expect("a session");
    assert_ne!(one.session(), other.session());
    let said = async |runtime: &haft::Runtime, text: &str| {
        let reply = runtime.call("remembers", json!({ "text": text })).await;
        reply.text()
    };
    assert_eq!(said(&one, "a").await, "null");
    assert_eq!(said(&other, "b").await, "null");
    assert_eq!(said(&one, "c").await, "\"a\"");
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

/// One call in rounds, as a client of the newest version makes it.
async fn round(client: &mut Client, arguments: Value, again: Value) -> Value {
    let mut message = stateless(call("r", "echo", arguments), can());
    if let Value::Object(again) = again {
        let params = message["params"].as_object_mut().expect("params");
        params.extend(again);
    }
    client.send(message).await;
    client.receive().await
}

#[tokio::test]
async fn version_2026_07_28_asks_between_two_rounds() {
    let bench = careful();
    let mut client = Client::silent(bench.runtime.clone());
    let arguments = || json!({ "text": "hello" });
    let yes = json!({ "approval": { "action": "accept", "content": { "decision": "approve" } } });
    let first = round(&mut client, arguments(), Value::Null).await;
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    let asked = &first["result"]["inputRequests"]["approval"];
    assert_eq!(asked["method"], "elicitation/create");
    form(&asked["params"], &["echo wants to run", "text: hello"]);
    let state = first["result"]["requestState"].clone();
    let with = |state: &Value, responses: &Value| json!({ "requestState": state, "inputResponses": responses });
    let second = round(&mut client, arguments(), with(&state, &yes)).await;
    assert_eq!(text(&second), "hello", "{second}");

    // It counts once, for this call, and only what was asked.
    let again = round(&mut client, arguments(), with(&state, &yes)).await;
    assert_eq!(again["error"]["code"], -32602, "{again}");
    let first = round(&mut client, arguments(), Value::Null).await;
    let state = first["result"]["requestState"].clone();
    let other = round(&mut client, json!({ "text": "rm" }), with(&state, &yes)).await;
    assert_eq!(other["error"]["code"], -32602, "{other}");
    let forged = round(&mut client, arguments(), with(&json!("forged"), &yes)).await;
    assert_eq!(forged["error"]["code"], -32602, "{forged}");
    let unasked = round(&mut client, arguments(), json!({ "inputResponses": yes })).await;
    assert_eq!(
        unasked["result"]["resultType"], "input_required",
        "{unasked}"
    );

    let first = round(&mut client, arguments(), Value::Null).await;
    let no = json!({ "approval": { "action": "decline" } });
    let second = round(
        &mut client,
        arguments(),
        with(&first["result"]["requestState"], &no),
    )
    .await;
    assert_eq!(second["result"]["isError"], true, "{second}");
    // Without an answer it is asked again.
    let first = round(&mut client, arguments(), Value::Null).await;
    let second = round(
        &mut client,
        arguments(),
        with(&first["result"]["requestState"], &json!({})),
    )
    .await;
    assert_eq!(second["result"]["resultType"], "input_required", "{second}");

    // Who cannot ask is refused.
    client
        .send(stateless(call(9, "echo", arguments()), json!({})))
        .await;
    assert!(text(&client.receive().await).contains("no user can be asked here"));
    client.end().await;
}

#[tokio::test]
async fn a_call_may_take_a_round_before_it_and_one_within() {
    let bench = Bench::with(|builder| builder.interrupt_on(["confirms"]));
    let mut client = Client::silent(bench.runtime.clone());
    let yes = json!({ "approval": { "action": "accept", "content": { "decision": "approve" } } });
    let mut state = Value::Null;
    for about in ["confirms wants to run", "confirms runs, and asks"] {
        let mut message = stateless(call(1, "confirms", json!({})), can());
        if !state.is_null() {
            message["params"]["requestState"] = state;
            message["params"]["inputResponses"] = yes.clone();
        }
        client.send(message).await;
        let answer = client.receive().await;
        form(
            &answer["result"]["inputRequests"]["approval"]["params"],
            &[about],
        );
        state = answer["result"]["requestState"].clone();
    }
    let mut message = stateless(call(1, "confirms", json!({})), can());
    message["params"]["requestState"] = state;
    message["params"]["inputResponses"] = yes;
    client.send(message).await;
    assert_eq!(text(&client.receive().await), "yes");
    client.end().await;
}
