//! One call, as a front end makes it.

use super::clock::Clock;
use super::{ApprovalAnswer, Approver, Recording};
use crate::event::{EventKind, Listener};
use crate::queue::Position;
use crate::update::UpdateSink;
use crate::{Error, NetworkHost, Reply, Update};
use futures::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Hook that runs before a call starts.
pub(crate) type BeforeCall = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// Hook that may change the reply before it is recorded.
pub(crate) type AfterCall = Arc<dyn for<'a> Fn(&'a mut Reply) -> BoxFuture<'a, ()> + Send + Sync>;

/// A call to make.
#[derive(Clone)]
pub struct Call {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) cancel: CancellationToken,
    pub(crate) on_update: Option<UpdateSink>,
    pub(crate) on_event: Option<Listener>,
    /// The user's earlier answer about making the call.
    pub(crate) answer: Option<ApprovalAnswer>,
    /// The user's earlier answer to a question that the tool asked while running.
    pub(crate) answer_within: Option<ApprovalAnswer>,
    /// Hosts that the commands of this call may reach in addition.
    pub(crate) hosts: Vec<NetworkHost>,
    /// Approver of this call, instead of the session's.
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) on_begin: Option<BeforeCall>,
    pub(crate) on_end: Option<AfterCall>,
    /// A reply that replaces the call, which then does not run.
    pub(crate) instead: Option<Reply>,
    /// Names of the tools that led to this call, outermost first.
    pub(crate) within: Vec<String>,
    /// The call that made this one.
    pub(crate) outer: Option<OuterCall>,
}

/// A call that makes other calls.
#[derive(Clone)]
pub(crate) struct OuterCall {
    pub(crate) clock: Clock,
    pub(crate) position: Position,
    /// Records what the calls change that it makes in its own session.
    pub(crate) recording: Option<Recording>,
}

impl Call {
    /// Creates a call of `tool`. The arguments are an object, or text that contains one as
    /// JSON.
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
            hosts: Vec::new(),
            approver: None,
            on_begin: None,
            on_end: None,
            instead: None,
            within: Vec::new(),
            outer: None,
        }
    }

    /// Sets the id that the model gave to the call.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Sets a token that cancels the call.
    #[must_use]
    pub fn cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Sets a listener for partial results.
    #[must_use]
    pub fn on_update(mut self, listener: impl Fn(Update<'_>) + Send + Sync + 'static) -> Self {
        self.on_update = Some(Arc::new(listener));
        self
    }

    /// Sets a listener for all events of this call and of calls that it makes.
    #[must_use]
    pub fn on_event(mut self, listener: impl Fn(&EventKind) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(listener));
        self
    }

    /// Opens these hosts to the commands of this call, because the user said so. A rule that
    /// denies one of them still applies.
    #[must_use]
    pub fn open_hosts(mut self, hosts: impl IntoIterator<Item = NetworkHost>) -> Self {
        self.hosts.extend(hosts);
        self
    }

    /// Sets an approver for this call, instead of the session's. Use it if only the caller
    /// can reach the user.
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// Sets a hook that runs after the call was allowed and before it starts. If it returns
    /// an error, the call is not made, for that reason.
    #[must_use]
    pub fn on_begin<F>(mut self, before: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.on_begin = Some(Arc::new(move || Box::pin(before())));
        self
    }

    /// Sets a hook that runs after the call has ended, even if it was refused, and before its
    /// outcome is recorded. It may change the reply.
    #[must_use]
    pub fn on_end<F>(mut self, after: F) -> Self
    where
        F: for<'a> Fn(&'a mut Reply) -> BoxFuture<'a, ()> + Send + Sync + 'static,
    {
        self.on_end = Some(Arc::new(after));
        self
    }

    /// Sets a reply that replaces the call: the tool does not run, and no event is emitted.
    #[must_use]
    pub fn instead(mut self, reply: Reply) -> Self {
        self.instead = Some(reply);
        self
    }

    /// Runs the hook before the call.
    pub(super) async fn run_hook(&self) -> Result<(), String> {
        match &self.on_begin {
            Some(before) => before().await,
            None => Ok(()),
        }
    }

    /// Sets the user's earlier answer to the question whether the call may be made. It is
    /// used instead of asking, even if there is no approver; rules that deny the call still
    /// apply. A question that the tool asks while running is a separate one.
    #[must_use]
    pub fn answered(mut self, answer: ApprovalAnswer) -> Self {
        self.answer = Some(answer);
        self
    }

    /// Sets the user's earlier answer to a question that the tool asked while running, with
    /// [`Context::confirm`](crate::Context::confirm). The call itself was approved before
    /// and is not asked about again; rules that deny it still apply.
    #[must_use]
    pub fn answered_within(mut self, answer: ApprovalAnswer) -> Self {
        self.answer_within = Some(answer);
        self
    }
}

/// Merges the user's changes into the arguments of a call.
pub(super) fn merged(arguments: &Value, changes: Value) -> Result<Value, Error> {
    let (Value::Object(arguments), Value::Object(changes)) = (arguments, changes) else {
        return Err(Error::Refused(Box::new(Error::invalid(
            "the changed arguments must be an object",
        ))));
    };
    let mut arguments = arguments.clone();
    arguments.extend(changes);
    Ok(Value::Object(arguments))
}
