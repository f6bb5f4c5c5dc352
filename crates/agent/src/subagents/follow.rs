//! Following a sub-agent at its work: what it does is told to those who watch the
//! agent that asked it, and what it takes is counted as that one's.

use super::reply;
use crate::agent::{Handle, Settings, WeakHandle};
use crate::{Agent, AgentEvent, Event, EventKind, Events, Limit, Usage};
use haft::{Context, Error, EventKind as ToolEvent};
use serde_json::Value;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How often pieces of its text are worth a line of status.
const PACE: Duration = Duration::from_millis(300);

/// How many bytes of its text a line of status has.
const TAIL: usize = 160;

/// How many bytes of what a person is asked are told: they should see all of it.
const QUESTION: usize = 4_000;

/// How long one whose time is up has to say what became of its calls: less than the
/// runtime waits for the reply.
const GRACE: Duration = Duration::from_secs(1);

/// What came of the work of a sub-agent.
#[derive(Clone)]
pub(super) enum Followed {
    /// It has answered; `response` is the answer as JSON, where a format asks for that.
    Done {
        text: String,
        response: Option<Value>,
    },
    /// It had to stop; this was its text.
    Stopped { text: String, why: String },
    /// It failed.
    Failed { text: String, why: String },
    /// Somebody has to say yes first.
    Waits { question: String },
    /// Nobody wants to know any more.
    Cancelled,
}

/// Follows it to its end. `parent` is who asked, and how what happens is passed on to it;
/// `show` is told how far it is.
pub(super) async fn follow(
    agent: &Agent,
    mut events: Events,
    (parent, pass_on): (&WeakHandle, fn(&Handle, Event)),
    limits: &Settings,
    cancel: &CancellationToken,
    show: &(dyn Fn(String) + Send + Sync),
) -> Followed {
    let mut seen = Seen::new(agent.session());
    let mut is_cancelled = false;
    loop {
        let event = tokio::select! {
            biased;
            () = cancel.cancelled(), if !is_cancelled => {
                // It says what became of its calls, and ends.
                agent.abort();
                is_cancelled = true;
                continue;
            }
            event = events.next() => event,
        };
        let Some(event) = event else { break };
        if let Some(status) = seen.take(&event) {
            show(status);
        }
        let Some(parent) = parent.upgrade() else {
            continue;
        };
        let usage = seen.uncounted();
        if usage.total() > 0 || usage.cost.is_some() {
            parent.spend(&usage);
            if seen.over.is_none() {
                seen.over = over(limits, parent.taken());
                if seen.over.is_some() {
                    agent.abort();
                }
            }
        }
        pass_on(&parent, event);
    }
    // Events are for those who watch; who asked gets what was said.
    let said = agent.shared.lock().text.clone();
    if seen.questions.is_empty() {
        // One that waits for nobody itself may have tasks in the background that do.
        let within = Agent::questions_of(&agent.shared).into_iter();
        let within = within.map(|one| format!("{} {}", one.tool, one.about));
        seen.questions = within.map(|one| reply::cut(&one, QUESTION)).collect();
    }
    seen.end(&said, is_cancelled)
}

/// Has a sub-agent end when the time of the call is up.
pub(super) async fn in_time(
    followed: impl Future<Output = Followed>,
    agent: &Agent,
    stop: &CancellationToken,
    cx: &Context,
) -> Followed {
    tokio::pin!(followed);
    tokio::select! {
        biased;
        followed = &mut followed => return followed,
        () = cx.time_is_up() => {}
    }
    stop.cancel();
    match tokio::time::timeout(GRACE, followed).await {
        Ok(followed) if !matches!(followed, Followed::Cancelled) => followed,
        _ => Followed::Stopped {
            text: agent.last_text(),
            why: Error::TimedOut {
                after: cx.limit().unwrap_or_default(),
            }
            .to_string(),
        },
    }
}

