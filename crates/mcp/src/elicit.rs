//! Asks the user of a client before a call runs, by elicitation.
//!
//! Up to 2025-11-25 the server asks while the call waits. From 2026-07-28 on it may not:
//! the call is answered with the question, and the client repeats the call with the answer.
//! The server remembers which call it asked about, because the client's claim is not proof.

mod message;
mod pending;

pub(crate) use pending::{PendingCalls, Repeated};

use async_trait::async_trait;
use haft::{ApprovalAnswer as Answer, Approver, Filled, Form, Question};
use rmcp::model::{
    ClientCapabilities, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationSchema, InputRequest, InputRequiredResult, RequestId,
    ServerRequest,
};
use rmcp::service::{OriginatingRequestId, Peer, PeerRequestOptions, RoleServer};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time that the user has to answer.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);

/// Form field with the decision.
const DECISION: &str = "decision";
/// Decisions that are a yes: to a call, and to the changes of a call that has run.
const APPROVE: &str = "approve";
const KEEP: &str = "keep";
/// Optional form field with the reason for a rejection, which the model reads.
const REASON: &str = "reason";
/// Optional form field with the scope of an approval.
const SCOPE: &str = "scope";
const ONCE: &str = "once";
const SESSION: &str = "session";
const ALWAYS: &str = "always";
/// Key of our question in a response that could hold several.
const QUESTION: &str = "approval";

/// Whether a client can show a form.
pub(crate) fn shows_forms(capabilities: Option<&ClientCapabilities>) -> bool {
    let Some(elicitation) = capabilities.and_then(|can| can.elicitation.as_ref()) else {
        return false;
    };
    // A client that names no kind supports forms, the only kind when the field was
    // introduced.
    elicitation.form.is_some() || elicitation.url.is_none()
}

/// Builds the approval form: a decision and, for a rejection, a reason.
fn approval_form(question: &Question) -> Option<ElicitRequestParams> {
    let (choices, meaning, no) = match question.review {
        Some(_) => (
            [KEEP, "revert"],
            "keep: leave the changes; revert: take them back",
            "revert",
        ),
        None => ([APPROVE, "reject"], "approve: run this call once", "reject"),
    };
    let schema = json!({
        "type": "object",
        "properties": {
            DECISION: {
                "type": "string",
                "title": "Decision",
                "description": meaning,
                "enum": choices,
            },
            REASON: {
                "type": "string",
                "title": "Reason",
                "description": format!("optional; shown to the model if you {no}"),
            }
        },
        "required": [DECISION],
    });
    let mut schema = schema;
    if let (Some(scope), Some(fields)) =
        (scope_field(question), schema["properties"].as_object_mut())
    {
        fields.insert(SCOPE.to_owned(), scope);
    }
    let Value::Object(schema) = schema else {
        return None;
    };
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message::approval(question),
        requested_schema: ElicitationSchema::from_json_schema(schema).ok()?,
    })
}

/// Builds the field that lets the user approve more than this one call, if rules can express
/// that.
fn scope_field(question: &Question) -> Option<Value> {
    let rules = question.suggestion.as_ref()?;
    let mut scopes = vec![ONCE, SESSION];
    let mut meaning = format!("how long to allow this; for the session: {rules}");
    if let Some(file) = &question.rules_file {
        scopes.push(ALWAYS);
        meaning.push_str(&format!("; always: adds that to {}", file.display()));
    }
    Some(json!({
        "type": "string",
        "title": "Scope",
        "description": haft::ops::text::decode::visible(&meaning),
        "enum": scopes,
        "default": ONCE,
    }))
}

/// Builds the form that a tool asks the user to fill in.
fn tool_form(form: &Form) -> Option<ElicitRequestParams> {
    let Value::Object(schema) = form.schema.clone() else {
        return None;
    };
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message::tool_form(form),
        requested_schema: ElicitationSchema::from_json_schema(schema).ok()?,
    })
}

