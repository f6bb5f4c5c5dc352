//! From events to lines: what is finished goes up and stays, what is under way is
//! looked at. The same for a screen and for plain lines.

mod background;
#[cfg(test)]
mod tests;

use super::card::{Call, End, Length, spoken};
use super::driver::{Asked, Seen};
use super::ink::{Line, Style};
use super::markdown::Markdown;
use super::setup::Before;
use background::Background;
pub(crate) use background::background_task;
use haft::Content;
use haft_agent::{AgentEvent, EventKind, Limit};
use std::time::{Duration, Instant};

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// How often the spinner turns.
pub(crate) const TURN: Duration = Duration::from_millis(100);

/// Longer lines of prose are hard to read.
const READABLE: usize = 120;

/// Rows of reasoning that are shown while it goes on.
const REASONING: usize = 2;

/// Lines that are shown of what was said before.
const RECALLED: usize = 12;

/// What the last thing was, to know what stands apart from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Prompt,
    Words,
    Card,
    Note,
}

/// What was said and done so far, as far as it is not finished.
pub(crate) struct Transcript {
    columns: usize,
    markdown: Markdown,
    last: Kind,
    running: Vec<Call>,
    reasoning: String,
    /// The tool that the model is writing a call for.
    writing: Option<String>,
    waiting: Option<String>,
    /// Since when it works.
    since: Option<Instant>,
    /// The last call, for whoever wants to see all of it.
    shown: Option<(Call, End)>,
    /// How much is shown of calls.
    length: Length,
    background: Background,
}

impl Transcript {
    pub(crate) fn new(columns: usize) -> Self {
        Self {
            columns,
            markdown: Markdown::new(columns.min(READABLE)),
            last: Kind::Nothing,
            running: Vec::new(),
            reasoning: String::new(),
            writing: None,
            waiting: None,
            since: None,
            shown: None,
            length: Length::Short,
            background: Background::default(),
        }
    }

    pub(crate) fn resize(&mut self, columns: usize) {
        self.columns = columns;
        self.markdown.resize(columns.min(READABLE));
    }

    /// Work begins, for a prompt or, if the person runs something themselves, for
    /// that.
    pub(crate) fn begin(&mut self, now: Instant, length: Length) {
        self.since = Some(now);
        self.length = length;
    }

    /// Work is over, whatever was under way.
    pub(crate) fn end(&mut self) -> Vec<Line> {
        let mut out = Vec::new();
        self.finish_words(&mut out);
        self.running.retain(|call| call.is_background);
        self.waiting = None;
        self.since = None;
        out
    }

    /// How long it has worked.
    pub(crate) fn elapsed(&self, now: Instant) -> Duration {
        let since = self.since.unwrap_or(now);
        now.saturating_duration_since(since)
    }

    /// What the person said.
    pub(crate) fn said(&mut self, text: &str) -> Vec<Line> {
        let mut out = Vec::new();
        self.finish_words(&mut out);
        self.apart(Kind::Prompt, &mut out);
        for (at, line) in text.lines().enumerate() {
            let mark = if at == 0 { "› " } else { "  " };
            let line = Line::new(line, Style::BOLD).indented(mark, Style::CYAN);
            out.push(line.hanging(2));
        }
        out
    }

    /// What was said before, as it looked then; of much the end.
    pub(crate) fn recalled(&mut self, before: &Before) -> Vec<Line> {
        let mut out = self.said(&before.prompt);
        let hidden = out.len().saturating_sub(RECALLED);
        out.drain(..hidden);
        let mut answer = Vec::new();
        self.piece("text", &before.answer, &mut answer);
        self.finish_words(&mut answer);
        let hidden = answer.len().saturating_sub(RECALLED);
        if hidden > 0 {
            let words = format!("… {hidden} lines before");
            out.extend([Line::default(), Line::new(&words, Style::DIM)]);
        }
        out.extend(answer.into_iter().skip(hidden));
        out
    }

    /// Something that is neither said nor done.
    pub(crate) fn note(&mut self, text: &str, style: Style) -> Vec<Line> {
        let mut out = Vec::new();
        self.finish_words(&mut out);
        self.apart(Kind::Note, &mut out);
        out.extend(text.lines().map(|line| Line::new(line, style).hanging(2)));
        out
    }

