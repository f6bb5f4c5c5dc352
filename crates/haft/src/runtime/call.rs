//! One call, as a front end makes it.

use super::clock::Clock;
use super::{Answer, Approver};
use crate::context::UpdateSink;
use crate::event::{EventKind, Listener};
use crate::{Content, Error};
use futures::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What is done before a call begins.
pub(crate) type BeforeIt = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// A call to make.
#[derive(Clone)]
pub struct Call {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) cancel: CancellationToken,
    pub(crate) on_update: Option<UpdateSink>,
    pub(crate) on_event: Option<Listener>,
    /// What a person said before about making it.
    pub(crate) answer: Option<Answer>,
    /// What they said about something that it asked while it ran.
    pub(crate) answer_within: Option<Answer>,
    /// Who is asked about it, instead of whom the session asks.
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) on_begin: Option<BeforeIt>,
    /// The tools that are being called and made this call, the outermost first.
    pub(crate) within: Vec<String>,
    /// The clock of the call that made this one.
    pub(crate) clock: Option<Clock>,
}

impl Call {
    /// A call of `tool`. The arguments may be an object, or text that holds one.
    #[must_use]
    pub fn new(tool: &str, arguments: Value) -> Self {
        Self {
            id: String::new(),
            tool: tool.to_owned(),
            arguments,
            cancel: CancellationToken::new(),
            on_update: None,
            on_event: None,
            answer: None,
            answer_within: None,
            approver: None,
            on_begin: None,
            within: Vec::new(),
            clock: None,
        }
    }

    /// With the id that the model gave it.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// With a token that stops it.
    #[must_use]
    pub fn cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// With somebody who wants to see what there is so far.
    #[must_use]
    pub fn on_update(mut self, listener: impl Fn(&[Content]) + Send + Sync + 'static) -> Self {
        self.on_update = Some(Arc::new(listener));
        self
    }

    /// With somebody who wants to see all events of it, and of calls it makes.
    #[must_use]
    pub fn on_event(mut self, listener: impl Fn(&EventKind) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(listener));
        self
    }

    /// With somebody of its own to ask, instead of whom the session asks: who made it
    /// may be the only one who can reach a person.
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// With something that is done once it may be made, and waited for before it is. An
    /// error says why it is not made after all.
    #[must_use]
    pub fn on_begin<F>(mut self, before: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.on_begin = Some(Arc::new(move || Box::pin(before())));
        self
    }

    /// It is about to be made.
    pub(super) async fn begins(&self) -> Result<(), String> {
        match &self.on_begin {
            Some(before) => before().await,
            None => Ok(()),
        }
    }

    /// With what a person said about it when they were asked before whether it may be
    /// made. That holds whoever would be asked now, also if nobody would be; what denies
    /// it still does. Something that it asks while it runs is another question.
    #[must_use]
    pub fn answered(mut self, answer: Answer) -> Self {
        self.answer = Some(answer);
        self
    }

    /// With what a person said about something that it asked while it ran, as with
    /// [`Context::confirm`](crate::Context::confirm). It was allowed to begin then, and
    /// is not asked about again; what denies it still does.
    #[must_use]
    pub fn answered_within(mut self, answer: Answer) -> Self {
        self.answer_within = Some(answer);
        self
    }
}

/// The arguments of a call with a person's changes over them.
pub(super) fn merged(arguments: &Value, changes: Value) -> Result<Value, Error> {
    let (Value::Object(arguments), Value::Object(changes)) = (arguments, changes) else {
        return Err(Error::Refused(Box::new(Error::invalid(
            "the changed arguments are no object",
        ))));
    };
    let mut arguments = arguments.clone();
    arguments.extend(changes);
    Ok(Value::Object(arguments))
}
