//! The dispatcher: tracks which calls wait for an answer, and delivers each message.

use super::message::{self, Outcome};
use super::pipe::{End, Pipe};
use super::progress::{ProgressSender, ToolRequest};
use super::trace::{Trace, TraceEvent};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::{Notify, mpsc, oneshot};

/// The reason why no more messages come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// The plugin closed its output, usually by exiting.
    Ended,
    /// The plugin wrote a line without an end, or too much noise.
    Babbling,
    /// The plugin announced its end, and has not started the calls that it has not
    /// answered.
    Left,
    /// The plugin sent an answer that could be for more than one call.
    Unnamed,
}

/// A call that waits for its answer.
pub(super) struct Caller {
    answer: oneshot::Sender<Result<Outcome, Over>>,
    progress: ProgressSender,
    /// Position in the input where the call ends, once it is written.
    end: Option<End>,
    /// Whether the call was cancelled and the plugin has not confirmed it yet.
    is_given_up: bool,
}

impl Caller {
    pub(super) fn new(
        answer: oneshot::Sender<Result<Outcome, Over>>,
        progress: ProgressSender,
    ) -> Self {
        Self {
            answer,
            progress,
            end: None,
            is_given_up: false,
        }
    }
}

/// The pending calls of a plugin and the state of its output.
pub(super) struct Dispatcher {
    pub(super) calls: HashMap<String, Caller>,
    /// Receives all messages until the handshake is complete.
    pub(super) introduction: Option<mpsc::Sender<Map<String, Value>>>,
    pub(super) over: Option<Over>,
    /// The start of the first line that was not a message.
    pub(super) noise: Option<String>,
    /// Whether the plugin has answered a call.
    has_answered: bool,
    /// Whether every answer must name its call: required by version 2 of the protocol, and
    /// once the plugin has done it.
    pub(super) names_calls: bool,
    /// Whether the plugin has sent more answers than it was asked for, so that the next one
    /// may belong to no call.
    pub(super) is_out_of_step: bool,
    pipe: Weak<Pipe>,
    trace: Trace,
    /// Notified when a call is answered, and at the end.
    changed: Arc<Notify>,
}

/// The remaining work after a message: the receiver may have no room yet.
pub(super) enum Then {
    Nothing,
    Introduce(mpsc::Sender<Map<String, Value>>, Map<String, Value>),
    ToolRequest(ProgressSender, ToolRequest),
    /// No message after this one counts.
    Close(Over),
}

pub(super) fn lock(dispatcher: &Mutex<Dispatcher>) -> MutexGuard<'_, Dispatcher> {
    dispatcher.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Dispatcher {
    pub(super) fn new(
        introduction: mpsc::Sender<Map<String, Value>>,
        pipe: &Arc<Pipe>,
        trace: Trace,
    ) -> Self {
        Self {
            calls: HashMap::new(),
            introduction: Some(introduction),
            over: None,
            noise: None,
            has_answered: false,
            names_calls: false,
            is_out_of_step: false,
            pipe: Arc::downgrade(pipe),
            trace,
            changed: Arc::default(),
        }
    }

    pub(super) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    /// Registers a call that waits for its answer.
    pub(super) fn expect(&mut self, call_id: &str, caller: Caller) {
        match self.over {
            None => {
                self.calls.insert(call_id.to_owned(), caller);
            }
            Some(over) => {
                let _ = caller.answer.send(Err(over));
            }
        }
    }

    /// Records the position of a call before its line is written.
    pub(super) fn writes(&mut self, call_id: &str, end: End) {
        if let Some(caller) = self.calls.get_mut(call_id) {
            caller.end = Some(end);
        }
    }

    pub(super) fn give_up(&mut self, call_id: &str) {
        if let Some(caller) = self.calls.get_mut(call_id) {
            caller.is_given_up = true;
        }
    }

    /// Whether the plugin may be busy with a cancelled call.
    pub(super) fn is_doubtful(&self) -> bool {
        self.over.is_none() && self.calls.values().any(|caller| caller.is_given_up)
    }

    pub(super) fn deliver(&mut self, mut message: Map<String, Value>) -> Then {
        if let Some(introduction) = &self.introduction {
            return Then::Introduce(introduction.clone(), message);
        }
        let call_id = message::call_id(&message);
        let caller = call_id.as_ref().and_then(|id| self.calls.get(id));
        match message.get("type").and_then(Value::as_str) {
            Some("update") => {
                self.trace.updated(&message);
                if let (Some(caller), Some(content)) = (caller, message.remove("content")) {
                    caller.progress.update(message::blocks(content).content);
                }
                Then::Nothing
            }
            Some("host_call") => {
                let Some(caller) = caller else {
                    return Then::Nothing;
                };
                let name = message.get("name").and_then(Value::as_str);
                let name = name.unwrap_or_default().to_owned();
                let mut take = |name: &str| message.remove(name).unwrap_or_default();
                let request = ToolRequest::new(take("id"), name, take("params"));
                Then::ToolRequest(caller.progress.clone(), request)
            }
            _ => self.answer(call_id, message),
        }
    }

    /// Delivers an answer. An answer without an id can only be for the single pending call,
    /// after the plugin has read it, and only from a plugin that never names calls. An
    /// answer with an unknown id is late and is dropped.
    fn answer(&mut self, call_id: Option<String>, message: Map<String, Value>) -> Then {
        let is_last = message.get("last") == Some(&Value::Bool(true));
        let deviations = self.trace.deviations(&message);
        let Some(outcome) = message::taken(message) else {
            self.trace.emit(|| TraceEvent::Unknown);
            tracing::info!("a plugin wrote a message that is not an answer");
            return Then::Nothing;
        };
        let is_named = call_id.is_some();
        let id = call_id.or_else(|| self.only_call());
        match id.and_then(|id| self.calls.remove_entry(&id)) {
            Some((id, caller)) => {
                self.trace.emit(|| TraceEvent::Answered {
                    call_id: &id,
                    is_named,
                    deviations,
                });
                self.has_answered = true;
                self.names_calls |= is_named;
                let _ = caller.answer.send(Ok(outcome));
                self.changed.notify_waiters();
                if is_last {
                    return Then::Close(Over::Left);
                }
            }
            None if is_named => {
                self.trace.emit(|| TraceEvent::Stray { is_named });
                tracing::info!("a plugin answered a call that is not pending");
            }
            None => {
                self.trace.emit(|| TraceEvent::Stray { is_named });
                // It is unknown which call the plugin has finished.
                self.is_out_of_step |= self.has_answered || self.names_calls;
                if self.is_out_of_step && !self.calls.is_empty() {
                    tracing::warn!(
                        "a plugin answered without a call_id while several calls were possible; it is ended"
                    );
                    return Then::Close(Over::Unnamed);
                }
                tracing::warn!("a plugin sent an answer without a call; it is dropped");
            }
        }
        Then::Nothing
    }

    /// Returns the single pending call, if the plugin has read it.
    fn only_call(&self) -> Option<String> {
        if self.names_calls {
            return None;
        }
        let mut calls = self.calls.iter();
        let (Some((id, caller)), None) = (calls.next(), calls.next()) else {
            return None;
        };
        let has_read = match (caller.end, self.pipe.upgrade()) {
            (Some(end), Some(pipe)) => pipe.has_read(end),
            (end, _) => end.is_some(),
        };
        has_read.then(|| id.clone())
    }

    pub(super) fn close(&mut self, over: Over) {
        self.over = Some(over);
        self.introduction = None;
        for (_, caller) in self.calls.drain() {
            let _ = caller.answer.send(Err(over));
        }
        self.changed.notify_waiters();
    }
}
