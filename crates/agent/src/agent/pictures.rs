//! Pictures that a provider rejects, and the limit for all of them. A picture that the
//! provider cannot read would make every later request fail, so the newest pictures are
//! omitted until the provider answers. Of too many pictures the oldest are omitted.

use super::run::Run;
use crate::{
    AgentEvent, Message, ModelAnswer, ModelError, ModelErrorKind, OmissionReason, OmittedPicture,
    Stop,
};
use haft::Content;
use std::sync::Arc;

/// Number of retries with fewer pictures. The last one has none.
const ATTEMPTS: u64 = 3;

/// Maximum size of all pictures in a request, in Base64. Anthropic accepts requests of 32 MB.
const MAX_BYTES: usize = 20 << 20;

/// The limit, for the user and the model.
const LIMIT: &str = "only the newest 20 MiB of pictures are sent";

/// Position of a picture in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PicturePosition {
    /// Index of the message.
    message: usize,
    /// Index of the tool result, if the picture belongs to one.
    result: Option<usize>,
    /// Index of the content block.
    block: usize,
}

/// Retries of a failed request with fewer pictures, in case it failed because of one.
#[derive(Default)]
pub(super) struct PictureTrial {
    attempts: u64,
    omitted: Vec<PicturePosition>,
    /// Pictures beyond the limit of a request.
    excess: Vec<PicturePosition>,
    /// Error for the request with all pictures.
    first: Option<ModelError>,
    /// Refusal of the request with all pictures.
    refusal: Option<ModelAnswer>,
}

impl PictureTrial {
    /// Whether an error may be caused by a picture. Providers have no common way to report
    /// this: some answer 404 or 500, some break off in the middle of an answer.
    pub(super) fn is_for(error: &ModelError) -> bool {
        match error.kind {
            // Authentication, billing, rate limits and whether the provider can be reached
            // do not depend on the request. A conversation that is too long is compacted
            // first.
            ModelErrorKind::Status(401 | 402 | 429)
            | ModelErrorKind::Network
            | ModelErrorKind::TooLong => false,
            ModelErrorKind::Status(_)
            | ModelErrorKind::Disconnected
            | ModelErrorKind::Truncated
            | ModelErrorKind::Empty
            | ModelErrorKind::Malformed
            | ModelErrorKind::TooLarge
            | ModelErrorKind::Permanent => true,
        }
    }

    /// Like `is_for`, for a conversation that cannot be compacted any further.
    pub(super) fn is_for_short(error: &ModelError) -> bool {
        Self::is_for(error) || error.kind == ModelErrorKind::TooLong
    }

    /// Whether pictures are omitted already.
    pub(super) fn has_begun(&self) -> bool {
        !self.omitted.is_empty()
    }

    /// Returns the conversation without the omitted pictures and those beyond the limit.
    pub(super) fn apply(&mut self, history: Arc<Vec<Arc<Message>>>) -> Arc<Vec<Arc<Message>>> {
        // Counts the omitted ones too: a retry must not get older pictures instead.
        self.excess = excess(&history);
        if self.is_empty() {
            return history;
        }
        let mut tried = (*history).clone();
        for (position, reason) in self.all() {
            omit(&mut tried, position, reason);
        }
        Arc::new(tried)
    }

    fn is_empty(&self) -> bool {
        self.omitted.is_empty() && self.excess.is_empty()
    }

    /// Returns all pictures to omit.
    fn all(&self) -> impl Iterator<Item = (PicturePosition, OmissionReason)> {
        let omitted = self
            .omitted
            .iter()
            .map(|one| (*one, OmissionReason::Rejected));
        let excess = self.excess.iter().rev();
        omitted.chain(excess.map(|one| (*one, OmissionReason::RequestFull)))
    }

    /// Omits more pictures. Returns whether there were any left and another attempt is allowed.
    fn next(&mut self, tried: &[Arc<Message>], error: &ModelError) -> bool {
        let mut positions = positions(tried);
        if self.attempts >= ATTEMPTS || positions.is_empty() {
            return false;
        }
        self.attempts += 1;
        self.first.get_or_insert_with(|| error.clone());
        if self.attempts < ATTEMPTS {
            positions.truncate(1);
        }
        self.omitted.append(&mut positions);
        true
    }

    /// Returns the error to report when no retry helped: the first one.
    pub(super) fn error(&mut self, last: ModelError) -> ModelError {
        self.first.take().unwrap_or(last)
    }

    /// Starts over with all pictures, because the conversation was compacted.
    pub(super) fn start_over(&mut self) {
        self.attempts = 0;
        self.omitted.clear();
    }
}

impl Run {
    /// Prepares a retry with fewer pictures. Returns whether one makes sense.
    pub(super) fn retry_with_fewer_pictures(
        &self,
        trial: &mut PictureTrial,
        history: &Arc<Vec<Arc<Message>>>,
        error: &ModelError,
    ) -> bool {
        let tried = trial.apply(Arc::clone(history));
        if !trial.next(&tried, error) {
            return false;
        }
        self.emit(AgentEvent::Retry {
            attempt: trial.attempts,
            of: ATTEMPTS,
            delay_ms: 0,
            reason: format!("{}; retrying with fewer pictures", error.message),
        });
        true
    }

