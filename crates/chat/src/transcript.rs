//! Turns events into lines: finished ones for printing, and a preview of work in progress.
//! Shared by the screen and plain lines.

mod background;
mod reasoning;
mod recall;
#[cfg(test)]
mod tests;
mod todos;

use crate::card::{Call, CallResult, Length, format_duration};
use crate::driver::{ChatEvent, Request};
use crate::markdown::Markdown;
use crate::styled_text::{self, Line, Style, Styling};
use background::Background;
pub use background::background_task_line;
use haft::Content;
use haft_agent::{AgentEvent, EventKind, Limit};
use reasoning::Reasoning;
use std::time::{Duration, Instant};
use todos::Todos;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Interval of the spinner.
pub(crate) const SPINNER_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum width of prose, in columns.
const MAX_TEXT_WIDTH: usize = 120;

/// Calls of sub-agents to show before each call of the agent itself; failed ones are always
/// shown.
const MAX_NESTED_CALLS: usize = 6;

/// Kind of the last output: an empty line separates different kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputKind {
    Nothing,
    Prompt,
    Text,
    Card,
    Note,
}

/// State of everything that is not finished.
pub(crate) struct Transcript {
    columns: usize,
    markdown: Markdown,
    last_kind: OutputKind,
    /// Whether the last call took several rows.
    last_was_tall: bool,
    running: Vec<Call>,
    reasoning: Reasoning,
    /// Tool for which the model is writing a call.
    writing_call_to: Option<String>,
    waiting_for: Option<String>,
    /// Start of the current work.
    work_started: Option<Instant>,
    /// Last finished call, for showing all of it.
    last_call: Option<(Call, CallResult)>,
    /// How much to show of calls.
    length: Length,
    background: Background,
    todos: Todos,
    /// Calls of sub-agents that are shown, and those that are only counted, since the last
    /// call of the agent itself.
    nested: (usize, usize),
}

impl Transcript {
    pub(crate) fn new(columns: usize, styling: Styling) -> Self {
        Self {
            columns,
            markdown: Markdown::new(columns.min(MAX_TEXT_WIDTH), styling),
            last_kind: OutputKind::Nothing,
            last_was_tall: false,
            running: Vec::new(),
            reasoning: Reasoning::default(),
            writing_call_to: None,
            waiting_for: None,
            work_started: None,
            last_call: None,
            length: Length::Short,
            background: Background::default(),
            todos: Todos::default(),
            nested: (0, 0),
        }
    }

    /// Changes the look of what comes.
    pub(crate) fn restyle(&mut self, styling: Styling) {
        self.markdown.restyle(styling);
    }

    pub(crate) fn resize(&mut self, columns: usize) {
        self.columns = columns;
        self.markdown.resize(columns.min(MAX_TEXT_WIDTH));
    }

    /// Starts work: a prompt, or a command that the user runs.
    pub(crate) fn start_work(&mut self, now: Instant, length: Length) {
        self.work_started = Some(now);
        self.length = length;
    }

    /// Ends work, and drops calls that are still running.
    pub(crate) fn end_work(&mut self) -> Vec<Line> {
        let mut out = Vec::new();
        self.finish_text(&mut out);
        self.running.retain(|call| call.is_background);
        self.waiting_for = None;
        self.work_started = None;
        out
    }

    /// Duration of the current work.
    pub(crate) fn elapsed(&self, now: Instant) -> Duration {
        let since = self.work_started.unwrap_or(now);
        now.saturating_duration_since(since)
    }

    pub(crate) fn user_input(&mut self, text: &str) -> Vec<Line> {
        let mut out = Vec::new();
        self.finish_text(&mut out);
        self.separate(OutputKind::Prompt, &mut out);
        for (at, line) in text.lines().enumerate() {
            let mark = if at == 0 { "› " } else { "  " };
            let line = Line::new(line, Style::BOLD).indented(mark, Style::CYAN);
            out.push(line.hanging(2).filled(styled_text::Background::Prompt));
        }
        out
    }

