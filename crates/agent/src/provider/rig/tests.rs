//! One message at a time is the same as all at once.

use super::*;
use crate::{Message, Origin as Why, Part, Said, ToolCall, ToolResult};
use haft::Content;
use proptest::prelude::*;
use rig_core::message::{
    AssistantContent, AssistantMessage, CallId, DocumentSourceKind, Image, ImageMediaType,
    Message as RigMessage, ToolName, ToolResult as RigResult, ToolResultContent, UserContent,
};
use serde_json::{Value, json};

const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ";

/// A turn of a conversation, which both sides are made from.
#[derive(Debug, Clone)]
struct Told {
    prompt: Option<String>,
    text: String,
    calls: Vec<(String, Vec<String>, bool, bool)>,
}

fn told() -> impl Strategy<Value = Told> {
    let words = "[ -~äö€😀\\n\"\\\\]{1,20}[a-z]";
    let result = (
        words,
        prop::collection::vec(words, 0..3),
        any::<bool>(),
        any::<bool>(),
    );
    let prompt = prop::option::weighted(0.3, words);
    (prompt, words, prop::collection::vec(result, 0..4)).prop_map(|(prompt, text, calls)| Told {
        prompt,
        text,
        calls,
    })
}

fn speaker(provider: Provider) -> Speaker {
    let name = match provider {
        Provider::Anthropic => "claude-sonnet-4-5",
        Provider::OpenaiResponses | Provider::OpenaiCompletions => "gpt-5",
        Provider::Google => "gemini-3-flash-preview",
        Provider::Ollama => "qwen3",
    };
    let mut settings = Settings::new(provider, name);
    settings.base_url = Some("http://127.0.0.1:1".to_owned());
    let endpoint = Endpoint::new(&settings).unwrap();
    speak(settings, endpoint)
}

/// The conversation in our words, and in rig's.
fn both(turns: &[Told], has_images: bool) -> (Vec<Arc<Said>>, Vec<RigMessage>) {
    let image = || Image {
        data: DocumentSourceKind::Base64(DOT.to_owned()),
        media_type: Some(ImageMediaType::PNG),
        detail: None,
        native: None,
    };
    let mut ours = vec![Said::new(Message::prompt("begin"))];
    let mut theirs = vec![RigMessage::user("begin")];
    for (turn, told) in turns.iter().enumerate() {
        let mut parts = vec![Part::Text {
            text: told.text.clone(),
        }];
        let mut blocks = vec![AssistantContent::text(&told.text)];
        let mut results = Vec::new();
        let mut answers = Vec::new();
        for (number, (argument, texts, is_error, has_image)) in told.calls.iter().enumerate() {
            let id = format!("call_{turn}_{number}");
            let name = ToolName::new("read").unwrap();
            parts.push(Part::Call(ToolCall {
                id: id.clone(),
                name: "read".to_owned(),
                arguments: json!({ "path": argument }),
            }));
            let arguments = json!({ "path": argument });
            blocks.push(AssistantContent::tool_call(&id, name.clone(), arguments));
            let mut content: Vec<Content> = Vec::new();
            let mut theirs: Vec<ToolResultContent> = Vec::new();
            for text in texts {
                content.push(Content::Text { text: text.clone() });
                theirs.push(ToolResultContent::text(text));
            }
            if *has_image && has_images {
                content.push(Content::Image {
                    data: DOT.to_owned(),
                    media_type: "image/png".to_owned(),
                });
                theirs.push(ToolResultContent::Image(image()));
            }
            if theirs.is_empty() {
                theirs.push(ToolResultContent::text(""));
            }
            results.push(ToolResult {
                call_id: id.clone(),
                tool: "read".to_owned(),
                content,
                is_error: *is_error,
            });
            answers.push(UserContent::ToolResult(RigResult {
                call: CallId::from_wire(id),
                name,
                content: theirs,
                is_error: *is_error,
            }));
        }
        ours.push(Said::new(Message::Assistant(Answer {
            parts,
            ..Answer::default()
        })));
        theirs.push(RigMessage::Assistant(AssistantMessage::new(blocks)));
        if !results.is_empty() {
            ours.push(Said::new(Message::Tool { results }));
            theirs.push(RigMessage::User { content: answers });
        }
        let last = turn + 1 == turns.len();
        let prompt = told
            .prompt
            .clone()
            .or_else(|| last.then(|| "go on".to_owned()));
        if told.calls.is_empty() || prompt.is_some() {
            let prompt = prompt.unwrap_or_else(|| "more".to_owned());
            theirs.push(RigMessage::user(&prompt));
            ours.push(Said::new(Message::user(prompt, Why::Steering)));
        }
    }
    (ours, theirs)
}

