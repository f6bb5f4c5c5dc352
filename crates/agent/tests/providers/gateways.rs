//! Deviations of compatible servers and gateways from a provider's protocol.

use crate::common::{Talk, model};
use haft_agent::provider::Provider;
use haft_agent::{Chunk, ModelAnswer, ModelErrorKind, Part, Stop};
use haft_testing::model::{Scripted, Turn};
use serde_json::{Value, json};

fn stream(frames: &[Value]) -> Turn {
    let frames = frames.iter().map(|frame| match frame {
        Value::String(text) => format!("data: {text}\n\n"),
        frame => format!("data: {frame}\n\n"),
    });
    Turn::Raw(frames.collect())
}

/// Returns an answer, its chunks, and the next request.
async fn exchange(provider: Provider, frames: &[Value]) -> (ModelAnswer, Vec<Chunk>, Value) {
    exchange_turn(provider, stream(frames)).await
}

async fn exchange_turn(provider: Provider, turn: Turn) -> (ModelAnswer, Vec<Chunk>, Value) {
    let server = Scripted::start(vec![turn, Turn::text("ok")]);
    let mut talk = Talk::new(model(provider, &server));
    let answer = talk.ask("go").answered().await;
    for call in answer.calls() {
        talk.result(&call.id, &call.name, "done");
    }
    let pieces = std::mem::take(&mut *talk.pieces.lock().unwrap());
    talk.ask("more").send().await.unwrap();
    let body = server.received()[1].json();
    (answer, pieces, body)
}

fn chunk(delta: Value, stop: Value) -> Value {
    json!({ "id": "x", "choices": [{ "index": 0, "delta": delta, "finish_reason": stop }] })
}

fn paths(answer: &ModelAnswer) -> Vec<&str> {
    let paths = answer.calls().map(|call| call.arguments["path"].as_str());
    paths.map(Option::unwrap).collect()
}

#[tokio::test]
async fn a_chat_that_ends_with_done_only_is_complete() {
    let text = chunk(json!({ "content": "hi" }), Value::Null);
    let (answer, ..) = exchange(Provider::OpenaiCompletions, &[text, json!("[DONE]")]).await;
    assert_eq!((answer.text().as_str(), answer.stop), ("hi", Stop::End));
}

#[tokio::test]
async fn calls_of_a_chat_are_distinguished_without_an_index() {
    let piece = |id: Value, name: Value, arguments: &str| {
        let function = json!({ "name": name, "arguments": arguments });
        chunk(
            json!({ "tool_calls": [{ "id": id, "function": function }] }),
            Value::Null,
        )
    };
    let none = Value::Null;
    let end = chunk(json!({}), json!("tool_calls"));
    for (first, second) in [(json!("a"), json!("b")), (none.clone(), none.clone())] {
        let frames = [
            piece(first.clone(), json!("read"), "{\"path\":"),
            piece(first, none.clone(), "\"1\"}"),
            piece(second, json!("read"), "{\"path\":\"2\"}"),
            end.clone(),
        ];
        let (answer, ..) = exchange(Provider::OpenaiCompletions, &frames).await;
        assert_eq!(paths(&answer), ["1", "2"]);
    }
    // Some servers send the same index for all calls.
    let numbered = |id: &str, path: &str| {
        let function = json!({ "name": "read", "arguments": format!("{{\"path\":\"{path}\"}}") });
        let call = json!({ "index": 0, "id": id, "function": function });
        chunk(json!({ "tool_calls": [call] }), Value::Null)
    };
    let frames = [numbered("a", "1"), numbered("b", "2"), end];
    let (answer, ..) = exchange(Provider::OpenaiCompletions, &frames).await;
    assert_eq!(paths(&answer), ["1", "2"]);
}