/// Which limit of the agent that asked is reached.
fn over(limits: &Settings, (tokens, cost): (u64, f64)) -> Option<&'static str> {
    if limits.max_tokens.is_some_and(|most| tokens >= most) {
        return Some("the most tokens that this prompt may take");
    }
    if limits.max_cost.is_some_and(|most| cost >= most) {
        return Some("the most that this prompt may cost");
    }
    None
}

/// What was seen of a sub-agent so far.
struct Seen<'a> {
    session: &'a str,
    turn: u64,
    tool: Option<String>,
    /// The text of the newest answer with one.
    text: String,
    /// A new answer has begun.
    is_new: bool,
    told: Option<Instant>,
    usage: Usage,
    counted: Usage,
    questions: Vec<String>,
    failure: Option<String>,
    limit: Option<Limit>,
    over: Option<&'static str>,
    response: Option<Value>,
    end: Option<&'static str>,
}

impl<'a> Seen<'a> {
    fn new(session: &'a str) -> Self {
        Self {
            session,
            turn: 0,
            tool: None,
            text: String::new(),
            is_new: false,
            told: None,
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

    /// Takes in an event; a line, if there is something new to say.
    fn take(&mut self, event: &Event) -> Option<String> {
        // What those that work for it take is told by themselves, and at its end by it.
        if let EventKind::Agent(AgentEvent::TurnEnd { usage, .. }) = &event.kind {
            self.usage.add(usage);
        }
        if event.session != self.session {
            return None;
        }
        match &event.kind {
            EventKind::Agent(event) => self.take_agent(event),
            EventKind::Tool(event) => self.take_tool(event),
        }
    }

    fn take_agent(&mut self, event: &AgentEvent) -> Option<String> {
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
                let is_time = self.told.is_none_or(|told| told.elapsed() >= PACE);
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
                // It may have taken more than its turns, as for a summary.
                self.usage = larger(self.usage, *usage);
                self.end = Some(reason);
            }
            _ => {}
        }
        None
    }

    fn take_tool(&mut self, event: &ToolEvent) -> Option<String> {
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
                let asked = match question {
                    Some(question) => format!("{tool}: {question}"),
                    None => format!("{tool} {arguments}"),
                };
                self.questions.push(reply::cut(&asked, QUESTION));
                None
            }
            _ => None,
        }
    }

    /// `turn 2, grep: what it says`.
    fn status(&mut self) -> String {
        self.told = Some(Instant::now());
        let mut status = format!("turn {}", self.turn);
        if let Some(tool) = &self.tool {
            status.push_str(&format!(", {tool}"));
        }
        let tail = reply::tail(&self.text, TAIL);
        if !tail.is_empty() {
            status.push_str(&format!(": {tail}"));
        }
        status
    }

    /// What it took since this was asked last.
    fn uncounted(&mut self) -> Usage {
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

    fn end(self, said: &str, is_cancelled: bool) -> Followed {
        let Some(reason) = self.end else {
            return Followed::Failed {
                text: self.text,
                why: "it ended without saying why".to_owned(),
            };
        };
        let text = match said.trim().is_empty() {
            true => self.text,
            false => said.to_owned(),
        };
        match reason {
            "done" => Followed::Done {
                text,
                response: self.response,
            },
            "approval" => Followed::Waits {
                question: self.questions.join("; "),
            },
            "limit" => Followed::Stopped {
                why: match self.limit {
                    Some(Limit::MaxTurns) => format!("it reached max_turns ({})", self.turn),
                    Some(Limit::MaxTokens) => "it reached max_tokens".to_owned(),
                    Some(Limit::MaxCost) => "it reached max_cost".to_owned(),
                    _ => "it repeated the same calls with the same results".to_owned(),
                },
                text,
            },
            _ if is_cancelled => Followed::Cancelled,
            "interrupted" => match self.over {
                Some(limit) => Followed::Stopped {
                    why: format!("all together reached {limit}"),
                    text,
                },
                None => Followed::Failed {
                    why: "it was stopped".to_owned(),
                    text,
                },
            },
            _ => Followed::Failed {
                why: self.failure.unwrap_or_else(|| reason.to_owned()),
                text,
            },
        }
    }
}

/// The larger of two counts of the same work.
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
