//! Splitting the output of a plugin into messages: JSON objects on one line or on several.
//! Anything else is noise.

use super::sanitize::sanitized;
use super::trace::{Trace, TraceEvent};
use crate::json::Shape;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// Maximum size of a message, in bytes.
pub(super) const LONGEST: usize = 16 << 20;

/// Maximum length of noise shown in messages, in characters.
const MAX_NOISE_CHARS: usize = 300;

/// Maximum length of a call id, in bytes.
const MAX_ID_BYTES: usize = 1_000;

/// A message of which only the call id is read, because the rest is too costly.
#[derive(Deserialize)]
struct CallIdOnly<'a> {
    #[serde(borrow)]
    call_id: Option<&'a RawValue>,
}

/// A piece of a plugin's output.
#[derive(Debug, PartialEq)]
pub(super) enum Arrived {
    /// A complete message.
    Message(Map<String, Value>),
    /// The start of a line that is not a message.
    Noise(String),
    /// A message that is too costly to parse.
    Refused {
        /// Id of the call it is about, if given.
        call_id: Option<String>,
        /// The limit that it exceeds.
        why: &'static str,
    },
    /// A line or message that is too long. Nothing after it can be trusted.
    TooLong,
}

/// Form in which a message was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum MessageForm {
    /// As valid JSON on one line.
    #[default]
    Line,
    /// On several lines.
    Lines,
    /// As a list of tools without an object around it.
    List,
    /// With invalid characters, which the host replaced.
    Repaired,
}

pub(super) struct Messages<R> {
    reader: R,
    line: Vec<u8>,
    assembler: Assembler,
    trace: Trace,
}

/// Assembles messages from lines.
#[derive(Debug, Default)]
struct Assembler {
    /// Lines of an incomplete message.
    begun: Vec<u8>,
    /// Open brackets and strings of the incomplete message.
    shape: Shape,
    /// Form of the last message.
    form: MessageForm,
}

impl<R: AsyncBufRead + Unpin> Messages<R> {
    pub(super) fn new(reader: R, trace: Trace) -> Self {
        Self {
            reader,
            line: Vec::new(),
            assembler: Assembler::default(),
            trace,
        }
    }

    /// Returns the next piece; `None` at the end. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Arrived> {
        loop {
            match self.read_line().await {
                Line::End => return None,
                Line::TooLong => {
                    self.trace.emit(|| TraceEvent::TooMuchOutput);
                    return Some(Arrived::TooLong);
                }
                Line::Whole => {}
            }
            // Gives the buffer away: most lines are short, and a long one should not keep
            // its memory.
            let line = std::mem::take(&mut self.line);
            self.trace.emit(|| TraceEvent::Received(&line));
            if let Some(arrived) = self.assembler.take(line) {
                self.trace.arrived(&arrived, self.assembler.form);
                return Some(arrived);
            }
        }
    }

    /// Returns the reader, unless a message is incomplete.
    pub(super) fn at_rest(&self) -> Option<&R> {
        let is_whole = self.line.is_empty() && self.assembler.begun.is_empty();
        is_whole.then_some(&self.reader)
    }

    async fn read_line(&mut self) -> Line {
        loop {
            let (used, is_whole) = match self.reader.fill_buf().await {
                Ok([]) | Err(_) if self.line.is_empty() => return Line::End,
                Ok([]) | Err(_) => return Line::Whole,
                Ok(buffer) => match memchr::memchr(b'\n', buffer) {
                    Some(end) => {
                        self.line
                            .extend_from_slice(buffer.get(..end).unwrap_or_default());
                        (end + 1, true)
                    }
                    None => {
                        self.line.extend_from_slice(buffer);
                        (buffer.len(), false)
                    }
                },
            };
            self.reader.consume(used);
            if self.line.len() > LONGEST {
                return Line::TooLong;
            }
            if is_whole {
                return Line::Whole;
            }
            self.trace.emit(|| TraceEvent::Unfinished);
        }
    }
}

