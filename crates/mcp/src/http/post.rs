//! A message that a client posts: for its session, for a new one, or for none, as its
//! version has it.

use super::Shared;
use super::body::{self, Bounds, Read, Room};
use super::events::Reader;
use super::reply::{self, Payload, bare, json, later, refused, said};
use super::session::{Incoming, Session};
use super::standard;
use crate::transport::decode::{Decoded, Refusal, decode, id_of};
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

/// How long an answer may take to be sent whole. What takes longer becomes a stream that
/// can be taken up again.
const AT_ONCE: Duration = Duration::from_millis(100);

/// The header that names a session.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The header that names a version of the protocol.
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

type Answer = Response<Payload>;

/// Takes a message.
pub(super) async fn post<B: Body>(shared: &Arc<Shared>, parts: Parts, body: B) -> Answer {
    let headers = &parts.headers;
    let accepts = |kind: &str| {
        let mut accepted = headers.get_all(ACCEPT).iter();
        accepted.any(|value| {
            let value = value.to_str().unwrap_or_default();
            value.contains(kind) || value.contains("*/*")
        })
    };
    if !(accepts("application/json") && accepts("text/event-stream")) {
        return said(
            StatusCode::NOT_ACCEPTABLE,
            "not acceptable: a client accepts application/json and text/event-stream",
        );
    }
    if !is_json(headers) {
        return said(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported media type: messages are application/json",
        );
    }
    let bounds = Bounds {
        longest: shared.limits.body,
        time: shared.limits.transfer,
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
        }) => many(shared, headers, messages, cost, room).await,
        Ok(Parsed { value, cost }) => one(shared, headers, value, cost, room).await,
        Err(unread) => refused(&unread.refusal().of(id_of(text).as_ref())),
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

/// Several messages, which only one version has.
async fn many(
    shared: &Arc<Shared>,
    headers: &HeaderMap,
    messages: Vec<Value>,
    bytes: usize,
    room: Room,
) -> Answer {
    let wrong = |message: String| refused(&Refusal::new(ErrorCode::INVALID_REQUEST, message));
    let session = match in_session(shared, headers) {
        Ok(session) => session,
        Err(answer) => return *answer,
    };
    if !session.has_batches() {
        return wrong("invalid request: only protocol version 2025-03-26 has batches".to_owned());
    }
    if messages.is_empty() || messages.len() > batch::MOST {
        return wrong(format!(
            "invalid request: a batch has 1 to {} messages",
            batch::MOST
        ));
    }
    let bytes = bytes / messages.len();
    let (mut taken, mut refusals) = (Vec::new(), Vec::new());
    for message in messages {
        match decode(message) {
            Decoded::Message(message) => taken.push(Incoming {
                message: *message,
                bytes,
            }),
            Decoded::Refused(refusal) => refusals.push(refusal),
            Decoded::Nothing => {}
        }
    }
    let is_asked = |incoming: &Incoming| matches!(incoming.message, JsonRpcMessage::Request(_));
    if refusals.is_empty() && !taken.iter().any(is_asked) {
        session.told(taken);
        return bare(StatusCode::ACCEPTED);
    }
    if !session.streams().have_room() {
        return unread();
    }
    let reader = session.asked(taken, &room, true, refusals).await;
    answered(shared, reader, in_band).await
}

/// One message.
async fn one(
    shared: &Arc<Shared>,
    headers: &HeaderMap,
    message: Value,
    bytes: usize,
    room: Room,
) -> Answer {
    let version = text(headers, &VERSION);
    let is_standard = version
        .as_deref()
        .is_some_and(|version| version >= ProtocolVersion::STANDARD_HEADERS.as_str());
    let contradicted = if is_standard {
        standard::check(headers, &message, |name| shared.tool(name)).err()
    } else {
        None
    };
    let id = message.get("id").cloned();
    let message = match decode(message) {
        Decoded::Message(message) => *message,
        Decoded::Refused(refusal) => return refused(&refusal),
        Decoded::Nothing => return bare(StatusCode::ACCEPTED),
    };
    let is_opening = matches!(&message, JsonRpcMessage::Request(request)
        if matches!(request.request, ClientRequest::InitializeRequest(_)));
    let is_newer = match lifecycle(&message, version.as_deref(), is_opening) {
        Ok(is_newer) => is_newer,
        Err(refusal) => return refused(&refusal.of(id.as_ref())),
    };
    // A handshake may leave them out, but not lie.
    let contradicted = contradicted.filter(|_| !is_opening || headers.contains_key("mcp-method"));
    if let Some(why) = contradicted {
        return refused(&Refusal::new(ErrorCode::HEADER_MISMATCH, why).of(id.as_ref()));
    }
    let incoming = Incoming { message, bytes };
    if is_newer {
        return alone(shared, incoming, &room).await;
    }
    if is_opening && !headers.contains_key(SESSION) {
        return opened(shared, incoming, &room).await;
    }
    let session = match in_session(shared, headers) {
        Ok(session) => session,
        Err(answer) => return *answer,
    };
    if !matches!(incoming.message, JsonRpcMessage::Request(_)) {
        session.told(vec![incoming]);
        return bare(StatusCode::ACCEPTED);
    }
    if !session.streams().have_room() {
        return unread();
    }
    let reader = session
        .asked(vec![incoming], &room, false, Vec::new())
        .await;
    answered(shared, reader, in_band).await
}

