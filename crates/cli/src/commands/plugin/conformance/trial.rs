//! The conversation as the checks lead it: questions, answers, and another start
//! where one went wrong.

use super::advice;
use super::program::Program;
use super::report::{Check, Level, Report, counted};
use super::screen::{Screen, shortened};
use super::shape;
use super::talk::{Next, Talk, Tallies};
use haft::Definition;
use haft::plugin_protocol::{self as protocol, Outcome, Question};
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// How long an answer to something that need not be answered is waited for.
const QUIET: Duration = Duration::from_millis(300);

/// How long the real answer may take after a message that is none.
const AFTER_OTHER: Duration = Duration::from_secs(3);

/// How many calls without an answer are borne.
const MOST_SILENCES: u32 = 3;

/// The rest cannot be tried; the report says why.
pub(super) struct Stop;

/// A run of all the checks.
pub(super) struct Trial {
    pub(super) program: Program,
    pub(super) patience: Duration,
    pub(super) screen: Screen,
    pub(super) tallies: Tallies,
    pub(super) report: Report,
    pub(super) talk: Option<Talk>,
    /// What it may be asked to introduce itself.
    pub(super) questions: Vec<Question>,
    /// What it answers with its definition.
    pub(super) question: Question,
    /// Whether what comes next is something that haft never sends.
    is_hypothetical: bool,
    pub(super) tools: Vec<Definition>,
    /// Answers that nobody asked for.
    pub(super) strays: Vec<String>,
    /// The same, after something that haft never sends.
    pub(super) odd_strays: Vec<String>,
    /// Answers with the id of their call, and without any.
    pub(super) marked: usize,
    pub(super) unmarked: usize,
    pub(super) updates: usize,
    pub(super) bad_updates: Vec<String>,
    slowest: Duration,
    silences: u32,
    calls: usize,
}

/// What became of a question.
#[derive(Debug)]
pub(super) enum Answer {
    Given {
        message: Map<String, Value>,
        outcome: Outcome,
        took: Duration,
    },
    /// A message that is no answer.
    Other(Map<String, Value>),
    Silence,
    /// How it ended.
    Gone(String),
}

impl Trial {
    pub(super) fn new(
        program: Program,
        questions: Vec<Question>,
        patience: Duration,
        screen: Screen,
    ) -> Self {
        Self {
            program,
            patience,
            screen,
            tallies: Tallies::default(),
            report: Report::default(),
            talk: None,
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
            silences: 0,
            calls: 0,
        }
    }

    /// What comes next is something that haft never sends, or no longer.
    pub(super) fn hypothetically(&mut self, is_so: bool) {
        self.sweep();
        self.is_hypothetical = is_so;
        self.silences = 0;
    }

    /// Shows and keeps what was found.
    pub(super) fn found(&mut self, check: Check) {
        let check = match self.is_hypothetical {
            true => check.only_warned(),
            false => check,
        };
        self.screen.check(&check);
        self.report.checks.push(check);
    }

    /// Starts it, whatever ran before.
    pub(super) fn start(&mut self) -> Result<(), Stop> {
        self.talk = None;
        match Talk::start(&self.program, &self.screen, &self.tallies) {
            Ok(talk) => {
                self.talk = Some(talk);
                Ok(())
            }
            Err(reason) => {
                self.found(reason.check());
                Err(Stop)
            }
        }
    }