impl Assembler {
    /// Adds a line. Returns `None` while a message is incomplete.
    fn take(&mut self, line: Vec<u8>) -> Option<Arrived> {
        let line = trimmed(line);
        if line.is_empty() {
            return None;
        }
        if self.begun.is_empty() {
            return self.first(line);
        }
        if let Some(message) = self.standalone(&line) {
            self.begun = Vec::new();
            return Some(Arrived::Message(message));
        }
        self.begun.push(b'\n');
        self.begun.extend_from_slice(&line);
        self.shape.read(b"\n");
        self.shape.read(&line);
        drop(line);
        if self.begun.len() > LONGEST {
            return Some(Arrived::TooLong);
        }
        // Parses only complete messages: parsing again at every line would take quadratic
        // time.
        if self.shape.is_open() {
            return None;
        }
        let whole = std::mem::take(&mut self.begun);
        let arrived = self.whole(whole);
        self.form = MessageForm::Lines;
        Some(arrived)
    }

    /// Handles a line while no message is incomplete.
    fn first(&mut self, line: Vec<u8>) -> Option<Arrived> {
        if !line.starts_with(b"{") && !begins_list(&line) {
            return Some(Arrived::Noise(shown(&line)));
        }
        self.shape = Shape::of(&line);
        if self.shape.is_open() && self.shape.excess().is_none() && is_beginning(&line) {
            self.begun = line;
            return None;
        }
        Some(self.whole(line))
    }

    /// Returns the message that a line inside another message is by itself. A plugin
    /// message is never inside another one, so the incomplete text was not a message. Only
    /// tools in a list may be inside.
    fn standalone(&mut self, line: &[u8]) -> Option<Map<String, Value>> {
        if !line.starts_with(b"{") || !line.ends_with(b"}") {
            return None;
        }
        let shape = Shape::of(line);
        if shape.is_open() || shape.excess().is_some() {
            return None;
        }
        self.form = MessageForm::Line;
        let object = serde_json::from_slice(line).ok().or_else(|| {
            self.form = MessageForm::Repaired;
            serde_json::from_str(&sanitized(line)?).ok()
        })?;
        let is_listed = || {
            self.shape.is_in_list()
                && (begins_list(&self.begun)
                    || memchr::memmem::find(&self.begun, b"\"tools\"").is_some())
        };
        (is_message(&object) || is_definition(&object) && !is_listed()).then_some(object)
    }

    fn whole(&mut self, text: Vec<u8>) -> Arrived {
        if let Some(why) = self.shape.excess() {
            return match serde_json::from_slice::<CallIdOnly>(&text) {
                Ok(CallIdOnly { call_id }) => {
                    let call_id = call_id.and_then(|id| serde_json::from_str(id.get()).ok());
                    let is_id = |id: &String| !id.is_empty() && id.len() <= MAX_ID_BYTES;
                    let call_id = call_id.filter(is_id);
                    Arrived::Refused { call_id, why }
                }
                // The text may be a message, and a call may wait for it.
                Err(_) if self.shape.is_too_deep() => Arrived::Refused { call_id: None, why },
                Err(_) => Arrived::Noise(shown(&text)),
            };
        }
        self.form = match begins_list(&text) {
            true => MessageForm::List,
            false => MessageForm::Line,
        };
        if let Some(message) = read(&text) {
            return Arrived::Message(message);
        }
        let shown = shown(&text);
        let sanitized = sanitized(&text);
        self.form = MessageForm::Repaired;
        // Frees the text, so that it is in memory at most twice.
        drop(text);
        match sanitized.and_then(|text| read(text.as_bytes())) {
            Some(message) => Arrived::Message(message),
            None => Arrived::Noise(shown),
        }
    }
}

enum Line {
    Whole,
    TooLong,
    End,
}

