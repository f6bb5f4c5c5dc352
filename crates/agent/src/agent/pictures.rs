//! Pictures that a provider rejects. A picture that it cannot read would make every later
//! request fail, so the newest pictures are omitted until the provider answers.

use super::run::Run;
use crate::{AgentEvent, Message, ModelAnswer, ModelError, ModelErrorKind, OmittedPicture};
use haft::Content;
use std::sync::Arc;

/// Number of retries with fewer pictures. The last one has none.
const ATTEMPTS: u64 = 3;

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
    /// Error for the request with all pictures.
    first: Option<ModelError>,
}

impl PictureTrial {
    /// Whether an error may be caused by a picture. Providers have no common way to report
    /// this: some answer 404 or 500, some break off in the middle of an answer.
    pub(super) fn is_for(error: &ModelError) -> bool {
        match error.kind {
            // Authentication, billing, rate limits and the network do not depend on the
            // request. A conversation that is too long is compacted first.
            ModelErrorKind::Status(401 | 402 | 429)
            | ModelErrorKind::Network
            | ModelErrorKind::TooLong => false,
            ModelErrorKind::Status(_)
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

    /// Returns the conversation without the omitted pictures.
    pub(super) fn apply(&self, history: Arc<Vec<Arc<Message>>>) -> Arc<Vec<Arc<Message>>> {
        if self.omitted.is_empty() {
            return history;
        }
        let mut tried = (*history).clone();
        for position in &self.omitted {
            omit(&mut tried, *position);
        }
        Arc::new(tried)
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

    /// After a successful retry, omits its pictures from all later requests and notes them in
    /// the answer, which is recorded.
    pub(super) fn omit_pictures(&self, trial: &PictureTrial, answer: &mut ModelAnswer) {
        if trial.omitted.is_empty() {
            return;
        }
        let mut omitted = Vec::new();
        {
            let mut conversation = self.shared.lock();
            let ids = conversation.ids.clone();
            let history = Arc::make_mut(&mut conversation.history);
            for position in &trial.omitted {
                omitted.extend(omit(history, *position));
                let id = ids.get(position.message).copied().flatten();
                answer.left_out.extend(id.map(|message| OmittedPicture {
                    message,
                    result: position.result,
                    block: position.block,
                }));
            }
        }
        let reason = trial.first.as_ref().map(|error| error.message.clone());
        let reason = reason.unwrap_or_default();
        for (call_id, picture) in omitted {
            self.emit(AgentEvent::PictureLeftOut {
                call_id,
                picture,
                reason: reason.clone(),
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
    } in &answer.left_out
    {
        let found = ids.iter().position(|id| *id == Some(*message));
        if let Some(message) = found {
            let position = PicturePosition {
                message,
                result: *result,
                block: *block,
            };
            omit(history, position);
        }
    }
}

/// Returns the conversation without pictures, if it has any.
pub(super) fn without_pictures(history: &[Arc<Message>]) -> Option<Vec<Arc<Message>>> {
    let positions = positions(history);
    let mut without = history.to_vec();
    for position in &positions {
        omit(&mut without, *position);
    }
    (!positions.is_empty()).then_some(without)
}

/// Returns the positions of all pictures, the newest first.
fn positions(history: &[Arc<Message>]) -> Vec<PicturePosition> {
    let pictures = |content: &[Content]| -> Vec<usize> {
        let blocks = content.iter().enumerate();
        let blocks = blocks.filter(|(_, block)| matches!(block, Content::Image { .. }));
        blocks.map(|(block, _)| block).collect()
    };
    let mut all = Vec::new();
    for (index, message) in history.iter().enumerate() {
        let mut add = |result: Option<usize>, content: &[Content]| {
            all.extend(pictures(content).into_iter().map(|block| PicturePosition {
                message: index,
                result,
                block,
            }));
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
) -> Option<(Option<String>, String)> {
    let slot = history.get_mut(position.message)?;
    let mut message = Message::clone(slot);
    let (call_id, content) = match (&mut message, position.result) {
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
    let text = format!("{description} omitted: the provider rejected the conversation with it");
    *block = Content::Text { text };
    *slot = Arc::new(message);
    Some((call_id, description))
}
