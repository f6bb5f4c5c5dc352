//! Questions to the user: permissions and forms.

use super::updates::call_update;
use crate::rpc::RpcError;
use crate::schema::{Answer, AnswerKind, FormAnswer, read, write};
use crate::update::CallUpdate;
use agent_client_protocol_schema::v1;
use serde_json::Value;

/// Creates the parameters of `session/request_permission`.
pub(super) fn ask(session: &str, call: CallUpdate, answers: Vec<Answer>) -> Value {
    let options = answers.into_iter().map(|answer| {
        let kind = match answer.kind {
            AnswerKind::AllowOnce => v1::PermissionOptionKind::AllowOnce,
            AnswerKind::AllowAlways => v1::PermissionOptionKind::AllowAlways,
            AnswerKind::RejectOnce => v1::PermissionOptionKind::RejectOnce,
        };
        v1::PermissionOption::new(answer.id, answer.name, kind)
    });
    let options = options.collect();
    write(v1::RequestPermissionRequest::new(
        session.to_owned(),
        call_update(call),
        options,
    ))
    .unwrap_or_default()
}

/// Reads the answer to `session/request_permission`: the id, or `None` if it was cancelled.
pub(super) fn answered(result: Value) -> Result<Option<String>, RpcError> {
    let response: v1::RequestPermissionResponse = read(result)?;
    Ok(match response.outcome {
        v1::RequestPermissionOutcome::Selected(chosen) => Some(chosen.option_id.0.to_string()),
        _ => None,
    })
}

/// Creates the parameters of `elicitation/create`; `None` if the client could not show the
/// form.
pub(super) fn form(session: &str, call: &str, message: &str, schema: &Value) -> Option<Value> {
    let schema: v1::ElicitationSchema = serde_json::from_value(schema.clone()).ok()?;
    let scope = v1::ElicitationSessionScope::new(session.to_owned())
        .tool_call_id(v1::ToolCallId::new(call));
    let mode = v1::ElicitationFormMode::new(scope, schema);
    write(v1::CreateElicitationRequest::new(mode, message)).ok()
}

/// Reads the answer to `elicitation/create`.
pub(super) fn form_answered(result: Value) -> FormAnswer {
    match read::<v1::CreateElicitationResponse>(result) {
        Ok(response) => match response.action {
            v1::ElicitationAction::Accept(accepted) => {
                let content = write(accepted.content.unwrap_or_default());
                content.map_or(FormAnswer::Cancelled, FormAnswer::Accepted)
            }
            v1::ElicitationAction::Decline => FormAnswer::Declined,
            _ => FormAnswer::Cancelled,
        },
        Err(_) => FormAnswer::Cancelled,
    }
}