    /// Lines of some other part of the chat.
    pub(crate) fn beside(&mut self, lines: Vec<Line>) -> Vec<Line> {
        let mut out = Vec::new();
        self.finish_words(&mut out);
        self.apart(Kind::Prompt, &mut out);
        out.extend(lines);
        self.last = Kind::Card;
        out
    }

    /// All of the last call.
    pub(crate) fn whole(&self) -> Option<Vec<Line>> {
        let (call, end) = self.shown.as_ref()?;
        Some(call.whole(end, self.columns))
    }

    /// Something happened; the lines that are finished by that. `output` knows what
    /// a call has answered.
    pub(crate) fn see(
        &mut self,
        seen: &Seen,
        now: Instant,
        output: &dyn Fn(&str) -> Option<String>,
    ) -> Vec<Line> {
        let mut out = Vec::new();
        match &seen.kind {
            EventKind::Tool(event) => self.tool(event, seen, now, output, &mut out),
            // What it was asked about and nobody answered is not under way any more.
            EventKind::Agent(AgentEvent::AgentEnd { .. }) if seen.is_background => {
                self.running.retain(|call| call.child != seen.child);
            }
            // A sub-agent's words are for the agent; its calls say enough.
            EventKind::Agent(_) if seen.child.is_some() => {}
            EventKind::Agent(AgentEvent::BackgroundTask {
                task_id,
                agent,
                description,
                status,
            }) => {
                let work = (agent.as_str(), description.as_str());
                let is_new = self
                    .background
                    .see(task_id, work, status, seen.is_background, now);
                if is_new {
                    // It may come in the middle of an answer, whose words stay together.
                    let mut words = background_task(task_id, agent, description, status);
                    if *status == "waiting" {
                        words.push_str(
                            " for your approval; your next message brings the question back",
                        );
                    }
                    self.apart(Kind::Note, &mut out);
                    out.push(Line::new(&words, Style::DIM).hanging(2));
                }
            }
            EventKind::Agent(event) => self.agent(event, &mut out),
            _ => {}
        }
        out
    }

    fn agent(&mut self, event: &AgentEvent, out: &mut Vec<Line>) {
        match event {
            AgentEvent::MessageUpdate { kind, delta } => self.piece(kind, delta, out),
            AgentEvent::TurnStart { .. } => self.waiting = None,
            AgentEvent::TurnEnd { .. } => self.finish_words(out),
            AgentEvent::Compaction { before, after } => out.extend(self.note(
                &format!(
                    "the conversation was made shorter: {} → {} tokens",
                    counted(*before),
                    counted(*after)
                ),
                Style::DIM,
            )),
            AgentEvent::Retry {
                attempt,
                of,
                delay_ms,
                reason,
            } => {
                let delay = spoken(Duration::from_millis(*delay_ms));
                let words = format!("{reason}\ntrying again in {delay} ({attempt} of {of})");
                out.extend(self.note(&words, Style::YELLOW));
                self.waiting = Some("waiting to try again".to_owned());
            }
            AgentEvent::PictureLeftOut {
                picture, reason, ..
            } => {
                let words =
                    format!("{picture} is left out from now on, the provider refused it: {reason}");
                out.extend(self.note(&words, Style::YELLOW));
            }
            AgentEvent::Steering { text } => out.extend(self.said(text)),
            AgentEvent::TurnLimitReached { reason } => {
                let words = match reason {
                    Limit::MaxTurns => "stopped: as many turns as allowed (max_turns)",
                    Limit::MaxTokens => "stopped: as many tokens as allowed (max_tokens)",
                    Limit::MaxCost => "stopped: as much money as allowed (max_cost)",
                    Limit::Loop => "stopped: it did the same again and again",
                    _ => "stopped: a limit was reached",
                };
                out.extend(self.note(words, Style::YELLOW));
            }
            AgentEvent::Error { message } => out.extend(self.note(message, Style::RED)),
            AgentEvent::AgentEnd { reason, .. } => {
                out.extend(self.end());
                if *reason == "interrupted" {
                    out.extend(self.note("stopped", Style::YELLOW));
                }
            }
            _ => {}
        }
    }

