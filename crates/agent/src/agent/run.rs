//! The loop: ask the model, make its calls, give it their results, until it has
//! nothing more to call.

use super::Settings;
use super::handle::{Busy, Events, Shared};
use super::limits::{self, Circle};
use super::record::NotRecorded;
use super::repair::Resumed;
use super::tell::Teller;
use crate::subagents::News;
use crate::{AgentEvent, Answer, Event, EventKind, Limit, Message, Origin, Said, Usage};
use futures::FutureExt;
use haft_store::sessions::{Batch, NewMessage, Redactor};
use serde_json::Value;
use std::any::Any;
use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What a run begins with.
pub(super) enum Begin {
    /// Something to do.
    Prompt(String),
    /// What is left over from the last run, and perhaps something to do.
    Resume(Resumed),
    /// Nothing but to make the conversation shorter.
    Compact,
}

/// Work on one prompt.
pub(super) struct Run {
    pub(super) settings: Arc<Settings>,
    pub(super) shared: Arc<Shared>,
    pub(super) teller: Teller,
    pub(super) cancel: CancellationToken,
    pub(super) usage: Usage,
    pub(super) turns: u64,
    pub(super) circle: Circle,
    /// How often the memory of tools had changed when it was recorded last.
    remembered: AtomicU64,
    pub(super) text: String,
    /// A turn has begun that has not ended.
    pub(super) is_in_turn: bool,
    /// How often an answer went back that did not fit the response format.
    pub(super) repairs: u32,
}

/// How a run ended.
pub(super) enum End {
    Done,
    Failed(String),
    Limit(Limit),
    Approval,
    Interrupted,
    /// It has been told already.
    Told,
}

impl From<NotRecorded> for End {
    fn from(error: NotRecorded) -> Self {
        Self::Failed(error.to_string())
    }
}

/// An answer whose calls only read. It is recorded together with their results, or before
/// them where they take a while.
pub(super) struct Unsaid {
    pub(super) message: Message,
    pub(super) batch: Batch,
}

/// What comes after a turn.
pub(super) enum Next {
    Turn,
    End(End),
}

/// Begins to work.
pub(super) fn begin(
    settings: Arc<Settings>,
    shared: &Arc<Shared>,
    begin: Begin,
) -> Result<Events, Busy> {
    let (sender, events) = mpsc::unbounded_channel();
    let cancel = shared.start(sender.clone())?;
    let mut run = Run {
        teller: Teller::new(shared, &settings, sender),
        remembered: AtomicU64::new(shared.runtime.state().changes()),
        settings,
        shared: Arc::clone(shared),
        cancel: cancel.clone(),
        usage: Usage::default(),
        turns: 0,
        circle: Circle::default(),
        text: String::new(),
        is_in_turn: false,
        repairs: 0,
    };
    let working = Working(Arc::clone(shared));
    tokio::spawn(async move {
        // Models and hooks are anybody's: one that falls over ends the run, which says so.
        let worked = AssertUnwindSafe(run.work(begin)).catch_unwind().await;
        if let Err(panic) = worked {
            run.end(End::Failed(fell_over("the run", &*panic))).await;
        }
        drop(working);
    });
    Ok(Events {
        events,
        _stop: cancel.drop_guard(),
    })
}

