//! Requests and answers for the checks, and restarts after a failure.

use super::advice;
use super::connection::{Connection, Next, Tallies};
use super::program::Program;
use super::report::{Check, Level, Report, counted};
use super::screen::{Screen, shortened};
use super::shape;
use haft::Definition;
use haft::plugin_protocol::{self as protocol, Outcome, Question};
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// Minimum time to wait for an optional answer.
const OPTIONAL_ANSWER: Duration = Duration::from_millis(300);

/// Time to wait for the real answer after another message.
const AFTER_OTHER: Duration = Duration::from_secs(3);

/// Maximum number of unanswered calls.
const MAX_UNANSWERED: u32 = 3;

/// The remaining checks cannot be run; the report says why.
pub(super) struct Stop;

/// State of a test run.
pub(super) struct Trial {
    pub(super) program: Program,
    pub(super) timeout: Duration,
    pub(super) screen: Screen,
    pub(super) tallies: Tallies,
    pub(super) report: Report,
    pub(super) connection: Option<Connection>,
    /// Handshake requests to try.
    pub(super) questions: Vec<Question>,
    /// The handshake request that the plugin answers.
    pub(super) question: Question,
    /// Whether the current messages are ones that haft never sends.
    is_hypothetical: bool,
    pub(super) tools: Vec<Definition>,
    /// Answers without a request.
    pub(super) strays: Vec<String>,
    /// Answers without a request, after messages that haft never sends.
    pub(super) odd_strays: Vec<String>,
    /// Answers with and without the id of their call.
    pub(super) marked: usize,
    pub(super) unmarked: usize,
    pub(super) updates: usize,
    pub(super) bad_updates: Vec<String>,
    slowest: Duration,
    unanswered: u32,
    calls: usize,
}

/// Result of a call.
#[derive(Debug)]
pub(super) enum Answer {
    Given {
        message: Map<String, Value>,
        outcome: Outcome,
        took: Duration,
    },
    /// A message that is not an answer.
    Other(Map<String, Value>),
    Silence,
    /// Description of how the plugin ended.
    Gone(String),
}

impl Trial {
    pub(super) fn new(
        program: Program,
        questions: Vec<Question>,
        timeout: Duration,
        screen: Screen,
    ) -> Self {
        Self {
            program,
            timeout,
            screen,
            tallies: Tallies::default(),
            report: Report::default(),
            connection: None,
            question: questions.first().copied().unwrap_or(Question::Describe),
            questions,
            is_hypothetical: false,
            tools: Vec::new(),
            strays: Vec::new(),
            odd_strays: Vec::new(),
            marked: 0,
            unmarked: 0,
            updates: 0,
            bad_updates: Vec::new(),
            slowest: Duration::ZERO,
            unanswered: 0,
            calls: 0,
        }
    }

    /// Sets whether the next messages are ones that haft never sends.
    pub(super) fn hypothetically(&mut self, is_hypothetical: bool) {
        self.sweep();
        self.is_hypothetical = is_hypothetical;
        self.unanswered = 0;
    }

    /// Shows and records a check.
    pub(super) fn found(&mut self, check: Check) {
        let check = match self.is_hypothetical {
            true => check.only_warned(),
            false => check,
        };
        self.screen.check(&check);
        self.report.checks.push(check);
    }

    /// Starts the plugin, ending a previous run.
    pub(super) fn start(&mut self) -> Result<(), Stop> {
        self.connection = None;
        match Connection::start(&self.program, &self.screen, &self.tallies) {
            Ok(connection) => {
                self.connection = Some(connection);
                Ok(())
            }
            Err(reason) => {
                self.found(reason.check());
                Err(Stop)
            }
        }
    }

