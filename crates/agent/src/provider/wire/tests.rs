//! Details of requests that the tests with a server do not cover.

use super::*;
use crate::provider::catalog;
use crate::{Part, ToolCall, ToolResult};
use std::collections::HashSet;
use std::sync::Arc;

const DOT: &str = "iVBORw0KGgo=";

fn body(provider: Provider, model: &str, change: impl FnOnce(&mut WireRequest<'_>)) -> Value {
    body_of(provider, model, vec![Message::prompt("go")], change)
}

fn body_of(
    provider: Provider,
    model: &str,
    history: Vec<Message>,
    change: impl FnOnce(&mut WireRequest<'_>),
) -> Value {
    let history: Vec<Arc<Message>> = history.into_iter().map(Arc::new).collect();
    let mut ask = WireRequest {
        provider,
        model,
        known: catalog::known(provider, model),
        request: Request {
            session: "s",
            system: "",
            tools: &[],
            history: &history,
            max_output: None,
        },
        context_window: None,
        effort: None,
        is_own: false,
    };
    change(&mut ask);
    serde_json::to_value(&ask).unwrap()
}

#[test]
fn the_cache_key_is_only_sent_to_providers_that_know_it() {
    let name = |provider, is_own| {
        let body = body(provider, "m", |ask| ask.is_own = is_own);
        body["prompt_cache_key"].as_str().map(str::to_owned)
    };
    let named = Some("s".to_owned());
    assert_eq!(name(Provider::OpenaiResponses, false), named);
    assert_eq!(name(Provider::OpenaiCompletions, true), named);
    assert_eq!(name(Provider::OpenaiCompletions, false), None);
}

#[test]
fn limits_use_the_field_name_that_the_model_knows() {
    let limited = |provider, model: &str| {
        body(provider, model, |ask| {
            ask.request.max_output = Some(7);
            ask.context_window = Some(9);
        })
    };
    assert_eq!(limited(Provider::Anthropic, "x")["max_tokens"], 7);
    let chat = |model| limited(Provider::OpenaiCompletions, model);
    for model in ["gpt-5", "gpt-6.1-sol", "o3-mini"] {
        assert_eq!(chat(model)["max_completion_tokens"], 7, "{model}");
    }
    for model in ["gpt-4o", "other", "x/gpt-5", "olmo"] {
        assert_eq!(chat(model)["max_tokens"], 7, "{model}");
    }
    let body = limited(Provider::Ollama, "qwen3");
    assert_eq!(body["options"], json!({ "num_predict": 7, "num_ctx": 9 }));
    assert_eq!(
        body_of(Provider::Ollama, "qwen3", Vec::new(), |_| ())["options"],
        Value::Null
    );
}

#[test]
fn the_default_limit_of_anthropic_depends_on_the_model() {
    let room = |model: &str| body(Provider::Anthropic, model, |_| ())["max_tokens"].clone();
    assert_eq!(room("claude-opus-4-1-20250805"), 32_000);
    assert_eq!(room("claude-sonnet-4-9"), 64_000);
    assert_eq!(room("other"), 8192);
}

/// Creates calls of another model whose converted ids collide.
fn calls(ids: &[&str]) -> Vec<Message> {
    let parts = ids.iter().map(|id| {
        Part::Call(ToolCall {
            id: (*id).to_owned(),
            name: "read".to_owned(),
            arguments: json!({}),
        })
    });
    let results = ids.iter().map(|id| ToolResult {
        call_id: (*id).to_owned(),
        tool: "read".to_owned(),
        content: vec![Content::Image {
            data: DOT.to_owned(),
            media_type: "image/png".to_owned(),
        }],
        is_error: false,
    });
    let answer = ModelAnswer {
        parts: parts.collect(),
        ..ModelAnswer::default()
    };
    let results = results.collect();
    vec![Message::Assistant(answer), Message::Tool { results }]
}

#[test]
fn ids_that_collide_after_conversion_stay_unique() {
    let long = "x".repeat(80);
    let longer = long.clone() + "y";
    let ids = ["a.b", "a:b", "a/b", "...", ":::", &long, &longer];
    let body = body_of(Provider::Anthropic, "m", calls(&ids), |_| ());
    let field = |turn: usize, name: &str| -> Vec<String> {
        let blocks = elements(&body["messages"][turn], "content");
        blocks.map(|block| text(block, name).to_owned()).collect()
    };
    let (called, answered) = (field(0, "id"), field(1, "tool_use_id"));
    assert_eq!(called, answered);
    let distinct: HashSet<&String> = called.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "{called:?}");
    assert!(called.iter().all(|id| id.len() <= 64 && !id.is_empty()));
}

#[test]
fn pictures_of_results_are_where_the_model_can_see_them() {
    let sent = |provider, model| body_of(provider, model, calls(&["a"]), |_| ()).to_string();
    for (provider, model, is_attached) in [
        (Provider::Anthropic, "claude-sonnet-4-5", false),
        (Provider::OpenaiResponses, "gpt-5", false),
        (Provider::Google, "gemini-3-flash-preview", false),
        (Provider::Google, "gemini-2.5-flash", true),
        (Provider::OpenaiCompletions, "gpt-5", true),
        (Provider::Ollama, "qwen3", true),
    ] {
        let sent = sent(provider, model);
        assert!(sent.contains(DOT), "{provider}: {sent}");
        let attached = sent.contains("(see attached image)");
        assert_eq!(attached, is_attached, "{provider}: {sent}");
    }
    let blind = sent(Provider::OpenaiCompletions, "gpt-3.5-turbo");
    assert!(
        blind.contains("(image omitted") && !blind.contains(DOT),
        "{blind}"
    );
}
