//! What a scripted model says, and how it fails.

use serde_json::Value;
use std::sync::Mutex;

/// Who decides what is said.
pub trait Script: Send + Sync {
    /// What comes of a request: its body, and its number from 0.
    fn turn(&self, request: &Value, number: usize) -> Turn;

    /// Whether it looks at the body. Reading a long one takes longer than all else.
    fn reads(&self) -> bool {
        true
    }
}

impl<F: Fn(&Value, usize) -> Turn + Send + Sync> Script for F {
    fn turn(&self, request: &Value, number: usize) -> Turn {
        self(request, number)
    }
}

/// A list, one for each request. One more is refused.
impl Script for Vec<Turn> {
    fn turn(&self, _: &Value, number: usize) -> Turn {
        let over = || Turn::status(400, "the script is over");
        self.get(number).cloned().unwrap_or_else(over)
    }

    fn reads(&self) -> bool {
        false
    }
}

/// What comes of a request by its number alone: for whoever measures.
pub struct Numbered<F>(pub F);

impl<F: Fn(usize) -> Turn + Send + Sync> Script for Numbered<F> {
    fn turn(&self, _: &Value, number: usize) -> Turn {
        self.0(number)
    }

    fn reads(&self) -> bool {
        false
    }
}

/// A list that others add to while the server runs.
impl Script for Mutex<Vec<Turn>> {
    fn turn(&self, request: &Value, number: usize) -> Turn {
        self.lock().expect("a script").turn(request, number)
    }

    fn reads(&self) -> bool {
        false
    }
}

/// What comes of a request.
#[derive(Debug, Clone)]
pub enum Turn {
    /// An answer.
    Says(Says),
    /// The beginning of an answer.
    Cut {
        /// The answer.
        says: Says,
        /// How many bytes of it come.
        after: usize,
        /// What happens then.
        ending: Ending,
    },
    /// The bytes of a stream, whatever they are.
    Raw(String),
    /// A status and a body.
    Status {
        /// The status.
        status: u16,
        /// Headers.
        headers: Vec<(String, String)>,
        /// The body.
        body: String,
    },
    /// Nothing, for as long as the client waits.
    Silent,
    /// A connection that ends without a word.
    Closed,
}

/// How a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As if it were complete.
    Whole,
    /// The connection ends in the middle.
    Broken,
    /// Nothing more comes.
    Stalled,
}

/// An answer.
#[derive(Debug, Clone, Default)]
pub struct Says {
    /// Reasoning that comes first.
    pub reasoning: String,
    /// What the provider wants to see again with it.
    pub signature: String,
    /// Reasoning that nobody may read.
    pub redacted: String,
    /// Words.
    pub text: String,
    /// Calls.
    pub calls: Vec<Call>,
    /// Tokens.
    pub tokens: Tokens,
    /// Why it ends, in the words of the protocol; its usual ones where it is `None`.
    pub stop: Option<String>,
}

/// A call in an answer.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its id; none where it is empty.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments as they come: JSON, or what a model takes for it.
    pub arguments: String,
}

/// What an answer takes.
#[derive(Debug, Clone, Copy)]
pub struct Tokens {
    /// Sent, with those from the cache.
    pub input: u64,
    /// Came back, with reasoning.
    pub output: u64,
    /// Of those sent: from the cache.
    pub cache_read: u64,
    /// Of those sent: into the cache.
    pub cache_write: u64,
    /// Of those that came back: reasoning.
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

impl Says {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A call and nothing else.
    pub fn calling(id: impl Into<String>, name: impl Into<String>, arguments: &Value) -> Self {
        Self::default().call(id, name, arguments)
    }

    /// With reasoning, and its signature.
    #[must_use]
    pub fn reasoning(mut self, text: impl Into<String>, signature: impl Into<String>) -> Self {
        self.reasoning = text.into();
        self.signature = signature.into();
        self
    }

    /// With one more call.
    #[must_use]
    pub fn call(self, id: impl Into<String>, name: impl Into<String>, arguments: &Value) -> Self {
        self.raw_call(id, name, arguments.to_string())
    }

    /// With one more call, whose arguments may be no JSON.
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

    /// With these tokens.
    #[must_use]
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = tokens;
        self
    }

    /// Its stop reason: the given one where it has none of its own.
    pub(super) fn stop_or<'a>(&'a self, end: &'a str, calls: &'a str) -> &'a str {
        let usual = if self.calls.is_empty() { end } else { calls };
        self.stop.as_deref().unwrap_or(usual)
    }
}

impl From<Says> for Turn {
    fn from(says: Says) -> Self {
        Self::Says(says)
    }
}

impl Turn {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Says(Says::text(text))
    }

    /// A status whose body says this in the usual way.
    #[must_use]
    pub fn status(status: u16, message: &str) -> Self {
        Self::Status {
            status,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: serde_json::json!({ "error": { "message": message } }).to_string(),
        }
    }

    /// With one more header, if it is a status.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Self::Status { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }
}
