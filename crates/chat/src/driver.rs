//! Interface between the chat and an agent. The chat uses nothing else, so tests can
//! replace the agent with a script.

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use haft::ops::FilePath;
use haft::{ApprovalAnswer as Answer, Approver, Filled, Form, Question};
use haft_agent::{Event, EventKind, Usage};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// A session that can be resumed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionEntry {
    /// Id of the session.
    pub id: String,
    /// Its first prompt, shortened.
    pub title: String,
    /// Age, length and state, in a few words.
    pub about: String,
}

/// A prompt that the user can return to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EarlierPrompt {
    /// Id for [`Driver::fork`].
    pub id: String,
    /// The whole prompt.
    pub text: String,
    /// Its age, in a few words.
    pub about: String,
}

/// Topic of [`Driver::report`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// The rules that decide about calls.
    Permissions,
    /// MCP servers and their state.
    Mcp,
    /// The checks of `haft doctor`.
    Doctor,
}

/// An event for the chat, with the agent that it is about.
#[derive(Debug, Clone)]
pub struct ChatEvent {
    /// A step of the agent, or of one of its calls.
    pub kind: EventKind,
    /// Session of the sub-agent that the event belongs to; `None` for the agent itself.
    pub sub_agent: Option<String>,
    /// Whether it comes from [`Driver::background_events`], where events can arrive at any
    /// time.
    pub is_background: bool,
}

impl From<Event> for ChatEvent {
    fn from(event: Event) -> Self {
        Self {
            sub_agent: event.parent.is_some().then_some(event.session),
            kind: event.kind,
            is_background: false,
        }
    }
}

/// Answer of a session that does not record what calls change.
const NOT_RECORDED: &str = "changes are not recorded in this session";

/// EventStream of a run, of a command, or of the background.
pub type EventStream = BoxStream<'static, ChatEvent>;

/// The agent behind a chat. All text it returns is sanitized before it is shown. Errors are
/// messages for the user.
#[async_trait]
pub trait Driver: Send + Sync {
    /// Starts a run; the stream ends after `agent_end`. Called again only when the previous
    /// stream has ended.
    async fn prompt(&self, text: String) -> Result<EventStream, String>;

    /// Events of sub-agents in the background. Called once.
    fn background_events(&self) -> EventStream {
        futures::stream::pending().boxed()
    }

    /// Runs a command line with the session's command tool, as if the model had called it.
    /// The stream has the events of that call; dropping it stops the command.
    async fn run_command(&self, line: String) -> Result<EventStream, String>;

    /// Whether an earlier run is unfinished and an empty prompt continues it.
    fn has_unfinished_run(&self) -> bool {
        false
    }

    /// Sends a message to the model while it works. `steering` is emitted when it is
    /// delivered.
    fn steer(&self, text: String);

    /// Stops the current run; `agent_end` still follows.
    fn abort(&self);

    /// Compacts the conversation and returns a message for the user; called only between
    /// runs.
    async fn compact(&self) -> Result<String, String>;

    /// Switches to another model; called only between runs.
    async fn set_model(&self, name: &str) -> Result<(), String>;

    /// Name of the current model, for the status line.
    fn model(&self) -> String;

    /// Name of the provider of the current model, for the status line.
    fn provider(&self) -> String {
        String::new()
    }

    /// Models that can be chosen by name, if they are known.
    fn models(&self) -> Vec<String> {
        Vec::new()
    }

    /// How much the model can be told to think, if its provider lets the user decide.
    fn efforts(&self) -> Vec<String> {
        Vec::new()
    }

    /// How much the model thinks; `None` if the provider decides.
    fn effort(&self) -> Option<String> {
        None
    }

    /// Sets how much the model thinks; called only between runs.
    async fn set_effort(&self, level: &str) -> Result<(), String> {
        let _ = level;
        Err("this model has no effort to set".to_owned())
    }

    /// Tokens of the conversation, and how many the model can take.
    fn context(&self) -> Option<(u64, u64)> {
        None
    }

    /// The branch of the work folder's git repository.
    fn branch(&self) -> Option<String> {
        None
    }

    /// Usage of the session so far, with that of sub-agents.
    fn usage(&self) -> Usage;

    /// Name and first sentence of each tool.
    fn tools(&self) -> Vec<(String, String)>;

    /// One line about the files that the last run changed, if it changed any.
    async fn changed(&self) -> Option<String> {
        None
    }

    /// Returns a diff of the last run, or of the calls and paths in `words`.
    async fn changes(&self, words: String) -> Result<String, String> {
        drop(words);
        Err(NOT_RECORDED.to_owned())
    }

    /// Returns a preview of undoing the last run, or the calls and paths in `words`.
    async fn undo_preview(&self, words: String) -> Result<String, String> {
        drop(words);
        Err(NOT_RECORDED.to_owned())
    }

