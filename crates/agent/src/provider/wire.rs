//! The wire formats of the providers: one module per format, and what they share.

/// Builds an object like `json!`, but moves the values and leaves out those that are null.
macro_rules! object {
    ($($name:tt: $value:expr),* $(,)?) => {
        serde_json::Value::Object(
            [$(($name, serde_json::Value::from($value))),*]
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (str::to_owned(name), value))
                .collect(),
        )
    };
}

mod anthropic;
mod chat;
mod google;
mod ollama;
mod responses;

use super::Provider;
use super::catalog::ModelFacts;
use super::draft::{AnswerItem, Draft, Fault, ItemKind};
use super::effort::Effort;
use super::ids::{CallIds, legal};
use crate::{Message, ModelAnswer, Request};
use haft::{Content, Definition};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};
use std::borrow::Cow;

/// Media types that most providers accept.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];

/// A wire format.
pub(super) trait Wire: Send + Sync {
    /// Returns extra headers.
    fn headers(&self, _: &WireRequest<'_>) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// Whether a picture can be sent. One that a result cannot hold is attached after it.
    fn takes(&self, _model: &str, media_type: &str, _in_result: bool) -> bool {
        PICTURES.contains(&media_type)
    }

    /// Converts the id of another model's call to one that this wire accepts.
    fn call_id(&self, id: &str) -> String {
        legal(id)
    }

    /// Builds the body without the conversation.
    fn head(&self, request: &WireRequest<'_>) -> Value;

    /// Returns the name of the conversation in the body, and its elements. In a chat, the
    /// system prompt is the first.
    fn conversation<'a>(&self, request: &WireRequest<'a>) -> (&'static str, Vec<Cow<'a, Value>>) {
        let system = |text| json!({ "role": "system", "content": text });
        ("messages", request.list(request.system().map(system)))
    }

    /// Encodes a user message.
    fn user(&self, blocks: &[Block<'_>]) -> Vec<Value>;

    /// Encodes an answer.
    fn answer(&self, model: &str, items: Vec<AnswerItem>) -> Vec<Value>;

    /// Encodes a tool result.
    fn result(&self, model: &str, result: CallResult<'_>) -> Value;

    /// Groups the results of one answer's calls into messages.
    fn group(&self, results: Vec<Value>) -> Vec<Value> {
        results
    }

    /// Reads one message of a streamed answer.
    fn read(&self, frame: Value, draft: &mut Draft<'_>) -> Result<(), Fault>;
}

/// Returns the wire format of a provider.
pub(super) fn of(provider: Provider) -> &'static dyn Wire {
    match provider {
        Provider::Anthropic => &anthropic::Messages,
        Provider::OpenaiResponses => &responses::Responses,
        Provider::OpenaiCompletions => &chat::Completions,
        Provider::Google => &google::GenerateContent,
        Provider::Ollama => &ollama::Chat,
    }
}

/// Part of a message.
#[derive(Debug)]
pub(super) enum Block<'a> {
    Text(Cow<'a, str>),
    Picture { media_type: &'a str, data: &'a str },
}

/// The result of a call.
pub(super) struct CallResult<'a> {
    /// Id of the call, as sent.
    id: String,
    tool: &'a str,
    blocks: Vec<Block<'a>>,
    is_error: bool,
}

/// A request, and what else its body depends on. It serializes to the body.
pub(super) struct WireRequest<'a> {
    pub(super) provider: Provider,
    pub(super) model: &'a str,
    pub(super) known: Option<ModelFacts>,
    pub(super) request: Request<'a>,
    /// Context window in tokens, if the configuration sets one.
    pub(super) context_window: Option<u64>,
    /// How much the model thinks, if the user chose it.
    pub(super) effort: Option<Effort>,
    /// Whether this goes to the provider itself, not to a compatible server.
    pub(super) is_own: bool,
}

impl Serialize for WireRequest<'_> {
    /// Writes the conversation last, so that each body starts with the bytes of the previous
    /// one.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let wire = of(self.provider);
        let mut body = serializer.serialize_map(None)?;
        for (name, value) in wire.head(self).as_object().into_iter().flatten() {
            body.serialize_entry(name, value)?;
        }
        let (name, conversation) = wire.conversation(self);
        body.serialize_entry(name, &conversation)?;
        body.end()
    }
}

impl<'a> WireRequest<'a> {
    /// Encodes each message of the conversation, and marks the model's.
    fn messages(&self) -> Vec<(bool, Vec<Cow<'a, Value>>)> {
        let wire = of(self.provider);
        let mut ids = CallIds::default();
        let owned = |values: Vec<Value>| values.into_iter().map(Cow::Owned).collect();
        let messages = self.request.history.iter().map(|message| match &**message {
            Message::User { content, .. } => {
                let blocks = self.blocks(content, None, "(empty message)");
                (false, owned(wire.user(&blocks)))
            }
            Message::Assistant(answer) => match self.native(answer) {
                Some(native) => {
                    answer.calls().for_each(|call| ids.keep(&call.id));
                    (true, native.iter().map(Cow::Borrowed).collect())
                }
                None => {
                    let mut fit = |id: &str| ids.fit(id, wire.call_id(id));
                    let items = answer.parts.iter();
                    let items = items.filter_map(|part| AnswerItem::foreign(part, &mut fit));
                    (true, owned(wire.answer(self.model, items.collect())))
                }
            },
            Message::Tool { results } => {
                let mut attached = vec![Block::Text("Attached image(s) from tool result:".into())];
                let results = results.iter().map(|result| {
                    let nothing = match result.is_error {
                        true => "[tool error] (no tool output)",
                        false => "(no tool output)",
                    };
                    let result = CallResult {
                        id: ids.of(&result.call_id),
                        tool: &result.tool,
                        blocks: self.blocks(&result.content, Some(&mut attached), nothing),
                        is_error: result.is_error,
                    };
                    wire.result(self.model, result)
                });
                let mut written = wire.group(results.collect());
                if attached.len() > 1 {
                    written.extend(wire.user(&attached));
                }
                (false, owned(written))
            }
        });
        messages.collect()
    }

