//! A conversation with all kinds of content, in each protocol.

use crate::common::{DOT, Talk, model, model_name, settings};
use haft::Content;
use haft_agent::provider::{Provider, connect};
use haft_agent::{Chunk, Message, Origin, Part, Stop, ToolResult};
use haft_testing::model::{ModelReply, Scripted, Tokens, Turn};
use serde_json::{Value, json};
use std::path::Path;

fn script() -> Vec<Turn> {
    let first = ModelReply {
        redacted: "b3BhcXVl".to_owned(),
        ..ModelReply::text("I look at ä€😀 first, at length, and then some more.")
            .reasoning("Let me think about it.\nTwice.", "c2lnbmVk")
            .call("call_1", "read", &json!({ "path": "a \"b\".txt" }))
            .call("call_2", "ls", &json!({}))
            .tokens(Tokens {
                input: 1000,
                output: 50,
                cache_read: 600,
                cache_write: 300,
                reasoning: 10,
            })
    };
    vec![first.into(), Turn::text("It is a dot."), Turn::text("Yes.")]
}

fn results() -> Message {
    let text = |text: &str| Content::Text {
        text: text.to_owned(),
    };
    let dot = Content::Image {
        data: DOT.to_owned(),
        media_type: "image/png".to_owned(),
    };
    let result = |id: &str, tool: &str, content, is_error| ToolResult {
        call_id: id.to_owned(),
        tool: tool.to_owned(),
        content,
        is_error,
    };
    Message::Tool {
        results: vec![
            result("call_1", "read", vec![text("a picture"), dot], false),
            result("call_2", "ls", vec![text("no such folder")], true),
        ],
    }
}

async fn converse(provider: Provider, chop: usize) -> Vec<Value> {
    let server = Scripted::start(script()).chopped(chop);
    let mut talk = Talk::new(model(provider, &server));
    let content = vec![
        Content::Text {
            text: "What is this?".to_owned(),
        },
        Content::Image {
            data: DOT.to_owned(),
            media_type: "image/png".to_owned(),
        },
    ];
    let origin = Origin::Prompt;
    let first = talk.say(Message::User { content, origin }).answered().await;

    assert_eq!(first.stop, Stop::Calls, "{provider}");
    let text = "I look at ä€😀 first, at length, and then some more.";
    assert_eq!(first.text(), text, "{provider}");
    let calls: Vec<_> = first.calls().collect();
    assert_eq!(calls.len(), 2, "{provider}");
    assert_eq!((&*calls[0].id, &*calls[1].id), ("call_1", "call_2"));
    assert_eq!((&*calls[0].name, &*calls[1].name), ("read", "ls"));
    assert_eq!(calls[0].arguments, json!({ "path": "a \"b\".txt" }));
    assert_eq!(calls[1].arguments, json!({}));
    let thought = "Let me think about it.\nTwice.".to_owned();
    assert!(
        first.parts.contains(&Part::Reasoning { text: thought }),
        "{provider} {:?}",
        first.parts
    );
    usage(provider, &first.usage);

    let pieces = std::mem::take(&mut *talk.pieces.lock().unwrap());
    let (mut said, mut thought, mut called) = (String::new(), String::new(), Vec::new());
    for piece in &pieces {
        match piece {
            Chunk::Text(text) => said += text,
            Chunk::Reasoning(text) => thought += text,
            Chunk::Call(name) => called.push(name.as_str()),
            _ => {}
        }
    }
    assert_eq!(said, text, "{provider}");
    assert_eq!(thought, "Let me think about it.\nTwice.", "{provider}");
    assert_eq!(called, ["read", "ls"], "{provider}");
    assert!(pieces.len() > 6, "{provider}: pieces come as they are sent");

    talk.say(results());
    talk.say(Message::user("And hurry.", Origin::Steering));
    let second = talk.answered().await;
    assert_eq!(
        (second.text().as_str(), second.stop),
        ("It is a dot.", Stop::End)
    );
    talk.ask("Sure?").answered().await;

    let received = server.received();
    received
        .iter()
        .map(haft_testing::model::Received::json)
        .collect()
}

