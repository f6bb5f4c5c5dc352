//! A custom model for the examples: it needs no key and gives prepared answers. Anything
//! that turns a conversation into an answer can be a model.

use async_trait::async_trait;
use haft_agent::{
    Chunk, Model, ModelAnswer, ModelError, ModelErrorKind, ModelId, Part, Request, Stop, ToolCall,
};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Returns these answers, one after the other.
pub(crate) struct Told {
    answers: Mutex<VecDeque<ModelAnswer>>,
}

impl Told {
    #[must_use]
    pub(crate) fn model(answers: impl IntoIterator<Item = ModelAnswer>) -> Arc<dyn Model> {
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
        show: &(dyn Fn(Chunk) + Send + Sync),
    ) -> Result<ModelAnswer, ModelError> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = answers
            .pop_front()
            .ok_or_else(|| ModelError::new(ModelErrorKind::Permanent, "nothing more to say"))?;
        for word in answer.text().split_inclusive(' ') {
            show(Chunk::Text(word.to_owned()));
        }
        Ok(answer)
    }
}

/// Returns an answer with text, a call (id, tool, arguments), or both.
#[must_use]
pub(crate) fn answer(text: &str, call: Option<(&str, &str, Value)>) -> ModelAnswer {
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
    ModelAnswer {
        parts: said.into_iter().chain(called).collect(),
        stop,
        ..ModelAnswer::default()
    }
}
