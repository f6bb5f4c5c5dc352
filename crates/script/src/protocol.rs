//! The line protocol: reading lines of limited length, messages from haft, and answers.

use std::borrow::Cow;
use std::io::{self, BufRead};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum length of a line that is read or written, in bytes.
pub const MAX_LINE: usize = 16 << 20;

/// A line that was read.
pub(crate) enum InputLine {
    Text(Vec<u8>),
    TooLong,
    End,
}

/// Reads one line. A line that is too long is skipped.
pub(crate) fn read_line(input: &mut impl BufRead) -> io::Result<InputLine> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let buffer = match input.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if buffer.is_empty() {
            return Ok(match (too_long, line.is_empty()) {
                (true, _) => InputLine::TooLong,
                (false, true) => InputLine::End,
                (false, false) => InputLine::Text(line),
            });
        }
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let part = buffer
            .get(..end.unwrap_or(buffer.len()))
            .unwrap_or_default();
        if too_long || line.len() + part.len() > MAX_LINE {
            too_long = true;
            line = Vec::new();
        } else {
            line.extend_from_slice(part);
        }
        let read = end.map_or(buffer.len(), |end| end + 1);
        input.consume(read);
        if end.is_some() {
            return Ok(if too_long {
                InputLine::TooLong
            } else {
                InputLine::Text(line)
            });
        }
    }
}

/// Messages from haft after the first line.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum HostMessage {
    Describe,
    Call {
        name: String,
        #[serde(default)]
        call_id: Value,
        #[serde(default)]
        params: Value,
    },
    Cancel {
        #[serde(default)]
        call_id: Value,
    },
    HostResult {
        id: u64,
        #[serde(default)]
        content: Vec<Value>,
        #[serde(default, alias = "is_error")]
        error: bool,
    },
}

/// A block of a result.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        data: String,
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
}

impl<'a> Block<'a> {
    pub(crate) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// The definition of a tool for haft.
#[derive(Debug, Serialize)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) parameters: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) guidance: Option<String>,
    /// Time limit of a call, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<f64>,
}

/// Messages from the worker.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum WorkerMessage<'a> {
    Invalid {
        message: &'a str,
    },
    Result {
        call_id: &'a Value,
        content: &'a [Block<'a>],
        error: bool,
        /// Whether the process ends after this and has started nothing else. haft then
        /// sends pending calls to a new process.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        last: bool,
    },
    Update {
        call_id: &'a Value,
        content: &'a [Block<'a>],
    },
}

impl WorkerMessage<'_> {
    pub(crate) fn line(&self) -> String {
        // Cannot fail: all answers can be written as JSON.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Returns the answer to `describe`; it has no `type`, as in plugins. A library has no
/// tools.
pub(crate) fn described(definition: Option<&Definition>) -> String {
    let tools: Vec<&Definition> = definition.into_iter().collect();
    serde_json::json!({"protocol": 2, "tools": tools}).to_string()
}

/// Formats a call of another tool. The parameters are already JSON and may be large.
pub(crate) fn host_call(call_id: &Value, id: u64, name: &str, params: &str) -> String {
    let name = Value::from(name);
    format!(
        r#"{{"type":"host_call","call_id":{call_id},"id":{id},"name":{name},"params":{params}}}"#
    )
}
