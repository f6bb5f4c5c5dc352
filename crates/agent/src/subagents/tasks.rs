//! The sub-agents that an agent has started. Those of this process are kept as agents; all of
//! them are listed in the state of the session, which outlives the process.

use super::pending::PendingQuestion;
use crate::Agent;
use haft::State;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of agents that are kept in memory. Others can continue if they were recorded.
const MAX_KEPT: usize = 16;

/// Number of sub-agents that are listed in the state.
const MAX_LISTED: usize = 64;

/// Key in the state of the session.
const NAME: &str = "haft.subagents";

/// A sub-agent with its work.
pub(super) struct Task {
    pub(super) agent: Agent,
    /// Name of its tool.
    pub(super) kind: String,
    /// Short description of the work, on one line.
    pub(super) description: String,
}

impl Task {
    /// Returns the name of its tool and the description of the work.
    pub(super) fn what(&self) -> (&str, &str) {
        (&self.kind, &self.description)
    }
}

/// Returns a label that distinguishes tasks for the model.
pub(super) fn label(kind: &str, description: &str) -> String {
    match description.is_empty() {
        true => kind.to_owned(),
        false => format!("{kind}: {description}"),
    }
}

/// The sub-agents of one agent that this process has started.
#[derive(Default)]
pub(super) struct Tasks {
    kept: Mutex<VecDeque<Arc<Task>>>,
}

impl Tasks {
    fn kept(&self) -> MutexGuard<'_, VecDeque<Arc<Task>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the task with this id, or creates it. Two calls get the same task.
    pub(super) fn get<E>(
        &self,
        id: &str,
        make: impl FnOnce() -> Result<Task, E>,
    ) -> Result<Arc<Task>, E> {
        let mut kept = self.kept();
        let found = kept.iter().find(|one| one.agent.session() == id);
        if let Some(found) = found {
            return Ok(Arc::clone(found));
        }
        let made = Arc::new(make()?);
        kept.push_back(Arc::clone(&made));
        Ok(made)
    }

    /// Keeps a task as the newest, and drops the oldest idle one if there are too many.
    pub(super) fn keep(&self, task: &Arc<Task>) {
        let mut kept = self.kept();
        kept.retain(|one| one.agent.session() != task.agent.session());
        kept.push_back(Arc::clone(task));
        while kept.len() > MAX_KEPT {
            // Busy and waiting agents are needed.
            let is_idle = |one: &Arc<Task>| {
                !one.agent.handle().is_busy() && one.agent.shared.lock().open.is_none()
            };
            match kept.iter().position(is_idle) {
                Some(oldest) => drop(kept.remove(oldest)),
                None => return,
            }
        }
    }
}

/// A sub-agent in the state of the session.
pub(super) struct TaskRecord {
    pub(super) id: String,
    pub(super) kind: String,
    /// Short description of the work.
    pub(super) description: String,
    /// Its calls that wait for approval.
    pub(super) asks: Vec<PendingQuestion>,
}