    fn piece(&mut self, kind: &str, delta: &str, out: &mut Vec<Line>) {
        self.waiting = None;
        match kind {
            "text" => {
                self.reasoning.clear();
                let lines = self.markdown.push(delta);
                if !lines.is_empty() {
                    self.apart(Kind::Words, out);
                    out.extend(lines);
                }
            }
            "reasoning" => {
                self.reasoning.push_str(delta);
                let kept = haft::ops::text::decode::suffix(&self.reasoning, 2 << 10);
                if kept.len() < self.reasoning.len() / 2 {
                    self.reasoning = kept.to_owned();
                }
            }
            "call" => {
                self.finish_words(out);
                self.writing = Some(delta.to_owned());
            }
            _ => {}
        }
    }

    fn tool(
        &mut self,
        event: &haft::EventKind,
        seen: &Seen,
        now: Instant,
        output: &dyn Fn(&str) -> Option<String>,
        out: &mut Vec<Line>,
    ) {
        use haft::EventKind as Tool;
        let child = seen.child.as_deref();
        if child.is_none() {
            self.finish_words(out);
        }
        match event {
            Tool::ToolStart {
                call_id,
                tool,
                arguments,
            } => {
                let mut call = Call::new(call_id, tool, arguments.clone(), now);
                call.child = child.map(str::to_owned);
                call.is_background = seen.is_background;
                call.by = self.background.name_of(child);
                call.length = self.length;
                // It may have been asked about.
                self.running.retain(|known| !known.is(call_id, child));
                self.running.push(call);
            }
            Tool::ToolUpdate {
                call_id, content, ..
            } => {
                if let Some(call) = self.running.iter_mut().find(|call| call.is(call_id, child)) {
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
                let call = self.taken(call_id, tool, child, now);
                let end = End {
                    is_error: *is_error,
                    details: details.clone(),
                    took: Duration::from_millis(*duration_ms),
                    bytes: *bytes,
                    output: output(call_id),
                };
                self.apart(Kind::Card, out);
                out.extend(call.finished(&end, self.columns));
                if child.is_none() {
                    self.shown = Some((call, end));
                }
            }
            Tool::ToolDenied {
                call_id,
                tool,
                reason,
            } => {
                let call = self.taken(call_id, tool, child, now);
                self.apart(Kind::Card, out);
                out.extend(call.refused(reason, self.columns));
            }
            Tool::ApprovalNeeded {
                call_id,
                tool,
                arguments,
                ..
            } => {
                // Remembered for the line of a refusal, which knows no arguments.
                let mut call = Call::new(call_id, tool, arguments.clone(), now);
                call.child = child.map(str::to_owned);
                call.is_background = seen.is_background;
                call.by = self.background.name_of(child);
                call.is_asked = true;
                self.running.push(call);
            }
            _ => {}
        }
    }

    /// A call that ended, also one whose beginning nobody saw.
    fn taken(&mut self, id: &str, tool: &str, child: Option<&str>, now: Instant) -> Call {
        match self.running.iter().position(|call| call.is(id, child)) {
            Some(at) => self.running.remove(at),
            None => {
                let mut call = Call::new(id, tool, serde_json::Value::Null, now);
                call.child = child.map(str::to_owned);
                call.by = self.background.name_of(child);
                call
            }
        }
    }

    fn finish_words(&mut self, out: &mut Vec<Line>) {
        self.reasoning.clear();
        self.writing = None;
        let lines = self.markdown.finish();
        if !lines.is_empty() {
            self.apart(Kind::Words, out);
            out.extend(lines);
        }
    }

    /// An empty line, where what comes now is of another kind than what was before.
    fn apart(&mut self, kind: Kind, out: &mut Vec<Line>) {
        if self.last != kind && self.last != Kind::Nothing || kind == Kind::Prompt {
            out.push(Line::default());
        }
        self.last = kind;
    }

    /// What is under way, in rows of the screen and at most so many of them.
    pub(crate) fn live(&self, now: Instant, room: usize) -> Vec<Line> {
        let mut rows = self.at_work(now);
        let mut behind = self.behind(now);
        if !behind.is_empty() {
            rows.push(Line::default());
        }
        rows.append(&mut behind);
        let hidden = rows.len().saturating_sub(room);
        rows.into_iter().skip(hidden).collect()
    }

    /// What goes on in the background: who works there, and what they call.
    fn behind(&self, now: Instant) -> Vec<Line> {
        let mut rows = self.background.rows(now, self.columns);
        let calls = self.running.iter();
        for call in calls.filter(|call| call.is_background && !call.is_asked) {
            rows.extend(call.running(spinner(call.since, now), now, self.columns));
        }
        rows
    }

    /// What the agent itself works at.
    fn at_work(&self, now: Instant) -> Vec<Line> {
        let Some(since) = self.since else {
            return Vec::new();
        };
        let elapsed = now.saturating_duration_since(since);
        let spinner = spinner(since, now);
        let mut rows: Vec<Line> = Vec::new();
        let words = self.markdown.pending();
        if !words.is_empty() {
            if self.last != Kind::Words && self.last != Kind::Nothing {
                rows.push(Line::default());
            }
            rows.extend(words.iter().flat_map(|line| line.all_rows(self.columns)));
        }
        let running = self.running.iter().filter(|call| !call.is_background);
        let is_asking = running.clone().any(|call| call.is_asked);
        let is_calling = running.clone().next().is_some();
        let cards: Vec<Line> = running
            .filter(|call| !call.is_asked)
            .flat_map(|call| call.running(spinner, now, self.columns))
            .collect();
        let status = match (&self.writing, &self.waiting) {
            _ if !cards.is_empty() || is_asking => None,
            (Some(tool), _) => Some(format!("writing a call of {tool}")),
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
            rows.push(line.and(&format!(" · {}", spoken(elapsed)), Style::DIM));
        }
        if !is_calling {
            rows.extend(last_thoughts(&self.reasoning, self.columns));
        }
        rows
    }

    /// Whether something that is asked was announced.
    pub(crate) fn is_asked(&self, asked: &Asked) -> bool {
        self.running.iter().any(|call| match asked {
            Asked::Question(question, _) => call.is_asked && call.id == question.call_id,
            // A call that runs may want something at any time.
            Asked::Form(form, _) => call.id == form.call_id,
        })
    }

    /// Whether the call that is asked about is a sub-agent's.
    pub(crate) fn is_childs(&self, call_id: &str) -> bool {
        let mut children = self.running.iter().filter(|call| call.child.is_some());
        children.any(|call| call.id == call_id)
    }

    /// Whether the agent works.
    pub(crate) fn is_working(&self) -> bool {
        self.since.is_some()
    }

    /// Whether something works in the background.
    pub(crate) fn has_background(&self) -> bool {
        !self.background.is_empty() || self.running.iter().any(|call| call.is_background)
    }
}

/// The spinner of something that goes on since then.
fn spinner(since: Instant, now: Instant) -> &'static str {
    let elapsed = now.saturating_duration_since(since);
    let turn = elapsed.as_millis() / TURN.as_millis();
    let at = usize::try_from(turn).unwrap_or_default() % SPINNER.len();
    SPINNER.get(at).copied().unwrap_or("*")
}

/// The last rows of reasoning.
fn last_thoughts(reasoning: &str, columns: usize) -> Vec<Line> {
    let style = Style::DIM.and(Style::ITALIC);
    let rows: Vec<Line> = reasoning
        .lines()
        .filter(|line| !line.trim().is_empty())
        .flat_map(|line| {
            Line::new(line, style)
                .indented("  ", Style::PLAIN)
                .hanging(2)
                .rows(columns)
        })
        .collect();
    let hidden = rows.len().saturating_sub(REASONING);
    rows.into_iter().skip(hidden).collect()
}

fn text_of(content: &[Content]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        Content::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// A number of tokens, as short as it can be understood.
pub(crate) fn counted(tokens: u64) -> String {
    match tokens {
        0..1000 => tokens.to_string(),
        1000..100_000 => format!("{}.{}k", tokens / 1000, tokens % 1000 / 100),
        100_000..1_000_000 => format!("{}k", tokens / 1000),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens % 1_000_000 / 100_000),
    }
}
