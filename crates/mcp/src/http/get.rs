//! Handles GET, which opens a stream, and DELETE, which ends a session.

use super::Shared;
use super::events::{Events, Reader};
use super::post::{VERSION, in_session};
use super::reply::{self, Payload, method_not_allowed, plain_text, status_only};
use http::header::ACCEPT;
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};
use rmcp::model::ProtocolVersion;
use std::sync::Arc;
use std::time::Duration;

/// Time to wait for a session to end.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Whether a request uses a protocol version without sessions.
fn is_newer(headers: &HeaderMap) -> bool {
    let version = headers.get(VERSION).and_then(|value| value.to_str().ok());
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Opens a stream, or resumes one.
pub(super) fn get(shared: &Arc<Shared>, parts: &Parts) -> Response<Payload> {
    let headers = &parts.headers;
    if is_newer(headers) {
        return method_not_allowed("POST");
    }
    let mut accepted = headers.get_all(ACCEPT).iter();
    if !accepted.any(|value| {
        let value = value.to_str().unwrap_or_default();
        value.contains("text/event-stream") || value.contains("*/*")
    }) {
        return plain_text(
            StatusCode::NOT_ACCEPTABLE,
            "not acceptable: Accept must list text/event-stream",
        );
    }
    let session = match in_session(shared, headers) {
        Ok(session) => session,
        Err(answer) => return *answer,
    };
    let reader = match headers.get("last-event-id") {
        None => {
            let (number, generation) = session.streams().open_notifications();
            Reader::new(session, number, generation, 0)
        }
        Some(last) => {
            let last = last.to_str().ok().and_then(parse_event_id);
            let found = last.and_then(|(number, after)| {
                let generation = session.streams().resume(number, after)?;
                Some((number, generation, after))
            });
            // An error would make some clients retry forever.
            let Some((number, generation, after)) = found else {
                return reply::stream(Events::empty());
            };
            Reader::new(session, number, generation, after)
        }
    };
    reply::stream(reader.events(shared.limits.ping))
}

/// Parses an event id into the number of its stream and its index.
fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (number, index) = id.split_once('-')?;
    Some((number.parse().ok()?, index.parse().ok()?))
}

/// Ends a session and all processes it started.
pub(super) async fn delete(shared: &Arc<Shared>, parts: &Parts) -> Response<Payload> {
    if is_newer(&parts.headers) {
        return method_not_allowed("POST");
    }
    let session = match in_session(shared, &parts.headers) {
        Ok(session) => session,
        Err(answer) => return *answer,
    };
    shared.sessions.remove(&session.id);
    session.close();
    let _ = tokio::time::timeout(END_TIMEOUT, session.ended()).await;
    status_only(StatusCode::NO_CONTENT)
}
