//! Requests to the model, with retries.

use super::pictures::PictureTrial;
use super::run::Run;
use crate::{AgentEvent, Chunk, Message, ModelAnswer, ModelError, ModelErrorKind, Request, Stop};
use haft::Definition;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maximum delay between retries, unless the provider asks for a longer one.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// If the provider asks for a longer delay than this, the request fails instead.
const MAX_PROVIDER_DELAY: Duration = Duration::from_secs(300);

/// Reason for a missing answer.
pub(super) enum NoAnswer {
    /// The run was stopped. Holds the text received so far.
    Stopped(String),
    /// The conversation is too long.
    TooLong(ModelError),
    /// The request failed, and retries did not help.
    Failed(ModelError),
}

/// A request to the model, before the settings of the agent are added.
pub(super) struct ModelQuery<'a> {
    pub(super) system: &'a str,
    pub(super) tools: &'a [Definition],
    pub(super) history: &'a [Arc<Message>],
    /// Whether the request failed before and is now sent with fewer pictures.
    pub(super) is_trial: bool,
}

impl Run {
    /// Sends a request and emits chunks of the answer.
    pub(super) async fn ask(&self, query: &ModelQuery<'_>) -> Result<ModelAnswer, NoAnswer> {
        let chunks = Mutex::new(self.emitter.chunks());
        self.request(query, &|chunk| {
            let mut chunks = chunks.lock().unwrap_or_else(PoisonError::into_inner);
            for chunk in chunks.next(chunk) {
                self.emit(update(chunk));
            }
        })
        .await
    }

    /// Sends a request without emitting chunks of the answer.
    pub(super) async fn ask_quietly(
        &self,
        query: &ModelQuery<'_>,
    ) -> Result<ModelAnswer, NoAnswer> {
        self.request(query, &|_| ()).await
    }

    /// `show` receives each chunk, and `None` at the end of each attempt.
    async fn request(
        &self,
        query: &ModelQuery<'_>,
        show: &(dyn Fn(Option<Chunk>) + Send + Sync),
    ) -> Result<ModelAnswer, NoAnswer> {
        let mut attempt = 0;
        loop {
            let partial = Mutex::new(String::new());
            let receive = |chunk: Chunk| {
                if let Chunk::Text(text) = &chunk {
                    partial
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push_str(text);
                }
                show(Some(chunk));
            };
            let model = self.shared.model();
            let request = Request {
                session: self.shared.runtime.session(),
                system: query.system,
                tools: query.tools,
                history: query.history,
                max_output: self.settings.max_output,
            };
            let answer = tokio::select! {
                biased;
                () = self.cancel.cancelled() => None,
                answer = model.answer(request, &receive) => Some(answer),
            };
            show(None);
            let error = match answer {
                None => {
                    let partial = partial.into_inner().unwrap_or_else(PoisonError::into_inner);
                    return Err(NoAnswer::Stopped(partial));
                }
                Some(Ok(answer)) if !is_empty(&answer) => return Ok(answer),
                Some(Ok(_)) => {
                    ModelError::new(ModelErrorKind::Empty, "the model's answer was empty")
                }
                Some(Err(error)) => error,
            };
            if matches!(
                error.kind,
                ModelErrorKind::TooLong | ModelErrorKind::TooLarge
            ) {
                return Err(NoAnswer::TooLong(error));
            }
            attempt += 1;
            let delay = delay(self.settings.backoff, attempt, error.retry_after);
            // The caller retries with even fewer pictures instead.
            let is_over = query.is_trial && PictureTrial::is_for(&error);
            let is_over = is_over || attempt > self.settings.max_retries;
            if !error.is_transient() || is_over || delay > MAX_PROVIDER_DELAY {
                return Err(NoAnswer::Failed(with_attempts(error, attempt)));
            }
            self.emit(AgentEvent::Retry {
                attempt,
                of: self.settings.max_retries,
                delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                reason: error.message,
            });
            tokio::select! {
                () = self.cancel.cancelled() => return Err(NoAnswer::Stopped(String::new())),
                () = tokio::time::sleep(delay) => {}
            }
        }
    }
}

fn update(chunk: Chunk) -> AgentEvent {
    let (kind, delta) = match chunk {
        Chunk::Text(text) => ("text", text),
        Chunk::Reasoning(text) => ("reasoning", text),
        Chunk::Call(name) => ("call", name),
    };
    AgentEvent::MessageUpdate { kind, delta }
}

/// Whether an answer has neither text nor calls. A refusal never counts as empty.
fn is_empty(answer: &ModelAnswer) -> bool {
    answer.stop != Stop::Refusal
        && answer.calls().next().is_none()
        && answer.text().trim().is_empty()
}

/// Returns the delay before a retry: the one that the provider asks for, or twice the
/// previous one with some jitter.
fn delay(first: Duration, attempt: u64, requested: Option<Duration>) -> Duration {
    let doubled = u32::try_from(attempt.saturating_sub(1).min(16)).unwrap_or(16);
    let own = first.saturating_mul(1 << doubled).min(MAX_DELAY);
    let jitter = own.mul_f64(0.2 * f64::from(fastrand::u8(..)) / 255.0);
    requested.unwrap_or(own + jitter)
}

/// Adds the number of attempts to an error.
fn with_attempts(mut error: ModelError, attempts: u64) -> ModelError {
    if attempts > 1 {
        error.message = format!("{} (tried {attempts} times)", error.message);
    }
    error
}
