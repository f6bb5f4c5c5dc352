//! Calls of an agent and its sub-agents that wait for approval, and their names in answers.

use super::tasks::{self, TaskRecord};
use crate::agent::Shared;
use crate::{Agent, ToolCall};
use haft::State;
use std::collections::HashMap;

/// Maximum nesting depth of sub-agents that is searched.
const MAX_DEPTH: usize = 16;

/// A call that waits for approval.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingApproval {
    /// Name in an answer: the id of the call, or `SESSION/ID` if the id is ambiguous.
    pub name: String,
    /// Id of the call, as in the `approval_needed` event.
    pub call_id: String,
    /// Session of the call.
    pub session: String,
    /// The agent's own call that waits for this one, or the `task_id` if a background task
    /// waits. Equal to `call_id` if the call is the agent's own.
    pub own: String,
    /// Name of the sub-agent's tool, if the call is a sub-agent's.
    pub agent: Option<String>,
    /// Name of the tool.
    pub tool: String,
    /// Arguments of the call, on one line.
    pub about: String,
}

impl PendingApproval {
    /// Whether this name refers to exactly this call.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        name == self.name || name == self.long()
    }

    pub(crate) fn long(&self) -> String {
        format!("{}/{}", self.session, self.call_id)
    }
}

impl Agent {
    /// Returns the calls that wait for approval. If an own call waits for a sub-agent, the
    /// calls of the sub-agent are listed instead. Answers may name either.
    #[must_use]
    pub fn pending_approvals(&self) -> Vec<PendingApproval> {
        Self::approvals_of(&self.shared)
    }

    pub(crate) fn approvals_of(shared: &Shared) -> Vec<PendingApproval> {
        let state = shared.runtime.state().outermost();
        let session = shared.runtime.session();
        let mut all = Vec::new();
        for call in shared.pending_calls() {
            let first = all.len();
            add_waited_for(state, session, &call.id, &call.id, 0, &mut all);
            if all.len() == first {
                all.push(PendingApproval {
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
        // No call waits for background tasks, so they are listed separately.
        for one in tasks::background(state, session) {
            if one.status == "waiting"
                && let Some(found) = tasks::by_id(state, session, &one.id)
            {
                add_pending(state, found, &one.id, 0, &mut all);
            }
        }
        let mut count: HashMap<String, usize> = HashMap::new();
        for one in &all {
            *count.entry(one.call_id.clone()).or_default() += 1;
            // An answer may also name the own call.
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

/// Adds the pending calls of the sub-agent that a call waits for, if any.
fn add_waited_for(
    state: &State,
    session: &str,
    call: &str,
    own: &str,
    depth: usize,
    all: &mut Vec<PendingApproval>,
) {
    if let Some(found) = tasks::by_call(state, session, call) {
        add_pending(state, found, own, depth, all);
    }
}

/// Adds the pending calls of a sub-agent and of its background tasks.
fn add_pending(
    state: &State,
    found: TaskRecord,
    own: &str,
    depth: usize,
    all: &mut Vec<PendingApproval>,
) {
    for one in tasks::background(state, &found.id) {
        if one.status == "waiting"
            && depth < MAX_DEPTH
            && let Some(found) = tasks::by_id(state, &found.id, &one.id)
        {
            add_pending(state, found, own, depth + 1, all);
        }
    }
    for asked in found.asks {
        let first = all.len();
        if depth < MAX_DEPTH {
            add_waited_for(state, &found.id, &asked.id, own, depth + 1, all);
        }
        if all.len() == first {
            all.push(PendingApproval {
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

/// A pending call of a sub-agent, as stored in the state of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingQuestion {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) about: String,
}

/// Maximum number of bytes of the arguments that are stored.
const MAX_ABOUT: usize = 500;

impl From<ToolCall> for PendingQuestion {
    fn from(call: ToolCall) -> Self {
        Self {
            about: super::reply::cut(&call.arguments.to_string(), MAX_ABOUT),
            id: call.id,
            tool: call.name,
        }
    }
}
