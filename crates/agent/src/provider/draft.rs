//! An answer while it is streamed: its items in order, independent of the wire format.

use super::wire::{number, text};
use crate::{Chunk, ModelErrorKind, Part, ToolCall, Usage};
use haft::json;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::mem::take;

/// Names of fields that hold the arguments of a call as an object.
pub(super) const ARGUMENTS: [&str; 3] = ["input", "args", "arguments"];
const THINK: &str = "<think>";
const THINK_END: &str = "</think>";

/// A reason to reject an answer. The text follows the name of the provider.
#[derive(Debug)]
pub(super) struct Fault(pub(super) ModelErrorKind, pub(super) String);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    Text,
    Reasoning,
    Call,
    /// Something that only its provider understands.
    #[default]
    Other,
}

/// An item of an answer.
#[derive(Debug, Default)]
pub(super) struct AnswerItem {
    pub(super) kind: ItemKind,
    /// Number of the item on the wire, if it has one.
    pub(super) index: Option<u64>,
    /// Text so far; for a call, its arguments.
    pub(super) text: String,
    pub(super) id: String,
    pub(super) name: String,
    /// Arguments of a call that were not streamed. [`Draft::finish`] makes this an object,
    /// or text if they are not one.
    pub(super) arguments: Value,
    /// The item as its provider sent it, for later requests; `null` for another model's.
    pub(super) native: Value,
}

impl AnswerItem {
    /// Converts a part of another model's answer. Reasoning is dropped, since it only makes
    /// sense to the model that produced it.
    pub(super) fn foreign(part: &Part, id: impl FnOnce(&str) -> String) -> Option<Self> {
        let mut item = Self::default();
        match part {
            Part::Text { text } if !text.trim().is_empty() => {
                (item.kind, item.text) = (ItemKind::Text, text.clone());
            }
            Part::Text { .. } | Part::Reasoning { .. } => return None,
            Part::Call(call) => {
                (item.kind, item.id) = (ItemKind::Call, id(&call.id));
                (item.name, item.arguments) = (call.name.clone(), call.arguments.clone());
            }
        }
        Some(item)
    }

    /// Converts the item to what the rest of haft works with.
    pub(super) fn part(&self) -> Option<Part> {
        let text = self.text.clone();
        match self.kind {
            ItemKind::Text if !text.is_empty() => Some(Part::Text { text }),
            ItemKind::Reasoning if !text.is_empty() => Some(Part::Reasoning { text }),
            ItemKind::Call => Some(Part::Call(ToolCall {
                id: self.id.clone(),
                name: self.name.clone(),
                arguments: self.arguments.clone(),
            })),
            _ => None,
        }
    }
}

/// Converts the arguments of a call to an object, since most wires carry nothing else: text
/// is read like the runtime reads it, or else leniently.
pub(super) fn to_object(arguments: Value) -> Value {
    let Value::String(text) = arguments else {
        return arguments;
    };
    match haft::parse_arguments(&text) {
        Ok(Value::Object(object)) => Value::Object(object),
        _ => Value::Object(serde_json::from_str(&text).unwrap_or_default()),
    }
}

/// Returns an item as its provider sent it, with these fields replaced.
pub(super) fn with<const N: usize>(mut native: Value, fields: [(&str, Value); N]) -> Value {
    if !native.is_object() {
        native = Value::Object(Map::new());
    }
    for (name, value) in fields {
        native[name] = value;
    }
    native
}

/// The reason why the model stopped.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    /// The answer is complete, or waits for calls.
    Complete,
    /// The answer hit a length limit.
    Length,
    /// The model or its provider declined, with an explanation or an empty text.
    Refused(String),
    /// Another reason, by its name.
    Other(String),
}

/// An answer while it is streamed.
pub(super) struct Draft<'a> {
    pub(super) items: Vec<AnswerItem>,
    pub(super) usage: Usage,
    /// Set once the model has stopped.
    pub(super) stop: Option<StopReason>,
    /// Whether the rest of the stream can be ignored.
    pub(super) is_complete: bool,
    /// Start of the text, until it is clear whether it has a `<think>` block and where that ends.
    opening: Option<String>,
    show: &'a (dyn Fn(Chunk) + Send + Sync),
}