/// What makes no difference: marks, and the ids that rig counts.
fn normal(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("cache_control");
            let is_counted = |id: &Value| id.as_str().is_some_and(|id| id.starts_with("msg_rig_"));
            if map.get("id").is_some_and(is_counted) {
                map.remove("id");
                map.remove("status");
            }
            map.values_mut().for_each(normal);
        }
        Value::Array(list) => list.iter_mut().for_each(normal),
        _ => {}
    }
}

fn definition() -> Definition {
    Definition {
        name: "read".to_owned(),
        description: "Reads.".to_owned(),
        parameters: json!({ "type": "object", "properties": {} }),
        guidance: None,
    }
}

fn compare(provider: Provider, turns: &[Told]) {
    // Chat and Ollama send the pictures of results in a message of their own, which rig
    // joins with words that follow it; here these stay apart.
    let has_images = matches!(
        provider,
        Provider::Anthropic | Provider::OpenaiResponses | Provider::Google
    );
    let (ours, theirs) = both(turns, has_images);
    let speaker = speaker(provider);
    let tools = [definition()];
    let request = Request {
        session: "s",
        system: "be good",
        tools: &tools,
        history: &ours,
        max_output: None,
    };
    // As it grows, so that pieces are chained and joined.
    for end in 1..ours.len() {
        let history = ours.get(..end).unwrap();
        speaker.compose(&Request { history, ..request }).unwrap();
    }
    let chain = speaker.compose(&request).unwrap();
    let bytes: Vec<u8> = chain.iter().flat_map(|part| part.to_vec()).collect();
    let mut found: Value = serde_json::from_slice(&bytes).unwrap();

    let mut whole = words::nothing();
    whole.chat_history = theirs;
    whole.chat_history.insert(0, RigMessage::system("be good"));
    let tool = definition();
    whole.tools = vec![rig_core::completion::ToolDefinition::new(
        ToolName::new(tool.name).unwrap(),
        tool.description,
        tool.parameters,
    )];
    let expected = speaker.protocol().body(whole).unwrap();
    let mut expected: Value = serde_json::from_slice(&expected).unwrap();
    let array = speaker.shape.array;
    let (mut found, mut expected) = (found[array].take(), expected[array].take());
    if provider == Provider::OpenaiCompletions {
        expected[0]["content"] = json!("be good");
    }
    normal(&mut found);
    normal(&mut expected);
    assert_eq!(found, expected, "{provider}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_conversation_is_what_rig_would_make_of_it(turns in prop::collection::vec(told(), 1..7)) {
        for provider in Provider::ALL {
            compare(provider, &turns);
        }
    }
}

#[test]
fn prices_and_windows_are_known_of_models_that_are_sold() {
    let price = price(Provider::Anthropic, "claude-sonnet-4-5").unwrap();
    assert!((price.input, price.output) == (3.0, 15.0), "{price:?}");
    assert!(super::price(Provider::Anthropic, "claude-sonnet-4-5-20250929").is_some());
    assert!(super::price(Provider::OpenaiCompletions, "gpt-5").is_some());
    assert!(super::price(Provider::Google, "gemini-2.5-flash").is_some());
    assert_eq!(super::price(Provider::Anthropic, "nobody-knows"), None);
    assert_eq!(super::price(Provider::Ollama, "qwen3"), None);
    assert!(speaker(Provider::Anthropic).context_window() >= Some(200_000));
    assert_eq!(speaker(Provider::Ollama).context_window(), None);
}

#[test]
fn a_cache_is_named_only_where_it_is_known() {
    assert!(shape(Provider::OpenaiResponses, false).names_cache);
    assert!(shape(Provider::OpenaiCompletions, true).names_cache);
    assert!(!shape(Provider::OpenaiCompletions, false).names_cache);
}
