//! Requests repeat the bytes of earlier requests, so that providers can cache them.

use crate::common::{Talk, model, settings, tools};
use haft_agent::provider::{Provider, connect};
use haft_agent::{Message, Request};
use haft_testing::model::{ModelReply, Scripted, Turn};
use serde_json::{Value, json};
use std::sync::Arc;

fn script(request: &Value, number: usize) -> Turn {
    let _ = request;
    ModelReply::text(format!("ModelAnswer {number}."))
        .reasoning("Hm.", "c2lnbmVk")
        .call(format!("call_{number}"), "read", &json!({ "path": "a" }))
        .into()
}

/// Returns the body without cache marks and closing brackets.
fn stem(body: &[u8]) -> String {
    let body = String::from_utf8(body.to_vec()).unwrap();
    // The marks in the head are fixed; those in the conversation move.
    let at = body.find("\"messages\":[").unwrap_or(0);
    let (head, conversation) = body.split_at(at);
    let mark = ",\"cache_control\":{\"type\":\"ephemeral\"}";
    let stem = head.to_owned() + &conversation.replace(mark, "");
    stem.trim_end_matches(['}', ']']).to_owned()
}

#[tokio::test]
async fn each_request_starts_with_the_bytes_of_the_previous_one() {
    for provider in Provider::ALL {
        let server = Scripted::start(script);
        let mut talk = Talk::new(model(provider, &server));
        talk.ask("go \\ \"on\"");
        for number in 0..40 {
            let answer = talk.answered().await;
            let call = answer.calls().next().unwrap().id.clone();
            talk.result(&call, "read", &format!("result {number}"));
        }
        let received = server.received();
        for pair in received.windows(2) {
            let (before, after) = (stem(&pair[0].body), stem(&pair[1].body));
            assert!(after.starts_with(&before), "{provider}\n{before}\n{after}");
        }
        // Sometimes the next request is sent before the previous connection is free.
        let connections = server.connections();
        assert!(connections < 20, "{provider}: {connections} connections");
        let last = received.last().unwrap().json();
        let key = match provider {
            Provider::OpenaiResponses => "input",
            Provider::Google => "contents",
            _ => "messages",
        };
        assert!(last[key].as_array().unwrap().len() >= 79, "{provider}");
    }
}

fn marks(body: &Value) -> Vec<String> {
    fn walk(at: String, value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                if map.contains_key("cache_control") {
                    found.push(at.clone());
                }
                for (key, value) in map {
                    walk(format!("{at}/{key}"), value, found);
                }
            }
            Value::Array(list) => {
                for (index, value) in list.iter().enumerate() {
                    walk(format!("{at}/{index}"), value, found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(String::new(), body, &mut found);
    found
}

#[tokio::test]
async fn anthropic_marks_the_head_and_the_current_and_previous_end() {
    let server = Scripted::start(script);
    let mut talk = Talk::new(model(Provider::Anthropic, &server));
    talk.ask("go");
    for _ in 0..20 {
        let answer = talk.answered().await;
        let call = answer.calls().next().unwrap().id.clone();
        talk.result(&call, "read", "text");
    }
    for (number, received) in server.received().iter().enumerate() {
        let mut expected = vec!["/system/0".to_owned(), "/tools/1".to_owned()];
        if number > 0 {
            expected.push(format!("/messages/{}/content/0", 2 * number - 2));
        }
        expected.push(format!("/messages/{}/content/0", 2 * number));
        assert_eq!(marks(&received.json()), expected, "{number}");
    }
}

#[tokio::test]
async fn a_conversation_that_was_changed_is_sent_as_changed() {
    for provider in Provider::ALL {
        let server = Scripted::start(script);
        let mut talk = Talk::new(model(provider, &server));
        talk.ask("first");
        for _ in 0..5 {
            let answer = talk.answered().await;
            let call = answer.calls().next().unwrap().id.clone();
            talk.result(&call, "read", "text");
        }
        // The old part becomes a summary; the rest does not change.
        let tail = talk.history.split_off(7);
        let old = std::mem::take(&mut talk.history);
        talk.ask("a summary");
        talk.history.extend(tail);
        talk.send().await.unwrap();
        // A fresh model shows the expected body.
        let fresh = Scripted::start(script);
        let mut other = Talk::new(model(provider, &fresh));
        other.history.clone_from(&talk.history);
        other.send().await.unwrap();
        let body = |server: &Scripted| server.received().last().unwrap().json();
        let strip = |mut body: Value| {
            // The conversation that grew also marks its previous end.
            if let Some(messages) = body["messages"].as_array_mut() {
                for message in messages {
                    let blocks = message["content"].as_array_mut();
                    for block in blocks.into_iter().flatten() {
                        block.as_object_mut().unwrap().remove("cache_control");
                    }
                }
            }
            body
        };
        assert_eq!(strip(body(&server)), strip(body(&fresh)), "{provider}");
        // Back to the old conversation, as after a fork.
        talk.history = old;
        talk.say(Message::prompt("forked"));
        talk.send().await.unwrap();
        let text = body(&server).to_string();
        assert!(
            text.contains("forked") && text.contains("first"),
            "{provider}"
        );
        assert!(!text.contains("a summary"), "{provider}");
    }
}

#[tokio::test]
async fn sessions_and_tools_do_not_mix() {
    let server = Scripted::start(script);
    let model = connect(settings(Provider::OpenaiResponses, &server)).unwrap();
    let tools = tools();
    let histories = ["one", "two"].map(|text| vec![Arc::new(Message::prompt(text))]);
    for round in 0..3 {
        for (session, history) in histories.iter().enumerate() {
            let session = format!("s{session}");
            let request = Request {
                session: &session,
                system: &session,
                tools: &tools[..round.min(2)],
                history,
                max_output: Some(100 + round as u64),
            };
            model.answer(request, &|_| {}).await.unwrap();
            let body = server.received().last().unwrap().json();
            assert_eq!(body["prompt_cache_key"], session);
            assert_eq!(body["instructions"], session);
            assert_eq!(body["max_output_tokens"], 100 + round);
            let count = body["tools"].as_array().map_or(0, Vec::len);
            assert_eq!(count, round.min(2));
            let text = ["one", "two"][usize::from(session == "s1")];
            assert_eq!(body["input"][0]["content"][0]["text"], text);
        }
    }
}
