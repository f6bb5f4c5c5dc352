//! What waits for a person in an agent and in those that work for it, and what each is
//! called in an answer.

use super::tasks::{self, Remembered};
use crate::agent::Shared;
use crate::{Agent, ToolCall};
use haft::State;
use std::collections::HashMap;

/// How deeply agents are looked for that wait for each other.
const DEEPEST: usize = 16;

/// A call that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waits {
    /// What an answer calls it: its id, or `SESSION/ID` where that alone would not say
    /// which it is.
    pub name: String,
    /// Its id, as the event that asks has it.
    pub call_id: String,
    /// The session it is of.
    pub session: String,
    /// The call of the agent itself that waits for it; the same, if it is its own, and
    /// the `task_id` of the sub-agent, if that works in the background.
    pub own: String,
    /// The sub-agent that wants it, by the name of its tool.
    pub agent: Option<String>,
    /// The tool.
    pub tool: String,
    /// What it would do, on one line.
    pub about: String,
}

impl Waits {
    /// Whether an answer with this name is for it alone.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        name == self.name || name == self.long()
    }

    pub(crate) fn long(&self) -> String {
        format!("{}/{}", self.session, self.call_id)
    }
}

impl Agent {
    /// Everything in it that waits for a person: its own calls, and in the place of one
    /// that a sub-agent works for those of the sub-agent. An answer may name either.
    #[must_use]
    pub fn questions(&self) -> Vec<Waits> {
        Self::questions_of(&self.shared)
    }

    pub(crate) fn questions_of(shared: &Shared) -> Vec<Waits> {
        let state = shared.runtime.state().outermost();
        let session = shared.runtime.session();
        let mut all = Vec::new();
        for call in shared.waiting() {
            let first = all.len();
            deeper(state, session, &call.id, &call.id, 0, &mut all);
            if all.len() == first {
                all.push(Waits {
                    name: call.id.clone(),
                    session: session.to_owned(),
                    own: call.id.clone(),
                    agent: None,
                    about: call.arguments.to_string(),
                    tool: call.name,
                    call_id: call.id,
                });
            }
        }
        // Those in the background wait on their own.
        for one in tasks::background(state, session) {
            if one.status == "waiting"
                && let Some(found) = tasks::remembered(state, session, &one.id)
            {
                wanted_by(state, found, &one.id, 0, &mut all);
            }
        }
        let mut count: HashMap<String, usize> = HashMap::new();
        for one in &all {
            *count.entry(one.call_id.clone()).or_default() += 1;
            // The call that waits for it can be named as well.
            if one.own != one.call_id {
                *count.entry(one.own.clone()).or_default() += 1;
            }
        }
        for one in &mut all {
            if count.get(&one.call_id).is_some_and(|count| *count > 1) {
                one.name = one.long();
            }
        }
        all
    }
}

/// What a call waits for, where that is something of a sub-agent's.
fn deeper(state: &State, session: &str, call: &str, own: &str, depth: usize, all: &mut Vec<Waits>) {
    if let Some(found) = tasks::waiting(state, session, call) {
        wanted_by(state, found, own, depth, all);
    }
}

/// What a sub-agent wants of a person, and what those want that it has in the background.
fn wanted_by(state: &State, found: Remembered, own: &str, depth: usize, all: &mut Vec<Waits>) {
    for one in tasks::background(state, &found.id) {
        if one.status == "waiting"
            && depth < DEEPEST
            && let Some(found) = tasks::remembered(state, &found.id, &one.id)
        {
            wanted_by(state, found, own, depth + 1, all);
        }
    }
    for asked in found.asks {
        let first = all.len();
        if depth < DEEPEST {
            deeper(state, &found.id, &asked.id, own, depth + 1, all);
        }
        if all.len() == first {
            all.push(Waits {
                name: asked.id.clone(),
                call_id: asked.id,
                session: found.id.clone(),
                own: own.to_owned(),
                agent: Some(found.kind.clone()),
                tool: asked.tool,
                about: asked.about,
            });
        }
    }
}

/// A call of a sub-agent that waits, as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) about: String,
}

/// How many bytes of what a call would do are remembered.
const ABOUT: usize = 500;

impl From<ToolCall> for Ask {
    fn from(call: ToolCall) -> Self {
        Self {
            about: super::reply::cut(&call.arguments.to_string(), ABOUT),
            id: call.id,
            tool: call.name,
        }
    }
}
