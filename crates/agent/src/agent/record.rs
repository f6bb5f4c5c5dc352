//! The record of a conversation.

use super::emit::Emitter;
use super::handle::{OpenCalls, Shared};
use crate::provider::Secret;
use crate::{Event, EventKind, Message, ModelAnswer, ToolCall};
use haft_store::record::{Batch, NewMessage, Redactor, SessionRecord};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The session that a conversation is recorded in, if any.
#[derive(Clone, Default)]
pub(crate) struct Record {
    session: Option<Arc<dyn SessionRecord>>,
}

/// A failed transaction.
#[derive(Debug, thiserror::Error)]
#[error("cannot record the session: {0}")]
pub(crate) struct NotRecorded(String);

impl From<NotRecorded> for haft::Error {
    fn from(error: NotRecorded) -> Self {
        Self::failed(error.0)
    }
}

impl From<haft::Error> for NotRecorded {
    fn from(error: haft::Error) -> Self {
        Self(error.to_string())
    }
}

impl Record {
    pub(crate) fn new(session: Arc<dyn SessionRecord>) -> Self {
        Self {
            session: Some(session),
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.session.is_some()
    }

    /// Whether both records are the same session.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.session, &other.session) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Redacts a key from everything that is recorded.
    pub(crate) fn redact(&self, secret: &Secret) {
        if let Some(session) = &self.session {
            session.redact(secret.expose().to_owned());
        }
    }

    /// Records events in a small transaction.
    pub(crate) async fn commit_events(
        &self,
        events: Vec<(u64, String)>,
    ) -> Result<(), NotRecorded> {
        let batch = Batch {
            events,
            ..Batch::default()
        };
        match &self.session {
            None => Ok(()),
            Some(session) => session.commit_lightly(batch).await.map_err(NotRecorded),
        }
    }

    /// Commits batches in one transaction and returns the ids of the messages.
    pub(crate) async fn commit(&self, batches: Vec<Batch>) -> Result<Vec<i64>, NotRecorded> {
        match &self.session {
            None => Ok(Vec::new()),
            Some(session) => session.commit(batches).await.map_err(NotRecorded),
        }
    }
}

/// Commits the facts of a run. Clones share their state.
#[derive(Clone)]
pub(super) struct Recorder {
    shared: Arc<Shared>,
    emitter: Emitter,
    /// Change count of the tools' state when it was recorded last.
    recorded_state: Arc<AtomicU64>,
}

/// An answer whose calls only read. It is recorded together with their results, or earlier if
/// the calls take a while.
pub(super) struct UnrecordedAnswer {
    pub(super) message: Message,
    pub(super) batch: Batch,
    /// The calls with the arguments that the model sent.
    pub(super) calls: Vec<ToolCall>,
}

impl Recorder {
    pub(super) fn new(shared: &Arc<Shared>, emitter: &Emitter) -> Self {
        let changes = shared.runtime.state().changes();
        Self {
            shared: Arc::clone(shared),
            emitter: emitter.clone(),
            recorded_state: Arc::new(AtomicU64::new(changes)),
        }
    }

    pub(super) fn emitter(&self) -> &Emitter {
        &self.emitter
    }

    /// Sets the calls that have no result yet.
    pub(super) fn set_open(&self, open: OpenCalls) {
        self.shared.lock().open = Some(open);
    }

    /// Creates a batch with the events that are not recorded yet.
    pub(super) fn batch(&self) -> Batch {
        Batch {
            events: self.emitter.take_unrecorded(),
            ..Batch::default()
        }
    }

    /// Commits a batch in one transaction, together with changed files and state. Returns the
    /// ids of its messages.
    pub(super) async fn commit(&self, batch: Batch) -> Result<Vec<i64>, NotRecorded> {
        self.commit_after(None, batch).await
    }

