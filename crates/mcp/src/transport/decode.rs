//! Decodes one JSON value to a message, or to the error that answers it.

use crate::call_order::NonObjectArguments;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientNotification,
    ClientRequest, ErrorCode, JsonObject, RequestId, RequestMetaObject,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Longest id that is repeated in the answer to an unreadable message.
const MAX_ID: usize = 1_024;

/// Result of decoding a value.
#[derive(Debug)]
pub(crate) enum Decoded {
    /// A valid message.
    Message(Box<ClientJsonRpcMessage>),
    /// An invalid message; answered with this error.
    Invalid(ErrorReply),
    /// Must not be answered, such as a malformed response.
    Ignored,
}

/// An error reply that does not involve the protocol loop.
#[derive(Debug)]
pub(crate) struct ErrorReply {
    id: Value,
    code: ErrorCode,
    message: String,
}

impl ErrorReply {
    /// Creates an error reply to a message without a known id.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            id: Value::Null,
            code,
            message: message.into(),
        }
    }

    /// Sets the id, if it is a string or a number.
    pub(crate) fn with_id(mut self, id: Option<&Value>) -> Self {
        if let Some(id @ (Value::String(_) | Value::Number(_))) = id {
            self.id = id.clone();
        }
        self
    }

    /// Serializes the reply.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let error = json!({ "code": self.code.0, "message": self.message });
        json!({ "jsonrpc": "2.0", "id": self.id, "error": error })
            .to_string()
            .into_bytes()
    }
}

/// Rejects JSON that is not a valid request.
fn invalid(id: Option<&Value>, message: &str) -> Decoded {
    Decoded::Invalid(ErrorReply::new(ErrorCode::INVALID_REQUEST, message).with_id(id))
}

/// Rejects a request with invalid parameters.
fn invalid_params(id: Option<&Value>, message: &str) -> Decoded {
    Decoded::Invalid(ErrorReply::new(ErrorCode::INVALID_PARAMS, message).with_id(id))
}

/// Extracts the id of a message that cannot be parsed as a whole. A message that is nested
/// too deeply or contains half a surrogate pair still belongs to a request that waits for
/// an answer.
pub(crate) fn id_of(text: &[u8]) -> Option<Value> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }
    let envelope: Envelope<'_> = serde_json::from_slice(text).ok()?;
    let id = envelope.id.get();
    let is_id = id.len() <= MAX_ID && !id.starts_with(['[', '{']);
    is_id.then(|| serde_json::from_str(id).ok())?
}

/// Decodes one message.
pub(crate) fn decode(value: Value) -> Decoded {
    let Value::Object(mut message) = value else {
        return invalid(None, "invalid request: a message must be a JSON object");
    };
    let id = message.get("id").cloned();
    let id = id.as_ref();
    let is_response = message.contains_key("result") || message.contains_key("error");
    let method = match message.remove("method") {
        None if is_response => return response(message),
        Some(Value::String(method)) if !is_response => method,
        _ => {
            return invalid(
                id,
                "invalid request: a message must have one method, a string",
            );
        }
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid(id, "invalid request: jsonrpc must be \"2.0\"");
    }
    let params = match message.remove("params") {
        None | Some(Value::Null) => None,
        Some(Value::Object(params)) => Some(params),
        Some(_) if id.is_none() => return Decoded::Ignored,
        Some(_) => return invalid_params(id, "invalid params: params must be an object"),
    };
    match id {
        None => notification(method, params),
        Some(value) => match RequestId::deserialize(value) {
            Ok(id) => request(id, method, params),
            Err(_) => invalid(id, "invalid request: the id must be a string or an integer"),
        },
    }
}

fn request(id: RequestId, method: String, params: Option<JsonObject>) -> Decoded {
    let shown = id.clone().into_json_value();
    let request = if method == "tools/call" {
        match call(params.unwrap_or_default()) {
            Some(call) => ClientRequest::CallToolRequest(call),
            None => {
                return invalid_params(
                    Some(&shown),
                    "invalid params: tools/call needs a tool name, a string",
                );
            }
        }
    } else {
        match ClientRequest::deserialize(body(method, params)) {
            Ok(request) => request,
            Err(_) => return invalid(Some(&shown), "invalid request"),
        }
    };
    Decoded::Message(Box::new(ClientJsonRpcMessage::request(request, id)))
}

/// Decodes the most frequent request by hand: rmcp would try one type after the other, and
/// accepts only objects as arguments.
fn call(mut params: JsonObject) -> Option<CallToolRequest> {
    let Some(Value::String(name)) = params.remove("name") else {
        return None;
    };
    let mut call = CallToolRequestParams::new(name);
    let mut non_object = None;
    match params.remove("arguments") {
        None | Some(Value::Null) => {}
        Some(Value::Object(arguments)) => call.arguments = Some(arguments),
        Some(other) => non_object = Some(NonObjectArguments(other)),
    }
    // The user's answers to an earlier attempt of this call.
    if let Some(Value::String(state)) = params.remove("requestState") {
        call.request_state = Some(state);
    }
    if let Some(Value::Object(responses)) = params.remove("inputResponses") {
        call.input_responses = Some(responses.into_iter().collect());
    }
    let mut request = CallToolRequest::new(call);
    if let Some(Value::Object(meta)) = params.remove("_meta") {
        request.extensions.insert(RequestMetaObject::from(meta));
    }
    if let Some(non_object) = non_object {
        request.extensions.insert(non_object);
    }
    Some(request)
}

fn notification(method: String, params: Option<JsonObject>) -> Decoded {
    match ClientNotification::deserialize(body(method, params)) {
        Ok(notification) => {
            Decoded::Message(Box::new(ClientJsonRpcMessage::notification(notification)))
        }
        Err(_) => Decoded::Ignored,
    }
}

/// Decodes a response to one of our requests.
fn response(message: Map<String, Value>) -> Decoded {
    match ClientJsonRpcMessage::deserialize(Value::Object(message)) {
        Ok(message) => Decoded::Message(Box::new(message)),
        // Answering a response could start an endless exchange.
        Err(_) => Decoded::Ignored,
    }
}

fn body(method: String, params: Option<JsonObject>) -> Value {
    let mut body = Map::new();
    body.insert("method".to_owned(), Value::String(method));
    if let Some(params) = params {
        body.insert("params".to_owned(), Value::Object(params));
    }
    Value::Object(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_unreadable_message_is_found() {
        let deep = format!(
            "{{\"id\":7,\"params\":{}{}}}",
            "[".repeat(500),
            "]".repeat(500)
        );
        assert_eq!(id_of(deep.as_bytes()), Some(json!(7)));
        let half = br#"{"params":{"a":"\ud800"},"id":"x"}"#;
        assert!(serde_json::from_slice::<Value>(half).is_err());
        assert_eq!(id_of(half), Some(json!("x")));
        assert_eq!(id_of(b"{\"id\":7"), None);
        let long = format!("{{\"id\":\"{}\"}}", "x".repeat(1 << 20));
        assert_eq!(id_of(long.as_bytes()), None);
        assert_eq!(id_of(b"{\"id\":[[1]]}"), None);
    }
}
