//! Asking the model, again where that may help.

use super::pictures::Trial;
use super::run::Run;
use crate::{AgentEvent, Answer, ModelError, Piece, Request, Said, Stop, Trouble};
use haft::Definition;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// No pause between two tries is longer, unless the provider wants it.
const LONGEST: Duration = Duration::from_secs(30);

/// A provider that wants a longer pause than this is not waited for.
const PATIENCE: Duration = Duration::from_secs(300);

/// Why there is no answer.
pub(super) enum NoAnswer {
    /// Somebody stopped it; this much of its text had come.
    Stopped(String),
    /// The conversation is too long.
    TooLong(ModelError),
    /// It failed, and trying again did not help.
    Failed(ModelError),
}

/// What is asked, beyond the conversation.
pub(super) struct Question<'a> {
    pub(super) system: &'a str,
    pub(super) tools: &'a [Definition],
    pub(super) history: &'a [Arc<Said>],
    /// It was asked before with more pictures, as often as that made sense.
    pub(super) is_trial: bool,
}

impl Run {
    /// Asks, and shows what comes.
    pub(super) async fn ask(&self, question: &Question<'_>) -> Result<Answer, NoAnswer> {
        let pieces = Mutex::new(self.teller.pieces());
        self.ask_and(question, &|piece| {
            let mut pieces = pieces.lock().unwrap_or_else(PoisonError::into_inner);
            for piece in pieces.next(piece) {
                self.tell(shown(piece));
            }
        })
        .await
    }

    /// Asks without showing it.
    pub(super) async fn ask_quietly(&self, question: &Question<'_>) -> Result<Answer, NoAnswer> {
        self.ask_and(question, &|_| ()).await
    }

    /// `tell` is told of pieces as they come, and of nothing where an answer ends.
    async fn ask_and(
        &self,
        question: &Question<'_>,
        tell: &(dyn Fn(Option<Piece>) + Send + Sync),
    ) -> Result<Answer, NoAnswer> {
        let mut attempt = 0;
        loop {
            let partial = Mutex::new(String::new());
            let show = |piece: Piece| {
                if let Piece::Text(text) = &piece {
                    partial
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push_str(text);
                }
                tell(Some(piece));
            };
            let model = self.shared.model();
            let request = Request {
                session: self.shared.runtime.session(),
                system: question.system,
                tools: question.tools,
                history: question.history,
                max_output: self.settings.max_output,
            };
            let answer = tokio::select! {
                biased;
                () = self.cancel.cancelled() => None,
                answer = model.answer(request, &show) => Some(answer),
            };
            tell(None);
            let error = match answer {
                None => {
                    let partial = partial.into_inner().unwrap_or_else(PoisonError::into_inner);
                    return Err(NoAnswer::Stopped(partial));
                }
                Some(Ok(answer)) if is_something(&answer) => return Ok(answer),
                Some(Ok(_)) => ModelError::new(Trouble::Empty, "the model's answer was empty"),
                Some(Err(error)) => error,
            };
            if matches!(error.trouble, Trouble::TooLong | Trouble::TooLarge) {
                return Err(NoAnswer::TooLong(error));
            }
            attempt += 1;
            let pause = pause(self.settings.backoff, attempt, error.retry_after);
            // What fails in a trial is tried with fewer pictures instead.
            let is_over = question.is_trial && Trial::is_for(&error);
            let is_over = is_over || attempt > self.settings.max_retries;
            if !error.may_pass() || is_over || pause > PATIENCE {
                return Err(NoAnswer::Failed(tried(error, attempt)));
            }
            self.tell(AgentEvent::Retry {
                attempt,
                of: self.settings.max_retries,
                delay_ms: u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
                reason: error.message,
            });
            tokio::select! {
                () = self.cancel.cancelled() => return Err(NoAnswer::Stopped(String::new())),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}

fn shown(piece: Piece) -> AgentEvent {
    let (kind, delta) = match piece {
        Piece::Text(text) => ("text", text),
        Piece::Reasoning(text) => ("reasoning", text),
        Piece::Call(name) => ("call", name),
    };
    AgentEvent::MessageUpdate { kind, delta }
}

/// An answer that says nothing and calls nothing is none, unless it was refused.
fn is_something(answer: &Answer) -> bool {
    answer.stop == Stop::Refusal
        || answer.calls().next().is_some()
        || !answer.text().trim().is_empty()
}

/// Twice as long each time, and not the same for everybody who waits.
fn pause(first: Duration, attempt: u64, wanted: Option<Duration>) -> Duration {
    let doubled = u32::try_from(attempt.saturating_sub(1).min(16)).unwrap_or(16);
    let own = first.saturating_mul(1 << doubled).min(LONGEST);
    let jitter = own.mul_f64(0.2 * f64::from(fastrand::u8(..)) / 255.0);
    wanted.unwrap_or(own + jitter)
}

/// The error, with how often it was tried.
fn tried(mut error: ModelError, attempts: u64) -> ModelError {
    if attempts > 1 {
        error.message = format!("{} (tried {attempts} times)", error.message);
    }
    error
}