/// Whether a message is of the versions without a handshake. What it says itself counts;
/// its header has to say the same.
fn lifecycle(
    message: &ClientJsonRpcMessage,
    header: Option<&str>,
    is_opening: bool,
) -> Result<bool, Refusal> {
    let newest = ProtocolVersion::V_2026_07_28;
    let is_newer = |version: &str| version >= newest.as_str();
    let mismatch = |why: String| Err(Refusal::new(ErrorCode::HEADER_MISMATCH, why));
    if let JsonRpcMessage::Request(request) = message {
        let meta = request.request.get_meta();
        if let ClientRequest::InitializeRequest(opening) = &request.request {
            let asked = opening.params.protocol_version.as_str();
            return match header {
                Some(header) if header != asked => Err(Refusal::new(
                    ErrorCode::INVALID_REQUEST,
                    "invalid request: the header MCP-Protocol-Version is not the version that is asked for",
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
                    "the header MCP-Protocol-Version is not the version in _meta".to_owned(),
                );
            }
            (Some(_), None) => {
                return mismatch("the header MCP-Protocol-Version is missing".to_owned());
            }
            (None, header) if is_discovery || header.is_some_and(is_newer) => {
                let missing = meta.missing_required_keys(&newest);
                return Err(Refusal::new(
                    ErrorCode::INVALID_PARAMS,
                    format!("invalid params: _meta has to say {}", missing.join(", ")),
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
        Some(header) if !is_known(header) && !is_opening => Err(Refusal::new(
            ErrorCode::INVALID_REQUEST,
            "invalid request: the header MCP-Protocol-Version names no version that is known",
        )),
        _ => Ok(false),
    }
}

/// The session that a request names.
pub(super) fn in_session(
    shared: &Shared,
    headers: &HeaderMap,
) -> Result<Arc<Session>, Box<Answer>> {
    let Some(id) = text(headers, &SESSION) else {
        return Err(Box::new(refused(&Refusal::new(
            ErrorCode::INVALID_REQUEST,
            "invalid request: send initialize first, and then its Mcp-Session-Id with each request",
        ))));
    };
    shared.sessions.get(&id).ok_or_else(|| {
        Box::new(said(
            StatusCode::NOT_FOUND,
            "not found: there is no such session, or not any more; send initialize again",
        ))
    })
}

/// A new session.
async fn opened(shared: &Arc<Shared>, incoming: Incoming, room: &Room) -> Answer {
    if !shared.sessions.have_room() {
        return later(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many sessions: end one, or try again later",
        );
    }
    let session = match shared.session() {
        Ok(session) => session,
        Err(why) => return failed(&why),
    };
    shared.sessions.add(Arc::clone(&session));
    let reader = session.asked(vec![incoming], room, false, Vec::new()).await;
    let mut answer = answered(shared, reader, in_band).await;
    if let Ok(id) = HeaderValue::from_str(&session.id) {
        answer.headers_mut().insert(SESSION, id);
    }
    answer
}

/// A message that belongs to no session.
async fn alone(shared: &Arc<Shared>, incoming: Incoming, room: &Room) -> Answer {
    let request = match &incoming.message {
        JsonRpcMessage::Request(request) => request,
        JsonRpcMessage::Notification(_) => return bare(StatusCode::ACCEPTED),
        _ => {
            let refusal = Refusal::new(
                ErrorCode::INVALID_REQUEST,
                "invalid request: nothing was asked that this could answer",
            );
            return refused(&refusal);
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
    let reader = session.asked(vec![incoming], room, false, Vec::new()).await;
    answered(shared, reader, |code| match code {
        ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
        | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
        | ErrorCode::HEADER_MISMATCH => StatusCode::BAD_REQUEST,
        ErrorCode::INVALID_PARAMS if is_malformed => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    })
    .await
}

/// The answer, whole if it comes at once, and else as a stream.
async fn answered(
    shared: &Shared,
    reader: Reader,
    status: impl FnOnce(ErrorCode) -> StatusCode,
) -> Answer {
    let is_soon = tokio::time::timeout(AT_ONCE, reader.ready()).await.is_ok();
    let whole = is_soon
        .then(|| reader.session().streams().whole(reader.number()))
        .flatten();
    match whole {
        Some(whole) => json(whole.error.map_or(StatusCode::OK, status), whole.json),
        None => reply::stream(reader.events(shared.limits.ping)),
    }
}

/// Where the versions with a handshake have their errors.
fn in_band(_: ErrorCode) -> StatusCode {
    StatusCode::OK
}

fn unread() -> Answer {
    later(
        StatusCode::SERVICE_UNAVAILABLE,
        "too much was said that nobody read: read the answers first",
    )
}

fn failed(why: &str) -> Answer {
    tracing::error!("a session could not be made: {why}");
    said(
        StatusCode::INTERNAL_SERVER_ERROR,
        "a session could not be made; the server's log says why",
    )
}