    /// Undoes the last run, or the calls and paths in `words`.
    async fn undo(&self, words: String) -> Result<String, String> {
        drop(words);
        Err(NOT_RECORDED.to_owned())
    }

    /// Returns a preview of a redo.
    async fn redo_preview(&self) -> Result<String, String> {
        Err(NOT_RECORDED.to_owned())
    }

    /// Takes the last undo back.
    async fn redo(&self) -> Result<String, String> {
        Err(NOT_RECORDED.to_owned())
    }

    /// Prompts of the session that the user can return to, newest first.
    async fn earlier_prompts(&self) -> Result<Vec<EarlierPrompt>, String> {
        Ok(Vec::new())
    }

    /// Copies the session, or only what came before an earlier prompt. Returns the id of the
    /// copy; `None` if nothing came before.
    async fn fork(&self, before: Option<String>) -> Result<Option<String>, String> {
        drop(before);
        Err("this session cannot be copied".to_owned())
    }

    /// Returns a preview of undoing everything since an earlier prompt; `None` if there is
    /// nothing to undo.
    async fn undo_since_preview(&self, prompt: String) -> Result<Option<String>, String> {
        drop(prompt);
        Ok(None)
    }

    /// Undoes everything since an earlier prompt.
    async fn undo_since(&self, prompt: String) -> Result<String, String> {
        drop(prompt);
        Err(NOT_RECORDED.to_owned())
    }

    /// Adds a line to the project's instructions, and returns a message for the user.
    async fn add_instruction(&self, line: String) -> Result<String, String> {
        drop(line);
        Err("this session has no instructions to add to".to_owned())
    }

    /// The file with the plan, in plan mode.
    fn plan_file(&self) -> Option<PathBuf> {
        None
    }

    /// Returns the plan, as the file has it now.
    async fn plan(&self) -> Result<String, String> {
        Err("the session is not in plan mode".to_owned())
    }

    /// The sessions of this folder, newest first.
    async fn list_sessions(&self) -> Result<Vec<SessionEntry>, String>;

    /// Writes the session to a file, and returns a message for the user.
    async fn export(&self, file: String) -> Result<String, String> {
        drop(file);
        Err("this session cannot be exported".to_owned())
    }

    /// Returns a text about the session's environment.
    async fn report(&self, topic: Topic) -> Result<String, String> {
        let _ = topic;
        Err("nothing is known about this".to_owned())
    }

    /// Id of the session, once there is something to resume.
    fn session_id(&self) -> Option<String>;

    /// Text of the reply to a recent call.
    fn reply_text(&self, call_id: &str) -> Option<String>;

    /// The work folder, restricted to files that the session may see; for completion.
    fn work_folder(&self) -> Option<FilePath>;
}

/// A request to the user, and the channel for the answer.
pub(crate) enum Request {
    Question(Box<Question>, oneshot::Sender<Answer>),
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

/// Questions and forms of a session's runtime, for the chat to show.
pub struct Requests(mpsc::UnboundedReceiver<Request>);

impl Requests {
    pub(crate) async fn recv(&mut self) -> Option<Request> {
        self.0.recv().await
    }
}

/// Requests that wait to be shown. They arrive on another channel than events and may
/// overtake them; a request is shown when the event that announces it has arrived.
#[derive(Default)]
pub(crate) struct RequestQueue(Vec<(Request, Instant)>);

/// Time after which a request without an announcing event is shown.
const ANNOUNCEMENT_TIMEOUT: Duration = Duration::from_millis(300);

impl RequestQueue {
    pub(crate) fn add(&mut self, request: Request) {
        self.0.push((request, Instant::now()));
    }

    /// Returns the next request to show.
    pub(crate) fn take(&mut self, is_announced: impl Fn(&Request) -> bool) -> Option<Request> {
        self.0.retain(|(request, _)| !request.is_closed());
        let due = self.0.iter().position(|(request, since)| {
            is_announced(request) || since.elapsed() > ANNOUNCEMENT_TIMEOUT
        })?;
        Some(self.0.remove(due).0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns an approver that asks the user of the chat, and the requests it creates.
pub fn approver() -> (Arc<dyn Approver>, Requests) {
    let (sender, requests) = mpsc::unbounded_channel();
    (Arc::new(ChatApprover(sender)), Requests(requests))
}

struct ChatApprover(mpsc::UnboundedSender<Request>);

#[async_trait]
impl Approver for ChatApprover {
    async fn ask(&self, question: &Question) -> Answer {
        let (answer, answered) = oneshot::channel();
        // If the chat has ended, the question can be answered later.
        let _ = self
            .0
            .send(Request::Question(Box::new(question.clone()), answer));
        answered.await.unwrap_or(Answer::Later)
    }

    async fn fill(&self, form: &Form) -> Filled {
        let (filled, answered) = oneshot::channel();
        // The call is running, so the form cannot be answered later.
        let _ = self.0.send(Request::Form(form.clone(), filled));
        answered.await.unwrap_or(Filled::Dismissed)
    }
}
