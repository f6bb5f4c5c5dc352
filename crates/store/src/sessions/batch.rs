//! What is recorded in one step.

/// What is recorded in one transaction: all of it or nothing.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Messages, each the child of the one before; the first of the newest so far.
    pub messages: Vec<NewMessage>,
    /// Calls that are about to be made, with the last of these messages.
    pub calls: Vec<Call>,
    /// What came of calls.
    pub outcomes: Vec<Outcome>,
    /// Questions that nobody has answered yet.
    pub approvals: Vec<Approval>,
    /// Answers to them.
    pub decisions: Vec<Decision>,
    /// Events as JSON, with their numbers.
    pub events: Vec<(u64, String)>,
    /// What tools remember between calls, if it changed: a JSON object.
    pub state: Option<String>,
}

/// A message, as its owner writes it.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// `user assistant tool compaction`.
    pub role: String,
    /// JSON.
    pub body: String,
    /// Tokens in and out, and USD, where it is an answer.
    pub usage: Option<(u64, u64, Option<f64>)>,
}

/// A call that is about to be made.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its id.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// JSON.
    pub arguments: String,
    /// Whether it can change anything: what it did is then unknown, should it not end.
    pub has_effect: bool,
}

/// What came of a call.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The call.
    pub call_id: String,
    /// The reply as JSON: content, whether it failed, details.
    pub reply: String,
    /// Whether it failed.
    pub is_error: bool,
    /// How long it took.
    pub duration_ms: u64,
    /// The file that holds the whole output, where the reply has a part of it.
    pub output: Option<String>,
}

/// A question about a call.
#[derive(Debug, Clone)]
pub struct Approval {
    /// The call.
    pub call_id: String,
    /// What a person is asked, as JSON.
    pub question: String,
}

/// An answer to it.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The call.
    pub call_id: String,
    /// `approve`, `reject`, or the changed arguments as JSON.
    pub answer: String,
}
