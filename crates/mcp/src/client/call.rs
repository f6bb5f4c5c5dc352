//! Calls one tool of a server, and handles progress and questions until the result arrives.

use super::connection::{Connection, describe_error};
use super::dispatcher::{Dispatcher, Interim, Report};
use haft::{Context, Filled};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
    ClientRequest, ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest,
    InputRequests, JsonObject, RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum number of times a server may answer a call with a question.
const MAX_QUESTIONS: usize = 10;

/// Maximum length of a question to the user in characters.
const MAX_QUESTION: usize = 4_000;

/// Result of a call.
pub(super) enum Outcome {
    /// The result in the server's JSON.
    Answered(Value),
    /// The server refused the call, or its result is invalid.
    Refused(String),
    /// The user has to sign in or grant more access; with the server's challenge.
    SignIn(String),
    /// The request could not be sent; the server may have moved.
    NotSent(String),
    /// The connection was lost.
    ConnectionLost,
    /// The server was silent for too long.
    TimedOut,
    /// The call exceeded the session's time limit.
    OverLimit,
    /// The caller cancelled the call.
    Cancelled,
}

/// A call to make.
pub(super) struct Call<'a> {
    /// Name of the server, for questions.
    pub(super) server: &'a str,
    /// The server's own name for the tool.
    pub(super) tool: &'a str,
    pub(super) arguments: JsonObject,
    /// Maximum time without a reply or progress.
    pub(super) timeout: Duration,
    pub(super) cx: &'a Context,
}

impl Call<'_> {
    /// Makes the call, and answers the server's questions.
    pub(super) async fn make(&self, connection: &Connection) -> Outcome {
        let mut params =
            CallToolRequestParams::new(self.tool.to_owned()).with_arguments(self.arguments.clone());
        for _ in 0..MAX_QUESTIONS {
            let result = match self.request(connection, params.clone()).await {
                Ok(result) => result,
                Err(outcome) => return outcome,
            };
            match result {
                ServerResult::CallToolResult(result) => {
                    return Outcome::Answered(serde_json::to_value(result).unwrap_or_default());
                }
                ServerResult::CustomResult(result) if result.0.is_object() => {
                    return Outcome::Answered(result.0);
                }
                ServerResult::InputRequiredResult(asked) => {
                    let answers = self.answers(asked.input_requests.unwrap_or_default()).await;
                    params.input_responses = (!answers.is_empty()).then_some(answers);
                    params.request_state = asked.request_state;
                }
                _ => return Outcome::Refused("answered with an invalid result".to_owned()),
            }
        }
        Outcome::Refused(format!(
            "asked {MAX_QUESTIONS} questions without returning a result"
        ))
    }

    /// Sends one request, and handles messages that arrive before its response.
    async fn request(
        &self,
        connection: &Connection,
        params: CallToolRequestParams,
    ) -> Result<ServerResult, Outcome> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = connection
            .peer
            .send_cancellable_request(request, PeerRequestOptions::no_options());
        let mut handle = match sent.await {
            Ok(handle) => handle,
            Err(error) => return Err(outcome_of(&error)),
        };
        let mut waiting =
            Dispatcher::register(&connection.dispatcher, handle.progress_token.clone());
        let mut cancel = CancelOnDrop {
            peer: connection.peer.clone(),
            id: Some(handle.id.clone()),
        };
        let mut until = Instant::now() + self.timeout;
        loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    cancel.id = None;
                    return match answer {
                        Ok(Ok(result)) => Ok(result),
                        Ok(Err(error)) => Err(outcome_of(&error)),
                        Err(_) => Err(Outcome::ConnectionLost),
                    };
                }
                () = self.cx.cancel().cancelled() => return Err(Outcome::Cancelled),
                Some(message) = waiting.messages.recv() => {
                    self.handle_interim(message).await;
                    // Progress restarts the time limit, and the user's time to answer does
                    // not count.
                    until = Instant::now() + self.timeout;
                }
                () = tokio::time::sleep_until(until) => return Err(Outcome::TimedOut),
            }
        }
    }

    async fn handle_interim(&self, message: Interim) {
        match message {
            Interim::Progress(Report { text, share }) => match (share, text) {
                (Some(share), text) => self.cx.progress(share, text.unwrap_or_default()),
                (None, Some(text)) => self.cx.update(text),
                (None, None) => {}
            },
            Interim::Question(question, answer) => {
                let _ = answer.send(self.ask(&question).await);
            }
        }
    }

    /// Asks the user: for approval if that is all the server needs, otherwise with a form.
    async fn ask(&self, question: &ElicitRequestParams) -> ElicitResult {
        let declined = ElicitResult::new(ElicitationAction::Decline);
        let ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } = question
        else {
            return declined;
        };
        let schema = serde_json::to_value(requested_schema).unwrap_or_default();
        let asked = haft::ops::text::decode::visible(message);
        let asked: String = asked.chars().take(MAX_QUESTION).collect();
        let Some(content) = implied_content(&schema) else {
            let question = format!("MCP server {} asks: {asked}", self.server);
            return match self.cx.fill(question, schema).await {
                Filled::Accepted(content) => {
                    ElicitResult::new(ElicitationAction::Accept).with_content(content)
                }
                Filled::Dismissed => ElicitResult::new(ElicitationAction::Cancel),
                _ => declined,
            };
        };
        let sends = match &content {
            Value::Object(fields) if fields.is_empty() => String::new(),
            fields => {
                let fields = haft::ops::text::decode::visible(&fields.to_string());
                format!("\n(approving sends {fields})")
            }
        };
        let question = format!("MCP server {} asks: {asked}{sends}", self.server);
        match self.cx.confirm(question).await {
            Ok(true) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
            // An approver that answers later cannot answer a call in progress.
            Ok(false) | Err(_) => declined,
        }
    }

    /// Answers the questions that a server returned instead of a result.
    async fn answers(&self, asked: InputRequests) -> BTreeMap<String, Value> {
        let mut answers = BTreeMap::new();
        for (key, request) in asked {
            let answer = match request {
                InputRequest::Elicitation(question) => self.ask(&question.params).await,
                _ => ElicitResult::new(ElicitationAction::Decline),
            };
            answers.insert(key, serde_json::to_value(answer).unwrap_or_default());
        }
        answers
    }
}

