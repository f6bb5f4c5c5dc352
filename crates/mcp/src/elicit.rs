//! Asking the person behind a client before a call, by elicitation.
//!
//! Up to 2025-11-25 the server asks while the call waits. From 2026-07-28 on it may not:
//! the call is answered with what has to be asked, and made again with the answer. What
//! was asked about then is kept here, because the client's word for it is not enough.

mod message;
mod waiting;

pub(crate) use waiting::{Answers, Waiting};

use async_trait::async_trait;
use haft::{Answer, Approver, Filled, Form, Question};
use rmcp::model::{
    ClientCapabilities, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationSchema, InputRequest, InputRequiredResult, RequestId,
    ServerRequest,
};
use rmcp::service::{OriginatingRequestId, Peer, PeerRequestOptions, RoleServer};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a person may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// The field that decides.
const DECISION: &str = "decision";
/// An optional field: why the answer is no. The model reads it.
const REASON: &str = "reason";
/// What the question is called where there could be several.
const QUESTION: &str = "approval";

/// Whether a client can show a form.
pub(crate) fn shows_forms(capabilities: Option<&ClientCapabilities>) -> bool {
    let Some(elicitation) = capabilities.and_then(|can| can.elicitation.as_ref()) else {
        return false;
    };
    // Who names no kind means the only one there was.
    elicitation.form.is_some() || elicitation.url.is_none()
}

/// The form: a decision and, for a rejection, a reason.
fn form(question: &Question) -> Option<ElicitRequestParams> {
    let schema = json!({
        "type": "object",
        "properties": {
            DECISION: {
                "type": "string",
                "title": "Decision",
                "description": "approve lets it run this once",
                "enum": ["approve", "reject"],
            },
            REASON: {
                "type": "string",
                "title": "Reason",
                "description": "why you reject it, for the model to read (optional)",
            }
        },
        "required": [DECISION],
    });
    let Value::Object(schema) = schema else {
        return None;
    };
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message::of(question),
        requested_schema: ElicitationSchema::from_json_schema(schema).ok()?,
    })
}

/// What a tool of ours asks for, in its own fields.
fn fields(form: &Form) -> Option<ElicitRequestParams> {
    let Value::Object(schema) = form.schema.clone() else {
        return None;
    };
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message::of_form(form),
        requested_schema: ElicitationSchema::from_json_schema(schema).ok()?,
    })
}

/// What they said. Anything but a clear yes is no.
fn answer(result: &ElicitResult) -> Answer {
    let field = |name| result.content.as_ref()?.get(name)?.as_str();
    match (&result.action, field(DECISION)) {
        (ElicitationAction::Accept, Some("approve")) => Answer::Approve,
        (ElicitationAction::Accept | ElicitationAction::Decline, _) => Answer::Reject {
            reason: field(REASON).map(|reason| reason.trim().to_owned()),
        },
        _ => rejected("the question was dismissed"),
    }
}

fn rejected(reason: &str) -> Answer {
    Answer::Reject {
        reason: Some(reason.to_owned()),
    }
}

/// A person who is asked while the call waits.
pub(crate) struct Person {
    client: Peer<RoleServer>,
    /// The call, on whose stream the question goes.
    call: RequestId,
}

impl Person {
    pub(crate) fn new(client: Peer<RoleServer>, call: RequestId) -> Self {
        Self { client, call }
    }
}

impl Person {
    /// Shows a form, and waits for what becomes of it.
    async fn show(&self, form: ElicitRequestParams) -> Result<ElicitResult, &'static str> {
        let mut request = ElicitRequest::new(form);
        let origin = OriginatingRequestId(self.call.clone());
        request.extensions.insert(origin);
        let options = PeerRequestOptions::with_timeout(PATIENCE);
        let asked = self
            .client
            .send_cancellable_request(ServerRequest::ElicitRequest(request), options)
            .await;
        let asked = asked.map_err(|error| {
            tracing::debug!(%error, "a person could not be asked");
            "the question could not be shown"
        })?;
        // Who is not waited for any more is told so.
        let mut open = Withdraw(Some((self.client.clone(), asked.id.clone())));
        let said = asked.await_response().await;
        open.0 = None;
        match said {
            Ok(ClientResult::ElicitResult(result)) => Ok(result),
            Ok(_) => Err("the answer was not valid"),
            Err(rmcp::ServiceError::Timeout { .. }) => Err("nobody answered in time"),
            Err(error) => {
                tracing::debug!(%error, "a person was asked in vain");
                Err("the question could not be shown")
            }
        }
    }
}

#[async_trait]
impl Approver for Person {
    async fn ask(&self, question: &Question) -> Answer {
        let Some(form) = form(question) else {
            return rejected("the question could not be shown");
        };
        match self.show(form).await {
            Ok(result) => answer(&result),
            Err(why) => rejected(why),
        }
    }