    pub(crate) fn note(&mut self, text: &str, style: Style) -> Vec<Line> {
        let mut out = Vec::new();
        self.finish_text(&mut out);
        self.separate(OutputKind::Note, &mut out);
        out.extend(text.lines().map(|line| Line::new(line, style).hanging(2)));
        out
    }

    /// Lines from another part of the chat.
    pub(crate) fn section(&mut self, lines: Vec<Line>) -> Vec<Line> {
        let mut out = Vec::new();
        self.finish_text(&mut out);
        self.separate(OutputKind::Prompt, &mut out);
        out.extend(lines);
        self.last_kind = OutputKind::Card;
        self.last_was_tall = true;
        out
    }

    pub(crate) fn last_call_lines(&self) -> Option<Vec<Line>> {
        let (call, end) = self.last_call.as_ref()?;
        Some(call.full_lines(end, self.columns))
    }

    /// All that the model thought before its last answer.
    pub(crate) fn last_reasoning_lines(&self) -> Option<Vec<Line>> {
        self.reasoning.last_lines()
    }

    /// Handles an event and returns the lines that are finished. `output` returns the reply
    /// of a call.
    pub(crate) fn handle(
        &mut self,
        chat_event: &ChatEvent,
        now: Instant,
        output: &dyn Fn(&str) -> Option<String>,
    ) -> Vec<Line> {
        let mut out = Vec::new();
        match &chat_event.kind {
            EventKind::Tool(event) => {
                self.handle_tool_event(event, chat_event, now, output, &mut out)
            }
            // Its unanswered questions are no longer pending.
            EventKind::Agent(AgentEvent::AgentEnd { .. }) if chat_event.is_background => {
                self.running
                    .retain(|call| call.sub_agent != chat_event.sub_agent);
            }
            // A sub-agent's text is for the agent; showing its calls is enough.
            EventKind::Agent(_) if chat_event.sub_agent.is_some() => {}
            EventKind::Agent(AgentEvent::BackgroundTask {
                task_id,
                agent,
                description,
                status,
            }) => {
                let work = (agent.as_str(), description.as_str());
                let is_new =
                    self.background
                        .update(task_id, work, status, chat_event.is_background, now);
                if is_new {
                    // May arrive in the middle of an answer, whose text stays together.
                    let mut words = background_task_line(task_id, agent, description, status);
                    if *status == "waiting" {
                        words.push_str(
                            " for your approval; your next message brings the question back",
                        );
                    }
                    self.separate(OutputKind::Note, &mut out);
                    out.push(Line::new(&words, Style::DIM).hanging(2));
                }
            }
            EventKind::Agent(event) => self.handle_agent_event(event, now, &mut out),
            _ => {}
        }
        out
    }

    fn handle_agent_event(&mut self, event: &AgentEvent, now: Instant, out: &mut Vec<Line>) {
        match event {
            AgentEvent::MessageUpdate { kind, delta } => self.add_delta((kind, delta), now, out),
            AgentEvent::TurnStart { .. } => self.waiting_for = None,
            AgentEvent::TurnEnd { .. } => self.finish_text(out),
            AgentEvent::Compaction { before, after } => out.extend(self.note(
                &format!(
                    "conversation compacted: {} → {} tokens",
                    format_count(*before),
                    format_count(*after)
                ),
                Style::DIM,
            )),
            AgentEvent::Retry {
                attempt,
                of,
                delay_ms,
                reason,
            } => {
                let delay = format_duration(Duration::from_millis(*delay_ms));
                let words = format!("{reason}\nretrying in {delay} ({attempt} of {of})");
                out.extend(self.note(&words, Style::YELLOW));
                self.waiting_for = Some("waiting to retry".to_owned());
            }
            AgentEvent::PictureLeftOut {
                picture, reason, ..
            } => {
                let words = format!("{picture} is left out from now on: {reason}");
                out.extend(self.note(&words, Style::YELLOW));
            }
            AgentEvent::Steering { text } => out.extend(self.user_input(text)),
            AgentEvent::TurnLimitReached { reason } => {
                let words = match reason {
                    Limit::MaxTurns => "stopped: turn limit reached (max_turns)",
                    Limit::MaxTokens => "stopped: token limit reached (max_tokens)",
                    Limit::MaxCost => "stopped: cost limit reached (max_cost)",
                    Limit::Loop => "stopped: the same calls were repeated",
                    _ => "stopped: limit reached",
                };
                out.extend(self.note(words, Style::YELLOW));
            }
            AgentEvent::Error { message } => out.extend(self.note(message, Style::RED)),
            AgentEvent::AgentEnd { reason, .. } => {
                out.extend(self.end_work());
                if *reason == "interrupted" {
                    out.extend(self.note("stopped", Style::YELLOW));
                }
            }
            _ => {}
        }
    }

