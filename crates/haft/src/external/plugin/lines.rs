//! What a plugin writes, message by message: one JSON object on a line, or on
//! several; whatever else it writes is noise, and told as such.

use super::mend::mended;
use super::whose::Whose;
use crate::json::Shape;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// No message is longer.
pub const LONGEST: usize = 16 << 20;

/// How much of a line that is no message is told.
const TOLD: usize = 300;

/// Something a plugin wrote.
#[derive(Debug, PartialEq)]
pub enum Arrived {
    /// A message.
    Message(Map<String, Value>),
    /// The beginning of a line that is no message.
    Noise(String),
    /// A message that is not read, because it would cost too much.
    Refused {
        /// Whose call it is about, if it says so.
        call_id: Option<String>,
        /// What it has too much of.
        why: &'static str,
    },
    /// A line or a message without end: nothing after it can be trusted.
    TooLong,
}

pub(super) struct Messages<R> {
    reader: R,
    line: Vec<u8>,
    assembler: Assembler,
}

/// Makes messages of lines.
#[derive(Debug, Default)]
pub struct Assembler {
    /// The lines of a message that goes on.
    begun: Vec<u8>,
    /// What of them is still open.
    shape: Shape,
}

impl<R: AsyncBufRead + Unpin> Messages<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            line: Vec::new(),
            assembler: Assembler::default(),
        }
    }

    /// The next one; nothing at the end. Whoever stops waiting loses nothing.
    pub(super) async fn next(&mut self) -> Option<Arrived> {
        loop {
            match self.read_line().await {
                Line::End => return None,
                Line::TooLong => return Some(Arrived::TooLong),
                Line::Whole => {}
            }
            // Its memory goes with it: most lines are short, and one was not.
            let line = std::mem::take(&mut self.line);
            if let Some(arrived) = self.assembler.take(line) {
                return Some(arrived);
            }
        }
    }

    /// Where they come from, while none of them is under way.
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
        }
    }
}

