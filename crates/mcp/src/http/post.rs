//! Handles a posted message: for an existing session, for a new one, or for none, depending
//! on the protocol version.

use super::Shared;
use super::body::{self, Bounds, Read, Room};
use super::events::Reader;
use super::reply::{self, Payload, bad_request, json, plain_text, retry_later, status_only};
use super::session::{Incoming, Session};
use super::standard_headers;
use crate::transport::decode::{Decoded, ErrorReply, decode, id_of};
use crate::transport::parse::{Parsed, parse};
use crate::transport::{BOM, batch};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body::Body;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, GetMeta, JsonRpcMessage, ProtocolVersion,
};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time to wait for a complete reply. A reply that takes longer becomes a stream
/// that the client can resume.
const COMPLETE_WITHIN: Duration = Duration::from_millis(100);

/// The header with the session id.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The header with the protocol version.
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

type HttpResponse = Response<Payload>;

/// Handles one POST request.
pub(super) async fn post<B: Body>(shared: &Arc<Shared>, parts: Parts, body: B) -> HttpResponse {
    let headers = &parts.headers;
    let accepts = |kind: &str| {
        let mut accepted = headers.get_all(ACCEPT).iter();
        accepted.any(|value| {
            let value = value.to_str().unwrap_or_default();
            value.contains(kind) || value.contains("*/*")
        })
    };
    if !(accepts("application/json") && accepts("text/event-stream")) {
        return plain_text(
            StatusCode::NOT_ACCEPTABLE,
            "not acceptable: Accept must list application/json and text/event-stream",
        );
    }
    if !is_json(headers) {
        return plain_text(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported media type: Content-Type must be application/json",
        );
    }
    let bounds = Bounds {
        max_bytes: shared.limits.body,
        timeout: shared.limits.transfer,
        room: &shared.bodies,
    };
    let Read { bytes, room } = match body::read(body, bounds).await {
        Ok(read) => read,
        Err(refusal) => return refusal,
    };
    let text = bytes.strip_prefix(BOM).unwrap_or(&bytes).trim_ascii();
    match parse(text) {
        Ok(Parsed {
            value: Value::Array(messages),
            cost,
        }) => post_batch(shared, headers, messages, cost, room).await,
        Ok(Parsed { value, cost }) => post_message(shared, headers, value, cost, room).await,
        Err(error) => bad_request(&error.reply().with_id(id_of(text).as_ref())),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let essence = kind.and_then(|kind| kind.split(';').next());
    essence.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    Some(headers.get(name)?.to_str().unwrap_or_default().to_owned())
}

/// Handles a batch, which only one protocol version has.
async fn post_batch(
    shared: &Arc<Shared>,
    headers: &HeaderMap,
    messages: Vec<Value>,
    bytes: usize,
    room: Room,
) -> HttpResponse {
    let invalid =
        |message: String| bad_request(&ErrorReply::new(ErrorCode::INVALID_REQUEST, message));
    let session = match in_session(shared, headers) {
        Ok(session) => session,
        Err(answer) => return *answer,
    };
    if !session.has_batches() {
        return invalid("invalid request: only protocol version 2025-03-26 has batches".to_owned());
    }
    if messages.is_empty() || messages.len() > batch::MAX_MESSAGES {
        return invalid(format!(
            "invalid request: a batch has 1 to {} messages",
            batch::MAX_MESSAGES
        ));
    }
    let bytes = bytes / messages.len();
    let (mut accepted, mut refusals) = (Vec::new(), Vec::new());
    for message in messages {
        match decode(message) {
            Decoded::Message(message) => accepted.push(Incoming {
                message: *message,
                bytes,
            }),
            Decoded::Invalid(refusal) => refusals.push(refusal),
            Decoded::Ignored => {}
        }
    }
    let is_request = |incoming: &Incoming| matches!(incoming.message, JsonRpcMessage::Request(_));
    if refusals.is_empty() && !accepted.iter().any(is_request) {
        session.accept_notifications(accepted);
        return status_only(StatusCode::ACCEPTED);
    }
    if !session.streams().have_room() {
        return too_much_unread();
    }
    let reader = session
        .accept_requests(accepted, &room, true, refusals)
        .await;
    respond(shared, reader, always_ok).await
}

/// Handles a single message.
async fn post_message(
    shared: &Arc<Shared>,
    headers: &HeaderMap,
    message: Value,
    bytes: usize,
    room: Room,
) -> HttpResponse {
    let version = text(headers, &VERSION);
    let is_standard = version
        .as_deref()
        .is_some_and(|version| version >= ProtocolVersion::STANDARD_HEADERS.as_str());
    let mismatch = if is_standard {
        standard_headers::check(headers, &message, |name| shared.tool(name)).err()
    } else {
        None
    };
    let id = message.get("id").cloned();
    let message = match decode(message) {
        Decoded::Message(message) => *message,
        Decoded::Invalid(refusal) => return bad_request(&refusal),
        Decoded::Ignored => return status_only(StatusCode::ACCEPTED),
    };
    let is_initialize = matches!(&message, JsonRpcMessage::Request(request)
        if matches!(request.request, ClientRequest::InitializeRequest(_)));
    let is_newer = match lifecycle(&message, version.as_deref(), is_initialize) {
        Ok(is_newer) => is_newer,
        Err(refusal) => return bad_request(&refusal.with_id(id.as_ref())),
    };
    // `initialize` may omit the headers, but must not contradict them.
    let mismatch = mismatch.filter(|_| !is_initialize || headers.contains_key("mcp-method"));
    if let Some(why) = mismatch {
        return bad_request(&ErrorReply::new(ErrorCode::HEADER_MISMATCH, why).with_id(id.as_ref()));
    }
    let incoming = Incoming { message, bytes };
    if is_newer {
        return post_sessionless(shared, incoming, &room).await;
    }
    if is_initialize && !headers.contains_key(SESSION) {
        return start_session(shared, incoming, &room).await;
    }
    let session = match in_session(shared, headers) {
        Ok(session) => session,
        Err(answer) => return *answer,
    };
    if !matches!(incoming.message, JsonRpcMessage::Request(_)) {
        session.accept_notifications(vec![incoming]);
        return status_only(StatusCode::ACCEPTED);
    }
    if !session.streams().have_room() {
        return too_much_unread();
    }
    let reader = session
        .accept_requests(vec![incoming], &room, false, Vec::new())
        .await;
    respond(shared, reader, always_ok).await
}

/// Whether a message belongs to a protocol version without a handshake. The version in the
/// message counts, and the header must match it.
fn lifecycle(
    message: &ClientJsonRpcMessage,
    header: Option<&str>,
    is_initialize: bool,
) -> Result<bool, ErrorReply> {
    let newest = ProtocolVersion::V_2026_07_28;
    let is_newer = |version: &str| version >= newest.as_str();
    let mismatch = |why: String| Err(ErrorReply::new(ErrorCode::HEADER_MISMATCH, why));
    if let JsonRpcMessage::Request(request) = message {
        let meta = request.request.get_meta();
        if let ClientRequest::InitializeRequest(initialize) = &request.request {
            let requested = initialize.params.protocol_version.as_str();
            return match header {
                Some(header) if header != requested => Err(ErrorReply::new(
                    ErrorCode::INVALID_REQUEST,
                    "invalid request: the header MCP-Protocol-Version differs from the requested version",
                )),
                _ => Ok(false),
            };
        }
        let is_discovery = matches!(request.request, ClientRequest::DiscoverRequest(_));
        match (meta.protocol_version(), header) {
            (Some(version), Some(header)) if version.as_str() == header => {
                return Ok(is_newer(header));
            }
            (Some(_), Some(_)) => {
                return mismatch(
                    "the header MCP-Protocol-Version differs from the version in _meta".to_owned(),
                );
            }
            (Some(_), None) => {
                return mismatch("the header MCP-Protocol-Version is missing".to_owned());
            }
            (None, header) if is_discovery || header.is_some_and(is_newer) => {
                let missing = meta.missing_required_keys(&newest);
                return Err(ErrorReply::new(
                    ErrorCode::INVALID_PARAMS,
                    format!("invalid params: missing in _meta: {}", missing.join(", ")),
                ));
            }
            (None, _) => {}
        }
    }
    let is_known = |version: &str| {
        let mut known = ProtocolVersion::KNOWN_VERSIONS.iter();
        known.any(|known| known.as_str() == version)
    };
    match header {
        Some(header) if is_newer(header) => Ok(true),
        Some(header) if !is_known(header) && !is_initialize => Err(ErrorReply::new(
            ErrorCode::INVALID_REQUEST,
            "invalid request: unknown version in the header MCP-Protocol-Version",
        )),
        _ => Ok(false),
    }
}

/// Returns the session that a request names.
pub(super) fn in_session(
    shared: &Shared,
    headers: &HeaderMap,
) -> Result<Arc<Session>, Box<HttpResponse>> {
    let Some(id) = text(headers, &SESSION) else {
        return Err(Box::new(bad_request(&ErrorReply::new(
            ErrorCode::INVALID_REQUEST,
            "invalid request: send initialize first, then the Mcp-Session-Id it returns with each request",
        ))));
    };
    shared.sessions.get(&id).ok_or_else(|| {
        Box::new(plain_text(
            StatusCode::NOT_FOUND,
            "session not found: it may have ended; send initialize again",
        ))
    })
}

/// Starts a new session.
async fn start_session(shared: &Arc<Shared>, incoming: Incoming, room: &Room) -> HttpResponse {
    if !shared.sessions.have_room() {
        return retry_later(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many sessions: end one or retry later",
        );
    }
    let session = match shared.session() {
        Ok(session) => session,
        Err(why) => return failed(&why),
    };
    shared.sessions.add(Arc::clone(&session));
    let reader = session
        .accept_requests(vec![incoming], room, false, Vec::new())
        .await;
    let mut answer = respond(shared, reader, always_ok).await;
    if let Ok(id) = HeaderValue::from_str(&session.id) {
        answer.headers_mut().insert(SESSION, id);
    }
    answer
}

/// Handles a message without a session.
async fn post_sessionless(shared: &Arc<Shared>, incoming: Incoming, room: &Room) -> HttpResponse {
    let request = match &incoming.message {
        JsonRpcMessage::Request(request) => request,
        JsonRpcMessage::Notification(_) => return status_only(StatusCode::ACCEPTED),
        _ => {
            let refusal = ErrorReply::new(
                ErrorCode::INVALID_REQUEST,
                "invalid request: this response matches no request",
            );
            return bad_request(&refusal);
        }
    };
    let meta = request.request.get_meta();
    let is_malformed = !meta
        .missing_required_keys(&ProtocolVersion::V_2026_07_28)
        .is_empty();
    let session = match shared.session_of_one() {
        Ok(session) => session,
        Err(why) => return failed(&why),
    };
    let reader = session
        .accept_requests(vec![incoming], room, false, Vec::new())
        .await;
    respond(shared, reader, |code| match code {
        ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
        | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
        | ErrorCode::HEADER_MISMATCH => StatusCode::BAD_REQUEST,
        ErrorCode::INVALID_PARAMS if is_malformed => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    })
    .await
}

/// Returns the reply: complete if it is ready soon, otherwise as a stream.
async fn respond(
    shared: &Shared,
    reader: Reader,
    status: impl FnOnce(ErrorCode) -> StatusCode,
) -> HttpResponse {
    let is_soon = tokio::time::timeout(COMPLETE_WITHIN, reader.ready())
        .await
        .is_ok();
    let complete = is_soon
        .then(|| reader.session().streams().take_complete(reader.number()))
        .flatten();
    match complete {
        Some(complete) => json(complete.error.map_or(StatusCode::OK, status), complete.json),
        None => reply::stream(reader.events(shared.limits.ping)),
    }
}

/// Status of errors in protocol versions with a handshake: always 200, because the body has
/// the error.
fn always_ok(_: ErrorCode) -> StatusCode {
    StatusCode::OK
}

fn too_much_unread() -> HttpResponse {
    retry_later(
        StatusCode::SERVICE_UNAVAILABLE,
        "too many unread replies: read them first",
    )
}

fn failed(why: &str) -> HttpResponse {
    tracing::error!("cannot create a session: {why}");
    plain_text(
        StatusCode::INTERNAL_SERVER_ERROR,
        "cannot create a session; see the server's log",
    )
}
