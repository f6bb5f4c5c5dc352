//! Pictures that a provider refuses. One that it cannot read makes it refuse every request
//! of the conversation from then on, so the newest are left out until it answers.

use super::run::Run;
use crate::{AgentEvent, Answer, LeftOut, Message, ModelError, Said, Trouble};
use haft::Content;
use std::sync::Arc;

/// How often a request is made again with fewer pictures. The last time it has none.
const ATTEMPTS: u64 = 3;

/// Where a picture is in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// The number of the message.
    message: usize,
    /// The number of the result, if it is one of a tool's.
    result: Option<usize>,
    /// The number of the block.
    block: usize,
}

/// A request that was refused, and what is left out of it to see whether that helps.
#[derive(Default)]
pub(super) struct Trial {
    attempts: u64,
    left_out: Vec<Place>,
    /// What the provider said of the request with all of them.
    first: Option<ModelError>,
}

impl Trial {
    /// Whether a failure may be about a picture. Providers have no common way to say so:
    /// some answer 404 or 500, some break off an answer that began well.
    pub(super) fn is_for(error: &ModelError) -> bool {
        match error.trouble {
            // The key, the bill, the rate and the network are not about what was sent; of a
            // conversation that is too long, the words are made shorter first.
            Trouble::Status(401 | 402 | 429) | Trouble::Network | Trouble::TooLong => false,
            Trouble::Status(_)
            | Trouble::Cut
            | Trouble::Empty
            | Trouble::Malformed
            | Trouble::TooLarge
            | Trouble::Hopeless => true,
        }
    }

    /// The same where nothing but the pictures can be made shorter.
    pub(super) fn is_for_short(error: &ModelError) -> bool {
        Self::is_for(error) || error.trouble == Trouble::TooLong
    }

    /// Whether something is left out already.
    pub(super) fn has_begun(&self) -> bool {
        !self.left_out.is_empty()
    }

    /// The conversation as it is asked with now.
    pub(super) fn of(&self, history: Arc<Vec<Arc<Said>>>) -> Arc<Vec<Arc<Said>>> {
        if self.left_out.is_empty() {
            return history;
        }
        let mut tried = (*history).clone();
        for place in &self.left_out {
            take_out(&mut tried, *place);
        }
        Arc::new(tried)
    }

    /// Leaves out more of the conversation that was refused, if there is more and it was
    /// not tried too often.
    fn next(&mut self, tried: &[Arc<Said>], error: &ModelError) -> bool {
        let mut places = places(tried);
        if self.attempts >= ATTEMPTS || places.is_empty() {
            return false;
        }
        self.attempts += 1;
        self.first.get_or_insert_with(|| error.clone());
        if self.attempts < ATTEMPTS {
            places.truncate(1);
        }
        self.left_out.append(&mut places);
        true
    }

    /// What to say when nothing helped: what the provider said at first.
    pub(super) fn error(&mut self, last: ModelError) -> ModelError {
        self.first.take().unwrap_or(last)
    }

    /// Begins again, as the conversation is another one now.
    pub(super) fn start_over(&mut self) {
        self.attempts = 0;
        self.left_out.clear();
    }
}

impl Run {
    /// Whether to ask once more, with fewer pictures.
    pub(super) fn ask_with_fewer(
        &self,
        trial: &mut Trial,
        history: &Arc<Vec<Arc<Said>>>,
        error: &ModelError,
    ) -> bool {
        let tried = trial.of(Arc::clone(history));
        if !trial.next(&tried, error) {
            return false;
        }
        self.tell(AgentEvent::Retry {
            attempt: trial.attempts,
            of: ATTEMPTS,
            delay_ms: 0,
            reason: format!("{}; asking again with fewer pictures", error.message),
        });
        true
    }

    /// Keeps out what was left out of the request that this answers: from now on, and in
    /// the record with the answer.
    pub(super) fn keep_out(&self, trial: &Trial, answer: &mut Answer) {
        if trial.left_out.is_empty() {
            return;
        }
        let mut told = Vec::new();
        {
            let mut conversation = self.shared.lock();
            let ids = conversation.ids.clone();
            let history = Arc::make_mut(&mut conversation.history);
            for place in &trial.left_out {
                told.extend(take_out(history, *place));
                let id = ids.get(place.message).copied().flatten();
                answer.left_out.extend(id.map(|message| LeftOut {
                    message,
                    result: place.result,
                    block: place.block,
                }));
            }
        }
        let reason = trial.first.as_ref().map(|error| error.message.clone());
        let reason = reason.unwrap_or_default();
        for (call_id, picture) in told {
            self.tell(AgentEvent::PictureLeftOut {
                call_id,
                picture,
                reason: reason.clone(),
            });
        }
    }
}

/// Takes out what an answer was given without.
pub(super) fn take_out_again(history: &mut [Arc<Said>], ids: &[Option<i64>], answer: &Answer) {
    for LeftOut {
        message,
        result,
        block,
    } in &answer.left_out
    {
        let found = ids.iter().position(|id| *id == Some(*message));
        if let Some(message) = found {
            let place = Place {
                message,
                result: *result,
                block: *block,
            };
            take_out(history, place);
        }
    }
}

/// A conversation without pictures, if it has any.
pub(super) fn without_any(history: &[Arc<Said>]) -> Option<Vec<Arc<Said>>> {
    let places = places(history);
    let mut rest = history.to_vec();
    for place in &places {
        take_out(&mut rest, *place);
    }
    (!places.is_empty()).then_some(rest)
}

/// All pictures, the newest first.
fn places(history: &[Arc<Said>]) -> Vec<Place> {
    let pictures = |content: &[Content]| -> Vec<usize> {
        let blocks = content.iter().enumerate();
        let blocks = blocks.filter(|(_, block)| matches!(block, Content::Image { .. }));
        blocks.map(|(block, _)| block).collect()
    };
    let mut all = Vec::new();
    for (message, said) in history.iter().enumerate() {
        let mut add = |result: Option<usize>, content: &[Content]| {
            all.extend(pictures(content).into_iter().map(|block| Place {
                message,
                result,
                block,
            }));
        };
        match &said.message {
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

/// Puts words in the place of a picture. Says whose it was, and what it was.
fn take_out(history: &mut [Arc<Said>], place: Place) -> Option<(Option<String>, String)> {
    let said = history.get_mut(place.message)?;
    let mut message = said.message.clone();
    let (call_id, content) = match (&mut message, place.result) {
        (Message::User { content, .. }, None) => (None, content),
        (Message::Tool { results }, Some(number)) => {
            let result = results.get_mut(number)?;
            (Some(result.call_id.clone()), &mut result.content)
        }
        _ => return None,
    };
    let block = content.get_mut(place.block)?;
    if !matches!(block, Content::Image { .. }) {
        return None;
    }
    let was = block.in_words().into_owned();
    let text =
        format!("{was} was left out here: the model's provider refused the conversation with it");
    *block = Content::Text { text };
    *said = Said::new(message);
    Some((call_id, was))
}