/// Stores a sub-agent of `session`. `waits` is the call that waits for it, if any, with the
/// sub-agent's pending calls.
pub(super) fn store(
    state: &State,
    session: &str,
    id: &str,
    (kind, description): (&str, &str),
    waits: Option<(&str, Vec<PendingQuestion>)>,
) {
    state.update(NAME, |all| {
        if !all.is_object() {
            *all = Value::Object(Map::new());
        }
        let Value::Object(all) = all else { return };
        // The newest comes last.
        all.shift_remove(id);
        let mut one = json!({ "session": session, "type": kind });
        if !description.is_empty() {
            one["description"] = description.into();
        }
        if let Some((call, asks)) = waits {
            one["waits"] = call.into();
            one["asks"] = to_json(asks);
        }
        all.insert(id.to_owned(), one);
        let excess = all.len().saturating_sub(MAX_LISTED);
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

fn to_json(asks: Vec<PendingQuestion>) -> Value {
    let asks = asks.into_iter();
    asks.map(|ask| json!({ "id": ask.id, "tool": ask.tool, "about": ask.about }))
        .collect()
}

/// A background task in the state of the session.
pub(super) struct BackgroundRecord {
    pub(super) id: String,
    pub(super) kind: String,
    /// Short description of the work.
    pub(super) description: String,
    pub(super) status: &'static str,
    /// Whether the model knows its status.
    pub(super) is_reported: bool,
}

impl BackgroundRecord {
    /// Returns the name of its tool and the description of the work.
    pub(super) fn what(&self) -> (&str, &str) {
        (&self.kind, &self.description)
    }
}

/// All statuses of background tasks.
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

/// Stores the status of a background task and its pending calls.
pub(super) fn mark(
    state: &State,
    session: &str,
    id: &str,
    what: (&str, &str),
    status: &'static str,
    asks: Vec<PendingQuestion>,
) {
    store(state, session, id, what, None);
    state.update(NAME, |all| {
        let Some(one) = all.get_mut(id) else { return };
        one["background"] = status.into();
        if !asks.is_empty() {
            one["asks"] = to_json(asks);
        }
    });
}

/// Stores that the model knows the status of a background task.
pub(super) fn mark_reported(state: &State, id: &str, status: &'static str) {
    state.update(NAME, |all| {
        let Some(one) = all.get_mut(id) else { return };
        one["background"] = status.into();
        one["told"] = true.into();
    });
}

/// Returns the background tasks of `session`, the oldest first.
pub(super) fn background(state: &State, session: &str) -> Vec<BackgroundRecord> {
    let Some(Value::Object(all)) = state.get(NAME) else {
        return Vec::new();
    };
    let own = all.iter().filter(|(_, one)| one["session"] == session);
    let listed = own.filter_map(|(id, one)| {
        let status = one["background"].as_str()?;
        Some(BackgroundRecord {
            id: id.clone(),
            kind: text(one, "type"),
            description: text(one, "description"),
            status: STATUSES.into_iter().find(|known| *known == status)?,
            is_reported: one["told"] == true,
        })
    });
    listed.collect()
}

/// Returns the sub-agent of `session` with this id.
pub(super) fn by_id(state: &State, session: &str, id: &str) -> Option<TaskRecord> {
    find(state, |found, one| found == id && one["session"] == session)
}

/// Returns the sub-agent that a call of `session` waits for.
pub(super) fn by_call(state: &State, session: &str, call_id: &str) -> Option<TaskRecord> {
    find(state, |_, one| {
        one["session"] == session && one["waits"] == call_id
    })
}

/// Returns the ids of the sub-agents of `session`.
pub(super) fn ids(state: &State, session: &str) -> Vec<String> {
    let Some(Value::Object(all)) = state.get(NAME) else {
        return Vec::new();
    };
    let own = all.iter().filter(|(_, one)| one["session"] == session);
    own.map(|(id, _)| id.clone()).collect()
}

fn find(state: &State, is_it: impl Fn(&str, &Value) -> bool) -> Option<TaskRecord> {
    let Value::Object(all) = state.get(NAME)? else {
        return None;
    };
    let (id, one) = all.iter().find(|(id, one)| is_it(id, one))?;
    Some(TaskRecord {
        id: id.clone(),
        kind: text(one, "type"),
        description: text(one, "description"),
        asks: one["asks"].as_array().map_or_else(Vec::new, |asks| {
            let ask = |ask: &Value| PendingQuestion {
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
    fn the_oldest_are_dropped_unless_a_call_waits_for_them() {
        let state = State::default();
        let ask = PendingQuestion {
            id: "w".to_owned(),
            tool: "write".to_owned(),
            about: "{}".to_owned(),
        };
        let waits = Some(("call", vec![ask.clone()]));
        store(&state, "s", "first", ("a", ""), waits);
        for n in 0..100 {
            store(&state, "s", &format!("t{n}"), ("b", ""), None);
        }
        assert_eq!(ids(&state, "s").len(), MAX_LISTED);
        assert_eq!(by_call(&state, "s", "call").unwrap().id, "first");
        assert_eq!(by_call(&state, "s", "call").unwrap().asks, [ask]);
        assert!(by_call(&state, "other", "call").is_none());
        assert!(by_id(&state, "s", "t99").is_some());
        assert!(by_id(&state, "s", "t0").is_none());
        assert!(by_id(&state, "other", "t99").is_none());
        // After an answer, no call waits for it.
        store(&state, "s", "first", ("a", ""), None);
        assert!(by_call(&state, "s", "call").is_none());
        // An invalid value in the state is replaced.
        state.set(NAME, "nonsense");
        assert!(ids(&state, "s").is_empty());
        store(&state, "s", "new", ("a", ""), None);
        assert_eq!(ids(&state, "s"), ["new"]);
    }
}
