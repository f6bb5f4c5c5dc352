//! Observes the run of a sub-agent: forwards its events to the parent's and counts its usage
//! as the parent's.

use super::reply;
use crate::agent::{Handle, Settings, WeakHandle};
use crate::{Agent, AgentEvent, Event, EventKind, Events, Limit, Usage};
use haft::{Context, Error, EventKind as ToolEvent};
use serde_json::Value;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Minimum time between two lines of status while text arrives.
const STATUS_INTERVAL: Duration = Duration::from_millis(300);

/// Maximum number of bytes of text in a line of status.
const MAX_TAIL: usize = 160;

/// Maximum number of bytes of a question to the user, who should see all of it.
const MAX_QUESTION: usize = 4_000;

/// Time that a sub-agent has after its deadline to record the outcome of its calls. It is
/// shorter than the runtime's grace period for the reply.
const GRACE: Duration = Duration::from_secs(1);

/// Outcome of a sub-agent's run.
#[derive(Clone)]
pub(super) enum RunOutcome {
    /// The sub-agent answered. `response` is the answer as JSON, if it has a response format.
    Done {
        text: String,
        response: Option<Value>,
    },
    /// A limit stopped it. `text` is its last text.
    Stopped { text: String, why: String },
    /// It failed. `text` is its last text.
    Failed { text: String, why: String },
    /// It waits for approval.
    Waits { question: String },
    /// The call or task was cancelled.
    Cancelled,
}

/// Observes a run until its end. `parent` is the parent's handle and the method that forwards
/// events to it; `show` receives lines of status.
pub(super) async fn observe(
    agent: &Agent,
    mut events: Events,
    (parent, forward): (&WeakHandle, fn(&Handle, Event)),
    limits: &Settings,
    cancel: &CancellationToken,
    show: &(dyn Fn(String) + Send + Sync),
) -> RunOutcome {
    let mut seen = RunObserver::new(agent.session());
    let mut is_cancelled = false;
    loop {
        let event = tokio::select! {
            biased;
            () = cancel.cancelled(), if !is_cancelled => {
                // The run records the outcome of its calls before it ends.
                agent.abort();
                is_cancelled = true;
                continue;
            }
            event = events.next() => event,
        };
        let Some(event) = event else { break };
        if let Some(status) = seen.read(&event) {
            show(status);
        }
        let Some(parent) = parent.upgrade() else {
            continue;
        };
        let usage = seen.take_usage();
        if usage.total() > 0 || usage.cost.is_some() {
            parent.add_usage(&usage);
            if seen.over.is_none() {
                seen.over = reached_limit(limits, parent.run_usage());
                if seen.over.is_some() {
                    agent.abort();
                }
            }
        }
        forward(&parent, event);
    }
    // Events are redacted; the parent gets the original text.
    let text = agent.shared.lock().text.clone();
    if seen.questions.is_empty() {
        // Its background tasks may wait for approval.
        let pending = Agent::approvals_of(&agent.shared).into_iter();
        let pending = pending.map(|one| format!("{} {}", one.tool, one.about));
        seen.questions = pending.map(|one| reply::cut(&one, MAX_QUESTION)).collect();
    }
    seen.end(&text, is_cancelled)
}

/// Stops a sub-agent when the call reaches its time limit.
pub(super) async fn in_time(
    outcome: impl Future<Output = RunOutcome>,
    agent: &Agent,
    stop: &CancellationToken,
    cx: &Context,
) -> RunOutcome {
    tokio::pin!(outcome);
    tokio::select! {
        biased;
        outcome = &mut outcome => return outcome,
        () = cx.time_is_up() => {}
    }
    stop.cancel();
    match tokio::time::timeout(GRACE, outcome).await {
        Ok(outcome) if !matches!(outcome, RunOutcome::Cancelled) => outcome,
        _ => RunOutcome::Stopped {
            text: agent.last_text(),
            why: Error::TimedOut {
                after: cx.limit().unwrap_or_default(),
            }
            .to_string(),
        },
    }
}

/// Returns the limit of the parent that is reached, if any.
fn reached_limit(limits: &Settings, (tokens, cost): (u64, f64)) -> Option<&'static str> {
    if limits.max_tokens.is_some_and(|most| tokens >= most) {
        return Some("the maximum number of tokens for this run");
    }
    if limits.max_cost.is_some_and(|most| cost >= most) {
        return Some("the maximum cost of this run");
    }
    None
}

/// Facts about a sub-agent's run so far.
struct RunObserver<'a> {
    session: &'a str,
    turn: u64,
    tool: Option<String>,
    /// Text of the newest answer that has any.
    text: String,
    /// Whether a new answer has started.
    is_new: bool,
    last_status: Option<Instant>,
    usage: Usage,
    counted: Usage,
    questions: Vec<String>,
    failure: Option<String>,
    limit: Option<Limit>,
    over: Option<&'static str>,
    response: Option<Value>,
    end: Option<&'static str>,
}

impl<'a> RunObserver<'a> {
    fn new(session: &'a str) -> Self {
        Self {
            session,
            turn: 0,
            tool: None,
            text: String::new(),
            is_new: false,
            last_status: None,
            usage: Usage::default(),
            counted: Usage::default(),
            questions: Vec::new(),
            failure: None,
            limit: None,
            over: None,
            response: None,
            end: None,
        }
    }

