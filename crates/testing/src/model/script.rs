//! Scripts of a fake model: its replies and failures.

use serde_json::Value;
use std::sync::Mutex;

/// Decides how the server responds.
pub trait Script: Send + Sync {
    /// Returns the response to a request, given its body and its number (from 0).
    fn turn(&self, request: &Value, number: usize) -> Turn;

    /// Whether the script uses the request body. Parsing a long body takes longer than everything
    /// else.
    fn reads(&self) -> bool {
        true
    }
}

impl<F: Fn(&Value, usize) -> Turn + Send + Sync> Script for F {
    fn turn(&self, request: &Value, number: usize) -> Turn {
        self(request, number)
    }
}

/// One turn per request. Further requests are refused.
impl Script for Vec<Turn> {
    fn turn(&self, _: &Value, number: usize) -> Turn {
        let exhausted = || Turn::status(400, "the script is over");
        self.get(number).cloned().unwrap_or_else(exhausted)
    }

    fn reads(&self) -> bool {
        false
    }
}

/// Decides by the number of a request alone, for benchmarks.
pub struct Numbered<F>(pub F);

impl<F: Fn(usize) -> Turn + Send + Sync> Script for Numbered<F> {
    fn turn(&self, _: &Value, number: usize) -> Turn {
        self.0(number)
    }

    fn reads(&self) -> bool {
        false
    }
}

/// A list that a test can extend while the server runs.
impl Script for Mutex<Vec<Turn>> {
    fn turn(&self, request: &Value, number: usize) -> Turn {
        self.lock().expect("a script").turn(request, number)
    }

    fn reads(&self) -> bool {
        false
    }
}

/// The server's response to a request.
#[derive(Debug, Clone)]
pub enum Turn {
    /// A complete reply.
    Reply(ModelReply),
    /// A reply that stops in the middle.
    Cut {
        /// The complete reply.
        reply: ModelReply,
        /// Number of bytes that are sent.
        after: usize,
        /// State of the connection after that.
        ending: Ending,
    },
    /// The raw bytes of a stream.
    Raw(String),
    /// A response with a status and a body.
    Status {
        /// HTTP status code.
        status: u16,
        /// Headers in addition to `content-length`.
        headers: Vec<(String, String)>,
        /// Body, usually JSON.
        body: String,
    },
    /// No response for as long as the client waits.
    Silent,
    /// A connection that closes without a response.
    Closed,
}

/// The end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Like a complete one.
    Whole,
    /// The connection closes in the middle.
    Broken,
    /// Nothing more is sent, but the connection stays open.
    Stalled,
}

/// A model's reply.
#[derive(Debug, Clone, Default)]
pub struct ModelReply {
    /// Reasoning before the text.
    pub reasoning: String,
    /// Signature that the provider expects back with the reasoning.
    pub signature: String,
    /// Reasoning that the provider encrypted.
    pub redacted: String,
    /// Text for the user.
    pub text: String,
    /// Tool calls after the text.
    pub calls: Vec<Call>,
    /// Token counts of the reply.
    pub tokens: Tokens,
    /// Stop reason in the protocol's terms; `None` means its usual one.
    pub stop: Option<String>,
}

/// A tool call in a reply.
#[derive(Debug, Clone)]
pub struct Call {
    /// Call id; empty means that the protocol sends none.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments as sent: JSON, or whatever a model produces instead.
    pub arguments: String,
}

/// Token counts of a reply.
#[derive(Debug, Clone, Copy)]
pub struct Tokens {
    /// Input tokens, including cached ones.
    pub input: u64,
    /// Output tokens, including reasoning.
    pub output: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Input tokens written to the cache.
    pub cache_write: u64,
    /// Output tokens spent on reasoning.
    pub reasoning: u64,
}

impl Default for Tokens {
    fn default() -> Self {
        Self {
            input: 100,
            output: 20,
            cache_read: 0,
            cache_write: 0,
            reasoning: 0,
        }
    }
}

impl ModelReply {
    /// A reply with only text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A reply with only one call.
    pub fn calling(id: impl Into<String>, name: impl Into<String>, arguments: &Value) -> Self {
        Self::default().call(id, name, arguments)
    }

    /// Adds reasoning with its signature.
    #[must_use]
    pub fn reasoning(mut self, text: impl Into<String>, signature: impl Into<String>) -> Self {
        self.reasoning = text.into();
        self.signature = signature.into();
        self
    }

    /// Adds a call.
    #[must_use]
    pub fn call(self, id: impl Into<String>, name: impl Into<String>, arguments: &Value) -> Self {
        self.raw_call(id, name, arguments.to_string())
    }

    /// Adds a call whose arguments may be invalid JSON.
    #[must_use]
    pub fn raw_call(
        mut self,
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        self.calls.push(Call {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        });
        self
    }

    /// Sets the token counts.
    #[must_use]
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = tokens;
        self
    }

    /// Returns the stop reason, or the protocol's usual one for a reply with or without calls.
    pub(super) fn stop_or<'a>(&'a self, end: &'a str, calls: &'a str) -> &'a str {
        let default = if self.calls.is_empty() { end } else { calls };
        self.stop.as_deref().unwrap_or(default)
    }
}

impl From<ModelReply> for Turn {
    fn from(reply: ModelReply) -> Self {
        Self::Reply(reply)
    }
}

impl Turn {
    /// A reply with only text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Reply(ModelReply::text(text))
    }

    /// An error status with a JSON body as providers send it.
    #[must_use]
    pub fn status(status: u16, message: &str) -> Self {
        Self::Status {
            status,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: serde_json::json!({ "error": { "message": message } }).to_string(),
        }
    }

    /// Adds a header if this is a status.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Self::Status { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }
}
