//! Turns the events of a run into what the client shows.

use crate::changes;
use crate::plain_text::{grouped, without_colours};
use crate::tool::CallView;
use crate::update::{Block, CallContent, CallUpdate, Kind, Status, Update, text};
use haft::ops::text::decode::suffix;
use haft::{Content, EventKind as ToolEvent};
use haft_agent::{AgentEvent, Event, EventKind, Limit};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Bytes of a running command's output to show.
const MAX_TAIL: usize = 16 << 10;

/// Minimum time between two updates of a running call. Each contains all of its output.
const INTERVAL: Duration = Duration::from_millis(100);

/// Outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunEnd {
    Done,
    Interrupted,
    Limit(Limit),
    Failed(String),
}

/// Stream that an event comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// That of a run, which ends with it.
    Run,
    /// That of sub-agents in the background, which go on when a run ends.
    Background,
}

/// Statuses of a background task that no longer runs.
const ENDED: [&str; 5] = ["done", "stopped", "failed", "cancelled", "interrupted"];

/// A call in progress.
struct LiveCall {
    session: String,
    tool: String,
    title: Option<String>,
    arguments: Value,
    kind: Kind,
    tail: String,
    /// Time of the last update, and whether there is output since.
    sent: Option<Instant>,
    is_behind: bool,
}

/// State between events.
pub(crate) struct Translator {
    session: String,
    work_dir: PathBuf,
    /// Size of the context window in tokens.
    window: u64,
    calls: HashMap<String, LiveCall>,
    /// Names of sub-agents, by session.
    agents: HashMap<String, String>,
    /// Sessions of sub-agents in the background.
    background: HashSet<String>,
    error: Option<String>,
    limit: Option<Limit>,
    cost: Option<f64>,
}

impl Translator {
    pub(crate) fn new(session: &str, work_dir: PathBuf) -> Self {
        Self {
            session: session.to_owned(),
            work_dir,
            window: 0,
            calls: HashMap::new(),
            agents: HashMap::new(),
            background: HashSet::new(),
            error: None,
            limit: None,
            cost: None,
        }
    }

    /// Sets the size of the context window.
    pub(crate) fn set_window(&mut self, tokens: u64) {
        self.window = tokens;
    }

    /// Sets the cost of the session so far.
    pub(crate) fn set_cost(&mut self, cost: Option<f64>) {
        self.cost = cost;
    }

    /// Id of a call for the client.
    pub(crate) fn call_id(&self, session: &str, call_id: &str) -> String {
        call_id_in(&self.session, session, call_id)
    }

    /// Translates an event. `changes` are those of the call that it ends. The second value is
    /// the end of the run, if this is the last event.
    pub(crate) fn event(
        &mut self,
        event: &Event,
        stream: Stream,
        changes: Vec<CallContent>,
    ) -> (Vec<Update>, Option<RunEnd>) {
        let is_own = event.parent.is_none();
        self.place(event, stream);
        match &event.kind {
            EventKind::Tool(tool) => (self.tool(&event.session, tool, changes), None),
            EventKind::Agent(agent) if is_own => self.agent(agent),
            _ => (Vec::new(), None),
        }
    }

    /// Notes which sub-agent an event comes from, and whether that works in the background.
    pub(crate) fn place(&mut self, event: &Event, stream: Stream) {
        let Some(parent) = &event.parent else {
            return;
        };
        match stream {
            Stream::Run => self.background.remove(&event.session),
            Stream::Background => self.background.insert(event.session.clone()),
        };
        if !self.agents.contains_key(&event.session)
            && let Some(name) = self.only_agent_of(parent)
        {
            self.agents.insert(event.session.clone(), name);
        }
    }

    /// Returns the name of the sub-agent that a session waits for, if there is only one.
    fn only_agent_of(&self, session: &str) -> Option<String> {
        let calls = self.calls.values().filter(|call| call.session == session);
        let mut names = calls.filter_map(|call| agent_of(&call.arguments));
        let first = names.next()?;
        names.all(|name| name == first).then(|| first.to_owned())
    }