/// Whether a text starts like a list of objects. Many log lines start with a bracket.
fn begins_list(text: &[u8]) -> bool {
    let inside = text.strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    inside.is_some_and(|inside| inside.is_empty() || inside.starts_with(b"{"))
}

/// Parses a text as a message: an object, or a list of tools.
fn read(text: &[u8]) -> Option<Map<String, Value>> {
    if !begins_list(text) {
        return serde_json::from_slice(text).ok();
    }
    let tools: Vec<Map<String, Value>> = serde_json::from_slice(text).ok()?;
    let is_named = |tool: &Map<String, Value>| tool.get("name").is_some_and(Value::is_string);
    if tools.is_empty() || !tools.iter().all(is_named) {
        return None;
    }
    let tools: Vec<Value> = tools.into_iter().map(Value::Object).collect();
    Some(Map::from_iter([("tools".to_owned(), tools.into())]))
}

/// Whether an object is a complete plugin message. A schema may have properties of any
/// name, but those are objects.
fn is_message(object: &Map<String, Value>) -> bool {
    let kind = object
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let has = |name: &str| object.get(name).is_some_and(|value| !value.is_object());
    has("content")
        || has("tools")
        || ["init", "result", "update", "host_call", "invalid"].contains(&kind)
}

/// Whether an object could be a tool definition.
fn is_definition(object: &Map<String, Value>) -> bool {
    object.contains_key("parameters")
}

/// Whether a text could be the start of an object.
fn is_beginning(text: &[u8]) -> bool {
    let sanitized = sanitized(text);
    let text = sanitized.as_ref().map_or(text, String::as_bytes);
    // Discards the values, because the text may be long.
    let parsed = serde_json::from_slice::<IgnoredAny>(text);
    parsed.is_err_and(|error| error.is_eof())
}

fn trimmed(mut line: Vec<u8>) -> Vec<u8> {
    line.truncate(line.trim_ascii_end().len());
    let blank = line.len() - line.trim_ascii_start().len();
    line.drain(..blank);
    line
}

