//! Which sub-agents an agent has started: those of this process as they are, and all
//! of them by name in the memory of the session, which outlives the process.

use super::within::Ask;
use crate::Agent;
use haft::State;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many agents are held that have answered. Others can be gone on with if they
/// were recorded.
const HELD: usize = 16;

/// How many are remembered by name.
const REMEMBERED: usize = 64;

/// Where in the memory of the session.
const NAME: &str = "haft.subagents";

/// A sub-agent that was started.
pub(super) struct Task {
    pub(super) agent: Agent,
    /// The name of its tool.
    pub(super) kind: String,
    /// The work in a few words, on one line.
    pub(super) description: String,
}

impl Task {
    /// Its type and its work, as it is remembered.
    pub(super) fn what(&self) -> (&str, &str) {
        (&self.kind, &self.description)
    }
}

/// A sub-agent's type and its work in a few words, to tell tasks apart.
pub(super) fn label(kind: &str, description: &str) -> String {
    match description.is_empty() {
        true => kind.to_owned(),
        false => format!("{kind}: {description}"),
    }
}

/// The sub-agents of one agent that this process has started.
#[derive(Default)]
pub(super) struct Tasks {
    held: Mutex<VecDeque<Arc<Task>>>,
}

impl Tasks {
    fn held(&self) -> MutexGuard<'_, VecDeque<Arc<Task>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one of this id, made if it is not held: two calls get the same one.
    pub(super) fn get<E>(
        &self,
        id: &str,
        make: impl FnOnce() -> Result<Task, E>,
    ) -> Result<Arc<Task>, E> {
        let mut held = self.held();
        let found = held.iter().find(|one| one.agent.session() == id);
        if let Some(found) = found {
            return Ok(Arc::clone(found));
        }
        let made = Arc::new(make()?);
        held.push_back(Arc::clone(&made));
        Ok(made)
    }

    /// Holds one, as the newest.
    pub(super) fn hold(&self, task: &Arc<Task>) {
        let mut held = self.held();
        held.retain(|one| one.agent.session() != task.agent.session());
        held.push_back(Arc::clone(task));
        while held.len() > HELD {
            // Whoever is at work or waits is needed.
            let is_idle = |one: &Arc<Task>| {
                !one.agent.handle().is_at_work() && one.agent.shared.lock().open.is_none()
            };
            match held.iter().position(is_idle) {
                Some(oldest) => drop(held.remove(oldest)),
                None => return,
            }
        }
    }
}

/// A sub-agent as the session remembers it.
pub(super) struct Remembered {
    pub(super) id: String,
    pub(super) kind: String,
    /// The work in a few words.
    pub(super) description: String,
    /// The calls of it that wait for a person.
    pub(super) asks: Vec<Ask>,
}

/// Remembers a sub-agent of `session` with its type and its work, and the call that waits for it, if one does, with
/// what that one wants.
pub(super) fn remember(
    state: &State,
    session: &str,
    id: &str,
    (kind, description): (&str, &str),
    waits: Option<(&str, Vec<Ask>)>,
) {
    state.update(NAME, |all| {
        if !all.is_object() {
            *all = Value::Object(Map::new());
        }
        let Value::Object(all) = all else { return };
        // The newest is the last.
        all.shift_remove(id);
        let mut one = json!({ "session": session, "type": kind });
        if !description.is_empty() {
            one["description"] = description.into();
        }
        if let Some((call, asks)) = waits {
            one["waits"] = call.into();
            one["asks"] = written(asks);
        }
        all.insert(id.to_owned(), one);
        let excess = all.len().saturating_sub(REMEMBERED);
        let is_idle = |one: &Value| {
            let status = one["background"].as_str();
            one["waits"].is_null() && !matches!(status, Some("queued" | "running" | "waiting"))
        };
        let idle = all.iter().filter(|(_, one)| is_idle(one));
        let oldest: Vec<_> = idle.map(|(id, _)| id.clone()).take(excess).collect();
        for id in oldest {
            all.shift_remove(&id);
        }
    });
}

fn written(asks: Vec<Ask>) -> Value {
    let asks = asks.into_iter();
    asks.map(|ask| json!({ "id": ask.id, "tool": ask.tool, "about": ask.about }))
        .collect()
}

/// A sub-agent in the background, as the session remembers it.
pub(super) struct Listed {
    pub(super) id: String,
    pub(super) kind: String,
    /// The work in a few words.
    pub(super) description: String,
    pub(super) status: &'static str,
    /// Whether the model knows its status.
    pub(super) is_told: bool,
}