    fn agent(&mut self, event: &AgentEvent) -> (Vec<Update>, Option<RunEnd>) {
        let update = match event {
            AgentEvent::MessageUpdate { kind, delta } => match *kind {
                "text" => Update::Answer(delta.clone()),
                "reasoning" => Update::Thought(delta.clone()),
                _ => return (Vec::new(), None),
            },
            // A request that failed has used nothing; what was used before still stands.
            AgentEvent::TurnEnd { usage, .. } if usage.total() == 0 => return (Vec::new(), None),
            AgentEvent::TurnEnd { usage, .. } => {
                if let Some(cost) = usage.cost {
                    self.cost = Some(self.cost.unwrap_or_default() + cost);
                }
                Update::Usage {
                    used: usage.total(),
                    size: self.window,
                    cost: self.cost,
                }
            }
            AgentEvent::Retry {
                attempt,
                of,
                reason,
                ..
            } => Update::Note(format!("{reason}; retry {attempt} of {of}")),
            AgentEvent::Compaction { before, after } => Update::Note(compacted(*before, *after)),
            AgentEvent::BackgroundTask {
                task_id,
                agent,
                description,
                status,
            } => {
                let name = self.agents.entry(task_id.clone());
                name.or_insert_with(|| agent.clone());
                let note = Update::Note(format!("{agent} {status}: {description}"));
                let mut updates = vec![note];
                if ENDED.contains(status) {
                    updates.extend(self.fail_open_calls(|call| call.session == *task_id));
                }
                return (updates, None);
            }
            AgentEvent::TurnLimitReached { reason } => {
                self.limit = Some(*reason);
                return (Vec::new(), None);
            }
            AgentEvent::Error { message } => {
                self.error = Some(message.clone());
                return (Vec::new(), None);
            }
            AgentEvent::AgentEnd { reason, .. } => {
                let error = self.error.take();
                let end = match *reason {
                    "failed" => RunEnd::Failed(error.unwrap_or_else(|| "it failed".to_owned())),
                    "limit" => RunEnd::Limit(self.limit.take().unwrap_or(Limit::MaxTurns)),
                    "interrupted" => RunEnd::Interrupted,
                    _ => RunEnd::Done,
                };
                let background = std::mem::take(&mut self.background);
                let updates = self.fail_open_calls(|call| !background.contains(&call.session));
                self.background = background;
                return (updates, Some(end));
            }
            _ => return (Vec::new(), None),
        };
        (vec![update], None)
    }

    /// Ends calls that never got an end, which would spin in the editor.
    fn fail_open_calls(&mut self, is_over: impl Fn(&LiveCall) -> bool) -> Vec<Update> {
        let over = self.calls.extract_if(|_, call| is_over(call));
        let updates = over.map(|(id, call)| {
            Update::Call(Box::new(CallUpdate {
                status: Some(Status::Failed),
                ..CallUpdate::later(&id, &call.tool)
            }))
        });
        updates.collect()
    }

    fn tool(&mut self, session: &str, event: &ToolEvent, changes: Vec<CallContent>) -> Vec<Update> {
        match event {
            ToolEvent::ToolStart {
                call_id,
                tool,
                arguments,
            } => self.started(session, call_id, tool, arguments),
            ToolEvent::ToolUpdate {
                call_id, content, ..
            } => self.progress(&self.call_id(session, call_id), content),
            ToolEvent::ToolEnd {
                call_id,
                tool,
                is_error,
                content,
                ..
            } => {
                let id = self.call_id(session, call_id);
                let call = self.calls.remove(&id);
                let kind = call.map_or(Kind::Other, |call| call.kind);
                vec![ended((&id, tool), kind, *is_error, content, changes)]
            }
            ToolEvent::ToolDenied {
                call_id,
                tool,
                reason,
            } => {
                let id = self.call_id(session, call_id);
                let known = self.calls.remove(&id).is_some();
                let update = CallUpdate {
                    is_new: !known,
                    title: (!known).then(|| tool.clone()),
                    status: Some(Status::Failed),
                    content: Some(vec![text(format!("Not run: {reason}"))]),
                    ..CallUpdate::later(&id, tool)
                };
                vec![Update::Call(Box::new(update))]
            }
            _ => Vec::new(),
        }
    }

    /// Returns the update that announces a call, and remembers the call; `None` if it is known.
    pub(crate) fn announce(
        &mut self,
        session: &str,
        call_id: &str,
        tool: &str,
        arguments: &Value,
    ) -> Option<CallUpdate> {
        let id = self.call_id(session, call_id);
        if self.calls.contains_key(&id) {
            return None;
        }
        let view = CallView {
            id: &id,
            tool,
            arguments,
            agent: self.agents.get(session).map(String::as_str),
            work_dir: &self.work_dir,
        };
        let update = view.announce(Status::Pending);
        let call = LiveCall {
            session: session.to_owned(),
            tool: tool.to_owned(),
            title: update.title.clone(),
            arguments: arguments.clone(),
            kind: view.kind(),
            tail: String::new(),
            sent: None,
            is_behind: false,
        };
        self.calls.insert(id, call);
        Some(update)
    }

    /// Returns the title and the arguments of a call, as the client knows them.
    pub(crate) fn known(&self, session: &str, call_id: &str) -> Option<(Option<String>, Value)> {
        let call = self.calls.get(&self.call_id(session, call_id))?;
        Some((call.title.clone(), call.arguments.clone()))
    }

    /// Sets the name of a sub-agent.
    pub(crate) fn name_agent(&mut self, session: &str, name: &str) {
        if session != self.session {
            self.agents.insert(session.to_owned(), name.to_owned());
        }
    }

