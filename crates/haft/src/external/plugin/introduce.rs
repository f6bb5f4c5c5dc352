//! How a plugin is met: which question it answers, and what it says of itself.
//!
//! It is asked to describe itself. When that brings no definition within a second, the
//! next question follows, and so on. As it was then asked more than once, it is started again with
//! the question that it answered, so that no stray answer is left. One that exits at a
//! question is started again with each of the others alone. Every start has a time limit
//! of its own.

use super::desk::Over;
use super::message::{self, Introduction, Question};
use super::pipe::End;
use super::process::Process;
use super::{Host, Protocol, Recheck};
use crate::Error;
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, timeout_at};

/// How long a plugin has to introduce itself, unless its entry says otherwise.
const START: Duration = Duration::from_secs(10);

/// How long the first question stands alone.
const FIRST: Duration = Duration::from_secs(1);

/// How much longer than the first time a plugin may take to introduce itself again, before
/// it is asked in another way.
const SLACK: Duration = Duration::from_secs(2);

/// How much is shown of what is not a definition.
const SHOWN: usize = 200;

/// A plugin that has introduced itself.
pub(super) struct Met {
    pub(super) process: Process,
    pub(super) question: Question,
    pub(super) introduction: Introduction,
}

/// Starts it and hears what it says of itself, in answer to the question that is known to
/// work, or to any.
pub(super) async fn meet(host: &Host, known: Option<Question>) -> Result<Met, Error> {
    let questions = match known {
        Some(question) => vec![question],
        None => Question::of(host.plugin.protocol),
    };
    match questions.as_slice() {
        [] => Err(host.failed("is asked nothing")),
        [only] => alone(host, *only, patience(host))
            .await?
            .map_err(|gone| gone.error),
        several => any(host, several).await,
    }
}

fn patience(host: &Host) -> Duration {
    host.plugin.start_timeout.unwrap_or(START)
}

/// Asks everything there is to ask, and starts it again with what it answered.
async fn any(host: &Host, questions: &[Question]) -> Result<Met, Error> {
    let mut meeting = Meeting::begin(host, patience(host)).await?;
    let mut asked = Vec::new();
    let mut first_end = None;
    let mut heard = Heard::Silence;
    for question in questions {
        let end = meeting.ask(*question).await;
        first_end = first_end.or(end);
        asked.push(*question);
        heard = match asked.len() == questions.len() {
            true => meeting.hear(meeting.deadline, Until::Definition).await,
            false => meeting.hear(Instant::now() + FIRST, Until::AnyAnswer).await,
        };
        if !matches!(heard, Heard::Silence | Heard::Other) {
            break;
        }
    }
    let Heard::Definition(introduction) = heard else {
        // One that has not read the question did not exit because of it.
        let may_answer_another = matches!(heard, Heard::Over) && meeting.has_read(first_end);
        let failure = meeting.failure(&heard).await;
        if !may_answer_another {
            return Err(failure);
        }
        let others = questions.get(1..).unwrap_or_default();
        return one_of(host, others, patience(host), failure).await;
    };
    if let [only] = asked.as_slice() {
        return meeting.met(*only, introduction).await;
    }
    let took = meeting.begun.elapsed();
    meeting.process.end().await;
    let again = (took * 2 + SLACK).min(patience(host));
    let failure = host.failed("did not introduce itself a second time");
    one_of(host, &introduction.answers(&asked), again, failure).await
}

/// Starts it with one question after the other, each alone. The last has all the time
/// there is for a start.
async fn one_of(
    host: &Host,
    questions: &[Question],
    patience_each: Duration,
    mut failure: Error,
) -> Result<Met, Error> {
    for (at, question) in questions.iter().enumerate() {
        let is_last = at + 1 == questions.len();
        let time = match is_last {
            true => patience(host),
            false => patience_each,
        };
        match alone(host, *question, time).await? {
            Ok(met) => return Ok(met),
            // What it said to its first question tells most.
            Err(gone) if at == 0 && gone.has_answered => failure = gone.error,
            Err(_) => {}
        }
    }
    Err(failure)
}

/// A start that brought no definition.
struct Gone {
    error: Error,
    has_answered: bool,
}

/// Starts it and asks one question.
async fn alone(
    host: &Host,
    question: Question,
    patience: Duration,
) -> Result<Result<Met, Gone>, Error> {
    let mut meeting = Meeting::begin(host, patience).await?;
    meeting.ask(question).await;
    match meeting.hear(meeting.deadline, Until::Definition).await {
        Heard::Definition(introduction) => Ok(Ok(meeting.met(question, introduction).await?)),
        heard => {
            let has_answered = meeting.other.is_some();
            let error = meeting.failure(&heard).await;
            Ok(Err(Gone {
                error,
                has_answered,
            }))
        }
    }
}

/// A plugin that was started, and has yet to introduce itself.
struct Meeting<'a> {
    host: &'a Host,
    process: Process,
    introduced: Receiver<Map<String, Value>>,
    recheck: Option<Recheck>,
    begun: Instant,
    deadline: Instant,
    /// The first message that was not a definition.
    other: Option<String>,
}

/// What a plugin is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Any answer, also one that refuses the question.
    AnyAnswer,
    Definition,
}

enum Heard {
    Definition(Introduction),
    /// It says itself that it cannot be used.
    Invalid(String),
    /// An answer that is not a definition.
    Other,
    Silence,
    Over,
}

impl<'a> Meeting<'a> {
    async fn begin(host: &'a Host, patience: Duration) -> Result<Self, Error> {
        let begun = Instant::now();
        let (talk, recheck) = host
            .start()
            .await
            .map_err(|error| host.failed(format!("did not start: {error}")))?;
        let (process, introduced) = Process::new(talk);
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

    /// Asks, and says where the question ends in its input.
    async fn ask(&self, question: Question) -> Option<End> {
        self.process.say(&question.message()).await
    }

    /// Whether it has read a question that was written.
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

    /// It has introduced itself, so it has loaded what it is: if that is still what was
    /// checked, it may be called.
    async fn met(self, question: Question, introduction: Introduction) -> Result<Met, Error> {
        if let Some(Err(reason)) = self.recheck.map(|recheck| recheck()) {
            self.process.end().await;
            let why = format!("was ended before it got a call: {reason}");
            return Err(self.host.failed(why));
        }
        self.process.introduced(introduction.is_second);
        Ok(Met {
            process: self.process,
            question,
            introduction,
        })
    }

    /// Why there is no introduction.
    async fn failure(&self, heard: &Heard) -> Error {
        use haft_ops::executor::Exit;
        if let Heard::Invalid(words) = heard {
            self.process.end().await;
            return self.host.failed(format!("cannot be used: {words}"));
        }
        let over = self.process.over();
        let (status, words) = self.process.last_words(over).await;
        let ended = match (over, status) {
            (Some(Over::Babbling), _) => {
                Some("wrote more than 16MB, or 10,000 lines, that are not JSON messages".to_owned())
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
        let said = self.host.quoted(&words);
        self.host.failed(format!("{how}{said}"))
    }
}

impl Question {
    /// What a plugin of this protocol may answer, in the order in which it is asked.
    #[must_use]
    pub fn of(protocol: Protocol) -> Vec<Self> {
        match protocol {
            Protocol::Auto => vec![Self::Describe, Self::Init, Self::Plain],
            Protocol::Describe => vec![Self::Describe, Self::Plain],
            Protocol::Second => vec![Self::Describe],
            Protocol::Init => vec![Self::Init],
        }
    }
}