    /// Restarts the plugin and repeats the handshake, if it is not running.
    pub(super) async fn ready(&mut self) -> Result<(), Stop> {
        if self.connection.is_some() {
            return Ok(());
        }
        if self.unanswered >= MAX_UNANSWERED {
            let calls = self.unanswered;
            let why = format!("{calls} messages were not answered");
            if self.is_hypothetical {
                self.screen
                    .remark(&format!("{why}: skipping the rest of this section"));
                return Err(Stop);
            }
            return self.give_up(why);
        }
        self.screen.remark("restarting the plugin");
        self.start()?;
        let question = line(&self.question.message());
        self.send(&question).await;
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            match self.next(deadline).await {
                Next::Message(message) if protocol::introduction(&message).is_some() => {
                    return Ok(());
                }
                Next::Message(_) => {}
                Next::Silence | Next::Gone => {
                    return self.give_up("the plugin did not answer after a restart".to_owned());
                }
            }
        }
    }

    fn give_up(&mut self, reason: String) -> Result<(), Stop> {
        self.report.given_up = Some(reason);
        self.connection = None;
        Err(Stop)
    }

    /// Sends a line and shows it.
    pub(super) async fn send(&mut self, line: &[u8]) {
        self.screen.sent(line);
        if let Some(connection) = &mut self.connection {
            connection.send(line, self.timeout).await;
        }
    }

    /// Returns the next message, handling updates and host calls on the way.
    pub(super) async fn next(&mut self, until: Instant) -> Next {
        loop {
            let Some(connection) = &mut self.connection else {
                return Next::Gone;
            };
            let next = connection.next(until).await;
            let Next::Message(message) = &next else {
                return next;
            };
            match message.get("type").and_then(Value::as_str) {
                Some("update") => self.update(&message.clone()),
                Some("host_call") => {
                    let answer = json!({
                        "type": "host_result", "id": message.get("id"),
                        "content": [{ "type": "text", "text": "other tools are not available in a test" }],
                        "error": true,
                    });
                    self.send(&line(&answer)).await;
                }
                _ => return next,
            }
        }
    }

    fn update(&mut self, message: &Map<String, Value>) {
        self.updates += 1;
        let mut problems = shape::content(message);
        if protocol::call_id(message).is_none() {
            problems.push("no call_id".to_owned());
        }
        if !self.report.is_second {
            problems.push("the definition does not contain \"protocol\": 2".to_owned());
        }
        self.bad_updates.extend(problems);
    }

    /// Creates a call with a unique id.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> (String, Value) {
        self.calls += 1;
        let id = format!("test-{}", self.calls);
        let call = json!({ "type": "call", "name": tool, "call_id": id, "params": arguments });
        (id, call)
    }

    /// Calls a tool.
    pub(super) async fn ask(&mut self, tool: &str, arguments: &Value) -> Result<Answer, Stop> {
        let (id, call) = self.call(tool, arguments);
        self.exchange(&id, &line(&call)).await
    }

    /// Sends a call and waits for its answer. Afterwards the plugin either has no open
    /// requests or is not running.
    pub(super) async fn exchange(&mut self, id: &str, line: &[u8]) -> Result<Answer, Stop> {
        self.ready().await?;
        self.sweep();
        let begun = Instant::now();
        self.send(line).await;
        let answer = self.answer(id, begun).await;
        match &answer {
            Answer::Given { took, .. } => self.slowest = self.slowest.max(*took),
            Answer::Silence | Answer::Other(_) => {
                self.unanswered += 1;
                self.connection = None;
            }
            Answer::Gone(_) => self.connection = None,
        }
        Ok(answer)
    }

    async fn answer(&mut self, id: &str, begun: Instant) -> Answer {
        let mut deadline = begun + self.timeout;
        let mut other = None;
        loop {
            let message = match self.next(deadline).await {
                Next::Message(message) => message,
                Next::Silence => return other.map_or(Answer::Silence, Answer::Other),
                Next::Gone => return Answer::Gone(self.end().await),
            };
            let call_id = protocol::call_id(&message);
            if call_id.as_deref().is_some_and(|other| other != id) {
                self.stray(&message);
                continue;
            }
            let Some(outcome) = protocol::outcome(&message) else {
                // With the call's id it is the answer, whatever it contains.
                if call_id.is_some() {
                    return Answer::Other(message);
                }
                deadline = deadline.min(Instant::now() + AFTER_OTHER);
                other = Some(message);
                continue;
            };
            if let Some(other) = other {
                let text = Value::Object(other).to_string();
                self.tallies.lock().note_noise(&text);
            }
            match call_id {
                Some(_) => self.marked += 1,
                None => self.unmarked += 1,
            }
            return Answer::Given {
                message,
                outcome,
                took: begun.elapsed(),
            };
        }
    }

    /// Messages that arrived before a request do not answer it.
    pub(super) fn sweep(&mut self) {
        while let Some(message) = self.connection.as_mut().and_then(Connection::try_next) {
            match message.get("type").and_then(Value::as_str) {
                Some("update") => self.update(&message),
                _ => self.stray(&message),
            }
        }
    }

    fn stray(&mut self, message: &Map<String, Value>) {
        let text = Value::Object(message.clone()).to_string();
        let text = shortened(text.as_bytes(), 100);
        match self.is_hypothetical {
            true => self.odd_strays.push(text),
            false => self.strays.push(text),
        }
    }

    /// Sends a line that need not be answered, and waits briefly for an answer.
    pub(super) async fn send_optional(
        &mut self,
        line: &[u8],
    ) -> Result<Option<Map<String, Value>>, Stop> {
        self.ready().await?;
        self.sweep();
        self.send(line).await;
        // Wait longer if the plugin's calls are slow.
        let timeout = (self.slowest * 3).clamp(OPTIONAL_ANSWER, self.timeout.max(OPTIONAL_ANSWER));
        match self.next(Instant::now() + timeout).await {
            Next::Message(message) => Ok(Some(message)),
            Next::Silence | Next::Gone => Ok(None),
        }
    }

    /// Describes how the plugin ended.
    pub(super) async fn end(&mut self) -> String {
        let status = match &mut self.connection {
            Some(connection) => connection.exit_status(Duration::from_secs(1)).await,
            None => None,
        };
        // The last output may still be on its way.
        tokio::time::sleep(Duration::from_millis(30)).await;
        let tally = self.tallies.lock();
        let mut how = match status {
            _ if tally.has_endless_output => "it wrote too much that is not a message".to_owned(),
            None => "closed its stdout, but still runs".to_owned(),
            Some(status) => describe_exit(status),
        };
        if !tally.last_line.is_empty() {
            how.push_str(&format!("; last line on stderr: {}", tally.last_line));
        }
        how
    }

    /// Checks an answer, which must exist and be well-formed. The caller decides whether
    /// an error is acceptable.
    pub(super) fn judge(&self, id: &'static str, title: String, answer: &Answer) -> Check {
        match answer {
            Answer::Given {
                message,
                outcome,
                took,
            } => {
                let problems = shape::result(message);
                if let Some(problem) = problems.first() {
                    return Check::failed(id, title)
                        .detail(problem.clone())
                        .fix(advice::SHAPE)
                        .took(*took);
                }
                let check = Check::passed(id, title).took(*took);
                if outcome.is_error {
                    check.detail(format!(
                        "answered with an error, which is fine: {}",
                        words(outcome)
                    ))
                } else {
                    check.detail("answered")
                }
            }
            Answer::Other(message) => Check::failed(id, title)
                .detail(format!(
                    "not a valid result: {}",
                    shortened(Value::Object(message.clone()).to_string().as_bytes(), 120)
                ))
                .fix(advice::SHAPE),
            Answer::Silence => {
                let unended = self.tallies.lock().unended > 0;
                Check::failed(id, title)
                    .detail(format!(
                        "no answer within {}",
                        counted(
                            usize::try_from(self.timeout.as_secs()).unwrap_or(0),
                            "second"
                        )
                    ))
                    .fix(match unended {
                        true => advice::NEWLINE,
                        false if self.is_hypothetical => advice::NEVER_SENT,
                        false => advice::UNANSWERED,
                    })
            }
            Answer::Gone(how) => {
                Check::failed(id, title)
                    .detail(how.clone())
                    .fix(match self.is_hypothetical {
                        true => advice::NEVER_SENT,
                        false => advice::CRASHED,
                    })
            }
        }
    }
}

/// Describes how a process ended.
pub(super) fn describe_exit(status: std::process::ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// Returns the start of an answer's text.
fn words(outcome: &Outcome) -> String {
    let text = outcome.content.iter().find_map(|block| match block {
        haft::Content::Text { text } => Some(text.as_str()),
        _ => None,
    });
    shortened(text.unwrap_or_default().replace('\n', " ").as_bytes(), 80)
}

/// Formats a message as a line.
pub(super) fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Whether an answer exists, is well-formed and is not an error.
pub(super) fn is_success(answer: &Answer) -> bool {
    matches!(answer, Answer::Given { outcome, .. } if !outcome.is_error)
}

/// Turns success into a warning for wrong arguments.
pub(super) fn lenient(check: Check, answer: &Answer) -> Check {
    if is_success(answer) && check.has_passed() {
        check
            .level(Level::Warned)
            .detail("answered as if the arguments were right")
            .fix(advice::LENIENT)
    } else {
        check
    }
}
