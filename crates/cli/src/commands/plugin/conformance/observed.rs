//! Observer of the plugin and its host: shows events, and keeps the facts that the checks
//! need.

use super::screen::{Screen, shortened};
use haft::ops::executor::{Ended, Exit, Finished, Refusal, Survivor};
use haft::{Definition, Error, MessageForm, TraceEvent};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Maximum number of lines and messages of each kind that are kept.
const MAX_KEPT: usize = 100;

/// Maximum characters of a line that is quoted.
const QUOTED: usize = 120;

/// Shared by the host, which reports events, and the checks.
#[derive(Clone)]
pub(super) struct Observed(Arc<(Mutex<Facts>, Notify)>);

/// Everything known about the plugin.
#[derive(Default)]
pub(super) struct Facts {
    pub(super) screen: Screen,
    /// The current process.
    pid: Option<u32>,
    begun: Option<Instant>,
    /// Reason why the program could not be started.
    pub(super) not_started: Option<(Option<Refusal>, String)>,
    /// The process whose stdin was closed, and whether it answered only then.
    closed: Option<u32>,
    pub(super) is_flushed_late: bool,
    /// The definition and the time until it came.
    pub(super) definition: Option<Map<String, Value>>,
    pub(super) took: Duration,
    /// Protocol and whether it is version 2, after the handshake.
    pub(super) protocol: Option<(&'static str, bool)>,
    /// Processes that completed the handshake.
    introduced: HashSet<u32>,
    pub(super) tools: Vec<Result<Definition, String>>,
    /// Number of lines sent, and the time of the last one.
    pub(super) sent: usize,
    sent_at: Option<Instant>,
    /// The last message.
    message: String,
    is_last: bool,
    /// Messages that are neither a definition nor an answer, since the start or the call.
    pub(super) others: Vec<String>,
    /// Answered calls by their ids.
    pub(super) answered: HashMap<String, Answered>,
    /// Answers with and without the id of their call, and those to no call.
    pub(super) named: usize,
    pub(super) unnamed: usize,
    pub(super) strays: Vec<String>,
    pub(super) updates: usize,
    pub(super) bad_updates: Vec<String>,
    pub(super) output: Output,
    /// Bytes on stderr, and the last line.
    pub(super) logged: u64,
    last_line: String,
    /// End of the current process.
    pub(super) exit: Option<(Exit, Ended, Vec<Survivor>)>,
    /// Processes that exited by themselves after their handshake.
    pub(super) exits: Vec<String>,
}

/// Output on stdout, apart from the content of messages.
#[derive(Default)]
pub(super) struct Output {
    /// Lines that may be the start of a message.
    pending: Vec<String>,
    /// Lines that are not messages, and the first of them.
    pub(super) noise: usize,
    pub(super) sample: Option<String>,
    pub(super) is_endless: bool,
    /// Number of messages in a form that the host tolerates.
    pub(super) forms: HashMap<MessageForm, usize>,
    /// Whether a line has no end yet.
    pub(super) is_unended: bool,
}

/// The answer to a call.
pub(super) struct Answered {
    pub(super) deviations: Vec<String>,
    pub(super) took: Duration,
}

impl Observed {
    pub(super) fn new(screen: Screen) -> Self {
        let facts = Facts {
            screen,
            ..Facts::default()
        };
        Self(Arc::new((Mutex::new(facts), Notify::new())))
    }

    pub(super) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows and keeps an event.
    pub(super) fn observe(&self, event: TraceEvent<'_>) {
        self.facts().observe(event);
        self.0.1.notify_waiters();
    }

    /// Returns the number of lines sent, and of processes that exited by themselves.
    pub(super) fn counts(&self) -> (usize, usize) {
        let facts = self.facts();
        (facts.sent, facts.exits.len())
    }

