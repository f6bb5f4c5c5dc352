//! The loop of a run: ask the model, run its calls, return their results to it, until an
//! answer has no calls.

use super::Settings;
use super::emit::Emitter;
use super::handle::{Busy, Events, Shared};
use super::limits::{self, LoopDetector};
use super::record::{NotRecorded, Recorder, recorded};
use super::resume::Resumed;
use crate::subagents::TaskUpdate;
use crate::{AgentEvent, Event, Limit, Message, Origin, Usage, UserInput};
use futures::FutureExt;
use haft_store::record::Batch;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Input that starts a run.
pub(super) enum RunInput {
    /// A prompt from the user.
    Prompt(UserInput),
    /// Continue with open calls, perhaps with a new prompt.
    Resume(Resumed),
    /// Only compact the conversation.
    Compact,
}

/// A run: the work on one prompt.
pub(super) struct Run {
    pub(super) settings: Arc<Settings>,
    pub(super) shared: Arc<Shared>,
    pub(super) emitter: Emitter,
    pub(super) recorder: Recorder,
    pub(super) cancel: CancellationToken,
    pub(super) usage: Usage,
    pub(super) turns: u64,
    pub(super) loop_detector: LoopDetector,
    pub(super) text: String,
    /// Whether `turn_start` was emitted without `turn_end`.
    pub(super) is_in_turn: bool,
    /// Number of answers so far that did not satisfy the response format.
    pub(super) corrections: u32,
}

/// The way a run ended.
pub(super) enum End {
    Done,
    Failed(String),
    Limit(Limit),
    Approval,
    Interrupted,
    /// The last event was emitted already.
    Emitted,
}

impl From<NotRecorded> for End {
    fn from(error: NotRecorded) -> Self {
        Self::Failed(error.to_string())
    }
}

/// The step after a turn.
pub(super) enum Next {
    Turn,
    End(End),
}

/// Starts a run in a new task.
pub(super) fn start(
    settings: Arc<Settings>,
    shared: &Arc<Shared>,
    input: RunInput,
) -> Result<Events, Busy> {
    let (sender, events) = mpsc::unbounded_channel();
    let cancel = shared.start(sender.clone())?;
    let emitter = Emitter::new(shared, &settings, sender);
    let mut run = Run {
        recorder: Recorder::new(shared, &emitter),
        emitter,
        settings,
        shared: Arc::clone(shared),
        cancel: cancel.clone(),
        usage: Usage::default(),
        turns: 0,
        loop_detector: LoopDetector::default(),
        text: String::new(),
        is_in_turn: false,
        corrections: 0,
    };
    let busy = BusyGuard(Arc::clone(shared));
    tokio::spawn(async move {
        // Models and hooks are foreign code: if one panics, the run fails with a message.
        let result = AssertUnwindSafe(run.work(input)).catch_unwind().await;
        if let Err(panic) = result {
            run.end(End::Failed(panic_message("the run", &*panic)))
                .await;
        }
        drop(busy);
    });
    Ok(Events {
        events,
        _stop: cancel.drop_guard(),
    })
}

/// Marks the agent as idle again when dropped, even after a panic.
struct BusyGuard(Arc<Shared>);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Describes a panic.
pub(super) fn panic_message(what: &str, panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = haft::ops::text::decode::visible(text.unwrap_or("no message"));
    format!("{what} panicked: {text}")
}

impl Run {
    async fn work(&mut self, input: RunInput) {
        let end = match self.prepare_run(input).await {
            Ok(Some(end)) | Err(end) => end,
            Ok(None) => self.turns().await,
        };
        self.end(end).await;
    }