    /// Reads an event. Returns a line of status if it changed.
    fn read(&mut self, event: &Event) -> Option<String> {
        // Includes turns of its own sub-agents, whose events are forwarded.
        if let EventKind::Agent(AgentEvent::TurnEnd { usage, .. }) = &event.kind {
            self.usage.add(usage);
        }
        if event.session != self.session {
            return None;
        }
        match &event.kind {
            EventKind::Agent(event) => self.read_agent(event),
            EventKind::Tool(event) => self.read_tool(event),
        }
    }

    fn read_agent(&mut self, event: &AgentEvent) -> Option<String> {
        match event {
            AgentEvent::TurnStart { turn } => {
                self.turn = *turn;
                self.tool = None;
                self.is_new = true;
                return Some(self.status());
            }
            AgentEvent::MessageUpdate {
                kind: "text",
                delta,
            } => {
                if std::mem::take(&mut self.is_new) {
                    self.text.clear();
                }
                self.text.push_str(delta);
                let is_time = self
                    .last_status
                    .is_none_or(|last| last.elapsed() >= STATUS_INTERVAL);
                return is_time.then(|| self.status());
            }
            AgentEvent::Error { message } => self.failure = Some(message.clone()),
            AgentEvent::TurnLimitReached { reason } => self.limit = Some(*reason),
            AgentEvent::AgentEnd {
                reason,
                usage,
                response,
                ..
            } => {
                self.response.clone_from(response);
                // The total may exceed the turns, for example because of a summary.
                self.usage = larger(self.usage, *usage);
                self.end = Some(reason);
            }
            _ => {}
        }
        None
    }

    fn read_tool(&mut self, event: &ToolEvent) -> Option<String> {
        match event {
            ToolEvent::ToolStart { tool, .. } => {
                self.tool = Some(tool.clone());
                Some(self.status())
            }
            ToolEvent::ApprovalNeeded {
                tool,
                arguments,
                question,
                ..
            } => {
                let text = match question {
                    Some(question) => format!("{tool}: {question}"),
                    None => format!("{tool} {arguments}"),
                };
                self.questions.push(reply::cut(&text, MAX_QUESTION));
                None
            }
            _ => None,
        }
    }

    /// Returns a line like `turn 2, grep: text of the answer`.
    fn status(&mut self) -> String {
        self.last_status = Some(Instant::now());
        let mut status = format!("turn {}", self.turn);
        if let Some(tool) = &self.tool {
            status.push_str(&format!(", {tool}"));
        }
        let tail = reply::tail(&self.text, MAX_TAIL);
        if !tail.is_empty() {
            status.push_str(&format!(": {tail}"));
        }
        status
    }

    /// Returns the usage since the last call of this method.
    fn take_usage(&mut self) -> Usage {
        let (now, before) = (self.usage, self.counted);
        self.counted = now;
        Usage {
            input: now.input.saturating_sub(before.input),
            output: now.output.saturating_sub(before.output),
            cache_read: now.cache_read.saturating_sub(before.cache_read),
            cache_write: now.cache_write.saturating_sub(before.cache_write),
            reasoning: now.reasoning.saturating_sub(before.reasoning),
            cost: match (now.cost, before.cost) {
                (Some(now), before) if now > before.unwrap_or(0.0) => {
                    Some(now - before.unwrap_or(0.0))
                }
                _ => None,
            },
        }
    }

    fn end(self, text: &str, is_cancelled: bool) -> RunOutcome {
        let Some(reason) = self.end else {
            return RunOutcome::Failed {
                text: self.text,
                why: "it ended without a reason".to_owned(),
            };
        };
        let text = match text.trim().is_empty() {
            true => self.text,
            false => text.to_owned(),
        };
        match reason {
            "done" => RunOutcome::Done {
                text,
                response: self.response,
            },
            "approval" => RunOutcome::Waits {
                question: self.questions.join("; "),
            },
            "limit" => RunOutcome::Stopped {
                why: match self.limit {
                    Some(Limit::MaxTurns) => format!("it reached max_turns ({})", self.turn),
                    Some(Limit::MaxTokens) => "it reached max_tokens".to_owned(),
                    Some(Limit::MaxCost) => "it reached max_cost".to_owned(),
                    _ => "it repeated the same calls with the same results".to_owned(),
                },
                text,
            },
            _ if is_cancelled => RunOutcome::Cancelled,
            "interrupted" => match self.over {
                Some(limit) => RunOutcome::Stopped {
                    why: format!("the agent and its sub-agents reached {limit}"),
                    text,
                },
                None => RunOutcome::Failed {
                    why: "it was stopped".to_owned(),
                    text,
                },
            },
            _ => RunOutcome::Failed {
                why: self.failure.unwrap_or_else(|| reason.to_owned()),
                text,
            },
        }
    }
}

/// Returns the larger of two counts of the same work.
fn larger(a: Usage, b: Usage) -> Usage {
    Usage {
        input: a.input.max(b.input),
        output: a.output.max(b.output),
        cache_read: a.cache_read.max(b.cache_read),
        cache_write: a.cache_write.max(b.cache_write),
        reasoning: a.reasoning.max(b.reasoning),
        cost: match (a.cost, b.cost) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        },
    }
}
