//! Questions to the user: permissions and forms.

use super::updates::call;
use crate::rpc::RpcError;
use crate::schema::{Answer, AnswerKind, FormAnswer, read, write};
use crate::update::CallUpdate;
use agent_client_protocol_schema::v2;
use serde_json::Value;

/// Creates the parameters of `session/request_permission`.
pub(super) fn ask(
    session: &str,
    question: &str,
    update: CallUpdate,
    answers: Vec<Answer>,
) -> Value {
    let options = answers.into_iter().map(|answer| {
        let kind = match answer.kind {
            AnswerKind::AllowOnce => v2::PermissionOptionKind::AllowOnce,
            AnswerKind::AllowAlways => v2::PermissionOptionKind::AllowAlways,
            AnswerKind::RejectOnce => v2::PermissionOptionKind::RejectOnce,
        };
        v2::PermissionOption::new(answer.id, answer.name, kind)
    });
    let request =
        v2::RequestPermissionRequest::new(session.to_owned(), question, options.collect());
    write(request.subject(v2::RequestPermissionSubject::from(call(update)))).unwrap_or_default()
}

/// Reads the answer to `session/request_permission`: the id, or `None` if it was cancelled.
pub(super) fn answered(result: Value) -> Result<Option<String>, RpcError> {
    let response: v2::RequestPermissionResponse = read(result)?;
    Ok(match response.outcome {
        v2::RequestPermissionOutcome::Selected(chosen) => Some(chosen.option_id.0.to_string()),
        _ => None,
    })
}

/// Creates the parameters of `elicitation/create`; `None` if the client could not show the
/// form.
pub(super) fn form(session: &str, call: &str, message: &str, schema: &Value) -> Option<Value> {
    let schema: v2::ElicitationSchema = serde_json::from_value(schema.clone()).ok()?;
    let scope = v2::ElicitationSessionScope::new(session.to_owned())
        .tool_call_id(v2::ToolCallId::new(call));
    let mode = v2::ElicitationFormMode::new(scope, schema);
    write(v2::CreateElicitationRequest::new(mode, message)).ok()
}

/// Reads the answer to `elicitation/create`.
pub(super) fn form_answered(result: Value) -> FormAnswer {
    match read::<v2::CreateElicitationResponse>(result) {
        Ok(response) => match response.action {
            v2::ElicitationAction::Accept(accepted) => {
                let content = write(accepted.content.unwrap_or_default());
                content.map_or(FormAnswer::Cancelled, FormAnswer::Accepted)
            }
            v2::ElicitationAction::Decline => FormAnswer::Declined,
            _ => FormAnswer::Cancelled,
        },
        Err(_) => FormAnswer::Cancelled,
    }
}
