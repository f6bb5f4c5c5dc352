//! The handshake with a plugin: which question it answers, and which tools it has.
//!
//! A plugin is asked to describe itself. If it sends no definition within a second, the
//! next question follows, and so on. If it was asked more than once, it is restarted with
//! the question that it answered, so that no stray answer is left. If it exits at a
//! question, it is restarted with each of the other questions alone. Every start has its
//! own time limit.

use super::dispatcher::Over;
use super::message::{self, Introduction, Question};
use super::pipe::End;
use super::process::Process;
use super::trace::TraceEvent;
use super::{Host, Protocol, Recheck};
use crate::Error;
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, timeout_at};

/// Default time limit of a handshake.
const START: Duration = Duration::from_secs(10);

/// Time before the second question is asked.
const FIRST: Duration = Duration::from_secs(1);

/// Extra time for a repeated handshake, compared to the first one, before another question
/// is tried.
const SLACK: Duration = Duration::from_secs(2);

/// Maximum length of an answer quoted in an error, in characters.
const SHOWN: usize = 200;

/// A started plugin after a successful handshake.
pub(super) struct Handshake {
    pub(super) process: Process,
    pub(super) question: Question,
    pub(super) introduction: Introduction,
}

/// Starts a plugin and asks the question that is known to work, or all questions.
pub(super) async fn start(host: &Host, known: Option<Question>) -> Result<Handshake, Error> {
    let questions = match known {
        Some(question) => vec![question],
        None => Question::of(host.plugin.protocol),
    };
    match questions.as_slice() {
        [] => Err(host.failed("is asked nothing")),
        [only] => ask_one(host, *only, patience(host))
            .await?
            .map_err(|gone| gone.error),
        several => any(host, several).await,
    }
}

fn patience(host: &Host) -> Duration {
    host.plugin.start_timeout.unwrap_or(START)
}

/// Asks all questions, and restarts the plugin with the one it answered.
async fn any(host: &Host, questions: &[Question]) -> Result<Handshake, Error> {
    let mut attempt = Attempt::begin(host, patience(host)).await?;
    let mut asked = Vec::new();
    let mut first_end = None;
    let mut heard = Heard::Silence;
    for question in questions {
        let end = attempt.ask(*question).await;
        first_end = first_end.or(end);
        asked.push(*question);
        heard = match asked.len() == questions.len() {
            true => attempt.hear(attempt.deadline, Until::Definition).await,
            false => attempt.hear(Instant::now() + FIRST, Until::AnyAnswer).await,
        };
        if !matches!(heard, Heard::Silence | Heard::Other) {
            break;
        }
    }
    let Heard::Definition(introduction) = heard else {
        // A plugin that has not read the question did not exit because of it.
        let may_answer_another = matches!(heard, Heard::Over) && attempt.has_read(first_end);
        let failure = attempt.failure(&heard).await;
        if !may_answer_another {
            return Err(failure);
        }
        let others = questions.get(1..).unwrap_or_default();
        return one_of(host, others, patience(host), failure).await;
    };
    if let [only] = asked.as_slice() {
        return attempt.complete(*only, introduction).await;
    }
    let took = attempt.begun.elapsed();
    attempt.process.end().await;
    let again = (took * 2 + SLACK).min(patience(host));
    let failure = host.failed("did not answer the handshake a second time");
    one_of(host, &introduction.answers(&asked), again, failure).await
}

/// Starts the plugin with one question at a time. The last one gets the full time of a
/// start.
async fn one_of(
    host: &Host,
    questions: &[Question],
    patience_each: Duration,
    mut failure: Error,
) -> Result<Handshake, Error> {
    for (at, question) in questions.iter().enumerate() {
        let is_last = at + 1 == questions.len();
        let time = match is_last {
            true => patience(host),
            false => patience_each,
        };
        match ask_one(host, *question, time).await? {
            Ok(complete) => return Ok(complete),
            // The answer to the first question explains the most.
            Err(gone) if at == 0 && gone.has_answered => failure = gone.error,
            Err(_) => {}
        }
    }
    Err(failure)
}

/// A start without a definition.
struct FailedStart {
    error: Error,
    has_answered: bool,
}

/// Starts the plugin and asks one question.
async fn ask_one(
    host: &Host,
    question: Question,
    patience: Duration,
) -> Result<Result<Handshake, FailedStart>, Error> {
    let mut attempt = Attempt::begin(host, patience).await?;
    attempt.ask(question).await;
    match attempt.hear(attempt.deadline, Until::Definition).await {
        Heard::Definition(introduction) => Ok(Ok(attempt.complete(question, introduction).await?)),
        heard => {
            let has_answered = attempt.other.is_some();
            let error = attempt.failure(&heard).await;
            Ok(Err(FailedStart {
                error,
                has_answered,
            }))
        }
    }
}

/// A plugin that was started and has not answered yet.
struct Attempt<'a> {
    host: &'a Host,
    process: Process,
    introduced: Receiver<Map<String, Value>>,
    recheck: Option<Recheck>,
    begun: Instant,
    deadline: Instant,
    /// The first message that was not a definition.
    other: Option<String>,
}

/// What to wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Any answer, including one that refuses the question.
    AnyAnswer,
    Definition,
}

enum Heard {
    Definition(Introduction),
    /// The plugin reports that it cannot be used.
    Invalid(String),
    /// An answer that is not a definition.
    Other,
    Silence,
    Over,
}