    /// Handles the input before the first turn. Returns the end of the run if no turn is
    /// needed.
    async fn prepare_run(&mut self, input: RunInput) -> Result<Option<End>, End> {
        let id = self.shared.model().id();
        let start = AgentEvent::AgentStart {
            version: crate::EVENTS_VERSION,
            provider: id.provider,
            model: id.model,
        };
        let start = self.emitter.prepare(start);
        let prompt = match input {
            RunInput::Prompt(input) => input,
            RunInput::Compact => {
                self.emitter.send(start);
                self.recorder.commit(self.recorder.batch()).await?;
                self.compact().await?;
                return Ok(Some(End::Done));
            }
            RunInput::Resume(resumed) => {
                self.emitter.send(start);
                self.recorder.commit(self.recorder.batch()).await?;
                if let Some(end) = self.resume_calls(&resumed).await? {
                    return Ok(Some(end));
                }
                if let Some(prompt) = resumed.prompt {
                    self.start_prompt(prompt).await?;
                    return Ok(None);
                }
                // The process may have been killed after the last answer.
                return self.resume_finished().await;
            }
        };
        if !self.settings.waits_for_background || self.settings.parent.is_some() {
            // An interactive user is asked again about what they have not answered.
            let (background, runtime) = (&self.shared.background, &self.shared.runtime);
            background.resume_waiting(runtime, &[]);
        }
        // The prompt is recorded before `agent_start` is emitted.
        let recorded = match self.close_open_calls().await {
            Ok(()) => self.start_prompt(prompt).await,
            Err(error) => Err(error.into()),
        };
        self.emitter.send(start);
        recorded?;
        Ok(None)
    }

    /// Ends the run if the conversation ends with a final answer and no background work is
    /// left.
    async fn resume_finished(&mut self) -> Result<Option<End>, End> {
        let Some(text) = self.shared.lock().last_answer() else {
            return Ok(None);
        };
        self.text = text;
        let has_updates = self.shared.background.has_updates(&self.shared.runtime);
        if self.wait_for_tasks().await || has_updates {
            return Ok(None);
        }
        match self.format_problem(&self.text) {
            None if self.has_questions() => Ok(Some(End::Approval)),
            None => Ok(Some(End::Done)),
            Some(note) => {
                self.append(vec![note]).await?;
                Ok(None)
            }
        }
    }

    /// Returns a note for the model if an answer does not satisfy the response format.
    pub(super) fn format_problem(&self, text: &str) -> Option<Message> {
        let problems = self.settings.format.as_ref()?.read(text).err()?;
        let note = format!(
            "[haft: your last message does not satisfy the response format and was not \
             accepted:\n{problems}\nSend the whole answer again as one JSON value that satisfies \
             the schema, and nothing else.]"
        );
        Some(Message::user(note, Origin::Note))
    }

    /// Fails the run because its answers do not satisfy the response format.
    pub(super) fn format_failure(&self, text: &str) -> End {
        let format = self.settings.format.as_ref();
        let problems = format.and_then(|format| format.read(text).err());
        let problems = problems.unwrap_or_default().replace('\n', "; ");
        let times = self.corrections + 1;
        End::Failed(format!(
            "the final answer does not satisfy response_format after {times} attempts: {problems}; \
             simplify the schema, or try another model"
        ))
    }

    async fn start_prompt(&mut self, mut prompt: UserInput) -> Result<(), End> {
        let hook = self.settings.hooks.before_agent(&mut prompt.text);
        let result = AssertUnwindSafe(hook).catch_unwind().await;
        result.map_err(|panic| End::Failed(panic_message("a hook", &*panic)))?;
        Ok(self.append(prompt.into_messages()).await?)
    }

    async fn turns(&mut self) -> End {
        loop {
            if self.cancel.is_cancelled() {
                return End::Interrupted;
            }
            self.usage.add(&self.shared.take_spent());
            if let Some(limit) = limits::reached(&self.settings, self.turns, &self.usage) {
                return End::Limit(limit);
            }
            if let Err(end) = self.take_messages().await {
                return end;
            }
            if let Err(end) = self.compact_if_long().await {
                return end;
            }
            match self.turn().await {
                Ok(Next::Turn) => {}
                Ok(Next::End(end)) => return end,
                Err(error) => return error.into(),
            }
        }
    }