    /// Starts it again and lets it introduce itself, if it does not run.
    pub(super) async fn ready(&mut self) -> Result<(), Stop> {
        if self.talk.is_some() {
            return Ok(());
        }
        if self.silences >= MOST_SILENCES {
            let calls = self.silences;
            let why = format!("{calls} messages were not answered");
            if self.is_hypothetical {
                self.screen
                    .remark(&format!("{why}: the rest of this part is left out"));
                return Err(Stop);
            }
            return self.give_up(why);
        }
        self.screen.remark("it is started again");
        self.start()?;
        let question = line(&self.question.message());
        self.say(&question).await;
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            match self.next(deadline).await {
                Next::Message(message) if protocol::introduction(&message).is_some() => {
                    return Ok(());
                }
                Next::Message(_) => {}
                Next::Silence | Next::Gone => {
                    return self.give_up("it did not come up when it was started again".to_owned());
                }
            }
        }
    }

    fn give_up(&mut self, reason: String) -> Result<(), Stop> {
        self.report.given_up = Some(reason);
        self.talk = None;
        Err(Stop)
    }

    /// Says a line, and shows it.
    pub(super) async fn say(&mut self, line: &[u8]) {
        self.screen.said(line);
        if let Some(talk) = &mut self.talk {
            talk.say(line, self.patience).await;
        }
    }

    /// The next message that is not for in between.
    pub(super) async fn next(&mut self, until: Instant) -> Next {
        loop {
            let Some(talk) = &mut self.talk else {
                return Next::Gone;
            };
            let next = talk.next(until).await;
            let Next::Message(message) = &next else {
                return next;
            };
            match message.get("type").and_then(Value::as_str) {
                Some("update") => self.update(&message.clone()),
                Some("host_call") => {
                    let answer = json!({
                        "type": "host_result", "id": message.get("id"),
                        "content": [{ "type": "text", "text": "there are no other tools in a test" }],
                        "error": true,
                    });
                    self.say(&line(&answer)).await;
                }
                _ => return next,
            }
        }
    }

    fn update(&mut self, message: &Map<String, Value>) {
        self.updates += 1;
        let mut problems = shape::content(message);
        if protocol::call_id(message).is_none() {
            problems.push("it has no call_id".to_owned());
        }
        if !self.report.is_second {
            problems.push("the definition does not say \"protocol\": 2".to_owned());
        }
        self.bad_updates.extend(problems);
    }

    /// A call that has a number nobody else has.
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

    /// Says the line of a call and waits for its answer. Afterwards the program runs
    /// and owes nothing, or it does not run.
    pub(super) async fn exchange(&mut self, id: &str, line: &[u8]) -> Result<Answer, Stop> {
        self.ready().await?;
        self.sweep();
        let begun = Instant::now();
        self.say(line).await;
        let answer = self.answer(id, begun).await;
        match &answer {
            Answer::Given { took, .. } => self.slowest = self.slowest.max(*took),
            Answer::Silence | Answer::Other(_) => {
                self.silences += 1;
                self.talk = None;
            }
            Answer::Gone(_) => self.talk = None,
        }
        Ok(answer)
    }

    async fn answer(&mut self, id: &str, begun: Instant) -> Answer {
        let mut deadline = begun + self.patience;
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
                // With our id it is the answer, whatever it says.
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

    /// Whatever is there before a question is the answer to none.
    pub(super) fn sweep(&mut self) {
        while let Some(message) = self.talk.as_mut().and_then(Talk::waiting) {
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

    /// Waits for the answer to something that need not have one.
    pub(super) async fn maybe(&mut self, line: &[u8]) -> Result<Option<Map<String, Value>>, Stop> {
        self.ready().await?;
        self.sweep();
        self.say(line).await;
        // One that is slow with its calls is given the time here as well.
        let patience = (self.slowest * 3).clamp(QUIET, self.patience.max(QUIET));
        match self.next(Instant::now() + patience).await {
            Next::Message(message) => Ok(Some(message)),
            Next::Silence | Next::Gone => Ok(None),
        }
    }

    /// How it ended, in words.
    pub(super) async fn end(&mut self) -> String {
        let status = match &mut self.talk {
            Some(talk) => talk.ended(Duration::from_secs(1)).await,
            None => None,
        };
        // What it said last may still be on its way.
        tokio::time::sleep(Duration::from_millis(30)).await;
        let tally = self.tallies.lock();
        let mut how = match status {
            _ if tally.is_babbling => "it wrote a great deal that is no message".to_owned(),
            None => "it closed its stdout, and runs on".to_owned(),
            Some(status) => ended(status),
        };
        if !tally.last_words.is_empty() {
            how.push_str(&format!("; its last words: {}", tally.last_words));
        }
        how
    }

    /// What an answer to a call comes to. It has to be there and well-formed; whether
    /// it is an error is for the caller to judge.
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
                    "what it answered is no result: {}",
                    shortened(Value::Object(message.clone()).to_string().as_bytes(), 120)
                ))
                .fix(advice::SHAPE),
            Answer::Silence => {
                let unended = self.tallies.lock().unended > 0;
                Check::failed(id, title)
                    .detail(format!(
                        "no answer within {}",
                        counted(
                            usize::try_from(self.patience.as_secs()).unwrap_or(0),
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

/// How a process ended.
pub(super) fn ended(status: std::process::ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it exited with code {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}

/// The beginning of what an answer says.
fn words(outcome: &Outcome) -> String {
    let text = outcome.content.iter().find_map(|block| match block {
        haft::Content::Text { text } => Some(text.as_str()),
        _ => None,
    });
    shortened(text.unwrap_or_default().replace('\n', " ").as_bytes(), 80)
}

/// A message as a line.
pub(super) fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Whether an answer is there, well-formed, and no error.
pub(super) fn is_success(answer: &Answer) -> bool {
    matches!(answer, Answer::Given { outcome, .. } if !outcome.is_error)
}

/// A check that passed so far becomes a warning.
pub(super) fn lenient(check: Check, answer: &Answer) -> Check {
    if is_success(answer) && check.has_passed() {
        check
            .level(Level::Warned)
            .detail("answered as if nothing were wrong")
            .fix(advice::LENIENT)
    } else {
        check
    }
}