impl<'a> Attempt<'a> {
    async fn begin(host: &'a Host, patience: Duration) -> Result<Self, Error> {
        let begun = Instant::now();
        let (talk, recheck) = host
            .start()
            .await
            .inspect_err(|error| host.plugin.trace.emit(|| TraceEvent::NotStarted(error)))
            .map_err(|error| host.failed(format!("did not start: {error}")))?;
        let (process, introduced) = Process::new(talk, &host.plugin.trace);
        if let Some(line) = &host.plugin.first_line
            && let Ok(line) = serde_json::from_str(line)
        {
            process.say(&line).await;
        }
        Ok(Self {
            host,
            process,
            introduced,
            recheck,
            begun,
            deadline: begun + patience,
            other: None,
        })
    }

    /// Asks a question and returns its end position in the input.
    async fn ask(&self, question: Question) -> Option<End> {
        self.process.say(&question.message()).await
    }

    /// Whether the plugin has read a question.
    fn has_read(&self, asked: Option<End>) -> bool {
        asked.is_some_and(|end| self.process.has_read(end))
    }

    async fn hear(&mut self, limit: Instant, until: Until) -> Heard {
        loop {
            let message = match timeout_at(limit, self.introduced.recv()).await {
                Err(_) => return Heard::Silence,
                Ok(None) => return Heard::Over,
                Ok(Some(message)) => message,
            };
            if message.get("type").is_some_and(|kind| kind == "invalid") {
                let words = message.get("message").and_then(Value::as_str);
                return Heard::Invalid(words.unwrap_or_default().to_owned());
            }
            if let Some(introduction) = message::introduction(&message) {
                let trace = &self.host.plugin.trace;
                trace.emit(|| TraceEvent::Defined(&message));
                return Heard::Definition(introduction);
            }
            tracing::info!("a plugin wrote a message that is not a definition");
            let is_answer = message::outcome(&message).is_some();
            let text = Value::Object(message).to_string();
            self.other
                .get_or_insert_with(|| message::clean(&text).chars().take(SHOWN).collect());
            if is_answer && until == Until::AnyAnswer {
                return Heard::Other;
            }
        }
    }

    /// Completes the handshake. The plugin has loaded its files now; if they are still the
    /// ones that were checked, it may be called.
    async fn complete(
        self,
        question: Question,
        introduction: Introduction,
    ) -> Result<Handshake, Error> {
        if let Some(Err(reason)) = self.recheck.map(|recheck| recheck()) {
            self.process.end().await;
            let why = format!("was ended before it got a call: {reason}");
            return Err(self.host.failed(why));
        }
        self.process.introduced(introduction.is_second);
        self.host.plugin.trace.emit(|| TraceEvent::Introduced {
            protocol: question.protocol(),
            is_second: introduction.is_second,
        });
        Ok(Handshake {
            process: self.process,
            question,
            introduction,
        })
    }

    /// Returns the reason for a missing definition.
    async fn failure(&self, heard: &Heard) -> Error {
        use haft_ops::executor::Exit;
        if let Heard::Invalid(words) = heard {
            self.process.end().await;
            return self.host.failed(format!("cannot be used: {words}"));
        }
        let over = self.process.over();
        if over.is_none() {
            // A plugin that does not flush its answers writes them now.
            self.process.hang_up().await;
        }
        let (status, words) = self.process.last_words(over).await;
        let ended = match (over, status) {
            (Some(Over::Babbling), _) => {
                Some("wrote more than 16 MB or 10,000 lines that are not JSON messages".to_owned())
            }
            (Some(Over::Ended), Some(Exit::Code(code))) => {
                Some(format!("exited at its start (code {code})"))
            }
            (Some(Over::Ended), Some(Exit::Signal(signal))) => {
                Some(format!("exited at its start (signal {signal})"))
            }
            (Some(Over::Ended | Over::Left | Over::Unnamed), _) => {
                Some("closed its output at its start".to_owned())
            }
            (None, _) => None,
        };
        let noise = self
            .process
            .noise()
            .filter(|_| over != Some(Over::Babbling));
        let answered = match (&self.other, noise) {
            (Some(other), _) => Some(format!("answered, but not with a definition: {other}")),
            (None, Some(noise)) => Some(format!(
                "wrote a line that is not a JSON message: {}",
                message::clean(&noise)
            )),
            (None, None) => None,
        };
        let how = match (ended, answered) {
            (Some(ended), Some(answered)) => format!("{ended}; it {answered}"),
            (Some(how), None) => how,
            (None, Some(answered)) => format!(
                "{answered}; a definition has a name, and a description or parameters \
                 (`haft plugin test` shows the conversation)"
            ),
            (None, None) => format!(
                "did not answer within {} of its start; `start_timeout` (seconds) in {} allows more",
                haft_ops::text::seconds(self.deadline - self.begun),
                self.host.plugin.limits_set_in
            ),
        };
        let quote = self.host.quoted(&words);
        self.host.failed(format!("{how}{quote}"))
    }
}

impl Question {
    /// Returns the questions for a protocol, in the order they are asked.
    fn of(protocol: Protocol) -> Vec<Self> {
        match protocol {
            Protocol::Auto => vec![Self::Describe, Self::Init, Self::Plain],
            Protocol::Describe => vec![Self::Describe, Self::Plain],
            Protocol::Second => vec![Self::Describe],
            Protocol::Init => vec![Self::Init],
        }
    }
}