    /// Adds steering messages and updates about background tasks to the conversation.
    pub(super) async fn take_messages(&mut self) -> Result<(), End> {
        let undone = self.undo_notes().await;
        let updates = self.shared.background.updates(&self.shared.runtime);
        let steering = self.shared.take_steering();
        if updates.is_empty() && steering.is_empty() && undone.is_empty() {
            return Ok(());
        }
        let undone = undone
            .into_iter()
            .map(|note| Message::user(note, Origin::Note));
        let notes = updates
            .iter()
            .map(|one| Message::user(one.note(), Origin::Note));
        let steered = steering
            .iter()
            .map(|text| Message::user(text.clone(), Origin::Steering));
        let messages: Vec<_> = undone.chain(notes).chain(steered).collect();
        let events = updates.iter().map(TaskUpdate::event);
        let steered = steering
            .iter()
            .map(|text| AgentEvent::Steering { text: text.clone() });
        let events: Vec<_> = events
            .chain(steered)
            .map(|event| self.emitter.prepare(event))
            .collect();
        self.append(messages).await?;
        for event in events {
            self.emitter.send(event);
        }
        Ok(())
    }

    /// Returns notes for the model about what the user undid.
    async fn undo_notes(&self) -> Vec<String> {
        let (mut known, since) = self.shared.lock().told_undos.clone();
        let notes = self.shared.runtime.undo_notes(&mut known, since).await;
        self.shared.lock().told_undos.0 = known;
        notes
    }

    /// Records and emits the last events of a run.
    async fn end(&mut self, end: End) {
        let mut events = Vec::new();
        if self.is_in_turn {
            events.push(self.turn_end(&Usage::default()));
        }
        if !matches!(end, End::Emitted) {
            self.end_tasks(matches!(end, End::Approval)).await;
        }
        self.usage.add(&self.shared.take_spent());
        let reason = match end {
            End::Emitted => return,
            End::Done => "done",
            End::Approval => "approval",
            End::Interrupted => "interrupted",
            End::Limit(reason) => {
                let event = AgentEvent::TurnLimitReached { reason };
                events.push(self.emitter.prepare(event));
                "limit"
            }
            End::Failed(message) => {
                events.push(self.emitter.prepare(AgentEvent::Error { message }));
                "failed"
            }
        };
        events.push(self.emitter.prepare(self.agent_end(reason)));
        if let Err(error) = self.recorder.commit(self.recorder.batch()).await {
            tracing::error!(%error, "cannot record the end of the run");
        }
        for event in events {
            self.emitter.send(event);
        }
    }

    pub(super) fn agent_end(&self, reason: &'static str) -> AgentEvent {
        self.shared.stop_forwarding();
        self.shared.lock().text.clone_from(&self.text);
        let format = self.settings.format.as_ref();
        let format = format.filter(|_| reason == "done");
        AgentEvent::AgentEnd {
            reason,
            text: self.text.clone(),
            response: format.and_then(|format| format.read(&self.text).ok()),
            usage: self.usage,
            cost: self.usage.cost,
        }
    }

    pub(super) fn turn_end(&mut self, usage: &Usage) -> Event {
        self.is_in_turn = false;
        self.emitter.prepare(AgentEvent::TurnEnd {
            turn: self.turns,
            usage: *usage,
            cost: usage.cost,
        })
    }

    pub(super) fn emit(&self, event: AgentEvent) {
        self.emitter.emit(event);
    }

    pub(super) fn count(&mut self, usage: &Usage) {
        self.usage.add(usage);
        let mut conversation = self.shared.lock();
        conversation.total.add(usage);
        conversation.last = usage.total();
    }

    /// Records messages and adds them to the conversation. Not for answers with calls.
    pub(super) async fn append(&mut self, messages: Vec<Message>) -> Result<(), NotRecorded> {
        let batch = Batch {
            messages: messages.iter().map(recorded).collect(),
            ..self.recorder.batch()
        };
        let ids = self.recorder.commit(batch).await?;
        self.recorder.extend_history(messages, ids);
        Ok(())
    }
}
