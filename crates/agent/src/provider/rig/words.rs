//! What was said, in the words of a protocol: one message at a time.

use super::{Head, Speaker};
use crate::provider::Provider;
use crate::provider::lane::Grammar;
use crate::{Answer, Message, ModelError, Part, ToolResult, Trouble};
use bytes::Bytes;
use haft::{Content, Definition};
use rig_core::ProviderError;
use rig_core::completion::{CompletionRequest, ToolDefinition};
use rig_core::message::{
    AssistantContent, AssistantMessage, CallId, DocumentSourceKind, Image, ImageMediaType,
    Message as RigMessage, MimeType, Origin, ToolCall, ToolFunction, ToolName,
    ToolResult as RigResult, ToolResultContent, UserContent,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Stands where a request must have somebody ask.
const ASKED: &str = "-";
/// What is sent for a message with nothing in it.
const EMPTY: &str = "(empty message)";

/// What a provider wants to see again of an answer: the very words that it will be
/// sent, in its own protocol.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Native {
    provider: String,
    model: String,
    /// The calls in it. If they got other ids since, its words are no longer true.
    calls: Vec<String>,
    /// Elements of the conversation, or blocks of a turn.
    wire: Vec<Value>,
}

/// A request that asks nothing, to read an answer with.
pub(super) fn nothing() -> CompletionRequest {
    let mut request = CompletionRequest::new(ASKED);
    request.accept_unknown_finish_reasons = true;
    request
}

/// A request with nothing but these messages that counts: for their words.
fn carrying(messages: Vec<RigMessage>) -> CompletionRequest {
    let mut request = nothing();
    request.chat_history = messages;
    // Without tools, calls and results would be told as text.
    request.tools = tool_name("t")
        .map(|name| ToolDefinition::new(name, "", json!({ "type": "object" })))
        .into_iter()
        .collect();
    request
}

fn tool_name(name: &str) -> Option<ToolName> {
    ToolName::new(name).ok()
}

impl Speaker {
    /// A message as it is sent: elements, or blocks, with commas between them.
    pub(super) fn write(
        &self,
        message: &Message,
        before: Option<&Message>,
    ) -> Result<Bytes, ModelError> {
        let written = match message {
            Message::User { content, .. } => self.write_user(content),
            Message::Assistant(answer) => match self.native(answer) {
                Some(native) => return Ok(joined(&native.wire)),
                None => self.write_answer(assistant(answer)),
            },
            Message::Tool { results } => {
                let is_native = matches!(before, Some(Message::Assistant(answer))
                    if self.native(answer).is_some());
                self.write_results(results, is_native)
            }
        };
        written
            .map(|elements| joined(&elements))
            .map_err(|error| self.impossible(&error))
    }

    fn write_user(&self, content: &[Content]) -> Result<Vec<Box<RawValue>>, ProviderError> {
        let mut parts: Vec<UserContent> = content
            .iter()
            .map(|part| match part {
                Content::Text { text } => UserContent::text(text),
                Content::Image { data, media_type } => {
                    UserContent::Image(picture(data, media_type))
                }
                other => UserContent::text(other.in_words()),
            })
            .collect();
        let is_blank = |part: &UserContent| matches!(part, UserContent::Text(text) if text.text.trim().is_empty());
        if parts.iter().all(is_blank) {
            parts = vec![UserContent::text(EMPTY)];
        }
        let body = self.body(vec![RigMessage::User { content: parts }])?;
        self.elements(&body, |_| true)
    }

    fn write_results(
        &self,
        results: &[ToolResult],
        is_native: bool,
    ) -> Result<Vec<Box<RawValue>>, ProviderError> {
        let named = results.iter().filter_map(|result| {
            let name = tool_name(&result.tool).or_else(|| tool_name("unknown"))?;
            Some((result, name))
        });
        let mut calls = Vec::new();
        let mut content = Vec::new();
        for (result, name) in named {
            let call = CallId::from_wire(&result.call_id);
            let function = ToolFunction::new(name.clone(), json!({}));
            calls.push(AssistantContent::ToolCall(ToolCall::new(
                call.clone(),
                function,
            )));
            let parts = result.content.iter().map(|part| match part {
                Content::Text { text } => ToolResultContent::text(text),
                Content::Image { data, media_type } => {
                    ToolResultContent::Image(picture(data, media_type))
                }
                other => ToolResultContent::text(other.in_words()),
            });
            let mut parts: Vec<ToolResultContent> = parts.collect();
            if parts.is_empty() {
                parts.push(ToolResultContent::text(""));
            }
            content.push(UserContent::ToolResult(RigResult {
                call,
                name,
                content: parts,
                is_error: result.is_error,
            }));
        }
        if calls.is_empty() {
            return Ok(Vec::new());
        }
        // The ids of an answer that goes back verbatim are taken as they are; those
        // of another provider's are made fit, here as there.
        let origin = is_native.then(|| self.protocol().origin());
        let called = AssistantMessage::new(calls).with_origin(origin);
        let body = self.body(vec![
            RigMessage::user(ASKED),
            RigMessage::Assistant(called),
            RigMessage::User { content },
        ])?;
        let mut place = 0;
        self.elements(&body, |element| {
            place += 1;
            place > 1 && !element.is_answer()
        })
    }

