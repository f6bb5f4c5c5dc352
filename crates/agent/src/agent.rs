//! The agent: runs the loop between a model and the tools.
//!
//! ```text
//! prompt ─▶ commit the prompt                              run.rs
//!   ┌────▶ ask the model, retry if that may help           ask.rs, provider/
//!   │      commit the answer and its calls                 journal.rs
//!   │      run the calls, in parallel where allowed        calls.rs → Runtime::finish_each
//!   │      commit their results, then emit the events      journal.rs, turn.rs, emit.rs
//!   └───── until there are no more calls, a limit is reached, or approval is pending
//! ```
//!
//! Everything that must be true together is one `Batch` of the store, committed in one
//! transaction. Events are emitted only after the fact is committed: `agent_start` after the
//! prompt, `tool_start` after the intent, `tool_end` and `turn_end` after the result; events
//! without a transaction of their own, such as `turn_start`, get a small one. So whatever was
//! visible before a SIGKILL is there after it. A call without a result has an unknown outcome:
//! it is not repeated, and a note tells the model (`resume.rs`). Files in memory
//! (`Backing::State`) are part of the same transaction and belong to the session of the
//! outermost agent.
//!
//! A sub-agent is a tool (`subagents/`) that runs another `Agent` in a session within the
//! session (`Runtime::narrowed`): the same files, rules, sandbox and user, with fewer tools.

mod ask;
mod background;
mod calls;
mod compact;
mod emit;
mod files;
mod handle;
mod journal;
mod limits;
mod load;
mod outermost;
mod pictures;
mod record;
mod redact;
mod resume;
mod run;
mod turn;

pub(crate) use handle::WeakHandle;
pub use handle::{BackgroundEvents, Busy, Events, Handle};
pub use load::{ApprovalQuestion, LoadError};
pub use resume::Resumed;

use crate::hooks::{Hooks, NoHooks};
use crate::{Event, EventKind, Message, Model, ResponseFormat, Usage, UserInput};
use haft::{Runtime, Tools};
use haft_store::record::SessionRecord;
pub(crate) use handle::Shared;
use record::Record;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// Options of an agent.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) system: String,
    pub(crate) max_turns: u64,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_cost: Option<f64>,
    pub(crate) max_retries: u64,
    pub(crate) max_output: Option<u64>,
    pub(crate) backoff: Duration,
    /// Context window in tokens for models whose own is unknown.
    pub(crate) context: u64,
    pub(crate) hooks: Arc<dyn Hooks>,
    pub(crate) parent: Option<String>,
    pub(crate) format: Option<Arc<ResponseFormat>>,
    /// Whether a run waits for its sub-agents in the background.
    pub(crate) waits_for_background: bool,
}

impl Settings {
    /// Returns the system prompt, including the instructions for the response format.
    pub(crate) fn system_prompt(&self) -> Cow<'_, str> {
        match &self.format {
            None => Cow::Borrowed(&self.system),
            Some(format) => {
                let parts = [self.system.trim(), &format.instructions()];
                Cow::Owned(parts.join("\n\n").trim().to_owned())
            }
        }
    }
}