/// Converts the user's answer. Anything but a clear approval is a rejection.
fn answer(result: &ElicitResult) -> Answer {
    let field = |name| result.content.as_ref()?.get(name)?.as_str();
    match (&result.action, field(DECISION)) {
        (ElicitationAction::Accept, Some(APPROVE)) => match field(SCOPE) {
            Some(SESSION) => Answer::ForSession,
            Some(ALWAYS) => Answer::Always,
            _ => Answer::Approve,
        },
        (ElicitationAction::Accept, Some(KEEP)) => Answer::Approve,
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

/// Asks the user through the client while the call waits.
pub(crate) struct ClientApprover {
    client: Peer<RoleServer>,
    /// The call that asks; over HTTP the question is sent on its stream.
    call: RequestId,
}

impl ClientApprover {
    pub(crate) fn new(client: Peer<RoleServer>, call: RequestId) -> Self {
        Self { client, call }
    }
}

impl ClientApprover {
    /// Shows a form and waits for the answer.
    async fn show(&self, form: ElicitRequestParams) -> Result<ElicitResult, &'static str> {
        let mut request = ElicitRequest::new(form);
        let origin = OriginatingRequestId(self.call.clone());
        request.extensions.insert(origin);
        let options = PeerRequestOptions::with_timeout(ANSWER_TIMEOUT);
        let asked = self
            .client
            .send_cancellable_request(ServerRequest::ElicitRequest(request), options)
            .await;
        let asked = asked.map_err(|error| {
            tracing::debug!(%error, "cannot show the form");
            "the question could not be shown"
        })?;
        // Withdraws the question if the call ends before the answer arrives.
        let mut open = WithdrawOnDrop(Some((self.client.clone(), asked.id.clone())));
        let response = asked.await_response().await;
        open.0 = None;
        match response {
            Ok(ClientResult::ElicitResult(result)) => Ok(result),
            Ok(_) => Err("the answer was not valid"),
            Err(rmcp::ServiceError::Timeout { .. }) => Err("the user did not answer in time"),
            Err(error) => {
                tracing::debug!(%error, "the form was not answered");
                Err("the question could not be shown")
            }
        }
    }
}

#[async_trait]
impl Approver for ClientApprover {
    async fn ask(&self, question: &Question) -> Answer {
        let Some(form) = approval_form(question) else {
            return rejected("the question could not be shown");
        };
        match self.show(form).await {
            Ok(result) => answer(&result),
            Err(why) => rejected(why),
        }
    }

    async fn fill(&self, form: &Form) -> Filled {
        let Some(shown) = tool_form(form) else {
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

/// Tells the client to withdraw a question when it is dropped while still set.
struct WithdrawOnDrop(Option<(Peer<RoleServer>, RequestId)>);

impl Drop for WithdrawOnDrop {
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
            // A client that has disconnected shows the question no longer anyway.
            let _ = client.notify_cancelled(withdrawn).await;
        });
    }
}

/// Records the question, which the user answers between two attempts of the call.
#[derive(Default)]
pub(crate) struct DeferredApprover {
    question: Mutex<Option<Question>>,
}

impl DeferredApprover {
    /// Takes the question that the call asked, if any.
    pub(crate) fn question(&self) -> Option<Question> {
        let mut question = self.question.lock().unwrap_or_else(PoisonError::into_inner);
        question.take()
    }
}

#[async_trait]
impl Approver for DeferredApprover {
    async fn ask(&self, question: &Question) -> Answer {
        let mut asked = self.question.lock().unwrap_or_else(PoisonError::into_inner);
        *asked = Some(question.clone());
        Answer::Later
    }
}

/// Builds the response that makes the client ask the user and repeat the call.
pub(crate) fn input_required(question: &Question, state: String) -> Option<InputRequiredResult> {
    let request = InputRequest::Elicitation(ElicitRequest::new(approval_form(question)?));
    let requests = [(QUESTION.to_owned(), request)].into_iter().collect();
    Some(InputRequiredResult::new(Some(requests), Some(state)))
}

/// Returns the answer that a repeated call brings with it.
pub(crate) fn parse_answer(responses: Option<&rmcp::model::InputResponses>) -> Option<Answer> {
    let response = responses?.get(QUESTION)?;
    // An answer that cannot be parsed is not an approval.
    Some(serde_json::from_value(response.clone()).map_or_else(
        |_| rejected("the answer was not valid"),
        |result| answer(&result),
    ))
}

/// Way to ask the user about a call.
pub(crate) enum ApprovalRoute {
    /// Not at all: the client does not support forms.
    Unavailable,
    /// The call waits for the answer.
    DuringCall(Arc<ClientApprover>),
    /// The client asks, then repeats the call.
    BetweenCalls(Arc<DeferredApprover>),
}

impl ApprovalRoute {
    pub(crate) fn approver(&self) -> Option<Arc<dyn Approver>> {
        match self {
            Self::Unavailable => None,
            Self::DuringCall(person) => Some(Arc::clone(person) as Arc<dyn Approver>),
            Self::BetweenCalls(later) => Some(Arc::clone(later) as Arc<dyn Approver>),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(result: Value) -> Answer {
        let responses = [(QUESTION.to_owned(), result)].into_iter().collect();
        parse_answer(Some(&responses)).expect("an answer")
    }

    #[test]
    fn only_a_clear_approval_counts() {
        let yes = json!({ "action": "accept", "content": { "decision": "approve" } });
        assert_eq!(parse(yes), Answer::Approve);
        for no in [
            json!({ "action": "accept", "content": { "decision": "reject" } }),
            json!({ "action": "accept", "content": { "decision": true } }),
            json!({ "action": "accept" }),
            json!({ "action": "decline", "content": { "decision": "approve" } }),
            json!({ "action": "cancel", "content": { "decision": "approve" } }),
            json!({ "action": "agree", "content": { "decision": "approve" } }),
            json!("approve"),
        ] {
            assert!(matches!(parse(no.clone()), Answer::Reject { .. }), "{no}");
        }
        assert_eq!(parse_answer(None), None);
    }

    #[test]
    fn a_rejection_may_have_a_reason() {
        let content = json!({ "decision": "reject", "reason": " not in this branch\n" });
        let no = parse(json!({ "action": "accept", "content": content }));
        let reason = Some("not in this branch".to_owned());
        assert_eq!(no, Answer::Reject { reason });
        let content = json!({ "decision": "approve", "reason": "fine" });
        let yes = parse(json!({ "action": "accept", "content": content }));
        assert_eq!(yes, Answer::Approve);
        let content = json!({ "decision": "reject", "reason": 7 });
        let no = parse(json!({ "action": "accept", "content": content }));
        assert_eq!(no, Answer::Reject { reason: None });
    }

    #[test]
    fn a_client_supports_forms_if_it_declares_them_or_no_kind() {
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
