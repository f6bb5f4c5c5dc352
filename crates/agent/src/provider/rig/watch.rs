//! What is looked at before rig reads it, and what it does not tell of what it read:
//! answers that would cost too much, calls that come after the end of an answer, and
//! objects with a name that stands twice, of which rig keeps the last one.

use crate::provider::Provider;
use crate::provider::failure::cut;
use haft::json::{self, Shape};
use rig_core::message::AssistantContent;
use rig_core::streaming::StreamEvent;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// Under these names the providers send arguments, or pieces of their text.
const NAMES: [&str; 4] = ["arguments", "args", "input", "partial_json"];

/// So many arguments with a name that stands twice are no slip.
const MOST_REPEATED: usize = 100;

/// Watches the frames of one answer.
#[derive(Debug)]
pub(super) struct Watch {
    provider: Provider,
    /// The model has said that it is done.
    is_over: bool,
    /// Arguments as rig reads them, and as they were written.
    repeated: Vec<(Map<String, Value>, String)>,
}

impl Watch {
    pub(super) fn new(provider: Provider) -> Self {
        Self {
            provider,
            is_over: false,
            repeated: Vec::new(),
        }
    }

    /// Looks at the next frame, and says what is wrong with it.
    pub(super) fn look(&mut self, frame: &str) -> Result<(), String> {
        if let Some(why) = json::excess(frame.as_bytes()) {
            return Err(format!("sent a message with {why}"));
        }
        let mut found = Found::default();
        let mut json = serde_json::Deserializer::from_str(frame);
        // What is no JSON is for rig to refuse.
        if Find(&mut found).deserialize(&mut json).is_ok() {
            if let Some(name) = found.repeated {
                let name = cut(&name);
                return Err(format!("sent a message with the name {name:?} given twice"));
            }
            for arguments in found.arguments {
                self.arguments(arguments.get())?;
            }
        }
        self.end(frame)
    }

    /// A frame as rig is to read it. For rig an answer of Google's is over with any reason
    /// it does not know, and what follows is not read; one that is not set is none.
    pub(super) fn plain(&self, frame: String) -> String {
        if self.provider != Provider::Google || !frame.contains("finishReason") {
            return frame;
        }
        let Ok(mut value) = serde_json::from_str::<Value>(&frame) else {
            return frame;
        };
        let candidate = value.pointer_mut("/candidates/0");
        let Some(candidate) = candidate.and_then(Value::as_object_mut) else {
            return frame;
        };
        if !candidate.get("finishReason").is_some_and(is_unset) {
            return frame;
        }
        candidate.remove("finishReason");
        value.to_string()
    }

    /// Looks at arguments, or at a piece of them.
    fn arguments(&mut self, written: &str) -> Result<(), String> {
        let decoded = match written.starts_with('"') {
            true => serde_json::from_str::<String>(written).unwrap_or_default(),
            false => String::new(),
        };
        let text = match written.starts_with('"') {
            true => decoded.trim(),
            false => written,
        };
        if let Some(why) = excess(text) {
            return Err(format!("sent a call whose arguments have {why}"));
        }
        if let Some(map) = object(text)
            && haft::parse_arguments(text).is_err()
        {
            if self.repeated.len() >= MOST_REPEATED {
                return Err("sent too many calls with a name that is given twice".to_owned());
            }
            self.repeated.push((map, text.to_owned()));
        }
        Ok(())
    }

    /// What a model calls after it said that it is done is not part of its answer.
    fn end(&mut self, frame: &str) -> Result<(), String> {
        let Ok(frame) = serde_json::from_str::<Value>(frame) else {
            return Ok(());
        };
        let (calls, ends) = match self.provider {
            Provider::Google => google(&frame)?,
            Provider::Ollama => (
                is_filled(frame.pointer("/message/tool_calls")),
                frame.get("done") == Some(&Value::Bool(true))
                    || is_filled(frame.get("done_reason")),
            ),
            Provider::OpenaiCompletions => (
                is_filled(frame.pointer("/choices/0/delta/tool_calls")),
                is_filled(frame.pointer("/choices/0/finish_reason")),
            ),
            Provider::Anthropic => (
                frame.pointer("/content_block/type") == Some(&"tool_use".into()),
                is_filled(frame.pointer("/delta/stop_reason")),
            ),
            // Its last event has all of the answer in it.
            Provider::OpenaiResponses => (false, false),
        };
        if calls && self.is_over {
            return Err("sent a call after it had said that its answer is over".to_owned());
        }
        self.is_over |= ends;
        Ok(())
    }

    /// The text of arguments in which a name stands twice.
    pub(super) fn repeated(&self, arguments: &Map<String, Value>) -> Option<&str> {
        let found = self.repeated.iter().find(|(map, _)| map == arguments);
        found.map(|(_, text)| text.as_str())
    }
}