/// While it is there, the agent is at work: also when that ends in a panic.
struct Working(Arc<Shared>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// What to say of a panic.
pub(super) fn fell_over(what: &str, panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = haft::ops::text::decode::visible(text.unwrap_or("no message"));
    format!("{what} panicked: {text}")
}

impl Run {
    async fn work(&mut self, begin: Begin) {
        let end = match self.beginning(begin).await {
            Ok(Some(end)) | Err(end) => end,
            Ok(None) => self.turns().await,
        };
        self.end(end).await;
    }

    /// What comes before the first turn; an end, if there is none.
    async fn beginning(&mut self, begin: Begin) -> Result<Option<End>, End> {
        let id = self.shared.model().id();
        let start = AgentEvent::AgentStart {
            version: crate::EVENTS_VERSION,
            provider: id.provider,
            model: id.model,
        };
        let start = self.teller.prepared(start);
        let prompt = match begin {
            Begin::Prompt(text) => text,
            Begin::Compact => {
                self.teller.send(start);
                self.commit(self.batch()).await?;
                self.compact().await?;
                return Ok(Some(End::Done));
            }
            Begin::Resume(resumed) => {
                self.teller.send(start);
                self.commit(self.batch()).await?;
                if let Some(end) = self.take_up(&resumed).await? {
                    return Ok(Some(end));
                }
                if let Some(prompt) = resumed.prompt {
                    self.prompted(prompt).await?;
                    return Ok(None);
                }
                // It had come to its end, and perhaps nobody heard of it.
                return self.had_ended().await;
            }
        };
        if !self.settings.waits_for_background || self.settings.parent.is_some() {
            // The person may be here: what they did not answer they are asked again.
            let (background, runtime) = (&self.shared.background, &self.shared.runtime);
            background.resume_waiting(runtime, &[]);
        }
        // Nobody is told that it began before what it was asked is on the disk.
        let settled = self.settle().await;
        let said = match settled {
            Ok(()) => self.prompted(prompt).await,
            Err(error) => Err(error.into()),
        };
        self.teller.send(start);
        said?;
        Ok(None)
    }

    /// Ends the run if the last answer is there already and nothing else is under way.
    async fn had_ended(&mut self) -> Result<Option<End>, End> {
        let Some(text) = self.shared.lock().last_answer() else {
            return Ok(None);
        };
        self.text = text;
        let has_news = self.shared.background.has_news(&self.shared.runtime);
        if self.waits_for_tasks().await || has_news {
            return Ok(None);
        }
        match self.misfit(&self.text) {
            None if self.has_questions() => Ok(Some(End::Approval)),
            None => Ok(Some(End::Done)),
            Some(note) => {
                self.say(vec![note]).await?;
                Ok(None)
            }
        }
    }

    /// What the model is told of an answer that does not fit the response format.
    pub(super) fn misfit(&self, text: &str) -> Option<Message> {
        let problems = self.settings.format.as_ref()?.read(text).err()?;
        let note = format!(
            "[haft: your last message does not satisfy the response format, so it was not \
             accepted:\n{problems}\nSend the whole answer again as one JSON value that satisfies \
             the schema, and nothing else.]"
        );
        Some(Message::user(note, Origin::Note))
    }

    /// The end of a run whose answers do not fit the response format.
    pub(super) fn unfit(&self, text: &str) -> End {
        let format = self.settings.format.as_ref();
        let problems = format.and_then(|format| format.read(text).err());
        let problems = problems.unwrap_or_default().replace('\n', "; ");
        let times = self.repairs + 1;
        End::Failed(format!(
            "the final answer does not satisfy response_format after {times} attempts: {problems}; \
             simplify the schema, or try another model"
        ))
    }

    async fn prompted(&mut self, mut prompt: String) -> Result<(), End> {
        let hook = self.settings.hooks.before_agent(&mut prompt);
        let heard = AssertUnwindSafe(hook).catch_unwind().await;
        heard.map_err(|panic| End::Failed(fell_over("a hook", &*panic)))?;
        Ok(self.say(vec![Message::prompt(prompt)]).await?)
    }

    async fn turns(&mut self) -> End {
        loop {
            if self.cancel.is_cancelled() {
                return End::Interrupted;
            }
            self.usage.add(&self.shared.spent());
            if let Some(limit) = limits::reached(&self.settings, self.turns, &self.usage) {
                return End::Limit(limit);
            }
            if let Err(end) = self.hear().await {
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

    /// Takes in what was said meanwhile.
    pub(super) async fn hear(&mut self) -> Result<(), End> {
        let news = self.shared.background.news(&self.shared.runtime);
        let said = self.shared.steered();
        if news.is_empty() && said.is_empty() {
            return Ok(());
        }
        let notes = news
            .iter()
            .map(|one| Message::user(one.note(), Origin::Note));
        let heard = said
            .iter()
            .map(|text| Message::user(text.clone(), Origin::Steering));
        let messages: Vec<_> = notes.chain(heard).collect();
        let events = news.iter().map(News::event);
        let heard = said
            .iter()
            .map(|text| AgentEvent::Steering { text: text.clone() });
        let told: Vec<_> = events
            .chain(heard)
            .map(|event| self.teller.prepared(event))
            .collect();
        self.say(messages).await?;
        for event in told {
            self.teller.send(event);
        }
        Ok(())
    }

    /// The last words of a run.
    async fn end(&mut self, end: End) {
        let mut told = Vec::new();
        if self.is_in_turn {
            told.push(self.turn_end(&Usage::default()));
        }
        if !matches!(end, End::Told) {
            self.end_tasks(matches!(end, End::Approval)).await;
        }
        self.usage.add(&self.shared.spent());
        let reason = match end {
            End::Told => return,
            End::Done => "done",
            End::Approval => "approval",
            End::Interrupted => "interrupted",
            End::Limit(reason) => {
                let event = AgentEvent::TurnLimitReached { reason };
                told.push(self.teller.prepared(event));
                "limit"
            }
            End::Failed(message) => {
                told.push(self.teller.prepared(AgentEvent::Error { message }));
                "failed"
            }
        };
        told.push(self.teller.prepared(self.agent_end(reason)));
        if let Err(error) = self.commit(self.batch()).await {
            tracing::error!(%error, "the end of a run");
        }
        for event in told {
            self.teller.send(event);
        }
    }

    pub(super) fn agent_end(&self, reason: &'static str) -> AgentEvent {
        self.shared.is_ending();
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
        self.teller.prepared(AgentEvent::TurnEnd {
            turn: self.turns,
            usage: *usage,
            cost: usage.cost,
        })
    }

    pub(super) fn tell(&self, event: AgentEvent) {
        self.teller.tell(event);
    }

    pub(super) fn count(&mut self, usage: &Usage) {
        self.usage.add(usage);
        let mut conversation = self.shared.lock();
        conversation.total.add(usage);
        conversation.last = usage.total();
    }

    /// Adds to the conversation what is no answer with calls: recorded, then heard.
    pub(super) async fn say(&mut self, messages: Vec<Message>) -> Result<(), NotRecorded> {
        let batch = Batch {
            messages: messages.iter().map(recorded).collect(),
            ..self.batch()
        };
        let ids = self.commit(batch).await?;
        self.keep(messages, ids);
        Ok(())
    }

    /// What every transaction records: events until now, and what tools remember.
    pub(super) fn batch(&self) -> Batch {
        Batch {
            events: self.teller.take(),
            ..Batch::default()
        }
    }

    pub(super) async fn commit(&self, batch: Batch) -> Result<Vec<i64>, NotRecorded> {
        self.commit_after(None, batch).await
    }

    /// Records an answer that was not recorded yet, if there is one, and a batch after
    /// it, in one transaction. The numbers are those of the messages of the batch.
    pub(super) async fn commit_after(
        &self,
        unsaid: Option<Unsaid>,
        mut batch: Batch,
    ) -> Result<Vec<i64>, NotRecorded> {
        let (record, keeper, outer) = {
            let conversation = self.shared.lock();
            let (keeper, outer) = (conversation.keeper.clone(), conversation.outer.clone());
            (conversation.record.clone(), keeper, outer)
        };
        let kept = match &keeper {
            Some(keeper) => Some(keeper.add(&mut batch, &record).await?),
            None => None,
        };
        let state = self.shared.runtime.state();
        let held = match &outer {
            Some(outer) => outer.before(&record, state).await?,
            None => None,
        };
        let changes = state.changes();
        if record.is_on() && changes != self.remembered.load(Ordering::Relaxed) {
            batch.state = Some(Value::Object(state.snapshot()).to_string());
        }
        let (message, first) = unsaid.map(|unsaid| (unsaid.message, unsaid.batch)).unzip();
        let batches: Vec<Batch> = first.into_iter().chain([batch]).collect();
        let events = batches.iter().flat_map(|batch| &batch.events);
        let events: Vec<u64> = events.map(|(number, _)| *number).collect();
        let committed = record.commit(batches).await;
        let mut ids = committed.inspect_err(|_| self.teller.not_recorded())?;
        self.teller.recorded(events);
        if message.is_some() {
            self.teller.awaits(false);
        }
        self.remembered.store(changes, Ordering::Relaxed);
        if let Some(mut seen) = held {
            *seen = changes;
        }
        if let Some(kept) = kept {
            kept.recorded();
        }
        if let Some(message) = message {
            let rest = ids.split_off(ids.len().min(1));
            self.keep(vec![message], ids);
            ids = rest;
        }
        Ok(ids)
    }

    /// Commits what ends something. Where that cannot be recorded, what began has ended all
    /// the same, and whoever was told of the one is told of the other.
    pub(super) async fn commit_or_tell(
        &self,
        unsaid: Option<Unsaid>,
        batch: Batch,
        told: &[Event],
    ) -> Result<Vec<i64>, NotRecorded> {
        let committed = self.commit_after(unsaid, batch).await;
        if let Err(error) = &committed {
            for event in told {
                self.teller.send(not_recorded(event.clone(), error));
            }
        }
        committed
    }

    /// What was recorded is part of the conversation.
    pub(super) fn keep(&self, messages: Vec<Message>, ids: Vec<i64>) {
        let mut conversation = self.shared.lock();
        let ids = ids.into_iter().map(Some).chain(std::iter::repeat(None));
        let (said, ids): (Vec<_>, Vec<_>) = messages.into_iter().map(Said::new).zip(ids).unzip();
        Arc::make_mut(&mut conversation.history).extend(said);
        conversation.ids.extend(ids);
    }
}

/// The end of a call that no record has.
pub(super) fn not_recorded(mut event: Event, error: &NotRecorded) -> Event {
    if let EventKind::Tool(haft::EventKind::ToolEnd { details, .. }) = &mut event.kind {
        details.insert("not_recorded".to_owned(), error.to_string().into());
    }
    event
}

/// A message as the record has it.
pub(super) fn recorded(message: &Message) -> NewMessage {
    let (role, usage) = match message {
        Message::User { .. } => ("user", None),
        Message::Tool { .. } => ("tool", None),
        Message::Assistant(answer) => {
            let usage = &answer.usage;
            ("assistant", Some((usage.input, usage.output, usage.cost)))
        }
    };
    NewMessage {
        role: role.to_owned(),
        body: serde_json::to_string(&verbatim(message)).unwrap_or_default(),
        usage,
    }
}

/// What a provider wants to see again verbatim is of no use to it once the password of an
/// address is cut out: it may have signed it. The parts say the same.
fn verbatim(message: &Message) -> Cow<'_, Message> {
    if let Message::Assistant(answer) = message
        && let Some(native) = &answer.native
        && let Cow::Owned(_) = Redactor::default().scrub(&native.to_string())
    {
        return Cow::Owned(Message::Assistant(Answer {
            native: None,
            ..answer.clone()
        }));
    }
    Cow::Borrowed(message)
}