impl<'a> Draft<'a> {
    pub(super) fn new(show: &'a (dyn Fn(Chunk) + Send + Sync)) -> Self {
        Self {
            items: Vec::new(),
            usage: Usage::default(),
            stop: None,
            is_complete: false,
            opening: Some(String::new()),
            show,
        }
    }

    /// Finds the last item with a number.
    pub(super) fn find(&self, index: Option<u64>) -> Option<usize> {
        index?;
        self.items.iter().rposition(|item| item.index == index)
    }

    /// Finds the last item with a kind and a number, or begins one.
    pub(super) fn at(&mut self, kind: ItemKind, index: Option<u64>, native: Value) -> usize {
        let is_it = |item: &AnswerItem| item.kind == kind && item.index == index;
        let known = self.items.iter().rposition(is_it);
        known.unwrap_or_else(|| self.open(kind, index, native))
    }

    /// Begins an item and returns its position.
    pub(super) fn open(&mut self, kind: ItemKind, index: Option<u64>, native: Value) -> usize {
        if kind == ItemKind::Call {
            self.end_text();
        }
        self.items.push(AnswerItem {
            kind,
            index,
            native,
            ..AnswerItem::default()
        });
        self.items.len() - 1
    }

    /// Begins a call that was sent in one piece.
    /// `call` is the part of `native` that has its name and arguments.
    pub(super) fn add_call(&mut self, index: Option<u64>, id: &str, call: &Value, native: &Value) {
        let at = self.open(ItemKind::Call, index, native.clone());
        self.identify(at, id, text(call, "name"));
        let mut arguments = ARGUMENTS.iter().filter_map(|name| call.get(name));
        self.items[at].arguments = arguments.next().cloned().unwrap_or_default();
    }

    /// Sets the id and the name of a call, unless they are known already.
    pub(super) fn identify(&mut self, at: usize, id: &str, name: &str) {
        let item = &mut self.items[at];
        if item.id.is_empty() {
            id.clone_into(&mut item.id);
        }
        if item.name.is_empty() && !name.trim().is_empty() {
            name.clone_into(&mut item.name);
            (self.show)(Chunk::Call(name.to_owned()));
        }
    }

    /// Appends text to an item and shows it.
    pub(super) fn add(&mut self, at: usize, text: &str) {
        self.items[at].text.push_str(text);
        match self.items[at].kind {
            _ if text.is_empty() => {}
            ItemKind::Text => (self.show)(Chunk::Text(text.to_owned())),
            ItemKind::Reasoning => (self.show)(Chunk::Reasoning(text.to_owned())),
            ItemKind::Call | ItemKind::Other => {}
        }
    }

    /// Appends text to the last item if it has this kind, otherwise to a new one.
    pub(super) fn add_to_last(&mut self, kind: ItemKind, text: &str) {
        let at = match self.items.last() {
            _ if text.is_empty() => return,
            Some(last) if last.kind == kind => self.items.len() - 1,
            _ => self.open(kind, None, Value::Null),
        };
        self.add(at, text);
    }

    /// Appends text of a chat. A `<think>` block at its start becomes reasoning, which some
    /// servers send this way.
    pub(super) fn add_text(&mut self, text: &str) {
        let Some(mut opening) = self.opening.take() else {
            return self.add_to_last(ItemKind::Text, text);
        };
        opening.push_str(text);
        let (reasoning, text) = split_think_block(&opening);
        self.extend_reasoning(reasoning);
        match text {
            None | Some("") => self.opening = Some(opening),
            Some(text) => self.add_to_last(ItemKind::Text, text),
        }
    }

    /// Appends text that was held back, because something else follows it.
    pub(super) fn end_text(&mut self) {
        let opening = self.opening.take().unwrap_or_default();
        match opening.trim_start().strip_prefix(THINK) {
            None => self.add_to_last(ItemKind::Text, &opening),
            Some(block) if !block.contains(THINK_END) => self.extend_reasoning(block.trim()),
            Some(_) => {}
        }
    }

    /// Appends the part of a `<think>` block that is not in the last item yet.
    fn extend_reasoning(&mut self, reasoning: &str) {
        let known = match self.items.last() {
            Some(last) if last.kind == ItemKind::Reasoning => last.text.len(),
            _ => 0,
        };
        self.add_to_last(
            ItemKind::Reasoning,
            reasoning.get(known..).unwrap_or_default(),
        );
    }