    /// Adds a part of an answer, by its kind.
    fn add_delta(&mut self, part: (&str, &str), now: Instant, out: &mut Vec<Line>) {
        self.waiting_for = None;
        let (kind, delta) = part;
        match kind {
            "text" => {
                self.finish_reasoning(out);
                let lines = self.markdown.push(delta);
                if !lines.is_empty() {
                    self.separate(OutputKind::Text, out);
                    out.extend(lines);
                }
            }
            "reasoning" => self.reasoning.add(delta, now),
            "call" => {
                self.finish_text(out);
                self.writing_call_to = Some(delta.to_owned());
            }
            _ => {}
        }
    }

    fn handle_tool_event(
        &mut self,
        event: &haft::EventKind,
        chat_event: &ChatEvent,
        now: Instant,
        output: &dyn Fn(&str) -> Option<String>,
        out: &mut Vec<Line>,
    ) {
        use haft::EventKind as Tool;
        let sub_agent = chat_event.sub_agent.as_deref();
        if sub_agent.is_none() {
            self.finish_text(out);
        }
        match event {
            Tool::ToolStart {
                call_id,
                tool,
                arguments,
            } => {
                let mut call = Call::new(call_id, tool, arguments.clone(), now);
                call.sub_agent = sub_agent.map(str::to_owned);
                call.is_background = chat_event.is_background;
                call.agent = self.background.name_of(sub_agent);
                call.length = self.length;
                // Replaces the entry of its approval.
                self.running.retain(|known| !known.is(call_id, sub_agent));
                self.running.push(call);
            }
            Tool::ToolUpdate {
                call_id, content, ..
            } => {
                if let Some(call) = self
                    .running
                    .iter_mut()
                    .find(|call| call.is(call_id, sub_agent))
                {
                    call.update(&text_of(content));
                }
            }
            Tool::ToolEnd {
                call_id,
                tool,
                is_error,
                details,
                duration_ms,
                bytes,
                ..
            } => {
                let call = self.take_call(call_id, tool, sub_agent, now);
                let end = CallResult {
                    is_error: *is_error,
                    details: details.clone(),
                    took: Duration::from_millis(*duration_ms),
                    bytes: *bytes,
                    output: output(call_id),
                };
                if !end.is_error {
                    self.todos.update(&call.arguments);
                }
                let lines = call.finished_lines(&end, self.columns);
                if call.is_folded(&end) && self.nested.0 >= MAX_NESTED_CALLS {
                    self.nested.1 += 1;
                    return;
                }
                match sub_agent {
                    Some(_) => self.nested.0 += 1,
                    None => self.push_folded(out),
                }
                self.push_card(lines, out);
                if sub_agent.is_none() {
                    self.last_call = Some((call, end));
                }
            }
            Tool::ToolDenied {
                call_id,
                tool,
                reason,
            } => {
                let call = self.take_call(call_id, tool, sub_agent, now);
                let lines = call.refused_lines(reason, self.columns);
                self.push_card(lines, out);
            }
            Tool::ApprovalNeeded {
                call_id,
                tool,
                arguments,
                ..
            } => {
                // Kept for `ToolDenied`, which has no arguments.
                let mut call = Call::new(call_id, tool, arguments.clone(), now);
                call.sub_agent = sub_agent.map(str::to_owned);
                call.is_background = chat_event.is_background;
                call.agent = self.background.name_of(sub_agent);
                call.awaits_approval = true;
                self.running.push(call);
            }
            Tool::ReviewNeeded { call_id, .. } => {
                let mut running = self.running.iter_mut();
                if let Some(call) = running.find(|call| call.is(call_id, sub_agent)) {
                    call.awaits_approval = true;
                }
            }
            _ => {}
        }
    }