/// Whether a frame of Google's has a call in it, and whether it ends the answer.
fn google(frame: &Value) -> Result<(bool, bool), String> {
    let Some(candidate) = frame.pointer("/candidates/0") else {
        return Ok((false, false));
    };
    let parts = candidate
        .pointer("/content/parts")
        .and_then(Value::as_array);
    let calls =
        parts.is_some_and(|parts| parts.iter().any(|part| part.get("functionCall").is_some()));
    // Only one is asked for.
    let is_other = candidate
        .get("index")
        .is_some_and(|index| !index.is_null() && index.as_f64() != Some(0.0));
    if calls && is_other {
        return Err("sent a call in a second answer that nobody asked for".to_owned());
    }
    let reason = candidate.get("finishReason");
    Ok((calls, is_filled(reason) && !reason.is_some_and(is_unset)))
}

/// Whether a reason of Google's to end is what stands for none.
fn is_unset(reason: &Value) -> bool {
    reason == "FINISH_REASON_UNSPECIFIED" || reason == "" || reason.as_f64() == Some(0.0)
}

fn is_filled(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null | Value::Bool(_)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        Some(Value::Number(_) | Value::Object(_)) => true,
    }
}

/// What is too much about the text of arguments. Of a piece from the middle nobody
/// knows whether it begins inside a string.
fn excess(text: &str) -> Option<&'static str> {
    let is_beginning = text.starts_with(['{', '[', '"']);
    let within = || {
        let mut shape = Shape::in_string();
        shape.read(text.as_bytes());
        shape.excess()
    };
    let outside = json::excess(text.as_bytes());
    outside.or_else(|| if is_beginning { None } else { within() })
}

/// The object that a text is, as rig reads it.
fn object(text: &str) -> Option<Map<String, Value>> {
    match serde_json::from_str(text).ok()? {
        Value::Object(map) => Some(map),
        Value::String(inner) if json::excess(inner.as_bytes()).is_none() => {
            serde_json::from_str(&inner).ok()
        }
        _ => None,
    }
}

/// What is found in a frame.
#[derive(Default)]
struct Found<'de> {
    /// What stands under the names of arguments, wherever that is.
    arguments: Vec<&'de RawValue>,
    /// A name that stands twice in one object, outside of arguments.
    repeated: Option<String>,
}

/// Looks through a frame.
struct Find<'f, 'de>(&'f mut Found<'de>);

impl<'de> DeserializeSeed<'de> for Find<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Find<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Find(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = entries.next_key::<String>()? {
            if NAMES.contains(&name.as_str()) {
                self.0.arguments.push(entries.next_value()?);
            } else {
                entries.next_value_seed(Find(self.0))?;
            }
            if let Some(name) = names.replace(name) {
                self.0.repeated = Some(name);
            }
        }
        Ok(())
    }
}

/// The text of arguments as it comes, piece by piece.
#[derive(Debug, Default)]
pub(super) struct Written {
    open: HashMap<usize, (Shape, String)>,
    /// Of calls that rig could read and that are wrong nevertheless, by their ids.
    wrong: HashMap<String, String>,
}