    /// Reads usage in the form of `OpenAI`, which names the input and output counts, and the
    /// cost that some gateways report.
    pub(super) fn count(&mut self, usage: &Value, input: &str, output: &str) {
        if !usage.is_object() {
            return;
        }
        let details = &usage[format!("{input}_details")];
        let cached = [
            &details["cached_tokens"],
            &usage["num_cached_tokens"],       // Mistral
            &usage["prompt_cache_hit_tokens"], // DeepSeek
        ];
        let cost = &usage["cost"];
        let dollars = cost.as_f64().or_else(|| cost["total_cost"].as_f64());
        let ticks = || Some(usage["cost_in_usd_ticks"].as_f64()? / 1e10);
        self.usage = Usage {
            input: number(&usage[input]),
            output: number(&usage[output]),
            cache_read: cached.map(number).into_iter().max().unwrap_or(0),
            cache_write: number(&details["cache_write_tokens"]),
            reasoning: number(&usage[format!("{output}_details")]["reasoning_tokens"]),
            // A negative cost would raise the limit on costs.
            cost: dollars.or_else(ticks).filter(|cost| *cost >= 0.0),
        };
    }

    /// Measures the calls so far, to notice when they grow.
    pub(super) fn calls_size(&self) -> usize {
        let calls = self.items.iter().filter(|item| item.kind == ItemKind::Call);
        calls.map(|call| 1 + call.text.len()).sum()
    }

    /// Returns the items. Each call has a name, arguments and a unique id.
    pub(super) fn finish(&mut self) -> Result<Vec<AnswerItem>, Fault> {
        self.end_text();
        let mut items = take(&mut self.items);
        // A call without a name cannot be answered.
        items.retain(|item| item.kind != ItemKind::Call || !item.name.is_empty());
        let mut taken = HashSet::new();
        for item in items.iter_mut().filter(|item| item.kind == ItemKind::Call) {
            item.arguments = match item.arguments.take() {
                _ if !item.text.is_empty() => read_arguments(&item.text)?,
                Value::String(text) => read_arguments(&text)?,
                Value::Null => Value::Object(Map::new()),
                Value::Object(object) => Value::Object(object),
                other => Value::String(other.to_string()),
            };
            if item.id.trim().is_empty() {
                item.id = format!("call_{:016x}", fastrand::u64(..));
            }
            let first = item.id.clone();
            let mut count = 1;
            while !taken.insert(item.id.clone()) {
                count += 1;
                item.id = format!("{first}_{count}");
            }
        }
        Ok(items)
    }
}

/// Splits the start of a text into the reasoning of a `<think>` block and the text after it,
/// which is `None` as long as more of the tags may follow.
fn split_think_block(opening: &str) -> (&str, Option<&str>) {
    let start = opening.trim_start();
    let Some(block) = start.strip_prefix(THINK) else {
        return ("", (!THINK.starts_with(start)).then_some(opening));
    };
    if let Some((reasoning, text)) = block.split_once(THINK_END) {
        return (reasoning.trim(), Some(text.trim_start()));
    }
    let is_partial = |length: &usize| block.ends_with(THINK_END.split_at(*length).0);
    let partial = (0..THINK_END.len()).rev().find(is_partial).unwrap_or(0);
    (block.split_at(block.len() - partial).0.trim(), None)
}

/// Parses arguments strictly. What is not an object stays text, and the runtime repairs or
/// rejects it like text from any other caller.
fn read_arguments(text: &str) -> Result<Value, Fault> {
    if let Some(why) = json::excess(text.as_bytes()) {
        let what = format!("sent a call whose arguments have {why}");
        return Err(Fault(ModelErrorKind::Malformed, what));
    }
    Ok(match json::parse_strict(text.as_bytes()) {
        Ok(Value::Object(object)) => Value::Object(object),
        Ok(Value::Null) => Value::Object(Map::new()),
        // Some models encode twice.
        Ok(Value::String(inner)) if inner.trim_start().starts_with('{') => read_arguments(&inner)?,
        Err(_) if text.trim().is_empty() => Value::Object(Map::new()),
        _ => Value::String(text.to_owned()),
    })
}