#[tokio::test]
async fn extra_fields_of_reasoning_and_calls_are_sent_back() {
    let detail = |text: &str| json!([{ "type": "reasoning.text", "index": 0, "text": text }]);
    let sealed = json!([{ "type": "reasoning.encrypted", "data": "c2VhbA==" }]);
    let signed = json!({ "google": { "thought_signature": "c2ln" } });
    let call = json!({ "index": 0, "id": "a", "extra_content": signed,
        "function": { "name": "read", "arguments": "{\"path\":\"1\"}" } });
    let frames = [
        chunk(
            json!({ "reasoning": "I ", "reasoning_details": detail("I ") }),
            Value::Null,
        ),
        chunk(
            json!({ "reasoning": "think", "reasoning_details": detail("think") }),
            Value::Null,
        ),
        chunk(json!({ "reasoning_details": sealed }), Value::Null),
        chunk(json!({ "tool_calls": [call] }), json!("tool_calls")),
        json!("[DONE]"),
    ];
    let (_, pieces, body) = exchange(Provider::OpenaiCompletions, &frames).await;
    let thought = pieces.iter().filter_map(|piece| match piece {
        Chunk::Reasoning(text) => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(thought.collect::<String>(), "I think");
    let sent = &body["messages"][2];
    assert_eq!(sent["reasoning"], "I think");
    assert_eq!(
        sent["reasoning_details"],
        json!([detail("I think")[0], sealed[0]])
    );
    assert_eq!(sent["tool_calls"][0]["extra_content"], signed);
    assert!(sent["tool_calls"][0].get("index").is_none(), "{sent}");
}

#[tokio::test]
async fn the_cost_that_a_gateway_reports_is_used() {
    let usage = |cost: Value| {
        let usage = json!({ "prompt_tokens": 1000, "completion_tokens": 0, "cost": cost });
        json!({ "choices": [], "usage": usage })
    };
    let text = chunk(json!({ "content": "hi" }), json!("stop"));
    for (cost, expected) in [
        (json!(0.25), 0.25),
        (json!({ "total_cost": 0.5 }), 0.5),
        // The list price is 1.25 per million.
        (json!(-1), 0.001_25),
        (Value::Null, 0.001_25),
    ] {
        let frames = [text.clone(), usage(cost.clone()), json!("[DONE]")];
        let (answer, ..) = exchange(Provider::OpenaiCompletions, &frames).await;
        assert_eq!(answer.usage.cost, Some(expected), "{cost}");
    }
}

fn response(output: Value) -> Value {
    json!({ "type": "response.completed", "response": {
        "id": "r", "status": "completed", "output": output,
        "usage": { "input_tokens": 1, "output_tokens": 1 },
    } })
}

#[tokio::test]
async fn a_response_that_is_not_streamed_is_read_and_shown() {
    let message = json!({ "type": "message", "id": "m", "role": "assistant", "status": "completed",
        "content": [{ "type": "output_text", "text": "hi", "annotations": [] }] });
    let call = json!({ "type": "function_call", "id": "f", "call_id": "c", "name": "read",
        "arguments": "{\"path\":\"1\"}", "status": "completed" });
    let output = json!([message, call]);
    let (answer, pieces, body) =
        exchange(Provider::OpenaiResponses, &[response(output.clone())]).await;
    assert_eq!((answer.text().as_str(), paths(&answer)), ("hi", vec!["1"]));
    let shown = [Chunk::Text("hi".into()), Chunk::Call("read".into())];
    assert_eq!(pieces, shown);
    assert_eq!(body["input"][1], output[0]);
    assert_eq!(body["input"][2], output[1]);
}

#[tokio::test]
async fn unencrypted_reasoning_and_its_ids_are_not_sent_back() {
    let thought = json!({ "type": "reasoning", "id": "rs_7", "summary": [{ "type": "summary_text", "text": "hm" }] });
    let message = json!({ "type": "message", "id": "msg_7", "role": "assistant",
        "content": [{ "type": "output_text", "text": "hi" }] });
    let output = json!([thought, message]);
    let (answer, _, body) = exchange(Provider::OpenaiResponses, &[response(output)]).await;
    assert_eq!(answer.parts.len(), 2);
    let sent = body["input"].to_string();
    assert!(!sent.contains("rs_7") && !sent.contains("msg_7"), "{sent}");
    assert_eq!(body["input"][1]["content"][0]["text"], "hi");
}

#[tokio::test]
async fn a_prompt_that_google_blocks_is_a_refusal() {
    let blocked = |reason: &str| json!({ "promptFeedback": { "blockReason": reason } });
    let (answer, ..) = exchange(Provider::Google, &[blocked("SAFETY")]).await;
    assert_eq!(answer.stop, Stop::Refusal);
    assert!(answer.text().contains("refused"), "{answer:?}");
    let server = Scripted::start(vec![stream(&[blocked("OTHER")])]);
    let mut talk = Talk::new(model(Provider::Google, &server));
    let error = talk.ask("go").send().await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Truncated, "{error:?}");
    assert!(error.message.contains("OTHER"), "{error:?}");
}

#[tokio::test]
async fn blocks_of_anthropic_without_a_start_event_are_read() {
    let delta = |index: u64, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let frames = [
        json!({ "type": "message_start", "message": { "usage": { "input_tokens": 7 } } }),
        delta(0, json!({ "type": "thinking_delta", "thinking": "hm" })),
        delta(1, json!({ "type": "text_delta", "text": "hi" })),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" },
            "usage": { "input_tokens": 0, "output_tokens": 3 } }),
    ];
    let (answer, _, body) = exchange(Provider::Anthropic, &frames).await;
    assert_eq!(answer.text(), "hi");
    assert_eq!((answer.usage.input, answer.usage.output), (7, 3));
    // Unsigned thinking would be rejected.
    let sent = json!([{ "type": "text", "text": "hi" }]);
    assert_eq!(body["messages"][1]["content"], sent);
}