    /// Encodes the conversation as one list, which starts with `first`.
    fn list(&self, first: Option<Value>) -> Vec<Cow<'a, Value>> {
        let messages = self.messages().into_iter();
        let first = first.map(Cow::Owned).into_iter();
        first.chain(messages.flat_map(|(_, list)| list)).collect()
    }

    /// Returns an answer as its provider sent it, if this is the same provider and model.
    fn native<'b>(&self, answer: &'b ModelAnswer) -> Option<&'b Vec<Value>> {
        let native = answer.native.as_ref()?;
        let calls = native["calls"].as_array()?.iter().map(Value::as_str);
        let is_own = native["provider"] == self.provider.name()
            && native["model"] == self.model
            // The verbatim form is stale if the calls were renamed since.
            && calls.eq(answer.calls().map(|call| Some(call.id.as_str())));
        native["wire"].as_array().filter(|_| is_own)
    }

    /// Splits a content into blocks, or returns `nothing`. Blank text is dropped, since
    /// several providers reject it. A picture that a result cannot hold goes to `attached`.
    fn blocks<'b>(
        &self,
        content: &'b [Content],
        mut attached: Option<&mut Vec<Block<'b>>>,
        nothing: &'static str,
    ) -> Vec<Block<'b>> {
        let is_blind = self.known.is_some_and(|known| known.is_text_only);
        let takes = |media_type: &str, in_result| {
            !is_blind && of(self.provider).takes(self.model, media_type, in_result)
        };
        let mut blocks: Vec<Block<'b>> = Vec::new();
        for part in content {
            let Content::Image { data, media_type } = part else {
                let text = part.in_words();
                if !text.trim().is_empty() {
                    blocks.push(Block::Text(text));
                }
                continue;
            };
            let picture = Block::Picture { media_type, data };
            let note = match &mut attached {
                attached if takes(media_type, attached.is_some()) => {
                    blocks.push(picture);
                    continue;
                }
                Some(attached) if takes(media_type, false) => {
                    attached.push(picture);
                    "(see attached image)"
                }
                _ => "(image omitted: it cannot be sent to this model)",
            };
            // One note is enough for several pictures.
            if !matches!(blocks.last(), Some(Block::Text(last)) if last == note) {
                blocks.push(Block::Text(note.into()));
            }
        }
        if blocks.is_empty() {
            blocks.push(Block::Text(nothing.into()));
        }
        blocks
    }

    /// Returns the system prompt, if it is not blank.
    fn system(&self) -> Option<&str> {
        Some(self.request.system).filter(|text| !text.trim().is_empty())
    }

    /// Encodes the tools as a list, if there are any.
    fn tools(&self, encode: impl Fn(&Definition) -> Value) -> Option<Value> {
        list(self.request.tools.iter().map(encode).collect())
    }

    /// Encodes the tools as chats expect them.
    fn functions(&self) -> Option<Value> {
        self.tools(|tool| json!({ "type": "function", "function": tool }))
    }
}

/// The parts of an answer, for the formats that send it as one chat message.
#[derive(Default)]
struct ChatAnswer {
    text: String,
    reasoning: Vec<AnswerItem>,
    calls: Vec<Value>,
}

impl ChatAnswer {
    fn new(items: Vec<AnswerItem>, encode_call: impl Fn(AnswerItem) -> Value) -> Self {
        let mut answer = Self::default();
        for item in items {
            match item.kind {
                ItemKind::Text => answer.text += &item.text,
                ItemKind::Reasoning => answer.reasoning.push(item),
                ItemKind::Call => answer.calls.push(encode_call(item)),
                ItemKind::Other => {}
            }
        }
        answer
    }
}

/// Joins the text blocks.
fn joined(blocks: &[Block<'_>]) -> String {
    texts(blocks).collect::<Vec<_>>().join("\n")
}

/// Returns the text blocks.
fn texts<'a>(blocks: &'a [Block<'_>]) -> impl Iterator<Item = &'a str> {
    blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(&**text),
        Block::Picture { .. } => None,
    })
}

/// Returns a list, if it is not empty.
fn list(values: Vec<Value>) -> Option<Value> {
    (!values.is_empty()).then_some(Value::Array(values))
}

/// Returns a field that is text, or an empty string.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// Returns a count, or zero.
pub(super) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Returns the number that a text starts with.
fn leading_number(text: &str) -> Option<u32> {
    let digits = text.split(|char: char| !char.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// Returns the elements of a field that is a list, or none.
fn elements<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests;