    /// Returns the answer, unless the request is to be sent again: a refusal may be about a
    /// picture.
    pub(super) fn accept_answer(
        &mut self,
        trial: &mut PictureTrial,
        history: &Arc<Vec<Arc<Message>>>,
        mut answer: ModelAnswer,
    ) -> Option<ModelAnswer> {
        if answer.stop == Stop::Refusal {
            let error = ModelError::new(ModelErrorKind::Permanent, "the model declined to answer");
            if self.retry_with_fewer_pictures(trial, history, &error) {
                self.count(&answer.usage);
                trial.refusal.get_or_insert(answer);
                return None;
            }
            // The pictures are not the reason.
            trial.start_over();
            if let Some(first) = trial.refusal.take() {
                let usage = answer.usage;
                answer = ModelAnswer { usage, ..first };
            }
        }
        self.omit_pictures(trial, &mut answer);
        Some(answer)
    }

    /// Omits the pictures of a successful request from all later ones and notes them in the
    /// answer, which is recorded.
    fn omit_pictures(&self, trial: &PictureTrial, answer: &mut ModelAnswer) {
        if trial.is_empty() {
            return;
        }
        let mut omitted = Vec::new();
        {
            let mut conversation = self.shared.lock();
            let ids = conversation.ids.clone();
            let history = Arc::make_mut(&mut conversation.history);
            for (position, reason) in trial.all() {
                let one = omit(history, position, reason);
                omitted.extend(one.map(|(call_id, picture)| (call_id, picture, reason)));
                let id = ids.get(position.message).copied().flatten();
                answer.left_out.extend(id.map(|message| OmittedPicture {
                    message,
                    result: position.result,
                    block: position.block,
                    reason,
                }));
            }
        }
        let first = trial.first.as_ref().map(|error| error.message.clone());
        let first = first.unwrap_or_default();
        for (call_id, picture, reason) in omitted {
            self.emit(AgentEvent::PictureLeftOut {
                call_id,
                picture,
                reason: match reason {
                    OmissionReason::Rejected => first.clone(),
                    OmissionReason::RequestFull => LIMIT.to_owned(),
                },
            });
        }
    }
}

/// Omits the pictures that a recorded answer notes as omitted.
pub(super) fn omit_recorded(
    history: &mut [Arc<Message>],
    ids: &[Option<i64>],
    answer: &ModelAnswer,
) {
    for OmittedPicture {
        message,
        result,
        block,
        reason,
    } in &answer.left_out
    {
        let found = ids.iter().position(|id| *id == Some(*message));
        if let Some(message) = found {
            let position = PicturePosition {
                message,
                result: *result,
                block: *block,
            };
            omit(history, position, *reason);
        }
    }
}

/// Returns the conversation without the pictures beyond the limit of a request.
pub(super) fn with_limited_pictures(history: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let mut limited = history.to_vec();
    for position in excess(history) {
        omit(&mut limited, position, OmissionReason::RequestFull);
    }
    limited
}

/// Returns the conversation without pictures, if it has any.
pub(super) fn without_pictures(history: &[Arc<Message>]) -> Option<Vec<Arc<Message>>> {
    let positions = positions(history);
    let mut without = history.to_vec();
    for position in &positions {
        omit(&mut without, *position, OmissionReason::Rejected);
    }
    (!positions.is_empty()).then_some(without)
}

/// Returns the pictures beyond the limit of a request: the oldest, the newest of them first.
fn excess(history: &[Arc<Message>]) -> Vec<PicturePosition> {
    let mut total = 0;
    let all = pictures(history).into_iter();
    all.skip_while(|(_, bytes)| {
        total += bytes;
        total <= MAX_BYTES
    })
    .map(|(position, _)| position)
    .collect()
}

/// Returns the positions of all pictures, the newest first.
fn positions(history: &[Arc<Message>]) -> Vec<PicturePosition> {
    let all = pictures(history).into_iter();
    all.map(|(position, _)| position).collect()
}

/// Returns the positions of all pictures and their sizes in Base64, the newest first.
fn pictures(history: &[Arc<Message>]) -> Vec<(PicturePosition, usize)> {
    let mut all = Vec::new();
    for (index, message) in history.iter().enumerate() {
        let mut add = |result: Option<usize>, content: &[Content]| {
            for (block, picture) in content.iter().enumerate() {
                if let Content::Image { data, .. } = picture {
                    let position = PicturePosition {
                        message: index,
                        result,
                        block,
                    };
                    all.push((position, data.len()));
                }
            }
        };
        match &**message {
            Message::User { content, .. } => add(None, content),
            Message::Tool { results } => {
                for (number, result) in results.iter().enumerate() {
                    add(Some(number), &result.content);
                }
            }
            Message::Assistant(_) => {}
        }
    }
    all.reverse();
    all
}

/// Replaces a picture with a note. Returns the call it belongs to, if any, and its description.
fn omit(
    history: &mut [Arc<Message>],
    position: PicturePosition,
    reason: OmissionReason,
) -> Option<(Option<String>, String)> {
    let message = Arc::make_mut(history.get_mut(position.message)?);
    let (call_id, content) = match (message, position.result) {
        (Message::User { content, .. }, None) => (None, content),
        (Message::Tool { results }, Some(number)) => {
            let result = results.get_mut(number)?;
            (Some(result.call_id.clone()), &mut result.content)
        }
        _ => return None,
    };
    let block = content.get_mut(position.block)?;
    if !matches!(block, Content::Image { .. }) {
        return None;
    }
    let description = block.in_words().into_owned();
    let reason = match reason {
        OmissionReason::Rejected => "the provider rejected the conversation with it",
        OmissionReason::RequestFull => LIMIT,
    };
    let text = format!("{description} omitted: {reason}");
    *block = Content::Text { text };
    Some((call_id, description))
}