/// Returns the form content that an approval implies: defaults, and `true` for booleans.
/// `None` if the user would have to enter something.
fn implied_content(schema: &Value) -> Option<Value> {
    let mut fields = Map::new();
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let required = schema["required"].as_array();
    for (name, field) in properties {
        let is_required = required.is_some_and(|all| all.iter().any(|one| one == name));
        match (field.get("default"), field["type"].as_str()) {
            (Some(default), _) => {
                fields.insert(name.clone(), default.clone());
            }
            (None, Some("boolean")) => {
                fields.insert(name.clone(), json!(true));
            }
            (None, _) if is_required => return None,
            (None, _) => {}
        }
    }
    Some(Value::Object(fields))
}

fn outcome_of(error: &ServiceError) -> Outcome {
    match error {
        ServiceError::TransportClosed => Outcome::ConnectionLost,
        ServiceError::TransportSend(sent) => match super::http::challenge(sent.error.as_ref()) {
            Some(challenge) => Outcome::SignIn(challenge),
            None => Outcome::NotSent(describe_error(error)),
        },
        error => Outcome::Refused(describe_error(error)),
    }
}

/// Tells the server that a request is cancelled when dropped before its response.
struct CancelOnDrop {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let params = CancelledNotificationParam::new(Some(id), None);
            let notification = CancelledNotification::new(params);
            let _ = peer.send_notification(notification.into()).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_fills_in_defaults_and_booleans() {
        let schema = json!({
            "type": "object",
            "properties": { "sure": { "type": "boolean" }, "size": { "type": "string", "default": "small" }, "note": { "type": "string" } },
            "required": ["sure"],
        });
        assert_eq!(
            implied_content(&schema),
            Some(json!({ "sure": true, "size": "small" }))
        );
        let written =
            json!({ "properties": { "name": { "type": "string" } }, "required": ["name"] });
        assert_eq!(implied_content(&written), None);
        assert_eq!(implied_content(&json!({})), Some(json!({})));
    }
}