    /// The words of an answer.
    fn write_answer(&self, answer: AssistantMessage) -> Result<Vec<Box<RawValue>>, ProviderError> {
        if answer.content.is_empty() {
            return Ok(Vec::new());
        }
        let body = self.body(vec![RigMessage::user(ASKED), RigMessage::Assistant(answer)])?;
        self.elements(&body, |element| element.is_answer())
    }

    /// What an answer's provider wants to see again, if this is it.
    fn native(&self, answer: &Answer) -> Option<Native> {
        let native = Native::deserialize(answer.native.as_ref()?).ok()?;
        let calls = answer.calls().map(|call| &call.id);
        let fits = native.provider == self.id.provider
            && native.model == self.id.model
            && native.calls.iter().eq(calls);
        fits.then_some(native)
    }

    /// What to keep of an answer, so that it can be sent back verbatim.
    pub(super) fn keep(
        &self,
        content: Vec<AssistantContent>,
        calls: Vec<String>,
    ) -> Result<Option<Value>, ProviderError> {
        let origin: Origin = self.protocol().origin();
        let answer = AssistantMessage::new(content).with_origin(origin);
        let wire = self.write_answer(answer)?;
        let wire = wire
            .iter()
            .map(|element| serde_json::from_str(element.get()));
        let wire: Vec<Value> = wire.collect::<Result<_, _>>().map_err(unreadable)?;
        if wire.is_empty() {
            return Ok(None);
        }
        let native = Native {
            provider: self.id.provider.clone(),
            model: self.id.model.clone(),
            calls,
            wire,
        };
        serde_json::to_value(native).map(Some).map_err(unreadable)
    }

    fn body(&self, messages: Vec<RigMessage>) -> Result<Vec<u8>, ProviderError> {
        self.protocol().body(carrying(messages))
    }

    /// The elements of a body's conversation that are wanted; of turns, their blocks.
    fn elements(
        &self,
        body: &[u8],
        mut wanted: impl FnMut(&Element) -> bool,
    ) -> Result<Vec<Box<RawValue>>, ProviderError> {
        let mut body: HashMap<String, &RawValue> =
            serde_json::from_slice(body).map_err(unreadable)?;
        let array = body.remove(self.shape.array).map_or("[]", RawValue::get);
        let elements: Vec<&RawValue> = serde_json::from_str(array).map_err(unreadable)?;
        let mut found = Vec::new();
        for raw in elements {
            let element: Element = serde_json::from_str(raw.get()).map_err(unreadable)?;
            if !wanted(&element) {
                continue;
            }
            match self.shape.grammar {
                Grammar::Turns => {
                    let turn: Turn = serde_json::from_str(raw.get()).map_err(unreadable)?;
                    found.extend(turn.content.into_iter().map(ToOwned::to_owned));
                }
                Grammar::Elements => found.push(element.tidied(raw).map_err(unreadable)?),
            }
        }
        Ok(found)
    }

    /// What stands before the conversation.
    pub(super) fn write_head(
        &self,
        system: &str,
        tools: &[Definition],
        max_output: Option<u64>,
    ) -> Result<Head, ModelError> {
        self.try_head(system, tools, max_output)
            .map_err(|error| self.impossible(&error))
    }

