//! The agent: runs the loop between a model and the tools.
//!
//! ```text
//! prompt ─▶ commit the prompt                              run.rs
//!   ┌────▶ ask the model; retry where that may help        ask.rs, provider/
//!   │      commit the answer and the calls it will make    turn.rs
//!   │      make the calls, in parallel where allowed       calls.rs → Runtime::run_each
//!   │      commit their results, then emit the events      turn.rs, tell.rs
//!   └───── until there are no more calls, a limit is reached, or approval is pending
//! ```
//!
//! Everything that must be true together is one `Batch` of the store, committed in one
//! transaction. Events are emitted only after the fact is committed: `agent_start` after the
//! prompt, `tool_start` after the intent, `tool_end` and `turn_end` after the result; events
//! without a transaction of their own, such as `turn_start`, get a small one. So whatever was
//! visible before a SIGKILL is there after it. A call without a result has an unknown outcome:
//! it is not repeated, and the model is told so (`repair.rs`). Files in memory
//! (`Backing::State`) are part of the same transaction and belong to the session of the
//! outermost agent.
//!
//! A sub-agent is a tool (`subagents/`) that runs another `Agent` in a session within the
//! session (`Runtime::narrowed`): the same files, rules, sandbox and user, with fewer tools.

mod ask;
mod background;
mod calls;
mod compact;
mod handle;
mod hide;
mod keeper;
mod limits;
mod load;
mod outer;
mod pictures;
mod record;
mod repair;
mod run;
mod tell;
mod turn;

pub(crate) use handle::WeakHandle;
pub use handle::{BackgroundEvents, Busy, Events, Handle};
pub use load::{Asked, LoadError};
pub use repair::Resumed;

use crate::hooks::{Hooks, NoHooks};
use crate::{Event, EventKind, Message, Model, ResponseFormat, Said, Usage};
use haft::{Runtime, Tools};
use haft_store::sessions::Session;
pub(crate) use handle::Shared;
use record::Record;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// How an agent works.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) system: String,
    pub(crate) max_turns: u64,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_cost: Option<f64>,
    pub(crate) max_retries: u64,
    pub(crate) max_output: Option<u64>,
    pub(crate) backoff: Duration,
    /// How many tokens a conversation may have where the model does not say.
    pub(crate) context: u64,
    pub(crate) hooks: Arc<dyn Hooks>,
    pub(crate) parent: Option<String>,
    pub(crate) format: Option<Arc<ResponseFormat>>,
    /// A run goes on until its background sub-agents have ended.
    pub(crate) waits_for_background: bool,
}

impl Settings {
    /// What the model is told first.
    pub(crate) fn told(&self) -> Cow<'_, str> {
        match &self.format {
            None => Cow::Borrowed(&self.system),
            Some(format) => {
                let parts = [self.system.trim(), &format.instructions()];
                Cow::Owned(parts.join("\n\n").trim().to_owned())
            }
        }
    }
}

/// A model that works with tools. One prompt at a time; what is said meanwhile
/// [steers](Handle::steer) it.
///
/// ```no_run
/// # use futures::StreamExt;
/// # async fn example(model: std::sync::Arc<dyn haft_agent::Model>) -> Result<(), Box<dyn std::error::Error>> {
/// let runtime = haft::Runtime::builder().dir(".").build()?;
/// let agent = haft_agent::Agent::new(model, runtime).system("You fix tests.");
/// let mut events = agent.prompt("Fix the failing test").await?;
/// while let Some(event) = events.next().await {
///     println!("{}", serde_json::to_string(&event)?);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Agent {
    pub(crate) settings: Settings,
    pub(crate) shared: Arc<Shared>,
}

impl Agent {
    /// An agent that has heard nothing yet.
    #[must_use]
    pub fn new(model: Arc<dyn Model>, runtime: Runtime) -> Self {
        Self {
            settings: Settings {
                system: String::new(),
                max_turns: 50,
                max_tokens: None,
                max_cost: None,
                max_retries: 3,
                max_output: None,
                backoff: Duration::from_millis(500),
                context: 128_000,
                hooks: Arc::new(NoHooks),
                parent: None,
                format: None,
                waits_for_background: false,
            },
            shared: Arc::new(Shared::new(model, runtime)),
        }
    }

    /// The system prompt.
    #[must_use]
    pub fn system(mut self, system: impl Into<String>) -> Self {
        self.settings.system = system.into();
        self
    }

    /// The most turns for one prompt.
    #[must_use]
    pub fn max_turns(mut self, turns: u64) -> Self {
        self.settings.max_turns = turns;
        self
    }

    /// The most tokens, both ways, for one prompt.
    #[must_use]
    pub fn max_tokens(mut self, tokens: Option<u64>) -> Self {
        self.settings.max_tokens = tokens;
        self
    }

    /// The most USD for one prompt, where the price is known.
    #[must_use]
    pub fn max_cost(mut self, cost: Option<f64>) -> Self {
        self.settings.max_cost = cost;
        self
    }

    /// How often a request is repeated that may pass.
    #[must_use]
    pub fn max_retries(mut self, retries: u64) -> Self {
        self.settings.max_retries = retries;
        self
    }

    /// How long the first repetition waits; each further one waits twice as long.
    #[must_use]
    pub fn backoff(mut self, backoff: Duration) -> Self {
        self.settings.backoff = backoff;
        self
    }

    /// The most tokens of one answer.
    #[must_use]
    pub fn max_output(mut self, tokens: Option<u64>) -> Self {
        self.settings.max_output = tokens;
        self
    }

    /// How many tokens a conversation may have before it is made shorter, where the
    /// model does not say how many it can take.
    #[must_use]
    pub fn context(mut self, tokens: u64) -> Self {
        self.settings.context = tokens;
        self
    }