    fn started(
        &mut self,
        session: &str,
        call_id: &str,
        tool: &str,
        arguments: &Value,
    ) -> Vec<Update> {
        let id = self.call_id(session, call_id);
        let announced = self.announce(session, call_id, tool, arguments);
        let view = CallView {
            id: &id,
            tool,
            arguments,
            agent: None,
            work_dir: &self.work_dir,
        };
        let update = match announced {
            Some(update) => CallUpdate {
                status: Some(Status::Running),
                ..update
            },
            // The user may have changed the arguments. The question is no longer shown.
            None => CallUpdate {
                status: Some(Status::Running),
                raw_input: Some(arguments.clone()),
                content: Some(view.diff().into_iter().collect()),
                ..CallUpdate::later(&id, tool)
            },
        };
        let plan = view.plan().map(Update::Plan);
        std::iter::once(Update::Call(Box::new(update)))
            .chain(plan)
            .collect()
    }

    /// Commands send only new output, other tools their whole progress.
    fn progress(&mut self, id: &str, content: &[Content]) -> Vec<Update> {
        let Some(call) = self.calls.get_mut(id) else {
            return Vec::new();
        };
        if call.kind != Kind::Execute {
            call.tail.clear();
        }
        for block in content {
            if let Content::Text { text } = block {
                call.tail.push_str(text);
            }
        }
        if call.tail.len() > 2 * MAX_TAIL {
            call.tail = suffix(&call.tail, MAX_TAIL).to_owned();
        }
        call.is_behind = true;
        match call.sent.is_some_and(|sent| sent.elapsed() < INTERVAL) {
            true => Vec::new(),
            false => self.flush(),
        }
    }

    /// Returns the time after which [`Translator::flush`] has something to send.
    pub(crate) fn due(&self) -> Option<Instant> {
        let behind = self.calls.values().filter(|call| call.is_behind);
        behind
            .map(|call| call.sent.map_or_else(Instant::now, |sent| sent + INTERVAL))
            .min()
    }

    /// Returns the output that was held back.
    pub(crate) fn flush(&mut self) -> Vec<Update> {
        let mut updates = Vec::new();
        for (id, call) in self.calls.iter_mut().filter(|(_, call)| call.is_behind) {
            call.is_behind = false;
            call.sent = Some(Instant::now());
            let update = CallUpdate {
                content: Some(vec![shown(call.kind, suffix(&call.tail, MAX_TAIL))]),
                ..CallUpdate::later(id, &call.tool)
            };
            updates.push(Update::Call(Box::new(update)));
        }
        updates
    }
}

/// Returns the id of a call for the client. Ids of calls are unique only within a session.
pub(crate) fn call_id_in(own: &str, session: &str, call_id: &str) -> String {
    match session == own {
        true => call_id.to_owned(),
        false => format!("{session}/{call_id}"),
    }
}

/// Returns the name of the sub-agent that a call starts, if it starts one.
pub(crate) fn agent_of(arguments: &Value) -> Option<&str> {
    arguments.get("subagent_type")?.as_str()
}

/// Describes a compaction.
pub(crate) fn compacted(before: u64, after: u64) -> String {
    format!(
        "compacted: about {} tokens before, {} now",
        grouped(before),
        grouped(after)
    )
}

/// Returns the last update of a call: its result, and the files that it changed.
pub(crate) fn ended(
    (id, tool): (&str, &str),
    kind: Kind,
    is_error: bool,
    content: &[Content],
    changes: Vec<CallContent>,
) -> Update {
    let status = match is_error {
        true => Status::Failed,
        false => Status::Done,
    };
    let places = changes::locations(&changes);
    let content = match (result_content(kind, is_error, content), changes.is_empty()) {
        (content, true) => content,
        // The whole files, instead of the change that was announced.
        (None, false) => Some(changes),
        (Some(content), false) => Some(content.into_iter().chain(changes).collect()),
    };
    Update::Call(Box::new(CallUpdate {
        status: Some(status),
        content,
        locations: Some(places).filter(|places| !places.is_empty()),
        ..CallUpdate::later(id, tool)
    }))
}

/// Returns what a finished call shows; `None` to keep the change that it announced.
fn result_content(kind: Kind, is_error: bool, content: &[Content]) -> Option<Vec<CallContent>> {
    if kind == Kind::Edit && !is_error {
        return None;
    }
    let blocks = content.iter().filter_map(|block| match block {
        Content::Text { text } if text.is_empty() => None,
        Content::Text { text } => Some(shown(kind, text)),
        Content::Image { data, media_type } => Some(CallContent::Block(Block::Image {
            data: data.clone(),
            media_type: media_type.clone(),
        })),
        other => Some(text(other.in_words())),
    });
    Some(blocks.collect())
}

/// Returns text for a client that renders Markdown: output and files as they are.
fn shown(kind: Kind, output: &str) -> CallContent {
    match kind {
        Kind::Execute | Kind::Read | Kind::Search => {
            let output = without_colours(output);
            // A fence longer than any in the output.
            let ticks = output.split(|c| c != '`').map(str::len).max();
            let fence = "`".repeat(ticks.unwrap_or(0).max(2) + 1);
            text(format!(
                "{fence}\n{}\n{fence}",
                output.trim_end_matches('\n')
            ))
        }
        _ => text(output),
    }
}