impl Written {
    /// Takes in an event, and says what is wrong with it.
    pub(super) fn hear(&mut self, event: &StreamEvent) -> Result<(), String> {
        match event {
            StreamEvent::Arguments { part, json } => {
                let (shape, text) = self.open.entry(part.index()).or_default();
                shape.read(json.as_bytes());
                if let Some(why) = shape.excess() {
                    return Err(format!("sent a call whose arguments have {why}"));
                }
                text.push_str(json);
            }
            StreamEvent::End { part, content } => {
                let Some((_, text)) = self.open.remove(&part.index()) else {
                    return Ok(());
                };
                if let AssistantContent::ToolCall(call) = content
                    && haft::parse_arguments(&text).is_err()
                {
                    self.wrong.insert(call.id.wire().into_owned(), text);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The text of a call's arguments, where rig read something that they do not say.
    pub(super) fn wrong(&self, id: &str) -> Option<&str> {
        self.wrong.get(id).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn look(provider: Provider, frames: &[Value]) -> Result<(), String> {
        let mut watch = Watch::new(provider);
        frames
            .iter()
            .try_for_each(|frame| watch.look(&frame.to_string()))
    }

    #[test]
    fn what_would_cost_too_much_is_refused_before_it_is_read() {
        let many = "1,".repeat(160_000);
        let deep = "[".repeat(200);
        for text in [format!("{{\"a\":[{many}"), deep, format!("1],{many}")] {
            for name in NAMES {
                let frame = json!({ "x": [{ name: text }] });
                assert!(look(Provider::Ollama, &[frame]).is_err(), "{name}");
            }
        }
        let frame = json!({ "message": { "content": many } });
        assert_eq!(look(Provider::Ollama, &[frame]), Ok(()));
        let content = json!({ "path": "a", "content": many }).to_string();
        let frame = json!({ "arguments": content });
        assert_eq!(look(Provider::Ollama, &[frame]), Ok(()));
        let mut watch = Watch::new(Provider::Google);
        let text = format!("{{\"candidates\":[{many}1]}}");
        assert!(watch.look(&text).is_err());
    }

    #[test]
    fn a_name_that_stands_twice_is_found_wherever_it_is() {
        let twice = r#"{"path":"a","path":"b"}"#;
        let quoted = Value::from(twice).to_string();
        for frame in [
            format!(
                r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"args":{twice}}}}}]}}}}]}}"#
            ),
            format!(r#"{{"message":{{"tool_calls":[{{"function":{{"arguments":{twice}}}}}]}}}}"#),
            format!(r#"{{"message":{{"tool_calls":[{{"function":{{"arguments":{quoted}}}}}]}}}}"#),
            format!(r#"{{"content_block":{{"type":"tool_use","input":{twice}}}}}"#),
        ] {
            let mut watch = Watch::new(Provider::Google);
            assert_eq!(watch.look(&frame), Ok(()));
            let read = object(twice).expect("an object");
            assert_eq!(watch.repeated(&read), Some(twice), "{frame}");
        }
        let mut watch = Watch::new(Provider::Google);
        assert_eq!(watch.look(r#"{"args":{"path":"a"}}"#), Ok(()));
        assert!(watch.repeated.is_empty());
    }

    #[test]
    fn a_frame_with_a_name_twice_is_refused() {
        let call = |path: &str| {
            format!(
                r#"{{"tool_calls":[{{"function":{{"name":"read","arguments":{{"path":"{path}"}}}}}}]}}"#
            )
        };
        for frame in [
            format!(r#"{{"message":{},"message":{}}}"#, call("a"), call("b")),
            format!(
                r#"{{"message":{},"mess\u0061ge":{}}}"#,
                call("a"),
                call("b")
            ),
            r#"{"function":{"name":"read","arguments":{"path":"a"},"arguments":{"path":"b"}}}"#
                .into(),
            r#"{"function":{"name":"read","name":"bash","arguments":{}}}"#.into(),
            r#"{"candidates":[],"candidates":[]}"#.into(),
            r#"[{"a":[{"b":1,"c":2,"b":3}]}]"#.into(),
            r#"{"type":"content_block_delta","delta":{"partial_json":"{","partial_json":"["}}"#
                .into(),
        ] {
            for provider in Provider::ALL {
                let said = Watch::new(provider).look(&frame).unwrap_err();
                assert!(said.ends_with("given twice"), "{said}");
            }
        }
        // In different objects it may be the same.
        let frame = format!(
            r#"[{},{{"message":{},"a":{{"a":1}}}}]"#,
            call("a"),
            call("b")
        );
        assert_eq!(Watch::new(Provider::Ollama).look(&frame), Ok(()));
    }

    #[test]
    fn a_call_after_the_end_is_refused() {
        let google = |index: Value, call: bool, reason: Value| {
            let part = match call {
                true => json!({ "functionCall": { "name": "read", "args": {} } }),
                false => json!({ "text": "x" }),
            };
            json!({ "candidates": [{ "index": index, "content": { "parts": [part] }, "finishReason": reason }] })
        };
        let (none, stop) = (Value::Null, json!("STOP"));
        let call = google(json!(0), true, stop.clone());
        assert_eq!(look(Provider::Google, std::slice::from_ref(&call)), Ok(()));
        for end in [stop.clone(), json!("MAX_TOKENS"), json!(1)] {
            let end = google(none.clone(), false, end);
            assert!(look(Provider::Google, &[end, call.clone()]).is_err());
        }
        let unset = google(none.clone(), false, json!("FINISH_REASON_UNSPECIFIED"));
        assert_eq!(look(Provider::Google, &[unset, call]), Ok(()));
        for index in [json!(1), json!("1")] {
            assert!(look(Provider::Google, &[google(index, true, none.clone())]).is_err());
        }
        let ollama = |done: Value, reason: Value, calls: Value| json!({ "message": { "content": "", "tool_calls": calls }, "done": done, "done_reason": reason });
        let call = ollama(
            json!(false),
            none.clone(),
            json!([{ "function": { "name": "read" } }]),
        );
        for end in [
            ollama(json!(true), none.clone(), none.clone()),
            ollama(json!(false), json!("stop"), none.clone()),
        ] {
            assert_eq!(look(Provider::Ollama, &[call.clone(), end.clone()]), Ok(()));
            assert!(look(Provider::Ollama, &[end, call.clone()]).is_err());
        }
    }
}