/// Returns the start of a line, safe to show.
fn shown(line: &[u8]) -> String {
    let text =
        String::from_utf8_lossy(line.get(..MAX_NOISE_CHARS * 4).unwrap_or(line)).into_owned();
    let shown = text.chars().filter(|c| !c.is_control());
    shown.take(MAX_NOISE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    async fn all(text: &[u8]) -> Vec<Arrived> {
        let mut messages = Messages::new(text, Trace::default());
        let mut all = Vec::new();
        while let Some(arrived) = messages.next().await {
            all.push(arrived);
        }
        all
    }

    fn message(value: Value) -> Arrived {
        match value {
            Value::Object(object) => Arrived::Message(object),
            other => panic!("{other}"),
        }
    }

    #[tokio::test]
    async fn messages_are_found_on_one_or_several_lines_among_noise() {
        let text = b"Starting up...\n\n{\"name\":\"a\"}\r\n{\n  \"content\": [\n    {\"type\": \"text\", \"text\": \"x\"}\n  ],\n  \"error\": false\n}\n42\n{\"tools\":[]}";
        assert_eq!(
            all(text).await,
            [
                Arrived::Noise("Starting up...".into()),
                message(json!({ "name": "a" })),
                message(json!({ "content": [{ "type": "text", "text": "x" }], "error": false })),
                Arrived::Noise("42".into()),
                message(json!({ "tools": [] })),
            ]
        );
    }

    #[tokio::test]
    async fn a_false_start_of_a_message_hides_no_message() {
        let text = b"{oops\n{\"name\":\"a\"}\n{\"begun\":\n{\"content\":[]}\n{\"x\":]\n}\n";
        assert_eq!(
            all(text).await,
            [
                Arrived::Noise("{oops".into()),
                message(json!({ "name": "a" })),
                message(json!({ "content": [] })),
                Arrived::Noise("{\"x\":]".into()),
                Arrived::Noise("}".into()),
            ]
        );
    }

    #[tokio::test]
    async fn a_message_that_exceeds_a_limit_is_not_noise() {
        let text = format!("{{\"a\":{}{}}}\n", "[".repeat(5_000), "]".repeat(5_000));
        let refused = |call_id: Option<&str>, why| Arrived::Refused {
            call_id: call_id.map(str::to_owned),
            why,
        };
        let expected = refused(None, "more than 120 levels");
        assert_eq!(all(text.as_bytes()).await, [expected]);
        let many = "1,".repeat(160_000);
        let why = "more than 150,000 values";
        for (id, call_id) in [("\"7\"", Some("7")), ("8", None), ("[1,{\"a\":2}]", None)] {
            let text = format!("{{\"content\":[{many}1],\"call_id\":{id}}}\n");
            assert_eq!(all(text.as_bytes()).await, [refused(call_id, why)], "{id}");
        }
        // Text that is not JSON is noise, however many commas it has.
        let noise = all(format!("{{oops {many}}}\n").as_bytes()).await;
        assert!(matches!(noise.as_slice(), [Arrived::Noise(_)]));
        // In a string they are text.
        let text = json!({ "content": many.repeat(10) });
        assert_eq!(all(text.to_string().as_bytes()).await, [message(text)]);
    }

    #[tokio::test]
    async fn tools_in_a_list_may_be_on_separate_lines() {
        let tool = |name: &str| json!({ "name": name, "parameters": { "type": "object" } });
        let text = format!("{{\"tools\":[\n{},\n{}\n]}}\n", tool("a"), tool("b"));
        let expected = json!({ "tools": [tool("a"), tool("b")] });
        assert_eq!(all(text.as_bytes()).await, [message(expected)]);
        // An incomplete text that is not a list hides no message.
        let text = format!("{{\"log\":[\n{}\n", tool("a"));
        assert_eq!(all(text.as_bytes()).await, [message(tool("a"))]);
        // A property may have any name.
        let text = b"{\"name\":\"a\",\"parameters\":{\"properties\":\n{\"content\":{\"type\":\"string\"}}\n}}\n";
        let properties = json!({ "content": { "type": "string" } });
        let expected = json!({ "name": "a", "parameters": { "properties": properties } });
        assert_eq!(all(text).await, [message(expected)]);
    }

    #[tokio::test]
    async fn a_bare_list_of_tools_is_a_message_and_other_brackets_are_not() {
        let tool = |name: &str| json!({ "name": name, "parameters": { "type": "object" } });
        let expected = message(json!({ "tools": [tool("a"), tool("b")] }));
        let line = format!("[{},{}]\n", tool("a"), tool("b"));
        assert_eq!(all(line.as_bytes()).await, [expected]);
        let expected = message(json!({ "tools": [tool("a"), tool("b")] }));
        let lines = format!("[\n  {},\n  {}\n]\n", tool("a"), tool("b"));
        assert_eq!(all(lines.as_bytes()).await, [expected]);
        for noise in [
            "[INFO] started",
            "[1, 2]",
            "[]",
            "[{\"level\":1}]",
            "[ 10%] Building",
        ] {
            let line = format!("{noise}\n");
            assert_eq!(all(line.as_bytes()).await, [Arrived::Noise(noise.into())]);
        }
        // A lone bracket hides no answer.
        let answer = json!({ "content": [] });
        let lines = format!("[\n{answer}\n");
        assert_eq!(all(lines.as_bytes()).await, [message(answer)]);
    }

    #[tokio::test]
    async fn invalid_bytes_and_control_characters_are_repaired() {
        let text = b"{\"content\":\"a\tb\x01 \xff\"}\n";
        assert_eq!(
            all(text).await,
            [message(json!({ "content": "a\tb\u{1} \u{fffd}" }))]
        );
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_given_up() {
        let endless = vec![b'x'; LONGEST + 2];
        assert_eq!(all(&endless).await.first(), Some(&Arrived::TooLong));
    }
}
