//! A model of one's own, for the examples: it needs no key, and says what it was told
//! to. Whatever can turn a conversation into an answer can be a model.

use async_trait::async_trait;
use haft_agent::{
    Answer, Model, ModelError, ModelId, Part, Piece, Request, Stop, ToolCall, Trouble,
};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Gives these answers, one after the other.
pub(crate) struct Told {
    answers: Mutex<VecDeque<Answer>>,
}

impl Told {
    #[must_use]
    pub(crate) fn model(answers: impl IntoIterator<Item = Answer>) -> Arc<dyn Model> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
        })
    }
}

#[async_trait]
impl Model for Told {
    fn id(&self) -> ModelId {
        ModelId {
            provider: "example".to_owned(),
            model: "told".to_owned(),
        }
    }

    async fn answer(
        &self,
        _request: Request<'_>,
        show: &(dyn Fn(Piece) + Send + Sync),
    ) -> Result<Answer, ModelError> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = answers
            .pop_front()
            .ok_or_else(|| ModelError::new(Trouble::Hopeless, "nothing more to say"))?;
        for word in answer.text().split_inclusive(' ') {
            show(Piece::Text(word.to_owned()));
        }
        Ok(answer)
    }
}

/// An answer in words, or with a call: its id, the tool, the arguments.
#[must_use]
pub(crate) fn answer(text: &str, call: Option<(&str, &str, Value)>) -> Answer {
    let said = (!text.is_empty()).then(|| Part::Text {
        text: text.to_owned(),
    });
    let stop = if call.is_some() {
        Stop::Calls
    } else {
        Stop::End
    };
    let called = call.map(|(id, name, arguments)| {
        Part::Call(ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments,
        })
    });
    Answer {
        parts: said.into_iter().chain(called).collect(),
        stop,
        ..Answer::default()
    }
}
