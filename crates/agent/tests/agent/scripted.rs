//! A scripted model that records its requests.

use async_trait::async_trait;
use haft_agent::{
    Chunk, Message, Model, ModelAnswer, ModelError, ModelErrorKind, ModelId, Part, Request, Stop,
    ToolCall, Usage,
};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// A step of the script.
pub(crate) enum Next {
    ModelReply(ModelAnswer),
    Fails(ModelError),
    /// Sends this text and then stalls.
    Hangs(&'static str),
    /// Runs a closure first.
    After(Box<dyn FnOnce() + Send>, Box<Next>),
}

pub(crate) struct Scripted {
    script: Mutex<VecDeque<Next>>,
    pub(crate) received: Mutex<Vec<Vec<Message>>>,
    pub(crate) tools: Mutex<Vec<Vec<String>>>,
    pub(crate) window: Option<u64>,
}

impl Scripted {
    pub(crate) fn new(script: impl IntoIterator<Item = Next>) -> Arc<Self> {
        Self::with_window(script, None)
    }

    pub(crate) fn with_window(
        script: impl IntoIterator<Item = Next>,
        window: Option<u64>,
    ) -> Arc<Self> {
        Arc::new(Self {
            script: Mutex::new(script.into_iter().collect()),
            received: Mutex::default(),
            tools: Mutex::default(),
            window,
        })
    }

    /// Appends steps.
    pub(crate) fn also(&self, script: impl IntoIterator<Item = Next>) {
        self.script.lock().unwrap().extend(script);
    }

    pub(crate) fn requests(&self) -> usize {
        self.received.lock().unwrap().len()
    }

    /// Returns the history of the last request.
    pub(crate) fn last(&self) -> Vec<Message> {
        self.received.lock().unwrap().last().cloned().unwrap()
    }
}

#[async_trait]
impl Model for Scripted {
    fn id(&self) -> ModelId {
        ModelId {
            provider: "scripted".to_owned(),
            model: "m".to_owned(),
        }
    }

    fn context_window(&self) -> Option<u64> {
        self.window
    }

    async fn answer(
        &self,
        request: Request<'_>,
        show: &(dyn Fn(Chunk) + Send + Sync),
    ) -> Result<ModelAnswer, ModelError> {
        let history = request.history.iter();
        let history = history.map(|message: &Arc<Message>| Message::clone(message));
        self.received.lock().unwrap().push(history.collect());
        let names = request.tools.iter().map(|tool| tool.name.clone()).collect();
        self.tools.lock().unwrap().push(names);
        let mut next = self.script.lock().unwrap().pop_front();
        while let Some(Next::After(act, then)) = next {
            act();
            next = Some(*then);
        }
        match next {
            Some(Next::ModelReply(answer)) => {
                for part in &answer.parts {
                    match part {
                        Part::Text { text } => show(Chunk::Text(text.clone())),
                        Part::Reasoning { text } => show(Chunk::Reasoning(text.clone())),
                        Part::Call(call) => show(Chunk::Call(call.name.clone())),
                    }
                }
                Ok(answer)
            }
            Some(Next::Fails(error)) => Err(error),
            Some(Next::Hangs(text)) => {
                show(Chunk::Text(text.to_owned()));
                std::future::pending().await
            }
            Some(Next::After(..)) | None => Err(ModelError::new(
                ModelErrorKind::Permanent,
                "the script is over",
            )),
        }
    }
}

pub(crate) fn usage() -> Usage {
    Usage {
        input: 100,
        output: 10,
        cost: Some(0.01),
        ..Usage::default()
    }
}

pub(crate) fn text(text: &str) -> Next {
    Next::ModelReply(ModelAnswer {
        parts: vec![Part::Text {
            text: text.to_owned(),
        }],
        usage: usage(),
        ..ModelAnswer::default()
    })
}

/// Creates an answer with calls, given as id, tool and arguments.
pub(crate) fn calls<const N: usize>(calls: [(&str, &str, Value); N]) -> Next {
    let parts = calls.into_iter().map(|(id, name, arguments)| {
        Part::Call(ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments,
        })
    });
    Next::ModelReply(ModelAnswer {
        parts: parts.collect(),
        stop: Stop::Calls,
        usage: usage(),
        ..ModelAnswer::default()
    })
}

pub(crate) fn fails(kind: ModelErrorKind) -> Next {
    Next::Fails(ModelError::new(kind, format!("{kind:?} happened")))
}
