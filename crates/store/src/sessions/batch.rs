//! What is recorded in one step.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

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
    /// Files of the session that changed since the last time.
    pub files: Vec<SessionFile>,
    /// What the session is about, in other words than those of the first prompt.
    pub title: Option<String>,
    /// The provider and the model that answer from now on, if they changed.
    pub model: Option<(String, String)>,
}

impl Batch {
    /// Roughly how many bytes it takes.
    pub(super) fn size(&self) -> usize {
        let messages = self.messages.iter().map(|message| message.body.len());
        let calls = self.calls.iter().map(|call| call.arguments.len());
        let outcomes = self.outcomes.iter().map(|outcome| outcome.reply.len());
        let events = self.events.iter().map(|(_, body)| body.len());
        let files = self.files.iter().map(SessionFile::size);
        let texts = messages.chain(calls).chain(outcomes).chain(events);
        texts.chain(files).map(|length| length + 256).sum()
    }

    /// Adds what comes after it.
    pub(super) fn append(&mut self, later: Self) {
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

    /// Every text in it that comes from outside.
    pub(super) fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let messages = self.messages.iter_mut().map(|message| &mut message.body);
        let calls = self.calls.iter_mut().map(|call| &mut call.arguments);
        let outcomes = self.outcomes.iter_mut().map(|outcome| &mut outcome.reply);
        let approvals = self.approvals.iter_mut().map(|asked| &mut asked.question);
        let decisions = self.decisions.iter_mut().map(|said| &mut said.answer);
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

/// A message, as its owner writes it.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// `user assistant tool compaction`. Those of the role `assistant` are counted as
    /// turns, and the first of the role `user` is what the session is about.
    pub role: String,
    /// JSON.
    pub body: String,
    /// Tokens in and out, and USD, where it is an answer.
    pub usage: Option<(u64, u64, Option<f64>)>,
}

/// A call that is about to be made. Its id is distinct within the session. One that
/// cannot change anything may be recorded together with its outcome.
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

/// A file that a session holds itself, and that is on no disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFile {
    /// Its path among those of the session.
    pub path: PathBuf,
    /// What is in it, to the byte; nothing once it was taken away.
    pub bytes: Option<Arc<[u8]>>,
    /// When it was last changed.
    pub modified: SystemTime,
}

impl SessionFile {
    fn size(&self) -> usize {
        self.bytes.as_ref().map_or(0, |bytes| bytes.len())
    }
}