    /// Removes a call that ended, or creates one whose start was not seen.
    fn take_call(&mut self, id: &str, tool: &str, sub_agent: Option<&str>, now: Instant) -> Call {
        match self.running.iter().position(|call| call.is(id, sub_agent)) {
            Some(at) => self.running.remove(at),
            None => {
                let mut call = Call::new(id, tool, serde_json::Value::Null, now);
                call.sub_agent = sub_agent.map(str::to_owned);
                call.agent = self.background.name_of(sub_agent);
                call
            }
        }
    }

    fn finish_reasoning(&mut self, out: &mut Vec<Line>) {
        if let Some(mut line) = self.reasoning.finish() {
            if self.length == Length::Short {
                line.push(" · Ctrl-T shows it", Style::DIM);
            }
            self.separate(OutputKind::Note, out);
            out.push(line);
        }
    }

    fn finish_text(&mut self, out: &mut Vec<Line>) {
        self.finish_reasoning(out);
        self.writing_call_to = None;
        let lines = self.markdown.finish();
        if !lines.is_empty() {
            self.separate(OutputKind::Text, out);
            out.extend(lines);
        }
    }

    /// Outputs a call. Calls of one row stay together; others have an empty line around them.
    fn push_card(&mut self, lines: Vec<Line>, out: &mut Vec<Line>) {
        let is_tall = lines.len() > 1;
        if self.last_kind == OutputKind::Card && (is_tall || self.last_was_tall) {
            out.push(Line::default());
        }
        self.separate(OutputKind::Card, out);
        self.last_was_tall = is_tall;
        out.extend(lines);
    }

    /// Counts the calls of sub-agents that are not shown.
    fn push_folded(&mut self, out: &mut Vec<Line>) {
        let (_, hidden) = std::mem::take(&mut self.nested);
        if hidden > 0 {
            let calls = if hidden == 1 { "call" } else { "calls" };
            let words = format!("  ↳ … {hidden} more {calls} of sub-agents");
            self.push_card(vec![Line::new(&words, Style::DIM)], out);
        }
    }

    /// Rows of the todo list, which stay visible until everything is done.
    pub(crate) fn todo_rows(&self, columns: usize) -> Vec<Line> {
        self.todos.rows(columns)
    }

    /// Outputs an empty line between different kinds of output.
    fn separate(&mut self, kind: OutputKind, out: &mut Vec<Line>) {
        if self.last_kind != kind && self.last_kind != OutputKind::Nothing
            || kind == OutputKind::Prompt
        {
            out.push(Line::default());
        }
        self.last_kind = kind;
    }

    /// Rows of work in progress, at most `room`.
    pub(crate) fn live_rows(&self, now: Instant, room: usize) -> Vec<Line> {
        let mut rows = self.foreground_rows(now);
        let mut background = self.background_rows(now);
        if !background.is_empty() {
            rows.push(Line::default());
        }
        rows.append(&mut background);
        let hidden = rows.len().saturating_sub(room);
        rows.into_iter().skip(hidden).collect()
    }