    async fn fill(&self, form: &Form) -> Filled {
        let Some(shown) = fields(form) else {
            return Filled::Dismissed;
        };
        match self.show(shown).await {
            Ok(result) => match result.action {
                ElicitationAction::Accept => {
                    Filled::Accepted(result.content.unwrap_or_else(|| json!({})))
                }
                ElicitationAction::Decline => Filled::Declined,
                _ => Filled::Dismissed,
            },
            Err(_) => Filled::Dismissed,
        }
    }
}

/// Takes a question back that nobody wants to know any more.
struct Withdraw(Option<(Peer<RoleServer>, RequestId)>);

impl Drop for Withdraw {
    fn drop(&mut self) {
        let Some((client, id)) = self.0.take() else {
            return;
        };
        let Ok(handle) = tokio::runtime::Handle::try_current() else {
            return;
        };
        handle.spawn(async move {
            let why = Some("the call was cancelled".to_owned());
            let withdrawn = rmcp::model::CancelledNotificationParam::new(Some(id), why);
            // A client that is gone is not asked any more either.
            let _ = client.notify_cancelled(withdrawn).await;
        });
    }
}

/// A person who is asked between two rounds of a call.
#[derive(Default)]
pub(crate) struct Later {
    question: Mutex<Option<Question>>,
}

impl Later {
    /// What has to be asked, if something has.
    pub(crate) fn question(&self) -> Option<Question> {
        let mut question = self.question.lock().unwrap_or_else(PoisonError::into_inner);
        question.take()
    }
}

#[async_trait]
impl Approver for Later {
    async fn ask(&self, question: &Question) -> Answer {
        let mut asked = self.question.lock().unwrap_or_else(PoisonError::into_inner);
        *asked = Some(question.clone());
        Answer::Later
    }
}

/// What is answered to a call that has to be made again with a person's word.
pub(crate) fn round(question: &Question, state: String) -> Option<InputRequiredResult> {
    let request = InputRequest::Elicitation(ElicitRequest::new(form(question)?));
    let requests = [(QUESTION.to_owned(), request)].into_iter().collect();
    Some(InputRequiredResult::new(Some(requests), Some(state)))
}

/// What came with a call that is made again.
pub(crate) fn answered(responses: Option<&rmcp::model::InputResponses>) -> Option<Answer> {
    let response = responses?.get(QUESTION)?;
    // An answer that cannot be read is no yes.
    Some(serde_json::from_value(response.clone()).map_or_else(
        |_| rejected("the answer was not valid"),
        |result| answer(&result),
    ))
}

/// Who is asked about a call.
pub(crate) enum Asking {
    /// Nobody: the client cannot.
    Nobody,
    /// Somebody, while it waits.
    Now(Arc<Person>),
    /// Somebody, before it is made again.
    Again(Arc<Later>),
}

impl Asking {
    pub(crate) fn approver(&self) -> Option<Arc<dyn Approver>> {
        match self {
            Self::Nobody => None,
            Self::Now(person) => Some(Arc::clone(person) as Arc<dyn Approver>),
            Self::Again(later) => Some(Arc::clone(later) as Arc<dyn Approver>),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(result: Value) -> Answer {
        let responses = [(QUESTION.to_owned(), result)].into_iter().collect();
        answered(Some(&responses)).expect("an answer")
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        let yes = json!({ "action": "accept", "content": { "decision": "approve" } });
        assert_eq!(said(yes), Answer::Approve);
        for no in [
            json!({ "action": "accept", "content": { "decision": "reject" } }),
            json!({ "action": "accept", "content": { "decision": true } }),
            json!({ "action": "accept" }),
            json!({ "action": "decline", "content": { "decision": "approve" } }),
            json!({ "action": "cancel", "content": { "decision": "approve" } }),
            json!({ "action": "agree", "content": { "decision": "approve" } }),
            json!("approve"),
        ] {
            assert!(matches!(said(no.clone()), Answer::Reject { .. }), "{no}");
        }
        assert_eq!(answered(None), None);
    }

    #[test]
    fn a_rejection_may_have_a_reason() {
        let content = json!({ "decision": "reject", "reason": " not in this branch\n" });
        let no = said(json!({ "action": "accept", "content": content }));
        let reason = Some("not in this branch".to_owned());
        assert_eq!(no, Answer::Reject { reason });
        let content = json!({ "decision": "approve", "reason": "fine" });
        let yes = said(json!({ "action": "accept", "content": content }));
        assert_eq!(yes, Answer::Approve);
        let content = json!({ "decision": "reject", "reason": 7 });
        let no = said(json!({ "action": "accept", "content": content }));
        assert_eq!(no, Answer::Reject { reason: None });
    }

    #[test]
    fn a_client_shows_forms_if_it_says_so_or_names_no_kind() {
        let can = |capabilities: Value| {
            let capabilities = serde_json::from_value(capabilities).expect("capabilities");
            shows_forms(Some(&capabilities))
        };
        assert!(can(json!({ "elicitation": {} })));
        assert!(can(json!({ "elicitation": { "form": {}, "url": {} } })));
        assert!(!can(json!({ "elicitation": { "url": {} } })));
        assert!(!can(json!({})));
        assert!(!shows_forms(None));
    }
}
