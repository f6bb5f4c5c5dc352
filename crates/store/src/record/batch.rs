//! Records that are written together.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// Records that are written in one transaction, all or nothing.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Messages, each following the previous one; the first follows the newest recorded
    /// one.
    pub messages: Vec<NewMessage>,
    /// Calls that are about to run, requested by the last message.
    pub calls: Vec<Call>,
    /// Results of calls.
    pub outcomes: Vec<Outcome>,
    /// Questions that wait for an answer.
    pub approvals: Vec<Approval>,
    /// Answers to such questions.
    pub decisions: Vec<Decision>,
    /// Events as JSON, with their numbers.
    pub events: Vec<(u64, String)>,
    /// State that tools keep between calls, as a JSON object, if it changed.
    pub state: Option<String>,
    /// Files of the session that changed since the last batch.
    pub files: Vec<SessionFile>,
    /// A title that replaces the start of the first prompt.
    pub title: Option<String>,
    /// Provider and model from now on, if they changed.
    pub model: Option<(String, String)>,
}

impl Batch {
    /// Returns the approximate size in bytes.
    pub(crate) fn size(&self) -> usize {
        let messages = self.messages.iter().map(|message| message.body.len());
        let calls = self.calls.iter().map(|call| call.arguments.len());
        let outcomes = self.outcomes.iter().map(|outcome| outcome.reply.len());
        let events = self.events.iter().map(|(_, body)| body.len());
        let files = self.files.iter().map(SessionFile::size);
        let texts = messages.chain(calls).chain(outcomes).chain(events);
        texts.chain(files).map(|length| length + 256).sum()
    }

    /// Adds a later batch.
    pub(crate) fn append(&mut self, later: Self) {
        let Self {
            messages,
            calls,
            outcomes,
            approvals,
            decisions,
            events,
            state,
            files,
            title,
            model,
        } = later;
        self.messages.extend(messages);
        self.calls.extend(calls);
        self.outcomes.extend(outcomes);
        self.approvals.extend(approvals);
        self.decisions.extend(decisions);
        self.events.extend(events);
        self.files.extend(files);
        self.state = state.or(self.state.take());
        self.title = title.or(self.title.take());
        self.model = model.or(self.model.take());
    }

    /// Returns all texts that come from outside and may contain secrets.
    pub(crate) fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let messages = self.messages.iter_mut().map(|message| &mut message.body);
        let calls = self.calls.iter_mut().map(|call| &mut call.arguments);
        let outcomes = self.outcomes.iter_mut().map(|outcome| &mut outcome.reply);
        let approvals = self
            .approvals
            .iter_mut()
            .map(|approval| &mut approval.question);
        let decisions = self
            .decisions
            .iter_mut()
            .map(|decision| &mut decision.answer);
        let events = self.events.iter_mut().map(|(_, body)| body);
        messages
            .chain(calls)
            .chain(outcomes)
            .chain(approvals)
            .chain(decisions)
            .chain(events)
            .chain(&mut self.state)
            .chain(&mut self.title)
    }
}

/// A message to record.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// One of `user assistant tool compaction`. Messages with the role `assistant` count as
    /// turns, and the first one with the role `user` provides the title.
    pub role: String,
    /// The message as JSON.
    pub body: String,
    /// Input and output tokens, and the cost in USD, for an answer of the model.
    pub usage: Option<(u64, u64, Option<f64>)>,
}

/// A call that is about to run. A call without effects may be recorded together with its
/// outcome.
#[derive(Debug, Clone)]
pub struct Call {
    /// Unique within the session.
    pub call_id: String,
    /// Name of the tool.
    pub tool: String,
    /// The arguments as JSON.
    pub arguments: String,
    /// Whether it may change anything. If such a call does not end, its effects are
    /// unknown.
    pub has_effect: bool,
}

/// Result of a call.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Id of the call.
    pub call_id: String,
    /// The reply as JSON: content, whether it is an error, details.
    pub reply: String,
    /// Whether the reply is an error.
    pub is_error: bool,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// File with the full output, if the reply is truncated.
    pub output: Option<String>,
}

/// A question about a call.
#[derive(Debug, Clone)]
pub struct Approval {
    /// Id of the call.
    pub call_id: String,
    /// The question as JSON.
    pub question: String,
}

/// An answer to a question about a call.
#[derive(Debug, Clone)]
pub struct Decision {
    /// Id of the call.
    pub call_id: String,
    /// `approve`, `reject`, or the changed arguments as JSON.
    pub answer: String,
}

/// A file that only exists in the session, not on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFile {
    /// Path within the session's files.
    pub path: PathBuf,
    /// Exact content; `None` if the file was deleted.
    pub bytes: Option<Arc<[u8]>>,
    /// Time of the last change.
    pub modified: SystemTime,
}

impl SessionFile {
    fn size(&self) -> usize {
        self.bytes.as_ref().map_or(0, |bytes| bytes.len())
    }
}