fn usage(provider: Provider, usage: &haft_agent::Usage) {
    let counted = (usage.input, usage.output, usage.cache_read, usage.reasoning);
    match provider {
        Provider::Anthropic => {
            assert_eq!(counted, (1000, 50, 600, 10));
            assert_eq!(usage.cache_write, 300);
        }
        Provider::Ollama => assert_eq!(counted, (1000, 50, 0, 0)),
        _ => assert_eq!(counted, (1000, 50, 600, 10), "{provider}"),
    }
    let is_known = provider != Provider::Ollama;
    assert_eq!(usage.cost.is_some(), is_known, "{provider} {usage:?}");
    if provider == Provider::Anthropic {
        // Per million: 100 new at 3, 600 read at 0.30, 300 written at 3.75, 50 output at 15.
        let cost = (100.0 * 3.0 + 600.0 * 0.3 + 300.0 * 3.75 + 50.0 * 15.0) / 1e6;
        assert!((usage.cost.unwrap() - cost).abs() < 1e-12, "{usage:?}");
    }
}

async fn golden(provider: Provider) {
    let requests = converse(provider, 0).await;
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/providers/golden")
        .join(format!("{provider}.json"));
    let text = serde_json::to_string_pretty(&requests).unwrap() + "\n";
    #[expect(
        clippy::disallowed_methods,
        reason = "a test reads and rewrites its own files"
    )]
    {
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let known = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, known, "UPDATE=1 rewrites {}", path.display());
    }
    // The size of the network chunks does not matter.
    for chop in [1, 7, 64] {
        assert_eq!(
            converse(provider, chop).await,
            requests,
            "{provider} {chop}"
        );
    }
}

#[tokio::test]
async fn anthropic() {
    golden(Provider::Anthropic).await;
}

#[tokio::test]
async fn openai_responses() {
    golden(Provider::OpenaiResponses).await;
}

#[tokio::test]
async fn openai_completions() {
    golden(Provider::OpenaiCompletions).await;
}

#[tokio::test]
async fn google() {
    golden(Provider::Google).await;
}

#[tokio::test]
async fn ollama() {
    golden(Provider::Ollama).await;
}

#[tokio::test]
async fn another_provider_continues_without_the_native_form_of_the_first() {
    for provider in Provider::ALL {
        let first = Scripted::start(script());
        let mut talk = Talk::new(model(Provider::Anthropic, &first));
        talk.ask("What is this?").answered().await;
        talk.say(results());

        let second = Scripted::start(vec![Turn::text("A dot.")]);
        let mut settings = crate::common::settings(provider, &second);
        settings.model = match provider {
            Provider::Anthropic => "claude-opus-4-6".to_owned(),
            other => model_name(other).to_owned(),
        };
        talk.model = haft_agent::provider::connect(settings).unwrap();
        assert_eq!(talk.send().await.unwrap().text(), "A dot.");
        let body = String::from_utf8(second.received()[0].body.clone()).unwrap();
        for only_for_the_first in ["Let me think", "c2lnbmVk", "b3BhcXVl"] {
            assert!(!body.contains(only_for_the_first), "{provider}: {body}");
        }
        assert!(body.contains("I look at ä€😀 first"), "{provider}: {body}");
        assert!(body.contains("no such folder"), "{provider}: {body}");
    }
}

#[tokio::test]
async fn arguments_that_are_not_an_object_stay_text() {
    for provider in [
        Provider::Anthropic,
        Provider::OpenaiResponses,
        Provider::OpenaiCompletions,
    ] {
        let says = ModelReply::default()
            .raw_call("a", "read", "{\"path\": \"x")
            .raw_call("b", "read", "[1]")
            .raw_call("c", "read", "");
        let server = Scripted::start(vec![says.into(), Turn::text("ok")]);
        let mut talk = Talk::new(model(provider, &server));
        let answer = talk.ask("go").answered().await;
        let arguments: Vec<_> = answer.calls().map(|call| call.arguments.clone()).collect();
        let expected = [json!("{\"path\": \"x"), json!("[1]"), json!({})];
        assert_eq!(arguments, expected, "{provider}");
        for id in ["a", "b", "c"] {
            talk.result(id, "read", "bad arguments");
        }
        talk.send().await.unwrap();
    }
}

#[tokio::test]
async fn ollama_receives_the_context_window() {
    let options = async |window| {
        let server = Scripted::start(vec![Turn::text("Yes.")]);
        let mut settings = settings(Provider::Ollama, &server);
        settings.context_window = window;
        settings.max_output = Some(500);
        Talk::new(connect(settings).unwrap())
            .ask("Yes?")
            .answered()
            .await;
        server.received()[0].json()["options"].clone()
    };
    let told = options(Some(32_768)).await;
    assert_eq!(told, json!({ "num_ctx": 32_768, "num_predict": 500 }));
    assert_eq!(options(None).await, json!({ "num_predict": 500 }));
}
