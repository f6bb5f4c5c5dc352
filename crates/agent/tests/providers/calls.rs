//! Invalid calls: with duplicate keys, after the end of the answer, in an incomplete answer, or
//! far too large.

use crate::common::{Talk, model};
use haft_agent::provider::Provider;
use haft_agent::{ModelAnswer, ModelError, ModelErrorKind, Stop};
use haft_testing::model::{ModelReply, Scripted, Turn};
use serde_json::{Value, json};

const TWICE: &str = r#"{"path":"a","path":"b"}"#;

async fn answer(provider: Provider, raw: String) -> Result<ModelAnswer, ModelError> {
    let server = Scripted::start(vec![Turn::Raw(raw)]);
    let mut talk = Talk::new(model(provider, &server));
    talk.ask("go").send().await
}

/// Builds a stream of events or lines.
fn stream<T: std::fmt::Display>(provider: Provider, frames: &[T]) -> String {
    let frames = frames.iter().map(|frame| match provider {
        Provider::Ollama => format!("{frame}\n"),
        _ => format!("data: {frame}\n\n"),
    });
    frames.collect()
}

/// Builds the frames of an answer with one call with these raw arguments.
fn calling(provider: Provider, arguments: &str) -> Vec<String> {
    let quoted = Value::from(arguments).to_string();
    match provider {
        Provider::Anthropic => vec![
            json!({"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}).to_string(),
            json!({"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c1","name":"read","input":{}}}).to_string(),
            format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":{quoted}}}}}"#),
            json!({"type":"content_block_stop","index":0}).to_string(),
            json!({"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":1}}).to_string(),
            json!({"type":"message_stop"}).to_string(),
        ],
        Provider::OpenaiCompletions => vec![
            format!(r#"{{"id":"x","object":"chat.completion.chunk","model":"x","choices":[{{"index":0,"delta":{{"role":"assistant","tool_calls":[{{"index":0,"id":"c1","type":"function","function":{{"name":"read","arguments":{quoted}}}}}]}},"finish_reason":null}}]}}"#),
            json!({"id":"x","object":"chat.completion.chunk","model":"x","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}).to_string(),
            "[DONE]".to_owned(),
        ],
        Provider::OpenaiResponses => {
            let item = format!(r#"{{"type":"function_call","id":"fc1","call_id":"c1","name":"read","status":"completed","arguments":{quoted}}}"#);
            vec![
                json!({"type":"response.created","response":{"id":"r","object":"response","model":"x","status":"in_progress","output":[]}}).to_string(),
                json!({"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc1","call_id":"c1","name":"read","arguments":"","status":"in_progress"}}).to_string(),
                format!(r#"{{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc1","delta":{quoted}}}"#),
                format!(r#"{{"type":"response.function_call_arguments.done","output_index":0,"item_id":"fc1","arguments":{quoted}}}"#),
                format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{item}}}"#),
                format!(r#"{{"type":"response.completed","response":{{"id":"r","object":"response","model":"x","status":"completed","output":[{item}],"usage":{{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}}}}"#),
            ]
        }
        Provider::Google => vec![
            format!(r#"{{"candidates":[{{"index":0,"content":{{"role":"model","parts":[{{"functionCall":{{"id":"c1","name":"read","args":{arguments}}}}}]}}}}]}}"#),
            json!({"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP"}]}).to_string(),
        ],
        Provider::Ollama => vec![
            format!(r#"{{"model":"x","message":{{"role":"assistant","content":"","tool_calls":[{{"id":"c1","function":{{"name":"read","arguments":{arguments}}}}}]}},"done":false}}"#),
            json!({"model":"x","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}).to_string(),
        ],
    }
}

fn arguments(answer: &ModelAnswer) -> Vec<Value> {
    answer.calls().map(|call| call.arguments.clone()).collect()
}

/// The arguments stay raw text, which the runtime refuses like any other caller's.
#[tokio::test]
async fn arguments_with_duplicate_keys_stay_text() {
    for provider in Provider::ALL {
        let plain = stream(provider, &calling(provider, r#"{"path":"b"}"#));
        let read = answer(provider, plain).await.unwrap();
        assert_eq!(arguments(&read), [json!({ "path": "b" })], "{provider}");
        for twice in [
            TWICE,
            r#"{"edits":[{"old":"a","old":"b"}]}"#,
            r#"{"path":"a","\u0070ath":"b"}"#,
        ] {
            let raw = stream(provider, &calling(provider, twice));
            let read = answer(provider, raw).await.unwrap();
            let [Value::String(text)] = &arguments(&read)[..] else {
                panic!("{provider}: {read:?}");
            };
            let error = haft::parse_arguments(text).unwrap_err().to_string();
            assert!(error.contains("is given twice"), "{provider}: {error}");
        }
    }
    // Arguments as text where an object is expected, and arguments sent together with the call.
    let quoted = Value::from(TWICE).to_string();
    let whole = calling(Provider::Anthropic, "{}");
    let announced = whole[1].replace(r#""input":{}"#, &format!(r#""input":{TWICE}"#));
    let frames = [&whole[0], &announced, &whole[3], &whole[4], &whole[5]];
    for (provider, raw) in [
        (
            Provider::Google,
            stream(Provider::Google, &calling(Provider::Google, &quoted)),
        ),
        (
            Provider::Ollama,
            stream(Provider::Ollama, &calling(Provider::Ollama, &quoted)),
        ),
        (Provider::Anthropic, stream(Provider::Anthropic, &frames)),
    ] {
        let read = answer(provider, raw).await.unwrap();
        let [Value::String(text)] = &arguments(&read)[..] else {
            panic!("{provider}: {read:?}");
        };
        assert!(haft::parse_arguments(text).is_err(), "{provider}");
    }
}

/// Whether the result has no calls.
fn has_no_call(read: &Result<ModelAnswer, ModelError>) -> bool {
    read.as_ref()
        .map_or(true, |answer| answer.calls().next().is_none())
}

#[tokio::test]
async fn a_call_after_the_end_is_ignored_or_rejected() {
    for provider in Provider::ALL {
        let text = match provider {
            Provider::Anthropic => {
                json!({"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}})
            }
            Provider::OpenaiCompletions => {
                json!({"id":"x","object":"chat.completion.chunk","model":"x","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]})
            }
            Provider::OpenaiResponses => {
                json!({"type":"response.completed","response":{"id":"r","object":"response","model":"x","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}})
            }
            Provider::Google => {
                json!({"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}]})
            }
            Provider::Ollama => {
                json!({"model":"x","message":{"role":"assistant","content":"hi"},"done":true,"done_reason":"stop"})
            }
        };
        let mut frames = calling(provider, r#"{"path":"a"}"#);
        let at = match provider {
            Provider::Anthropic | Provider::OpenaiResponses => 1,
            _ => 0,
        };
        frames.insert(at, text.to_string());
        let read = answer(provider, stream(provider, &frames)).await;
        assert!(has_no_call(&read), "{provider}: {read:?}");
    }
    // A reason without `done` also ends the answer.
    let mut frames = calling(Provider::Ollama, r#"{"path":"a"}"#);
    frames.insert(0, json!({"model":"x","message":{"role":"assistant","content":"hi"},"done":false,"done_reason":"stop"}).to_string());
    let read = answer(Provider::Ollama, stream(Provider::Ollama, &frames)).await;
    assert!(has_no_call(&read), "{read:?}");
}

/// An unset reason does not end the answer.
#[tokio::test]
async fn a_call_after_an_unset_finish_reason_of_google_counts() {
    for unset in [json!("FINISH_REASON_UNSPECIFIED"), json!(0), json!("")] {
        let text = json!({"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":unset}]});
        let mut frames = calling(Provider::Google, r#"{"path":"a"}"#);
        frames.insert(0, text.to_string());
        let read = answer(Provider::Google, stream(Provider::Google, &frames)).await;
        let read = read.unwrap();
        assert_eq!(arguments(&read), [json!({ "path": "a" })], "{unset}");
        assert_eq!(read.text(), "hi");
        // An answer with only an unset reason is incomplete.
        let read = answer(Provider::Google, stream(Provider::Google, &frames[..1])).await;
        assert_eq!(read.unwrap_err().kind, ModelErrorKind::Truncated, "{unset}");
    }
}

/// It is unclear which of the two values is right.
#[tokio::test]
async fn a_message_with_duplicate_keys_is_rejected() {
    let call = |path: &str| json!({"role":"assistant","content":"","tool_calls":[{"function":{"name":"read","arguments":{"path":path}}}]});
    let (one, other) = (call("a"), call("b"));
    let arguments = r#"{"name":"read","arguments":{"path":"a"},"arguments":{"path":"b"}}"#;
    for frame in [
        format!(r#"{{"model":"x","message":{one},"message":{other},"done":false}}"#),
        format!(
            r#"{{"model":"x","message":{{"role":"assistant","content":"","tool_calls":[{{"function":{arguments}}}]}},"done":false}}"#
        ),
    ] {
        let end = json!({"model":"x","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}).to_string();
        let raw = stream(Provider::Ollama, &[frame, end]);
        let error = answer(Provider::Ollama, raw).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Malformed);
        assert!(error.message.contains("given twice"), "{}", error.message);
    }
}

#[tokio::test]
async fn a_second_candidate_of_google_is_ignored() {
    let call = json!({ "functionCall": { "name": "read", "args": { "path": "a" } } });
    let candidate = |index: usize, part: Value, reason: Value| json!({ "index": index, "content": { "role": "model", "parts": [part] }, "finishReason": reason });
    let text = || json!({ "text": "hi" });
    for frames in [
        vec![
            json!({ "candidates": [candidate(0, text(), json!("STOP")), candidate(1, call.clone(), json!("STOP"))] }),
        ],
        vec![
            json!({ "candidates": [candidate(1, call.clone(), Value::Null)] }),
            json!({ "candidates": [candidate(0, text(), json!("STOP"))] }),
        ],
    ] {
        let read = answer(Provider::Google, stream(Provider::Google, &frames)).await;
        assert!(has_no_call(&read), "{read:?}");
    }
}

#[tokio::test]
async fn an_answer_that_broke_off_with_calls_is_not_a_normal_one() {
    for (provider, reason, stop) in [
        (Provider::Anthropic, "max_tokens", Stop::Length),
        (Provider::OpenaiCompletions, "length", Stop::Length),
        (Provider::OpenaiResponses, "max_output_tokens", Stop::Length),
        (Provider::Google, "MAX_TOKENS", Stop::Length),
        (Provider::Ollama, "length", Stop::Length),
        (Provider::Google, "SAFETY", Stop::Refusal),
        (Provider::OpenaiCompletions, "content_filter", Stop::Refusal),
    ] {
        let reply = ModelReply {
            stop: Some(reason.to_owned()),
            ..ModelReply::calling("c", "read", &json!({ "path": "a" }))
        };
        let server = Scripted::start(vec![reply.into()]);
        let mut talk = Talk::new(model(provider, &server));
        let answer = talk.ask("go").send().await.unwrap();
        assert_eq!(answer.stop, stop, "{provider}");
    }
    for (provider, reason) in [
        (Provider::Google, "RECITATION"),
        (Provider::Google, "MALFORMED_FUNCTION_CALL"),
        (Provider::Google, "OTHER"),
        (Provider::Ollama, "unload"),
    ] {
        let reply = ModelReply {
            stop: Some(reason.to_owned()),
            ..ModelReply::calling("c", "read", &json!({ "path": "a" }))
        };
        let server = Scripted::start(vec![reply.into()]);
        let mut talk = Talk::new(model(provider, &server));
        let error = talk.ask("go").send().await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Truncated, "{provider} {reason}");
        assert!(error.message.contains(reason), "{error:?}");
    }
}

#[tokio::test]
async fn huge_and_deeply_nested_arguments_are_rejected() {
    let many = format!("{{\"path\":[{}1]}}", "1,".repeat(200_000));
    let deep = format!("{{\"path\":{}", "[".repeat(50_000));
    for provider in Provider::ALL {
        for bomb in [&many, &deep] {
            let mut frames = calling(provider, bomb);
            if matches!(provider, Provider::Google | Provider::Ollama) && *bomb == deep {
                // As an object it would not be valid JSON.
                frames = calling(provider, &Value::from(bomb.as_str()).to_string());
            }
            let error = answer(provider, stream(provider, &frames))
                .await
                .unwrap_err();
            assert_eq!(
                error.kind,
                ModelErrorKind::Malformed,
                "{provider} {error:?}"
            );
            assert!(error.message.contains("more than"), "{provider} {error:?}");
        }
    }
    // In many chunks.
    let piece = |text: &str| json!({"id":"x","object":"chat.completion.chunk","model":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"read","arguments":text}}]}}]});
    let frames: Vec<_> = std::iter::once(piece("{\"path\":["))
        .chain((0..400).map(|_| piece(&"1,".repeat(500))))
        .collect();
    let raw = stream(Provider::OpenaiCompletions, &frames);
    let error = answer(Provider::OpenaiCompletions, raw).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Malformed, "{error:?}");
}

#[tokio::test]
async fn a_long_text_with_many_commas_is_accepted() {
    let content = "a,{[".repeat(100_000);
    let text = json!({ "path": "a", "content": content }).to_string();
    for provider in Provider::ALL {
        let read = answer(provider, stream(provider, &calling(provider, &text))).await;
        let read = read.unwrap();
        assert_eq!(arguments(&read)[0]["content"], content, "{provider}");
    }
}
