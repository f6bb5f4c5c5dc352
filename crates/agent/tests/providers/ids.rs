//! Ids of calls are unique, whatever the provider sends.

use crate::common::{Talk, model};
use haft_agent::provider::Provider;
use haft_agent::{Message, ToolResult};
use haft_testing::model::{ModelReply, Scripted, Turn};
use serde_json::json;
use std::collections::HashSet;

fn reply(ids: [&str; 3]) -> Turn {
    let [a, b, c] = ids;
    ModelReply::default()
        .call(a, "read", &json!({ "path": "a" }))
        .call(b, "read", &json!({ "path": "b" }))
        .call(c, "ls", &json!({ "path": "c" }))
        .into()
}

#[tokio::test]
async fn repeated_and_missing_ids_become_unique_and_match_their_results() {
    for provider in Provider::ALL {
        for ids in [["x", "x", "x"], ["", "", ""], ["x", "", "x"]] {
            let server = Scripted::start(vec![reply(ids), Turn::text("ok")]);
            let mut talk = Talk::new(model(provider, &server));
            let answer = talk.ask("go").answered().await;
            let made: Vec<String> = answer.calls().map(|call| call.id.clone()).collect();
            assert_eq!(made.len(), 3, "{provider} {ids:?}");
            let distinct: HashSet<&String> = made.iter().collect();
            assert_eq!(distinct.len(), 3, "{provider} {made:?}");
            assert!(made.iter().all(|id| !id.trim().is_empty()), "{made:?}");
            let paths: Vec<_> = answer
                .calls()
                .map(|call| call.arguments["path"].clone())
                .collect();
            assert_eq!(paths, ["a", "b", "c"], "{provider}");
            let results = answer.calls().map(|call| ToolResult {
                call_id: call.id.clone(),
                tool: call.name.clone(),
                content: Vec::new(),
                is_error: false,
            });
            let results = results.collect();
            talk.say(Message::Tool { results }).send().await.unwrap();
            let body = String::from_utf8(server.received()[1].body.clone()).unwrap();
            // Once in the call, once in its result.
            for id in &made {
                let quoted = serde_json::to_string(id).unwrap();
                assert_eq!(body.matches(&quoted).count(), 2, "{provider} {id} {body}");
            }
        }
    }
}

#[tokio::test]
async fn an_id_from_the_same_provider_is_sent_back_unchanged() {
    let id = "functions.read:0";
    let reply = ModelReply::calling(id, "read", &json!({ "path": "a" }));
    let server = Scripted::start(vec![reply.into(), Turn::text("ok")]);
    let mut talk = Talk::new(model(Provider::OpenaiCompletions, &server));
    talk.ask("go").answered().await;
    talk.result(id, "read", "text").send().await.unwrap();
    let body = server.received()[1].json();
    assert_eq!(body["messages"][2]["tool_calls"][0]["id"], id);
    assert_eq!(body["messages"][3]["tool_call_id"], id);
}

#[tokio::test]
async fn an_id_of_another_provider_is_converted_in_the_call_and_its_result() {
    let id = "functions.read:0";
    let reply = ModelReply::calling(id, "read", &json!({ "path": "a" }));
    let first = Scripted::start(vec![Turn::from(reply)]);
    let mut talk = Talk::new(model(Provider::OpenaiCompletions, &first));
    talk.ask("go").answered().await;
    let second = Scripted::start(vec![Turn::text("ok")]);
    talk.model = model(Provider::Anthropic, &second);
    talk.result(id, "read", "text").send().await.unwrap();
    let body = second.received()[0].json();
    let called = &body["messages"][1]["content"][0]["id"];
    assert_eq!(*called, "functions_read_0");
    assert_eq!(*called, body["messages"][2]["content"][0]["tool_use_id"]);
}

#[tokio::test]
async fn ids_that_the_agent_renamed_are_sent() {
    let reply = ModelReply::text("I look.").call("x", "read", &json!({ "path": "a" }));
    let server = Scripted::start(vec![reply.into(), Turn::text("ok")]);
    let mut talk = Talk::new(model(Provider::Anthropic, &server));
    let mut answer = talk.ask("go").send().await.unwrap();
    for part in &mut answer.parts {
        if let haft_agent::Part::Call(call) = part {
            call.id = "x_7".to_owned();
        }
    }
    talk.say(Message::Assistant(answer));
    talk.result("x_7", "read", "text").send().await.unwrap();
    let body = server.received()[1].json();
    assert_eq!(body["messages"][1]["content"][1]["id"], "x_7");
    assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], "x_7");
}