    /// A format that the final answer must satisfy. An answer that does not goes back to
    /// the model with the problems, up to three times; then the run fails.
    #[must_use]
    pub fn response_format(mut self, format: Option<ResponseFormat>) -> Self {
        self.settings.format = format.map(Arc::new);
        self
    }

    /// Whether a run goes on until the sub-agents that it has started in the background
    /// have ended. Otherwise they keep working between runs, for as long as the agent
    /// lives.
    #[must_use]
    pub fn waits_for_background(mut self, waits: bool) -> Self {
        self.settings.waits_for_background = waits;
        self
    }

    /// Somebody who has a say.
    #[must_use]
    pub fn hooks(mut self, hooks: Arc<dyn Hooks>) -> Self {
        self.settings.hooks = hooks;
        self
    }

    /// Part of the work of another agent, by its session.
    #[must_use]
    pub fn parent(mut self, session: impl Into<String>) -> Self {
        self.settings.parent = Some(session.into());
        self
    }

    /// Everything is recorded there, before it counts as done.
    #[must_use]
    pub fn recorded(self, session: Session) -> Self {
        self.shared.record(Record::new(Some(session)));
        self
    }

    /// Begins to work on a prompt. Dropping the events stops it.
    ///
    /// # Errors
    /// When it works on another one: say it to [`steer`](Handle::steer), or wait.
    pub async fn prompt(&self, text: impl Into<String>) -> Result<Events, Busy> {
        self.begin(run::Begin::Prompt(text.into()))
    }

    /// Goes on where it stopped: calls that wait for an answer are made or refused,
    /// what was interrupted is told to the model.
    ///
    /// # Errors
    /// When it works already.
    pub async fn resume(&self, resumed: Resumed) -> Result<Events, Busy> {
        self.begin(run::Begin::Resume(resumed))
    }

    /// Makes the conversation shorter now.
    ///
    /// # Errors
    /// When it works already.
    pub async fn compact(&self) -> Result<Events, Busy> {
        self.begin(run::Begin::Compact)
    }

    fn begin(&self, begin: run::Begin) -> Result<Events, Busy> {
        run::begin(Arc::new(self.settings.clone()), &self.shared, begin)
    }

    /// To steer and stop it from elsewhere.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(&self.shared)
    }

    /// Says something while it works; it hears it before its next turn. While it does
    /// not work, that is with the next prompt.
    pub fn steer(&self, text: impl Into<String>) {
        self.handle().steer(text);
    }

    /// Stops it. What it was doing is ended and recorded as such.
    pub fn abort(&self) {
        self.handle().abort();
    }

    /// Ends everything that its tools started, and answers with what had happened at
    /// protected places, a line each: see [`Runtime::close`]. It is recorded as well.
    pub async fn close(&self) -> Vec<String> {
        let notes = self.shared.runtime.close().await;
        if !notes.is_empty() {
            let kind = EventKind::Agent(crate::AgentEvent::LastLook {
                notes: notes.clone(),
            });
            let event = stamped(&self.shared, &self.settings, kind);
            let text = serde_json::to_string(&event).unwrap_or_default();
            let record = self.shared.lock().record.clone();
            if let Err(error) = record.note(vec![(event.seq, text)]).await {
                tracing::error!(%error, "the end of a session could not be recorded");
            }
        }
        notes
    }

    /// The tools, which may come and go while it works.
    #[must_use]
    pub fn tools(&self) -> &Tools {
        self.shared.runtime.tools()
    }

    /// The session of tools it works with.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }

    /// Whether its final answer must satisfy a format.
    #[must_use]
    pub fn has_response_format(&self) -> bool {
        self.settings.format.is_some()
    }

    /// The `task_id`s of its sub-agents that work in the background.
    #[must_use]
    pub fn background_tasks(&self) -> Vec<String> {
        self.shared.background.live_ids()
    }

    /// What its sub-agents in the background do from now on, also while the agent itself does
    /// nothing. Those events are told here instead of among those of a run. So is every
    /// change of their status, at once, as a [`BackgroundTask`](crate::AgentEvent) of the
    /// agent's own session that is not recorded; a run tells of an end once more, when the
    /// model hears of it. Only the newest of several who watch is told.
    #[must_use]
    pub fn watch_background(&self) -> BackgroundEvents {
        self.shared.watch_background()
    }

    /// The session's id.
    #[must_use]
    pub fn session(&self) -> &str {
        self.shared.runtime.session()
    }

    /// Another model, from the next turn on.
    pub fn set_model(&self, model: Arc<dyn Model>) {
        self.shared.set_model(model);
    }

    /// The model it asks.
    #[must_use]
    pub fn model(&self) -> Arc<dyn Model> {
        self.shared.model()
    }

    /// What all prompts so far took.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.shared.lock().total
    }

    /// What was said so far, as the model hears it.
    #[must_use]
    pub fn history(&self) -> Vec<Arc<Said>> {
        Vec::clone(&self.shared.lock().history)
    }

    /// The text of the last answer.
    #[must_use]
    pub fn last_text(&self) -> String {
        let conversation = self.shared.lock();
        let last = conversation
            .history
            .iter()
            .rev()
            .find_map(|said| match &said.message {
                Message::Assistant(answer) => Some(answer.text()),
                _ => None,
            });
        last.unwrap_or_default()
    }
}

/// An event that is about to be told.
pub(crate) fn stamped(shared: &Shared, settings: &Settings, kind: EventKind) -> Event {
    Event {
        kind,
        session: shared.runtime.session().to_owned(),
        parent: settings.parent.clone(),
        seq: shared.next_seq(),
        time: haft::ops::text::moment::to_millis(std::time::SystemTime::now()),
    }
}
