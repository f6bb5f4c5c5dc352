//! Streams that a client opens itself, and the end of sessions.

use super::Shared;
use super::events::{Events, Reader};
use super::post::{VERSION, in_session};
use super::reply::{self, Payload, bare, no_method, said};
use http::header::ACCEPT;
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};
use rmcp::model::ProtocolVersion;
use std::sync::Arc;
use std::time::Duration;

/// How long the end of a session is waited for.
const ENDING: Duration = Duration::from_secs(2);

/// Whether a request is of a version without sessions.
fn is_newer(headers: &HeaderMap) -> bool {
    let version = headers.get(VERSION).and_then(|value| value.to_str().ok());
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Opens a stream, or takes one up again.
pub(super) fn get(shared: &Arc<Shared>, parts: &Parts) -> Response<Payload> {
    let headers = &parts.headers;
    if is_newer(headers) {
        return no_method("POST");
    }
    let mut accepted = headers.get_all(ACCEPT).iter();
    if !accepted.any(|value| {
        let value = value.to_str().unwrap_or_default();
        value.contains("text/event-stream") || value.contains("*/*")
    }) {
        return said(
            StatusCode::NOT_ACCEPTABLE,
            "not acceptable: a stream is text/event-stream",
        );
    }
    let session = match in_session(shared, headers) {
        Ok(session) => session,
        Err(answer) => return *answer,
    };
    let reader = match headers.get("last-event-id") {
        None => {
            let (number, generation) = session.streams().standing();
            Reader::new(session, number, generation, 0)
        }
        Some(last) => {
            let last = last.to_str().ok().and_then(place);
            let found = last.and_then(|(number, after)| {
                let generation = session.streams().resumed(number, after)?;
                Some((number, generation, after))
            });
            // An error would make some clients try for ever.
            let Some((number, generation, after)) = found else {
                return reply::stream(Events::none());
            };
            Reader::new(session, number, generation, after)
        }
    };
    reply::stream(reader.events(shared.limits.ping))
}

/// The stream and the event of it that an id names.
fn place(id: &str) -> Option<(u64, u64)> {
    let (number, index) = id.split_once('-')?;
    Some((number.parse().ok()?, index.parse().ok()?))
}

/// Ends a session, and what it started.
pub(super) async fn delete(shared: &Arc<Shared>, parts: &Parts) -> Response<Payload> {
    if is_newer(&parts.headers) {
        return no_method("POST");
    }
    let session = match in_session(shared, &parts.headers) {
        Ok(session) => session,
        Err(answer) => return *answer,
    };
    shared.sessions.remove(&session.id);
    session.close();
    let _ = tokio::time::timeout(ENDING, session.ended()).await;
    bare(StatusCode::NO_CONTENT)
}
