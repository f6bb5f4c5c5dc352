//! One call of a tool of a server: from its arguments to its answer, with what comes
//! in between.

use super::connect::{Connection, said_of};
use super::desk::{Desk, Meanwhile};
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

/// How many times a server may answer with a question.
const ROUNDS: usize = 10;

/// How long a question to the person may be, in characters.
const QUESTION: usize = 4_000;

/// What came of a call.
pub(super) enum Outcome {
    /// A result, as the server wrote it.
    Answered(Value),
    /// The server says that there can be none.
    Refused(String),
    /// The person has to sign in, or to allow more. What the server said about that.
    SignIn(String),
    /// It could not be sent: the server is not where it was.
    Unreached(String),
    /// The connection broke.
    Broke,
    /// It took too long without a sign of life.
    TimedOut,
    /// All of it took longer than the session allows.
    OverLimit,
    /// Nobody waits for it any more.
    Cancelled,
}

/// A call to make.
pub(super) struct Call<'a> {
    /// The server, for questions.
    pub(super) server: &'a str,
    /// Its own name for the tool.
    pub(super) tool: &'a str,
    pub(super) arguments: JsonObject,
    /// How long it may go without a sign of life.
    pub(super) patience: Duration,
    pub(super) cx: &'a Context,
}

impl Call<'_> {
    /// Makes it.
    pub(super) async fn make(&self, connection: &Connection) -> Outcome {
        let mut params =
            CallToolRequestParams::new(self.tool.to_owned()).with_arguments(self.arguments.clone());
        for _ in 0..ROUNDS {
            let result = match self.once(connection, params.clone()).await {
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
                _ => return Outcome::Refused("answered with what is no result".to_owned()),
            }
        }
        Outcome::Refused(format!("asked {ROUNDS} times before it would answer"))
    }

    /// One request, and what comes before its answer.
    async fn once(
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
            Err(error) => return Err(failed(&error)),
        };
        let mut waiting = Desk::expect(&connection.desk, handle.progress_token.clone());
        let mut flight = Flight {
            peer: connection.peer.clone(),
            id: Some(handle.id.clone()),
        };
        let mut until = Instant::now() + self.patience;
        loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    flight.id = None;
                    return match answer {
                        Ok(Ok(result)) => Ok(result),
                        Ok(Err(error)) => Err(failed(&error)),
                        Err(_) => Err(Outcome::Broke),
                    };
                }
                () = self.cx.cancel().cancelled() => return Err(Outcome::Cancelled),
                Some(what) = waiting.meanwhile.recv() => {
                    self.meanwhile(what).await;
                    // It lives: its time begins anew. What a person takes is not its.
                    until = Instant::now() + self.patience;
                }
                () = tokio::time::sleep_until(until) => return Err(Outcome::TimedOut),
            }
        }
    }

    async fn meanwhile(&self, what: Meanwhile) {
        match what {
            Meanwhile::Progress(words) => {
                if let Some(words) = words {
                    self.cx.update(words);
                }
            }
            Meanwhile::Asked(question, answer) => {
                let _ = answer.send(self.ask(&question).await);
            }
        }
    }

    /// What the person answers: a yes or no where that is all that is wanted of them,
    /// and a form where it is more.
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
        let asked: String = asked.chars().take(QUESTION).collect();
        let Some(content) = implied(&schema) else {
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
                format!("\n(yes sends it {fields})")
            }
        };
        let question = format!("MCP server {} asks: {asked}{sends}", self.server);
        match self.cx.confirm(question).await {
            Ok(true) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
            // Who can only say later cannot say it to a call that is under way.
            Ok(false) | Err(_) => declined,
        }
    }

    /// The answers to what a server wants to know before it goes on.
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

/// What a yes says, in the fields that are asked for: what they are by default, and yes
/// where that is the question. Nothing where somebody would have to write.
fn implied(schema: &Value) -> Option<Value> {
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

fn failed(error: &ServiceError) -> Outcome {
    match error {
        ServiceError::TransportClosed => Outcome::Broke,
        ServiceError::TransportSend(sent) => match super::http::challenge(sent.error.as_ref()) {
            Some(challenge) => Outcome::SignIn(challenge),
            None => Outcome::Unreached(said_of(error)),
        },
        error => Outcome::Refused(said_of(error)),
    }
}

/// A request that is not answered. If nobody waits for it any more, the server is told.
struct Flight {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Flight {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let params = CancelledNotificationParam::new(Some(id), None);
            let news = CancelledNotification::new(params);
            let _ = peer.send_notification(news.into()).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yes_says_what_a_yes_can_say() {
        let schema = json!({
            "type": "object",
            "properties": { "sure": { "type": "boolean" }, "size": { "type": "string", "default": "small" }, "note": { "type": "string" } },
            "required": ["sure"],
        });
        assert_eq!(
            implied(&schema),
            Some(json!({ "sure": true, "size": "small" }))
        );
        let written =
            json!({ "properties": { "name": { "type": "string" } }, "required": ["name"] });
        assert_eq!(implied(&written), None);
        assert_eq!(implied(&json!({})), Some(json!({})));
    }
}
