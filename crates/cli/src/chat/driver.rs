//! Interface between the chat and an agent. The chat uses nothing else, so tests can
//! replace the agent with a script.

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use haft::ops::FilePath;
use haft::{ApprovalAnswer as Answer, Approver, Filled, Form, Question};
use haft_agent::{Event, EventKind, Usage};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// An event for the chat.
#[derive(Debug, Clone)]
pub(crate) struct ChatEvent {
    pub(crate) kind: EventKind,
    /// Session of the sub-agent that it belongs to, if any.
    pub(crate) child: Option<String>,
    /// Whether it comes from the background, where events can arrive at any time.
    pub(crate) is_background: bool,
}

impl From<Event> for ChatEvent {
    fn from(event: Event) -> Self {
        Self {
            child: event.parent.is_some().then_some(event.session),
            kind: event.kind,
            is_background: false,
        }
    }
}

/// Stream of events.
pub(crate) type Events = BoxStream<'static, ChatEvent>;

/// Does the work. All text it returns is sanitized before it is shown.
#[async_trait]
pub(crate) trait Driver: Send + Sync {
    /// Starts a run; the stream ends after `agent_end`. Called again only when the previous
    /// stream has ended.
    async fn prompt(&self, text: String) -> Result<Events, String>;

    /// Events of sub-agents in the background. Called once.
    fn background(&self) -> Events {
        futures::stream::pending().boxed()
    }

    /// Runs a command line with the session's command tool, as if the model had called it.
    /// The stream has the events of that call; dropping it stops the command.
    async fn command(&self, line: String) -> Result<Events, String>;

    /// Whether an earlier run is unfinished and an empty prompt continues it.
    fn has_unfinished_run(&self) -> bool {
        false
    }

    /// Sends a message to the model while it works. `steering` is emitted when it is
    /// delivered.
    fn steer(&self, text: String);

    /// Stops the current run; `agent_end` still follows.
    fn abort(&self);

    /// Compacts the conversation; returns a message for the user.
    async fn compact(&self) -> Result<String, String>;

    /// Switches to another model.
    async fn set_model(&self, name: &str) -> Result<(), String>;

    /// Name of the model.
    fn model(&self) -> String;

    /// Models to choose from, if known.
    fn models(&self) -> Vec<String> {
        Vec::new()
    }

    /// Usage of the session so far.
    fn usage(&self) -> Usage;

    /// Name and first sentence of each tool.
    fn tools(&self) -> Vec<(String, String)>;

    /// One line for each session of this folder, newest first.
    async fn sessions(&self) -> Result<Vec<String>, String>;

    /// Session id, once there is something to resume.
    fn session(&self) -> Option<String>;

    /// Text of a call's reply.
    fn output(&self, call_id: &str) -> Option<String>;

    /// The work folder, restricted to files that the session may see; for completion.
    fn folder(&self) -> Option<FilePath>;
}

/// A request to the user, and the channel for the answer.
pub(crate) enum Request {
    Question(Question, oneshot::Sender<Answer>),
    Form(Form, oneshot::Sender<Filled>),
}

impl Request {
    /// Whether the request was withdrawn.
    fn is_closed(&self) -> bool {
        match self {
            Self::Question(_, answer) => answer.is_closed(),
            Self::Form(_, filled) => filled.is_closed(),
        }
    }
}

/// Requests of a session, in order of arrival.
pub(crate) type Questions = mpsc::UnboundedReceiver<Request>;

/// Requests that wait to be shown. They arrive on another channel than events and may
/// overtake them; a request is shown when the event that announces it has arrived.
#[derive(Default)]
pub(crate) struct RequestQueue(Vec<(Request, Instant)>);

/// Time after which a request without an announcing event is shown.
const UNANNOUNCED: Duration = Duration::from_millis(300);

impl RequestQueue {
    pub(crate) fn add(&mut self, request: Request) {
        self.0.push((request, Instant::now()));
    }

    /// Returns the next request to show.
    pub(crate) fn take(&mut self, is_announced: impl Fn(&Request) -> bool) -> Option<Request> {
        self.0.retain(|(request, _)| !request.is_closed());
        let due = self
            .0
            .iter()
            .position(|(request, since)| is_announced(request) || since.elapsed() > UNANNOUNCED)?;
        Some(self.0.remove(due).0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns an approver that asks the user of the chat, and the requests it creates.
pub(crate) fn chat_approver() -> (Arc<dyn Approver>, Questions) {
    let (sender, questions) = mpsc::unbounded_channel();
    (Arc::new(ChatApprover(sender)), questions)
}

struct ChatApprover(mpsc::UnboundedSender<Request>);

#[async_trait]
impl Approver for ChatApprover {
    async fn ask(&self, question: &Question) -> Answer {
        let (answer, answered) = oneshot::channel();
        // If the chat has ended, the question can be answered later.
        let _ = self.0.send(Request::Question(question.clone(), answer));
        answered.await.unwrap_or(Answer::Later)
    }

    async fn fill(&self, form: &Form) -> Filled {
        let (filled, answered) = oneshot::channel();
        // The call is running, so the form cannot be answered later.
        let _ = self.0.send(Request::Form(form.clone(), filled));
        answered.await.unwrap_or(Filled::Dismissed)
    }
}
