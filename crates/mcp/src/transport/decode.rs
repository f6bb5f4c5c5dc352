//! From one JSON value to one message, or to the error that answers it.

use crate::turn::OddArguments;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientNotification,
    ClientRequest, ErrorCode, JsonObject, RequestId, RequestMetaObject,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The longest id that is repeated to whoever sent what cannot be read.
const LONGEST_ID: usize = 1_024;

/// What a value turned out to be.
#[derive(Debug)]
pub(crate) enum Decoded {
    /// A message.
    Message(Box<ClientJsonRpcMessage>),
    /// Not one; this is said about it.
    Refused(Refusal),
    /// Something that must not be answered, such as a malformed answer.
    Nothing,
}

/// An error that is answered without the protocol loop.
#[derive(Debug)]
pub(crate) struct Refusal {
    id: Value,
    code: ErrorCode,
    message: String,
}

impl Refusal {
    /// A refusal of something whose id is not known.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            id: Value::Null,
            code,
            message: message.into(),
        }
    }

    /// With the id, if it is one.
    pub(crate) fn of(mut self, id: Option<&Value>) -> Self {
        if let Some(id @ (Value::String(_) | Value::Number(_))) = id {
            self.id = id.clone();
        }
        self
    }

    /// The error as it is written.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let error = json!({ "code": self.code.0, "message": self.message });
        json!({ "jsonrpc": "2.0", "id": self.id, "error": error })
            .to_string()
            .into_bytes()
    }
}

/// Something that is JSON but no request.
fn invalid(id: Option<&Value>, message: &str) -> Decoded {
    Decoded::Refused(Refusal::new(ErrorCode::INVALID_REQUEST, message).of(id))
}

/// A request whose parameters do not fit.
fn unfit(id: Option<&Value>, message: &str) -> Decoded {
    Decoded::Refused(Refusal::new(ErrorCode::INVALID_PARAMS, message).of(id))
}

/// The id of a message that cannot be read as a whole: what is nested too deeply or
/// has half a character in it still belongs to a call that somebody waits for.
pub(crate) fn id_of(text: &[u8]) -> Option<Value> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }
    let envelope: Envelope<'_> = serde_json::from_slice(text).ok()?;
    let id = envelope.id.get();
    let is_id = id.len() <= LONGEST_ID && !id.starts_with(['[', '{']);
    is_id.then(|| serde_json::from_str(id).ok())?
}

/// Decodes one message.
pub(crate) fn decode(value: Value) -> Decoded {
    let Value::Object(mut message) = value else {
        return invalid(None, "invalid request: a message is a JSON object");
    };
    let id = message.get("id").cloned();
    let id = id.as_ref();
    let answers = message.contains_key("result") || message.contains_key("error");
    let method = match message.remove("method") {
        None if answers => return answer(message),
        Some(Value::String(method)) if !answers => method,
        _ => return invalid(id, "invalid request: a message has one method, a string"),
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid(id, "invalid request: jsonrpc must be \"2.0\"");
    }
    let params = match message.remove("params") {
        None | Some(Value::Null) => None,
        Some(Value::Object(params)) => Some(params),
        Some(_) if id.is_none() => return Decoded::Nothing,
        Some(_) => return unfit(id, "invalid params: params must be an object"),
    };
    match id {
        None => notification(method, params),
        Some(value) => match RequestId::deserialize(value) {
            Ok(id) => request(id, method, params),
            Err(_) => invalid(id, "invalid request: an id is a string or an integer"),
        },
    }
}

fn request(id: RequestId, method: String, params: Option<JsonObject>) -> Decoded {
    let shown = id.clone().into_json_value();
    let request = if method == "tools/call" {
        match call(params.unwrap_or_default()) {
            Some(call) => ClientRequest::CallToolRequest(call),
            None => {
                return unfit(
                    Some(&shown),
                    "invalid params: tools/call needs the name of a tool, a string",
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

/// The request that matters most is taken apart by hand: rmcp would try one
/// type after the other, and know no arguments but objects.
fn call(mut params: JsonObject) -> Option<CallToolRequest> {
    let Some(Value::String(name)) = params.remove("name") else {
        return None;
    };
    let mut call = CallToolRequestParams::new(name);
    let mut odd = None;
    match params.remove("arguments") {
        None | Some(Value::Null) => {}
        Some(Value::Object(arguments)) => call.arguments = Some(arguments),
        Some(other) => odd = Some(OddArguments(other)),
    }
    // What a person said about an earlier round of it.
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
    if let Some(odd) = odd {
        request.extensions.insert(odd);
    }
    Some(request)
}

fn notification(method: String, params: Option<JsonObject>) -> Decoded {
    match ClientNotification::deserialize(body(method, params)) {
        Ok(notification) => {
            Decoded::Message(Box::new(ClientJsonRpcMessage::notification(notification)))
        }
        Err(_) => Decoded::Nothing,
    }
}

/// An answer to something that we asked.
fn answer(message: Map<String, Value>) -> Decoded {
    match ClientJsonRpcMessage::deserialize(Value::Object(message)) {
        Ok(message) => Decoded::Message(Box::new(message)),
        // To answer an answer would be the beginning of a long talk.
        Err(_) => Decoded::Nothing,
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
    fn the_id_of_a_message_that_cannot_be_read_is_known() {
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