impl Listed {
    /// Its type and its work, as it is remembered.
    pub(super) fn what(&self) -> (&str, &str) {
        (&self.kind, &self.description)
    }
}

/// Every status that one in the background can have.
const STATUSES: [&str; 8] = [
    "queued",
    "running",
    "done",
    "stopped",
    "failed",
    "cancelled",
    "interrupted",
    "waiting",
];

/// Remembers how far a sub-agent in the background is, and what it wants of a person.
pub(super) fn mark(
    state: &State,
    session: &str,
    id: &str,
    what: (&str, &str),
    status: &'static str,
    asks: Vec<Ask>,
) {
    remember(state, session, id, what, None);
    state.update(NAME, |all| {
        let Some(one) = all.get_mut(id) else { return };
        one["background"] = status.into();
        if !asks.is_empty() {
            one["asks"] = written(asks);
        }
    });
}

/// Remembers that the model knows what became of a sub-agent in the background.
pub(super) fn tell(state: &State, id: &str, status: &'static str) {
    state.update(NAME, |all| {
        let Some(one) = all.get_mut(id) else { return };
        one["background"] = status.into();
        one["told"] = true.into();
    });
}

/// The sub-agents of `session` in the background, the oldest first.
pub(super) fn background(state: &State, session: &str) -> Vec<Listed> {
    let Some(Value::Object(all)) = state.get(NAME) else {
        return Vec::new();
    };
    let own = all.iter().filter(|(_, one)| one["session"] == session);
    let listed = own.filter_map(|(id, one)| {
        let status = one["background"].as_str()?;
        Some(Listed {
            id: id.clone(),
            kind: text(one, "type"),
            description: text(one, "description"),
            status: STATUSES.into_iter().find(|known| *known == status)?,
            is_told: one["told"] == true,
        })
    });
    listed.collect()
}

/// A sub-agent that `session` started, by its id.
pub(super) fn remembered(state: &State, session: &str, id: &str) -> Option<Remembered> {
    find(state, |found, one| found == id && one["session"] == session)
}

/// The sub-agent that a call of `session` waits for.
pub(super) fn waiting(state: &State, session: &str, call_id: &str) -> Option<Remembered> {
    find(state, |_, one| {
        one["session"] == session && one["waits"] == call_id
    })
}

/// The ids of those that `session` started.
pub(super) fn known(state: &State, session: &str) -> Vec<String> {
    let Some(Value::Object(all)) = state.get(NAME) else {
        return Vec::new();
    };
    let own = all.iter().filter(|(_, one)| one["session"] == session);
    own.map(|(id, _)| id.clone()).collect()
}

fn find(state: &State, is_it: impl Fn(&str, &Value) -> bool) -> Option<Remembered> {
    let Value::Object(all) = state.get(NAME)? else {
        return None;
    };
    let (id, one) = all.iter().find(|(id, one)| is_it(id, one))?;
    Some(Remembered {
        id: id.clone(),
        kind: text(one, "type"),
        description: text(one, "description"),
        asks: one["asks"].as_array().map_or_else(Vec::new, |asks| {
            let ask = |ask: &Value| Ask {
                id: text(ask, "id"),
                tool: text(ask, "tool"),
                about: text(ask, "about"),
            };
            asks.iter().map(ask).collect()
        }),
    })
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_but_not_those_that_are_waited_for() {
        let state = State::default();
        let ask = Ask {
            id: "w".to_owned(),
            tool: "write".to_owned(),
            about: "{}".to_owned(),
        };
        let waits = Some(("call", vec![ask.clone()]));
        remember(&state, "s", "first", ("a", ""), waits);
        for n in 0..100 {
            remember(&state, "s", &format!("t{n}"), ("b", ""), None);
        }
        assert_eq!(known(&state, "s").len(), REMEMBERED);
        assert_eq!(waiting(&state, "s", "call").unwrap().id, "first");
        assert_eq!(waiting(&state, "s", "call").unwrap().asks, [ask]);
        assert!(waiting(&state, "other", "call").is_none());
        assert!(remembered(&state, "s", "t99").is_some());
        assert!(remembered(&state, "s", "t0").is_none());
        assert!(remembered(&state, "other", "t99").is_none());
        // Answered: it is waited for no longer.
        remember(&state, "s", "first", ("a", ""), None);
        assert!(waiting(&state, "s", "call").is_none());
        // What somebody else put there harms nobody.
        state.set(NAME, "nonsense");
        assert!(known(&state, "s").is_empty());
        remember(&state, "s", "new", ("a", ""), None);
        assert_eq!(known(&state, "s"), ["new"]);
    }
}
