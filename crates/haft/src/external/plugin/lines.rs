//! What a plugin writes, message by message: one JSON object on a line, or on
//! several; whatever else it writes is noise, and told as such.

use serde_json::{Map, Value};
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// No message is longer.
pub const LONGEST: usize = 16 << 20;

/// Nor has one more others inside each other than can be read.
pub(super) const DEEPEST: usize = 120;

/// How much of a line that is no message is told.
const TOLD: usize = 300;

/// Something a plugin wrote.
#[derive(Debug, PartialEq)]
pub enum Arrived {
    /// A message.
    Message(Map<String, Value>),
    /// The beginning of a line that is no message.
    Noise(String),
    /// A message with so many others inside each other that it is not read.
    TooDeep,
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

    /// The next one; nothing at the end.
    pub(super) async fn next(&mut self) -> Option<Arrived> {
        loop {
            match self.read_line().await {
                Line::End => return None,
                Line::TooLong => return Some(Arrived::TooLong),
                Line::Whole => {}
            }
            if let Some(arrived) = self.assembler.take(&self.line) {
                return Some(arrived);
            }
        }
    }

    async fn read_line(&mut self) -> Line {
        self.line.clear();
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
    pub fn take(&mut self, line: &[u8]) -> Option<Arrived> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return None;
        }
        if self.begun.is_empty() {
            return self.first(line.to_vec());
        }
        // A line inside a message may be an object itself. One of ours is not inside:
        // then what was begun never was a message.
        let alone = line.starts_with(b"{").then(|| object(line)).flatten();
        if let Some(message) = alone.filter(is_ours) {
            self.begun.clear();
            return Some(Arrived::Message(message));
        }
        self.begun.push(b'\n');
        self.begun.extend_from_slice(line);
        self.shape.read(b"\n");
        self.shape.read(line);
        if self.begun.len() > LONGEST {
            return Some(Arrived::TooLong);
        }
        // Only what is whole is parsed: to try at every line would take for ever.
        if self.shape.is_open() {
            return None;
        }
        let whole = std::mem::take(&mut self.begun);
        Some(self.whole(&whole))
    }

    /// A line while nothing is begun.
    fn first(&mut self, line: Vec<u8>) -> Option<Arrived> {
        if !line.starts_with(b"{") {
            return Some(Arrived::Noise(told(&line)));
        }
        self.shape = Shape::default();
        self.shape.read(&line);
        if self.shape.is_open() && is_beginning(&line) {
            self.begun = line;
            return None;
        }
        Some(self.whole(&line))
    }

    fn whole(&self, text: &[u8]) -> Arrived {
        match object(text) {
            Some(message) => Arrived::Message(message),
            None if self.shape.deepest > DEEPEST => Arrived::TooDeep,
            None => Arrived::Noise(told(text)),
        }
    }
}

/// How far a text in JSON is from its end.
#[derive(Debug, Default)]
pub(super) struct Shape {
    depth: usize,
    deepest: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Shape {
    fn read(&mut self, text: &[u8]) {
        for byte in text {
            if self.in_string {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => {
                    self.depth += 1;
                    self.deepest = self.deepest.max(self.depth);
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn is_open(&self) -> bool {
        self.in_string || self.depth > 0
    }
}

enum Line {
    Whole,
    TooLong,
    End,
}

/// Whether an object is a message of a plugin, and no part of one.
fn is_ours(object: &Map<String, Value>) -> bool {
    let kind = object
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    object.contains_key("content")
        || object.contains_key("tools")
        || object.contains_key("parameters")
        || ["init", "result", "update", "host_call", "invalid"].contains(&kind)
}

/// The object that a text is. What is no text is replaced, and a control character
/// inside a string, which is not allowed there, is read as it was meant.
fn object(text: &[u8]) -> Option<Map<String, Value>> {
    let text = String::from_utf8_lossy(text);
    if let Ok(object) = serde_json::from_str(&text) {
        return Some(object);
    }
    serde_json::from_str(&mended(&text)?).ok()
}

/// Whether a text could become an object, with more of it.
fn is_beginning(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let text = mended(&text).unwrap_or_else(|| text.into_owned());
    let parsed = serde_json::from_str::<Map<String, Value>>(&text);
    parsed.is_err_and(|error| error.is_eof())
}

/// The text with the control characters in its strings escaped, if it has any.
fn mended(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let (mut in_string, mut escaped, mut is_changed) = (false, false, false);
    for c in text.chars() {
        if in_string && c.is_control() && (c as u32) < 0x20 {
            out.push_str(&format!("\\u{:04x}", c as u32));
            is_changed = true;
            escaped = false;
            continue;
        }
        match c {
            '"' if !escaped => in_string = !in_string,
            _ => {}
        }
        escaped = in_string && c == '\\' && !escaped;
        out.push(c);
    }
    is_changed.then_some(out)
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
        assert_eq!(all(text.as_bytes()).await, [Arrived::TooDeep]);
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
