//! A model that says what it was told to, and remembers what it was sent.

use async_trait::async_trait;
use haft_agent::{
    Answer, Message, Model, ModelError, ModelId, Part, Piece, Request, Said, Stop, ToolCall,
    Trouble, Usage,
};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// What comes next.
pub(crate) enum Next {
    Says(Answer),
    Fails(ModelError),
    /// Says this much and then nothing.
    Hangs(&'static str),
    /// Does something first.
    After(Box<dyn FnOnce() + Send>, Box<Next>),
}

pub(crate) struct Scripted {
    script: Mutex<VecDeque<Next>>,
    pub(crate) heard: Mutex<Vec<Vec<Message>>>,
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
            heard: Mutex::default(),
            tools: Mutex::default(),
            window,
        })
    }

    /// Goes on with more.
    pub(crate) fn also(&self, script: impl IntoIterator<Item = Next>) {
        self.script.lock().unwrap().extend(script);
    }

    pub(crate) fn requests(&self) -> usize {
        self.heard.lock().unwrap().len()
    }

    /// What it was sent with its last request.
    pub(crate) fn last(&self) -> Vec<Message> {
        self.heard.lock().unwrap().last().cloned().unwrap()
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
        show: &(dyn Fn(Piece) + Send + Sync),
    ) -> Result<Answer, ModelError> {
        let history = request.history.iter();
        let history = history.map(|said: &Arc<Said>| said.message.clone());
        self.heard.lock().unwrap().push(history.collect());
        let names = request.tools.iter().map(|tool| tool.name.clone()).collect();
        self.tools.lock().unwrap().push(names);
        let mut next = self.script.lock().unwrap().pop_front();
        while let Some(Next::After(act, then)) = next {
            act();
            next = Some(*then);
        }
        match next {
            Some(Next::Says(answer)) => {
                for part in &answer.parts {
                    match part {
                        Part::Text { text } => show(Piece::Text(text.clone())),
                        Part::Reasoning { text } => show(Piece::Reasoning(text.clone())),
                        Part::Call(call) => show(Piece::Call(call.name.clone())),
                    }
                }
                Ok(answer)
            }
            Some(Next::Fails(error)) => Err(error),
            Some(Next::Hangs(text)) => {
                show(Piece::Text(text.to_owned()));
                std::future::pending().await
            }
            Some(Next::After(..)) | None => {
                Err(ModelError::new(Trouble::Hopeless, "the script is over"))
            }
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
    Next::Says(Answer {
        parts: vec![Part::Text {
            text: text.to_owned(),
        }],
        usage: usage(),
        ..Answer::default()
    })
}

/// An answer with calls: id, tool, arguments.
pub(crate) fn calls<const N: usize>(calls: [(&str, &str, Value); N]) -> Next {
    let parts = calls.into_iter().map(|(id, name, arguments)| {
        Part::Call(ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments,
        })
    });
    Next::Says(Answer {
        parts: parts.collect(),
        stop: Stop::Calls,
        usage: usage(),
        ..Answer::default()
    })
}

pub(crate) fn fails(trouble: Trouble) -> Next {
    Next::Fails(ModelError::new(trouble, format!("{trouble:?} happened")))
}
