//! Who waits for what of a plugin, and what is done with each message.

use super::meanwhile::{Ask, Teller};
use super::message::{self, Outcome};
use super::pipe::{End, Pipe};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::{Notify, mpsc, oneshot};

/// Why nothing more comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// It closed its output, as by ending.
    Ended,
    /// It wrote a line without end, or nothing but noise.
    Babbling,
    /// It said that it ends, and has not begun what it has not answered.
    Left,
    /// It gave an answer that could be for one call or for another.
    Unnamed,
}

/// Somebody who waits for the answer to a call.
pub(super) struct Caller {
    answer: oneshot::Sender<Result<Outcome, Over>>,
    teller: Teller,
    /// Where the call ends in the input, once it is written.
    end: Option<End>,
    /// Nobody waits any more, but the plugin has not said that it knows.
    is_given_up: bool,
}

impl Caller {
    pub(super) fn new(answer: oneshot::Sender<Result<Outcome, Over>>, teller: Teller) -> Self {
        Self {
            answer,
            teller,
            end: None,
            is_given_up: false,
        }
    }
}

/// Who waits for what.
pub(super) struct Desk {
    pub(super) calls: HashMap<String, Caller>,
    /// Who waits for the introduction, and gets every message until then.
    pub(super) introduction: Option<mpsc::Sender<Map<String, Value>>>,
    pub(super) over: Option<Over>,
    /// The beginning of the first line that was not a message.
    pub(super) noise: Option<String>,
    /// Whether it has answered a call.
    has_answered: bool,
    /// Every answer has to say which call it is for: the second protocol says so, and so
    /// does the plugin itself once it has done it.
    pub(super) names_calls: bool,
    /// It answered more than it was asked: what it says next may be for nobody.
    pub(super) is_out_of_step: bool,
    pipe: Weak<Pipe>,
    /// Told when a call is answered, and at the end.
    changed: Arc<Notify>,
}

/// What a message leaves to be done, where there may be no room for it yet.
pub(super) enum Then {
    Nothing,
    Introduce(mpsc::Sender<Map<String, Value>>, Map<String, Value>),
    Ask(Teller, Ask),
    /// Nothing after it counts.
    Close(Over),
}

pub(super) fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    pub(super) fn new(introduction: mpsc::Sender<Map<String, Value>>, pipe: &Arc<Pipe>) -> Self {
        Self {
            calls: HashMap::new(),
            introduction: Some(introduction),
            over: None,
            noise: None,
            has_answered: false,
            names_calls: false,
            is_out_of_step: false,
            pipe: Arc::downgrade(pipe),
            changed: Arc::default(),
        }
    }

    pub(super) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    /// Somebody waits for the answer to a call from now on.
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

    /// The line of a call is about to be written.
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

    /// Whether it may be busy with a call that nobody waits for.
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
                if let (Some(caller), Some(content)) = (caller, message.remove("content")) {
                    caller.teller.update(message::blocks(content).content);
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
                let ask = Ask::new(take("id"), name, take("params"));
                Then::Ask(caller.teller.clone(), ask)
            }
            _ => self.answer(call_id, message),
        }
    }

    /// An answer without an id can only be for the one call there is, once that has
    /// been read, and only from a plugin that never says which call it means. One with
    /// another id is late, and for nobody.
    fn answer(&mut self, call_id: Option<String>, message: Map<String, Value>) -> Then {
        let is_last = message.get("last") == Some(&Value::Bool(true));
        let Some(outcome) = message::taken(message) else {
            tracing::info!("a plugin wrote a message that is no answer");
            return Then::Nothing;
        };
        let is_named = call_id.is_some();
        let id = call_id.or_else(|| self.only_call());
        match id.and_then(|id| self.calls.remove(&id)) {
            Some(caller) => {
                self.has_answered = true;
                self.names_calls |= is_named;
                let _ = caller.answer.send(Ok(outcome));
                self.changed.notify_waiters();
                if is_last {
                    return Then::Close(Over::Left);
                }
            }
            None if is_named => tracing::info!("a plugin answered a call that nobody waits for"),
            None => {
                // Whether it is done with that nobody can say.
                self.is_out_of_step |= self.has_answered || self.names_calls;
                if self.is_out_of_step && !self.calls.is_empty() {
                    tracing::warn!(
                        "a plugin answered without a call_id while it could mean another call; it is ended"
                    );
                    return Then::Close(Over::Unnamed);
                }
                tracing::warn!("a plugin answered without being asked; that is dropped");
            }
        }
        Then::Nothing
    }

    /// The one call there is, if the plugin has read it.
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
