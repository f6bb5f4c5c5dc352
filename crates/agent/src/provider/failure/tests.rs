//! Messages of errors.

use super::*;
use serde_json::json;

fn peer() -> Peer {
    Peer {
        provider: Provider::OpenaiResponses,
        host: "h".to_owned(),
        key: Some(Secret::new("CANARY")),
    }
}

#[test]
fn the_message_is_found_in_every_known_place() {
    let bodies = [
        json!({ "error": { "message": "why" } }),
        json!({ "message": "why" }),
        json!({ "error": "why" }),
        json!({ "detail": "why" }),
        json!([{ "error": { "message": "why" } }]),
        json!({ "response": { "error": { "message": " why " } } }),
    ];
    for body in bodies {
        assert_eq!(message(&body).as_deref(), Some("why"), "{body}");
    }
    assert_eq!(message(&json!({ "error": { "code": 3 } })), None);
}

#[test]
fn a_body_that_is_not_json_is_quoted() {
    let error = peer().status(StatusCode::BAD_GATEWAY, &HeaderMap::new(), "  down CANARY ");
    assert_eq!(
        error.message,
        "openai-responses (h) answered 502 Bad Gateway: down ***"
    );
    let error = peer().status(StatusCode::BAD_GATEWAY, &HeaderMap::new(), "");
    assert_eq!(
        error.message,
        "openai-responses (h) answered 502 Bad Gateway"
    );
}

#[test]
fn an_unknown_error_counts_as_a_server_error() {
    let error = peer().failed(&json!({ "error": { "type": "odd", "message": "x" } }));
    assert_eq!(error.kind, ModelErrorKind::Status(500));
}