impl Assembler {
    /// What a line makes, with those before it; nothing while a message goes on.
    pub fn take(&mut self, line: Vec<u8>) -> Option<Arrived> {
        let line = trimmed(line);
        if line.is_empty() {
            return None;
        }
        if self.begun.is_empty() {
            return self.first(line);
        }
        if let Some(message) = self.alone(&line) {
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
        // Only what is whole is parsed: to try at every line would take for ever.
        if self.shape.is_open() {
            return None;
        }
        let whole = std::mem::take(&mut self.begun);
        Some(self.whole(whole))
    }

    /// A line while nothing is begun.
    fn first(&mut self, line: Vec<u8>) -> Option<Arrived> {
        if !line.starts_with(b"{") && !begins_list(&line) {
            return Some(Arrived::Noise(told(&line)));
        }
        self.shape = Shape::of(&line);
        if self.shape.is_open() && self.shape.excess().is_none() && is_beginning(&line) {
            self.begun = line;
            return None;
        }
        Some(self.whole(line))
    }

    /// A line inside a message may be an object itself. One of ours is not inside: then
    /// what was begun never was a message. Only the tools of a list are.
    fn alone(&self, line: &[u8]) -> Option<Map<String, Value>> {
        if !line.starts_with(b"{") || !line.ends_with(b"}") {
            return None;
        }
        let shape = Shape::of(line);
        if shape.is_open() || shape.excess().is_some() {
            return None;
        }
        let object = serde_json::from_slice(line).ok();
        let object = object.or_else(|| serde_json::from_str(&mended(line)?).ok())?;
        let is_listed = || {
            self.shape.is_in_list()
                && (begins_list(&self.begun)
                    || memchr::memmem::find(&self.begun, b"\"tools\"").is_some())
        };
        (is_ours(&object) || is_definition(&object) && !is_listed()).then_some(object)
    }

    fn whole(&self, text: Vec<u8>) -> Arrived {
        if let Some(why) = self.shape.excess() {
            return match serde_json::from_slice::<Whose>(&text) {
                Ok(Whose { call_id }) => Arrived::Refused { call_id, why },
                // Nothing says that it is noise, and somebody may wait for it.
                Err(_) if self.shape.is_too_deep() => Arrived::Refused { call_id: None, why },
                Err(_) => Arrived::Noise(told(&text)),
            };
        }
        if let Some(message) = read(&text) {
            return Arrived::Message(message);
        }
        let told = told(&text);
        let mended = mended(&text);
        // So that it is there twice at most.
        drop(text);
        match mended.and_then(|text| read(text.as_bytes())) {
            Some(message) => Arrived::Message(message),
            None => Arrived::Noise(told),
        }
    }
}

enum Line {
    Whole,
    TooLong,
    End,
}

/// Whether a text begins as a list of objects. Many lines of logs begin with a bracket.
fn begins_list(text: &[u8]) -> bool {
    let inside = text.strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    inside.is_some_and(|inside| inside.is_empty() || inside.starts_with(b"{"))
}

/// The message that a text is: an object, or a bare list of tools.
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

/// Whether an object is a message of a plugin, and no part of one: a schema may have a
/// property of any name, but that is an object.
fn is_ours(object: &Map<String, Value>) -> bool {
    let kind = object
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let has = |name: &str| object.get(name).is_some_and(|value| !value.is_object());
    has("content")
        || has("tools")
        || ["init", "result", "update", "host_call", "invalid"].contains(&kind)
}

/// Whether an object could be a tool.
fn is_definition(object: &Map<String, Value>) -> bool {
    object.contains_key("parameters")
}

/// Whether a text could become an object, with more of it.
fn is_beginning(text: &[u8]) -> bool {
    let mended = mended(text);
    let text = mended.as_ref().map_or(text, String::as_bytes);
    // Nothing of it is kept: it may be long.
    let parsed = serde_json::from_slice::<IgnoredAny>(text);
    parsed.is_err_and(|error| error.is_eof())
}

fn trimmed(mut line: Vec<u8>) -> Vec<u8> {
    line.truncate(line.trim_ascii_end().len());
    let blank = line.len() - line.trim_ascii_start().len();
    line.drain(..blank);
    line
}

/// The beginning of a line, harmless to show.
fn told(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line.get(..TOLD * 4).unwrap_or(line)).into_owned();
    let shown = text.chars().filter(|c| !c.is_control());
    shown.take(TOLD).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    async fn all(text: &[u8]) -> Vec<Arrived> {
        let mut messages = Messages::new(text);
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
    async fn messages_come_on_a_line_or_several_among_noise() {
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
    async fn what_only_looks_like_a_beginning_hides_nothing() {
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
    async fn a_message_too_deep_to_be_read_is_told_from_noise() {
        let text = format!("{{\"a\":{}{}}}\n", "[".repeat(5_000), "]".repeat(5_000));
        let refused = |call_id: Option<&str>, why| Arrived::Refused {
            call_id: call_id.map(str::to_owned),
            why,
        };
        let wanted = refused(None, "more than 120 levels");
        assert_eq!(all(text.as_bytes()).await, [wanted]);
        let many = "1,".repeat(160_000);
        let why = "more than 150,000 values";
        for (id, call_id) in [("\"7\"", Some("7")), ("8", None), ("[1,{\"a\":2}]", None)] {
            let text = format!("{{\"content\":[{many}1],\"call_id\":{id}}}\n");
            assert_eq!(all(text.as_bytes()).await, [refused(call_id, why)], "{id}");
        }
        // What is no JSON is noise, however many commas it has.
        let noise = all(format!("{{oops {many}}}\n").as_bytes()).await;
        assert!(matches!(noise.as_slice(), [Arrived::Noise(_)]));
        // In a string they are text.
        let text = json!({ "content": many.repeat(10) });
        assert_eq!(all(text.to_string().as_bytes()).await, [message(text)]);
    }

    #[tokio::test]
    async fn the_tools_of_a_list_may_have_a_line_each() {
        let tool = |name: &str| json!({ "name": name, "parameters": { "type": "object" } });
        let text = format!("{{\"tools\":[\n{},\n{}\n]}}\n", tool("a"), tool("b"));
        let wanted = json!({ "tools": [tool("a"), tool("b")] });
        assert_eq!(all(text.as_bytes()).await, [message(wanted)]);
        // Nothing that was begun and is no list hides one.
        let text = format!("{{\"log\":[\n{}\n", tool("a"));
        assert_eq!(all(text.as_bytes()).await, [message(tool("a"))]);
        // A property may have any name.
        let text = b"{\"name\":\"a\",\"parameters\":{\"properties\":\n{\"content\":{\"type\":\"string\"}}\n}}\n";
        let properties = json!({ "content": { "type": "string" } });
        let wanted = json!({ "name": "a", "parameters": { "properties": properties } });
        assert_eq!(all(text).await, [message(wanted)]);
    }

    #[tokio::test]
    async fn a_bare_list_of_tools_is_a_message_and_other_brackets_are_not() {
        let tool = |name: &str| json!({ "name": name, "parameters": { "type": "object" } });
        let wanted = message(json!({ "tools": [tool("a"), tool("b")] }));
        let line = format!("[{},{}]\n", tool("a"), tool("b"));
        assert_eq!(all(line.as_bytes()).await, [wanted]);
        let wanted = message(json!({ "tools": [tool("a"), tool("b")] }));
        let lines = format!("[\n  {},\n  {}\n]\n", tool("a"), tool("b"));
        assert_eq!(all(lines.as_bytes()).await, [wanted]);
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
        // A bracket alone hides no answer.
        let answer = json!({ "content": [] });
        let lines = format!("[\n{answer}\n");
        assert_eq!(all(lines.as_bytes()).await, [message(answer)]);
    }

    #[tokio::test]
    async fn bad_bytes_and_control_characters_are_read_as_they_were_meant() {
        let text = b"{\"content\":\"a\tb\x01 \xff\"}\n";
        assert_eq!(
            all(text).await,
            [message(json!({ "content": "a\tb\u{1} \u{fffd}" }))]
        );
    }

    #[tokio::test]
    async fn a_line_without_end_is_given_up() {
        let endless = vec![b'x'; LONGEST + 2];
        assert_eq!(all(&endless).await.first(), Some(&Arrived::TooLong));
    }
}