    /// Waits for a fact. Returns whether it came in time.
    pub(super) async fn until(&self, limit: Duration, is_so: impl Fn(&Facts) -> bool) -> bool {
        let wait = async {
            loop {
                let mut change = pin!(self.0.1.notified());
                change.as_mut().enable();
                if is_so(&self.facts()) {
                    return;
                }
                change.await;
            }
        };
        tokio::time::timeout(limit, wait).await.is_ok()
    }
}

impl Facts {
    fn observe(&mut self, event: TraceEvent<'_>) {
        match event {
            TraceEvent::Started { pid } => self.started(pid),
            TraceEvent::NotStarted(error) => self.not_started = Some(reason(error)),
            TraceEvent::Sent(line) => {
                self.sent += 1;
                self.sent_at = Some(Instant::now());
                self.screen.sent(line.as_bytes());
            }
            TraceEvent::InputClosed => {
                self.closed = self.pid;
                self.screen.remark(match self.protocol {
                    Some(_) => "closing its stdin",
                    None => "closing its stdin to see whether more output comes",
                });
            }
            TraceEvent::Received(line) => {
                self.output.is_unended &= self.is_closed();
                if !line.trim_ascii().is_empty() {
                    self.screen.received(line);
                    keep(&mut self.output.pending, shortened(line, QUOTED));
                }
            }
            TraceEvent::Unfinished => self.output.is_unended |= !self.is_closed(),
            TraceEvent::Message(message, form) => self.message(message, form),
            TraceEvent::Skipped(text) => {
                self.output.pending.clear();
                self.skipped(text);
            }
            TraceEvent::TooMuchOutput => self.output.is_endless = true,
            TraceEvent::Logged(line) => {
                self.screen.logged(line);
                self.last_line = shortened(line.trim_ascii(), QUOTED);
            }
            TraceEvent::Defined(message) => {
                self.definition = Some(message.clone());
                self.took = since(self.begun);
            }
            TraceEvent::Introduced {
                protocol,
                is_second,
            } => {
                self.protocol = Some((protocol, is_second));
                self.introduced.extend(self.pid);
                self.others.clear();
            }
            TraceEvent::Tool(tool) => {
                let tool = tool.cloned().map_err(str::to_owned);
                self.tools.push(tool);
            }
            TraceEvent::Answered {
                call_id,
                is_named,
                deviations,
            } => {
                let took = since(self.sent_at);
                let answered = Answered { deviations, took };
                self.answered.insert(call_id.to_owned(), answered);
                self.named += usize::from(is_named);
                self.unnamed += usize::from(!is_named);
                for other in std::mem::take(&mut self.others) {
                    self.skipped(&other);
                }
            }
            TraceEvent::Updated { deviations } => {
                self.updates += 1;
                self.bad_updates.extend(deviations);
                if self.protocol.is_some_and(|(_, is_second)| !is_second) {
                    let problem = "the definition does not contain \"protocol\": 2";
                    self.bad_updates.push(problem.to_owned());
                }
            }
            TraceEvent::Stray { is_named } => {
                self.unnamed += usize::from(!is_named);
                keep(&mut self.strays, self.message.clone());
            }
            TraceEvent::Unknown => keep(&mut self.others, self.message.clone()),
            TraceEvent::Exited { pid, finished } => self.exited(pid, finished),
        }
    }

    fn started(&mut self, pid: u32) {
        match (self.pid, self.protocol, &self.definition) {
            (None, ..) => {}
            (_, Some(_), _) => self.screen.remark("restarting the plugin"),
            (_, None, Some(_)) => self
                .screen
                .remark("several protocols were tried: asking again with the one it answered"),
            (_, None, None) => self.screen.remark("restarting it with another protocol"),
        }
        self.pid = Some(pid);
        self.begun = Some(Instant::now());
        (self.output.is_unended, self.is_last) = (false, false);
        self.last_line.clear();
        self.others.clear();
        self.exit = None;
    }

    fn message(&mut self, message: &Map<String, Value>, form: MessageForm) {
        if form == MessageForm::Lines {
            self.output.pending.clear();
        } else {
            // The lines before it were not its start.
            self.output.pending.pop();
            self.settle();
        }
        *self.output.forms.entry(form).or_default() += 1;
        self.is_flushed_late |= self.is_closed();
        self.is_last = message.get("last") == Some(&Value::Bool(true));
        let text = serde_json::to_string(message).unwrap_or_default();
        self.message = shortened(text.as_bytes(), QUOTED);
        if self.protocol.is_none() {
            keep(&mut self.others, self.message.clone());
        }
    }

    fn exited(&mut self, pid: u32, finished: &Finished) {
        self.logged += finished.error.total_bytes;
        let is_by_itself = finished.ended == Ended::Itself && self.closed != Some(pid);
        if is_by_itself && self.introduced.contains(&pid) && !self.is_last {
            let how = self.described(finished.status);
            keep(&mut self.exits, how);
        }
        if self.pid == Some(pid) {
            let survivors = finished.survivors.clone();
            self.exit = Some((finished.status, finished.ended, survivors));
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.pid.is_some() && self.exit.is_none()
    }

    fn is_closed(&self) -> bool {
        self.closed.is_some() && self.closed == self.pid
    }

    /// Describes how the process exited, unless haft ended it.
    pub(super) fn exited_by_itself(&self) -> Option<String> {
        let (status, ended, _) = self.exit.as_ref()?;
        let is_by_itself = *ended == Ended::Itself && !self.is_closed();
        is_by_itself.then(|| self.described(*status))
    }

    fn described(&self, status: Exit) -> String {
        let mut how = describe_exit(status);
        if !self.last_line.is_empty() {
            how.push_str(&format!("; last line on stderr: {}", self.last_line));
        }
        how
    }

    fn skipped(&mut self, line: &str) {
        self.output.noise += 1;
        self.output.sample.get_or_insert_with(|| line.to_owned());
    }

    /// Counts the lines of an unfinished message as other output.
    pub(super) fn settle(&mut self) {
        for line in std::mem::take(&mut self.output.pending) {
            self.skipped(&line);
        }
    }
}

/// Describes how a process ended.
pub(super) fn describe_exit(status: Exit) -> String {
    match status {
        Exit::Code(code) => format!("exited with code {code}"),
        Exit::Signal(signal) => format!("killed by signal {signal}"),
        Exit::Unknown => "ended".to_owned(),
    }
}

fn reason(error: &Error) -> (Option<Refusal>, String) {
    match error {
        Error::Operation(haft::ops::Error::CannotStart {
            refusal, detail, ..
        }) => (Some(*refusal), detail.clone()),
        other => (None, other.to_string()),
    }
}

fn since(time: Option<Instant>) -> Duration {
    time.map(|time| time.elapsed()).unwrap_or_default()
}

fn keep(lines: &mut Vec<String>, line: String) {
    if lines.len() < MAX_KEPT {
        lines.push(line);
    }
}