/// A model that works with tools. It works on one prompt at a time; messages sent meanwhile
/// [steer](Handle::steer) it.
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
    /// Creates an agent with an empty conversation.
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

    /// Sets the system prompt.
    #[must_use]
    pub fn system(mut self, system: impl Into<String>) -> Self {
        self.settings.system = system.into();
        self
    }

    /// Limits the number of turns per run.
    #[must_use]
    pub fn max_turns(mut self, turns: u64) -> Self {
        self.settings.max_turns = turns;
        self
    }

    /// Limits the number of input and output tokens per run.
    #[must_use]
    pub fn max_tokens(mut self, tokens: Option<u64>) -> Self {
        self.settings.max_tokens = tokens;
        self
    }

    /// Limits the cost per run in USD. Has no effect if the price is unknown.
    #[must_use]
    pub fn max_cost(mut self, cost: Option<f64>) -> Self {
        self.settings.max_cost = cost;
        self
    }

    /// Sets how often a request is retried after a transient error.
    #[must_use]
    pub fn max_retries(mut self, retries: u64) -> Self {
        self.settings.max_retries = retries;
        self
    }

    /// Sets the delay before the first retry. It doubles with each further one.
    #[must_use]
    pub fn backoff(mut self, backoff: Duration) -> Self {
        self.settings.backoff = backoff;
        self
    }

    /// Limits the number of tokens per answer.
    #[must_use]
    pub fn max_output(mut self, tokens: Option<u64>) -> Self {
        self.settings.max_output = tokens;
        self
    }

    /// Sets the context window in tokens for models whose own is unknown. The conversation
    /// is compacted before it exceeds the window.
    #[must_use]
    pub fn context(mut self, tokens: u64) -> Self {
        self.settings.context = tokens;
        self
    }

    /// Sets a format that the final answer must satisfy. If it does not, the model is asked
    /// to correct it, up to three times; then the run fails.
    #[must_use]
    pub fn response_format(mut self, format: Option<ResponseFormat>) -> Self {
        self.settings.format = format.map(Arc::new);
        self
    }

    /// Sets whether a run waits for the sub-agents that it started in the background.
    /// Otherwise they keep working between runs, until the agent is dropped.
    #[must_use]
    pub fn waits_for_background(mut self, waits: bool) -> Self {
        self.settings.waits_for_background = waits;
        self
    }

    /// Sets the hooks.
    #[must_use]
    pub fn hooks(mut self, hooks: Arc<dyn Hooks>) -> Self {
        self.settings.hooks = hooks;
        self
    }

    /// Sets the session of the agent that this one works for.
    #[must_use]
    pub fn parent(mut self, session: impl Into<String>) -> Self {
        self.settings.parent = Some(session.into());
        self
    }

    /// Records the conversation in a session. Facts are recorded before events report them.
    #[must_use]
    pub fn recorded(self, session: impl SessionRecord + 'static) -> Self {
        self.recorded_in(Arc::new(session))
    }

    pub(crate) fn recorded_in(self, session: Arc<dyn SessionRecord>) -> Self {
        self.shared.record(Record::new(session));
        self
    }

    /// Starts a run with a prompt. Dropping the events stops the run.
    ///
    /// # Errors
    /// When a run is active: use [`steer`](Handle::steer), or wait for its end.
    pub async fn prompt(&self, input: impl Into<UserInput>) -> Result<Events, Busy> {
        self.start(run::RunInput::Prompt(input.into()))
    }

    /// Continues a session: pending calls run or are rejected, depending on the user's
    /// answers, and the model learns which calls were interrupted.
    ///
    /// # Errors
    /// When a run is active.
    pub async fn resume(&self, resumed: Resumed) -> Result<Events, Busy> {
        self.start(run::RunInput::Resume(resumed))
    }

    /// Compacts the conversation: replaces older messages with a summary.
    ///
    /// # Errors
    /// When a run is active.
    pub async fn compact(&self) -> Result<Events, Busy> {
        self.start(run::RunInput::Compact)
    }

    fn start(&self, input: run::RunInput) -> Result<Events, Busy> {
        run::start(Arc::new(self.settings.clone()), &self.shared, input)
    }

    /// Returns a handle that steers and stops the agent from elsewhere.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(&self.shared)
    }

    /// Queues a message that the model receives before the next turn, in the current run or
    /// the next one.
    pub fn steer(&self, text: impl Into<String>) {
        self.handle().steer(text);
    }

    /// Stops the current run. Calls that are running are cancelled and recorded as such.
    pub fn abort(&self) {
        self.handle().abort();
    }

    /// Ends everything that its tools started. Returns and records one line per change to a
    /// protected path: see [`Runtime::close`].
    pub async fn close(&self) -> Vec<String> {
        let notes = self.shared.runtime.close().await;
        if !notes.is_empty() {
            let kind = EventKind::Agent(crate::AgentEvent::LastLook {
                notes: notes.clone(),
            });
            let event = stamped(&self.shared, &self.settings, kind);
            let text = serde_json::to_string(&event).unwrap_or_default();
            let record = self.shared.lock().record.clone();
            if let Err(error) = record.commit_events(vec![(event.seq, text)]).await {
                tracing::error!(%error, "cannot record the end of the session");
            }
        }
        notes
    }

    /// Returns the tools. Tools may be added and removed during a run.
    #[must_use]
    pub fn tools(&self) -> &Tools {
        self.shared.runtime.tools()
    }

    /// Returns the runtime that runs the calls.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }

    /// Whether the final answer must satisfy a format.
    #[must_use]
    pub fn has_response_format(&self) -> bool {
        self.settings.format.is_some()
    }

    /// Returns the ids of the sub-agents that are working in the background.
    #[must_use]
    pub fn background_tasks(&self) -> Vec<String> {
        self.shared.background.live_ids()
    }

    /// Returns the events of sub-agents in the background, also between runs. From now on
    /// these events appear here and not in the events of a run.
    ///
    /// Each change of status is reported immediately, as a
    /// [`BackgroundTask`](crate::AgentEvent) of the agent's own session that is not recorded.
    /// When the model learns of the end of a task, the run emits the event once more. Only
    /// the newest stream receives events.
    #[must_use]
    pub fn watch_background(&self) -> BackgroundEvents {
        self.shared.watch_background()
    }

    /// Returns the session id.
    #[must_use]
    pub fn session(&self) -> &str {
        self.shared.runtime.session()
    }

    /// Replaces the model, starting with the next request.
    pub fn set_model(&self, model: Arc<dyn Model>) {
        self.shared.set_model(model);
    }

    /// Returns the model.
    #[must_use]
    pub fn model(&self) -> Arc<dyn Model> {
        self.shared.model()
    }

    /// Returns the usage of all runs so far, including sub-agents.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.shared.lock().total
    }

    /// Returns the tokens of the conversation at the last request, and how many the model can
    /// take.
    #[must_use]
    pub fn context_size(&self) -> (u64, u64) {
        let window = self.model().context_window();
        (
            self.shared.lock().last,
            window.unwrap_or(self.settings.context),
        )
    }

    /// Returns the conversation as the model sees it.
    #[must_use]
    pub fn history(&self) -> Vec<Arc<Message>> {
        Vec::clone(&self.shared.lock().history)
    }

    /// Returns the text of the last answer.
    #[must_use]
    pub fn last_text(&self) -> String {
        let conversation = self.shared.lock();
        let last = conversation
            .history
            .iter()
            .rev()
            .find_map(|message| match &**message {
                Message::Assistant(answer) => Some(answer.text()),
                _ => None,
            });
        last.unwrap_or_default()
    }
}

/// Creates an event with the next number and the current time.
pub(crate) fn stamped(shared: &Shared, settings: &Settings, kind: EventKind) -> Event {
    Event {
        kind,
        session: shared.runtime.session().to_owned(),
        parent: settings.parent.clone(),
        seq: shared.next_seq(),
        time: haft::ops::text::moment::to_millis(std::time::SystemTime::now()),
    }
}
