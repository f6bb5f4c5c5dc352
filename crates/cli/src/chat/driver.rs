//! What the terminal needs of an agent. The terminal knows nothing else of it, so that
//! a script can stand in for one.

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use haft::ops::FilePath;
use haft::{Answer, Approver, Filled, Form, Question};
use haft_agent::{Event, EventKind, Usage};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// An event, as far as it matters here.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) kind: EventKind,
    /// The session of the sub-agent that it happened to, if it did.
    pub(crate) child: Option<String>,
    /// Whether it comes from the background, where work goes on at any time.
    pub(crate) is_background: bool,
}

impl From<Event> for Seen {
    fn from(event: Event) -> Self {
        Self {
            child: event.parent.is_some().then_some(event.session),
            kind: event.kind,
            is_background: false,
        }
    }
}

/// Events as they come.
pub(crate) type Events = BoxStream<'static, Seen>;

/// Who does the work. All words it gives are shown to the person; none can act on
/// the terminal.
#[async_trait]
pub(crate) trait Driver: Send + Sync {
    /// Begins to work; the stream ends after `agent_end`. Called again only when the
    /// stream before has ended.
    async fn prompt(&self, text: String) -> Result<Events, String>;

    /// What sub-agents in the background do, all the while. Called once.
    fn background(&self) -> Events {
        futures::stream::pending().boxed()
    }

    /// Runs a command line with the session's own tool for that, as if the model had
    /// asked: the events of that call, then the end. It is stopped by dropping them.
    async fn command(&self, line: String) -> Result<Events, String>;

    /// Whether something was left over, that going on without a word takes up.
    fn is_left(&self) -> bool {
        false
    }

    /// Says something to the model at work. It is sent when `steering` is seen.
    fn steer(&self, text: String);

    /// Stops what it works at; `agent_end` still comes.
    fn abort(&self);

    /// Makes the conversation shorter; says what came of it.
    async fn compact(&self) -> Result<String, String>;

    /// Goes on with another model.
    async fn set_model(&self, name: &str) -> Result<(), String>;

    /// The model's name.
    fn model(&self) -> String;

    /// The models there are to choose from, as far as that is known.
    fn models(&self) -> Vec<String> {
        Vec::new()
    }

    /// What the session took so far.
    fn usage(&self) -> Usage;

    /// Each tool with its first sentence.
    fn tools(&self) -> Vec<(String, String)>;

    /// One line for each session of this folder, the newest first.
    async fn sessions(&self) -> Result<Vec<String>, String>;

    /// The session, once there is something in it to go on with.
    fn session(&self) -> Option<String>;

    /// The text that a call has answered.
    fn output(&self, call_id: &str) -> Option<String>;

    /// The work folder, with the files that the session may see, for completion.
    fn folder(&self) -> Option<FilePath>;
}

/// Something on its way to the person, and where the answer goes.
pub(crate) enum Asked {
    Question(Question, oneshot::Sender<Answer>),
    Form(Form, oneshot::Sender<Filled>),
}

impl Asked {
    /// Whether nobody wants to know any more.
    fn is_closed(&self) -> bool {
        match self {
            Self::Question(_, answer) => answer.is_closed(),
            Self::Form(_, filled) => filled.is_closed(),
        }
    }
}

/// The questions and forms of a session, in the order in which they come.
pub(crate) type Questions = mpsc::UnboundedReceiver<Asked>;

/// Questions that have come. They have a way of their own and may overtake the events
/// before them; one is shown when the event that announces it was seen.
#[derive(Default)]
pub(crate) struct Waiting(Vec<(Asked, Instant)>);

/// A question that nothing announces is shown after this.
const UNANNOUNCED: Duration = Duration::from_millis(300);

impl Waiting {
    pub(crate) fn add(&mut self, asked: Asked) {
        self.0.push((asked, Instant::now()));
    }

    /// The next that is to be shown, by what is known to be asked.
    pub(crate) fn take(&mut self, is_announced: impl Fn(&Asked) -> bool) -> Option<Asked> {
        self.0.retain(|(asked, _)| !asked.is_closed());
        let due = self
            .0
            .iter()
            .position(|(asked, since)| is_announced(asked) || since.elapsed() > UNANNOUNCED)?;
        Some(self.0.remove(due).0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The person at the chat: whom the runtime asks, and where the chat hears of it.
pub(crate) fn person() -> (Arc<dyn Approver>, Questions) {
    let (sender, questions) = mpsc::unbounded_channel();
    (Arc::new(Person(sender)), questions)
}

struct Person(mpsc::UnboundedSender<Asked>);

#[async_trait]
impl Approver for Person {
    async fn ask(&self, question: &Question) -> Answer {
        let (answer, answered) = oneshot::channel();
        // With nobody at the terminal any more it can be answered another day.
        let _ = self.0.send(Asked::Question(question.clone(), answer));
        answered.await.unwrap_or(Answer::Later)
    }

    async fn fill(&self, form: &Form) -> Filled {
        let (filled, answered) = oneshot::channel();
        // The call runs and cannot wait for another day.
        let _ = self.0.send(Asked::Form(form.clone(), filled));
        answered.await.unwrap_or(Filled::Dismissed)
    }
}