    fn background_rows(&self, now: Instant) -> Vec<Line> {
        let mut rows = self.background.rows(now, self.columns);
        let calls = self.running.iter();
        for call in calls.filter(|call| call.is_background && !call.awaits_approval) {
            rows.extend(call.running_lines(spinner(call.started, now), now, self.columns));
        }
        rows
    }

    fn foreground_rows(&self, now: Instant) -> Vec<Line> {
        let Some(since) = self.work_started else {
            return Vec::new();
        };
        let elapsed = now.saturating_duration_since(since);
        let spinner = spinner(since, now);
        let mut rows: Vec<Line> = Vec::new();
        let words = self.markdown.pending();
        if !words.is_empty() {
            if self.last_kind != OutputKind::Text && self.last_kind != OutputKind::Nothing {
                rows.push(Line::default());
            }
            rows.extend(words.iter().flat_map(|line| line.all_rows(self.columns)));
        }
        let running = self.running.iter().filter(|call| !call.is_background);
        let is_asking = running.clone().any(|call| call.awaits_approval);
        let is_calling = running.clone().next().is_some();
        let cards: Vec<Line> = running
            .filter(|call| !call.awaits_approval)
            .flat_map(|call| call.running_lines(spinner, now, self.columns))
            .collect();
        let status = match (&self.writing_call_to, &self.waiting_for) {
            _ if !cards.is_empty() || is_asking => None,
            (Some(tool), _) => Some(format!("writing a call to {tool}")),
            (None, Some(waiting)) => Some(waiting.clone()),
            (None, None) if !words.is_empty() => Some("answering".to_owned()),
            (None, None) => Some("thinking".to_owned()),
        };
        if !cards.is_empty() || status.is_some() {
            rows.push(Line::default());
        }
        rows.extend(cards);
        if let Some(status) = status {
            let line = Line::new(spinner, Style::CYAN).and(&format!(" {status}"), Style::DIM);
            rows.push(line.and(&format!(" · {}", format_duration(elapsed)), Style::DIM));
        }
        if !is_calling {
            rows.extend(self.reasoning.rows(self.columns));
        }
        rows
    }

    /// Whether the event that announces a request has arrived.
    pub(crate) fn is_announced(&self, request: &Request) -> bool {
        // The chat's own questions belong to no call.
        if matches!(request, Request::Question(question, _) if question.call_id.is_empty()) {
            return true;
        }
        self.running.iter().any(|call| match request {
            Request::Question(question, _) => call.awaits_approval && call.id == question.call_id,
            // A running call may send a form at any time.
            Request::Form(form, _) => call.id == form.call_id,
        })
    }

    pub(crate) fn is_sub_agent_call(&self, call_id: &str) -> bool {
        let mut sub_agent_calls = self.running.iter().filter(|call| call.sub_agent.is_some());
        sub_agent_calls.any(|call| call.id == call_id)
    }

    pub(crate) fn is_working(&self) -> bool {
        self.work_started.is_some()
    }

    pub(crate) fn has_background_work(&self) -> bool {
        !self.background.is_empty() || self.running.iter().any(|call| call.is_background)
    }
}

/// Current frame of a spinner.
fn spinner(started: Instant, now: Instant) -> &'static str {
    let elapsed = now.saturating_duration_since(started);
    let turn = elapsed.as_millis() / SPINNER_INTERVAL.as_millis();
    let at = usize::try_from(turn).unwrap_or_default() % SPINNER.len();
    SPINNER.get(at).copied().unwrap_or("*")
}

fn text_of(content: &[Content]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        Content::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// A number of tokens in short form.
pub(crate) fn format_count(tokens: u64) -> String {
    match tokens {
        0..1000 => tokens.to_string(),
        1000..100_000 => format!("{}.{}k", tokens / 1000, tokens % 1000 / 100),
        100_000..1_000_000 => format!("{}k", tokens / 1000),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens % 1_000_000 / 100_000),
    }
}