    fn try_head(
        &self,
        system: &str,
        tools: &[Definition],
        max_output: Option<u64>,
    ) -> Result<Head, ProviderError> {
        let mut request = nothing();
        request.max_tokens = max_output;
        if !system.trim().is_empty() {
            request.chat_history.insert(0, RigMessage::system(system));
        }
        for tool in tools {
            let name = ToolName::new(&tool.name).map_err(ProviderError::request)?;
            let parameters = tool.parameters.clone();
            let tool = ToolDefinition::new(name, &tool.description, parameters);
            request.tools.push(tool);
        }
        if self.shape.array == "input" {
            // Nothing of a conversation stays with the provider; reasoning comes back
            // encrypted, and is sent again.
            request.additional_params = Some(json!({ "store": false }));
        }
        // Ollama cuts a conversation to its own default, which is small, unless it is told.
        if let (Provider::Ollama, Some(window)) =
            (self.settings.provider, self.settings.context_window)
        {
            request.additional_params = Some(json!({ "num_ctx": window }));
        }
        let body = self.protocol().body(request)?;
        let mut object: Map<String, Value> = serde_json::from_slice(&body).map_err(unreadable)?;
        let asked = object.shift_remove(self.shape.array);
        let mut first = match asked {
            Some(Value::Array(asked)) => asked,
            _ => Vec::new(),
        };
        first.pop();
        first.iter_mut().for_each(flatten);
        object.retain(|_, value| !value.is_null());
        if self.shape.grammar == Grammar::Turns {
            for key in ["tools", "system"] {
                mark_last(object.get_mut(key));
            }
        }
        if let Some(Value::Array(tools)) = object.get_mut("tools") {
            for tool in tools.iter_mut().filter_map(Value::as_object_mut) {
                tool.retain(|_, value| !value.is_null());
            }
        }
        let mut text = Value::Object(object).to_string();
        text.pop();
        let mut array = format!(",\"{}\":[", self.shape.array);
        for element in first {
            array += &element.to_string();
            array.push(',');
        }
        Ok(Head {
            object: text.into(),
            array: array.into(),
        })
    }
}

/// Up to here the provider remembers what it was sent.
fn mark_last(list: Option<&mut Value>) {
    let last = list
        .and_then(Value::as_array_mut)
        .and_then(|list| list.last_mut());
    if let Some(Value::Object(last)) = last {
        last.insert("cache_control".to_owned(), json!({ "type": "ephemeral" }));
    }
}

/// A system prompt as plain text, which servers understand that know no parts.
fn flatten(message: &mut Value) {
    let text = match message.pointer("/content") {
        Some(Value::Array(parts)) => match parts.as_slice() {
            [part] => part.get("text").cloned(),
            _ => None,
        },
        _ => None,
    };
    if let (Some(text), Some(content)) = (text, message.get_mut("content")) {
        *content = text;
    }
}

fn unreadable(error: serde_json::Error) -> ProviderError {
    ProviderError::request(error)
}

/// What tells elements of a conversation apart.
#[derive(Deserialize)]
struct Element {
    role: Option<String>,
    r#type: Option<String>,
}

#[derive(Deserialize)]
struct Turn<'a> {
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
}

impl Element {
    /// Whether the model said it.
    fn is_answer(&self) -> bool {
        match (self.role.as_deref(), self.r#type.as_deref()) {
            (Some(role), _) => matches!(role, "assistant" | "model"),
            (None, Some(kind)) => !kind.ends_with("_output"),
            (None, None) => false,
        }
    }

    /// The element without the id that rig gives a text that has none: it counts
    /// messages, and here each is the first.
    fn tidied(&self, raw: &RawValue) -> Result<Box<RawValue>, serde_json::Error> {
        let is_message = self.r#type.as_deref() == Some("message") && self.is_answer();
        if !is_message || !raw.get().contains("\"msg_rig_") {
            return Ok(raw.to_owned());
        }
        let mut message: Map<String, Value> = serde_json::from_str(raw.get())?;
        let is_counted = |id: &Value| id.as_str().is_some_and(|id| id.starts_with("msg_rig_"));
        if message.get("id").is_some_and(is_counted) {
            message.shift_remove("id");
            message.shift_remove("status");
        }
        serde_json::value::to_raw_value(&message)
    }
}

fn joined<T: Serialize>(elements: &[T]) -> Bytes {
    let mut text = Vec::new();
    for element in elements {
        if !text.is_empty() {
            text.push(b',');
        }
        // Values are always written.
        let _ = serde_json::to_writer(&mut text, element);
    }
    text.into()
}

fn picture(data: &str, media_type: &str) -> Image {
    Image {
        data: DocumentSourceKind::Base64(data.to_owned()),
        media_type: ImageMediaType::from_mime_type(media_type),
        detail: None,
        native: None,
    }
}

/// An answer by its parts. Reasoning is only for who reasoned.
fn assistant(answer: &Answer) -> AssistantMessage {
    let parts = answer.parts.iter().filter_map(|part| match part {
        Part::Text { text } => (!text.trim().is_empty()).then(|| AssistantContent::text(text)),
        Part::Reasoning { .. } => None,
        Part::Call(call) => {
            let name = tool_name(&call.name).or_else(|| tool_name("unknown"))?;
            Some(AssistantContent::tool_call(
                &call.id,
                name,
                call.arguments.clone(),
            ))
        }
    });
    AssistantMessage::new(parts.collect())
}

impl Speaker {
    /// An answer that cannot be kept as it was.
    pub(super) fn unkept(&self, error: &ProviderError) -> ModelError {
        let what = format!("answered what cannot be sent back: {error}");
        self.blamed.error(Trouble::Malformed, &what)
    }
}