    /// Commits a batch in one transaction, together with changed files and state, and with
    /// the answer before it if that is not recorded yet. Returns the ids of the batch's
    /// messages.
    pub(super) async fn commit_after(
        &self,
        unrecorded_answer: Option<UnrecordedAnswer>,
        mut batch: Batch,
    ) -> Result<Vec<i64>, NotRecorded> {
        let (record, files, outermost) = {
            let conversation = self.shared.lock();
            let (files, outermost) = (conversation.files.clone(), conversation.outermost.clone());
            (conversation.record.clone(), files, outermost)
        };
        let changed_files = match &files {
            Some(files) => Some(files.add(&mut batch, &record).await?),
            None => None,
        };
        let state = self.shared.runtime.state();
        let recorded_changes = match &outermost {
            Some(outermost) => outermost.before(&record, state).await?,
            None => None,
        };
        let changes = state.changes();
        if record.is_on() && changes != self.recorded_state.load(Ordering::Relaxed) {
            batch.state = Some(Value::Object(state.snapshot()).to_string());
        }
        let (message, first) = unrecorded_answer
            .map(|unrecorded_answer| (unrecorded_answer.message, unrecorded_answer.batch))
            .unzip();
        let batches: Vec<Batch> = first.into_iter().chain([batch]).collect();
        let events = batches.iter().flat_map(|batch| &batch.events);
        let events: Vec<u64> = events.map(|(number, _)| *number).collect();
        let committed = record.commit(batches).await;
        let mut ids = committed.inspect_err(|_| self.emitter.not_recorded())?;
        self.emitter.recorded(events);
        if message.is_some() {
            self.emitter.defer_recording(false);
        }
        self.recorded_state.store(changes, Ordering::Relaxed);
        if let Some(mut recorded_changes) = recorded_changes {
            *recorded_changes = changes;
        }
        if let Some(changed_files) = changed_files {
            changed_files.committed();
        }
        if let Some(message) = message {
            let rest = ids.split_off(ids.len().min(1));
            self.extend_history(vec![message], ids);
            ids = rest;
        }
        Ok(ids)
    }

    /// Commits a batch with the end of a call or turn. If that fails, emits the end events
    /// anyway, since the start events were emitted.
    pub(super) async fn commit_or_emit(
        &self,
        unrecorded_answer: Option<UnrecordedAnswer>,
        batch: Batch,
        events: &[Event],
    ) -> Result<Vec<i64>, NotRecorded> {
        let committed = self.commit_after(unrecorded_answer, batch).await;
        if let Err(error) = &committed {
            for event in events {
                self.emitter.send(not_recorded(event.clone(), error));
            }
        }
        committed
    }

    /// Adds recorded messages to the conversation.
    pub(super) fn extend_history(&self, messages: Vec<Message>, ids: Vec<i64>) {
        let mut conversation = self.shared.lock();
        let ids = ids.into_iter().map(Some).chain(std::iter::repeat(None));
        let messages = messages.into_iter().map(Arc::new);
        let (messages, ids): (Vec<_>, Vec<_>) = messages.zip(ids).unzip();
        Arc::make_mut(&mut conversation.history).extend(messages);
        conversation.ids.extend(ids);
    }
}

/// Marks the end of a call as not recorded.
pub(super) fn not_recorded(mut event: Event, error: &NotRecorded) -> Event {
    if let EventKind::Tool(haft::EventKind::ToolEnd { details, .. }) = &mut event.kind {
        details.insert("not_recorded".to_owned(), error.to_string().into());
    }
    event
}

/// Converts a message for the record.
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
        body: serde_json::to_string(&without_redacted_native(message)).unwrap_or_default(),
        usage,
    }
}

/// Drops the provider's own form of an answer if the record would redact it: the provider may
/// have signed it, so the redacted form is useless. The parts hold the same content.
fn without_redacted_native(message: &Message) -> Cow<'_, Message> {
    if let Message::Assistant(answer) = message
        && let Some(native) = &answer.native
        && let Cow::Owned(_) = Redactor::default().scrub(&native.to_string())
    {
        return Cow::Owned(Message::Assistant(ModelAnswer {
            native: None,
            ..answer.clone()
        }));
    }
    Cow::Borrowed(message)
}
