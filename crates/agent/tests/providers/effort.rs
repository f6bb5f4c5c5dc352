//! How much the model thinks: what each wire format sends, and that nothing is sent by default.

use crate::common::{Talk, settings};
use haft_agent::Chunk;
use haft_agent::provider::{Effort, Provider, connect};
use haft_testing::model::{ModelReply, Scripted, Turn};
use serde_json::{Value, json};

/// Returns the body of a request to a model.
async fn body(provider: Provider, model: &str, effort: Option<Effort>) -> Value {
    let reply = ModelReply::text("Done.").reasoning("Hm.", "c2lnbmVk");
    let server = Scripted::start(vec![Turn::Reply(reply)]);
    let mut settings = settings(provider, &server);
    settings.model = model.to_owned();
    settings.effort = effort;
    let mut talk = Talk::new(connect(settings).unwrap());
    talk.ask("go").send().await.unwrap();
    let pieces = talk.pieces.lock().unwrap();
    let thought = pieces.iter().filter_map(|chunk| match chunk {
        Chunk::Reasoning(text) => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(thought.collect::<String>(), "Hm.", "{provider}");
    server.received().last().unwrap().json()
}

#[tokio::test]
async fn each_provider_gets_the_effort_in_its_own_form() {
    use Effort::{High, Low, Max, Medium, Minimal};
    use Provider::{Anthropic, Google, Ollama, OpenaiCompletions, OpenaiResponses};
    let budget = |tokens: u64| json!({ "type": "enabled", "budget_tokens": tokens });
    let adaptive = json!({ "type": "adaptive", "display": "summarized" });
    let gemini = |name: &str, value: Value| json!({ "includeThoughts": true, name: value });
    for (provider, model, effort, pointer, expected) in [
        (
            Anthropic,
            "claude-sonnet-4-5",
            Low,
            "/thinking",
            budget(4096),
        ),
        (
            Anthropic,
            "claude-opus-4-20250514",
            Max,
            "/thinking",
            budget(16_000),
        ),
        (
            Anthropic,
            "claude-sonnet-4-5",
            Low,
            "/output_config",
            Value::Null,
        ),
        (
            Anthropic,
            "claude-opus-4-6",
            Low,
            "/thinking",
            adaptive.clone(),
        ),
        (
            Anthropic,
            "claude-opus-4-6",
            Low,
            "/output_config/effort",
            json!("low"),
        ),
        (
            Anthropic,
            "claude-sonnet-5",
            Max,
            "/output_config/effort",
            json!("max"),
        ),
        (
            Anthropic,
            "claude-fable-5",
            Minimal,
            "/output_config/effort",
            json!("low"),
        ),
        (
            Anthropic,
            "claude-opus-5",
            High,
            "/thinking/display",
            json!("summarized"),
        ),
        (
            Anthropic,
            "claude-opus-5",
            High,
            "/thinking/block_binding/prefix_mismatch_behavior",
            json!("drop_block"),
        ),
        (
            OpenaiCompletions,
            "gpt-5",
            Medium,
            "/reasoning_effort",
            json!("medium"),
        ),
        (
            OpenaiCompletions,
            "gpt-5",
            Max,
            "/reasoning_effort",
            json!("xhigh"),
        ),
        (
            OpenaiResponses,
            "gpt-5",
            Minimal,
            "/reasoning",
            json!({ "effort": "minimal", "summary": "auto" }),
        ),
        (
            Google,
            "gemini-3-flash-preview",
            Max,
            "/generationConfig/thinkingConfig",
            gemini("thinkingLevel", json!("high")),
        ),
        (
            Google,
            "gemini-2.5-flash",
            Medium,
            "/generationConfig/thinkingConfig",
            gemini("thinkingBudget", json!(8192)),
        ),
        (Ollama, "qwen3", Medium, "/think", json!(true)),
        (Ollama, "qwen3", Minimal, "/think", json!(false)),
        (Ollama, "gpt-oss:20b", Medium, "/think", json!("medium")),
    ] {
        let body = body(provider, model, Some(effort)).await;
        let found = body.pointer(pointer).unwrap_or(&Value::Null);
        assert_eq!(*found, expected, "{provider} {model} {effort}");
    }
}

#[tokio::test]
async fn nothing_is_sent_by_default() {
    for (provider, model) in [
        (Provider::Anthropic, "claude-sonnet-4-5"),
        (Provider::Anthropic, "claude-opus-4-6"),
        (Provider::OpenaiCompletions, "gpt-5"),
        (Provider::OpenaiResponses, "gpt-5"),
        (Provider::Google, "gemini-3-flash-preview"),
        (Provider::Ollama, "qwen3"),
    ] {
        let body = body(provider, model, None).await;
        for name in [
            "thinking",
            "output_config",
            "reasoning",
            "reasoning_effort",
            "think",
        ] {
            assert!(body.get(name).is_none(), "{provider}: {name} in {body}");
        }
        let thinking = body.pointer("/generationConfig/thinkingConfig");
        assert!(thinking.is_none(), "{provider}");
    }
}