fn reasoning(answer: &ModelAnswer) -> String {
    let parts = answer.parts.iter().filter_map(|part| match part {
        Part::Reasoning { text } => Some(text.as_str()),
        _ => None,
    });
    parts.collect()
}

/// Returns the answer to a stream of text in these chunks.
async fn exchange_text(provider: Provider, chunks: &[&str]) -> (ModelAnswer, Vec<Chunk>, Value) {
    let turn = |text: &&str| match provider {
        Provider::Ollama => json!({ "message": { "role": "assistant", "content": text } }),
        _ => chunk(json!({ "content": text }), Value::Null),
    };
    let mut frames: Vec<Value> = chunks.iter().map(turn).collect();
    if provider == Provider::Ollama {
        frames.push(json!({ "done": true, "done_reason": "stop" }));
        let lines = frames.iter().map(|frame| format!("{frame}\n"));
        return exchange_turn(provider, Turn::Raw(lines.collect())).await;
    }
    frames.extend([chunk(json!({}), json!("stop")), json!("[DONE]")]);
    exchange(provider, &frames).await
}

#[tokio::test]
async fn a_think_block_at_the_start_of_a_text_is_reasoning() {
    let whole = "\n<think>\nI < you </thin \n</think>\n\nHello <think>x</think>";
    let cut: Vec<&str> = whole
        .split_inclusive("")
        .filter(|text| !text.is_empty())
        .collect();
    for provider in [Provider::OpenaiCompletions, Provider::Ollama] {
        for chunks in [&cut[..], &[whole]] {
            let (answer, pieces, body) = exchange_text(provider, chunks).await;
            assert_eq!(reasoning(&answer), "I < you </thin", "{provider}");
            assert_eq!(answer.text(), "Hello <think>x</think>", "{provider}");
            let shown = pieces.iter().filter_map(|piece| match piece {
                Chunk::Reasoning(text) => Some(text.as_str()),
                _ => None,
            });
            assert_eq!(shown.collect::<String>(), "I < you </thin", "{provider}");
            let sent = &body["messages"][2];
            assert_eq!(sent["content"], "Hello <think>x</think>", "{sent}");
            let thinking = (provider == Provider::Ollama).then_some("I < you </thin");
            assert_eq!(sent["thinking"].as_str(), thinking);
        }
        // Text with a similar start stays text, and a block without an end is reasoning.
        for (text, thought, said) in [
            ("<thin", "", "<thin"),
            ("  <thinking> a", "", "  <thinking> a"),
            ("a <think>b</think>", "", "a <think>b</think>"),
            ("<think>a </th", "a </th", ""),
        ] {
            let (answer, ..) = exchange_text(provider, &[text]).await;
            assert_eq!((&*reasoning(&answer), &*answer.text()), (thought, said));
        }
    }
}

#[tokio::test]
async fn thinking_parts_of_mistral_are_reasoning_and_are_sent_back_as_parts() {
    let think = |text: &str| {
        let thought = json!([{ "type": "text", "text": text }]);
        json!({ "content": [{ "type": "thinking", "thinking": thought }] })
    };
    let frames = [
        chunk(think("I "), Value::Null),
        chunk(think("think"), Value::Null),
        chunk(json!({ "content": "hi" }), json!("stop")),
        json!("[DONE]"),
    ];
    let (answer, pieces, body) = exchange(Provider::OpenaiCompletions, &frames).await;
    assert_eq!((&*reasoning(&answer), &*answer.text()), ("I think", "hi"));
    assert_eq!(pieces[0], Chunk::Reasoning("I ".into()));
    let thought = json!([{ "type": "text", "text": "I think" }]);
    let sent = json!([{ "type": "thinking", "thinking": thought },
        { "type": "text", "text": "hi" }]);
    assert_eq!(body["messages"][2]["content"], sent);
}

#[tokio::test]
async fn cached_tokens_are_counted_under_the_names_of_mistral_and_deepseek() {
    let text = chunk(json!({ "content": "hi" }), json!("stop"));
    for (name, other) in [
        ("num_cached_tokens", Value::Null),
        ("prompt_cache_hit_tokens", json!({ "cached_tokens": 0 })),
    ] {
        let usage = json!({ "prompt_tokens": 100, "completion_tokens": 1, name: 64,
            "prompt_tokens_details": other });
        let frames = [
            text.clone(),
            json!({ "choices": [], "usage": usage }),
            json!("[DONE]"),
        ];
        let (answer, ..) = exchange(Provider::OpenaiCompletions, &frames).await;
        assert_eq!(
            (answer.usage.input, answer.usage.cache_read),
            (100, 64),
            "{name}"
        );
    }
}
