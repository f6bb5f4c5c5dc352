//! What is told of failures.

use super::*;
use serde_json::json;

fn blamed() -> Blamed {
    Blamed {
        provider: Provider::OpenaiResponses,
        reach: "h".to_owned(),
        key: Some(Secret::new("CANARY")),
    }
}

#[test]
fn the_words_are_found_wherever_they_are() {
    let bodies = [
        json!({ "error": { "message": "why" } }),
        json!({ "message": "why" }),
        json!({ "error": "why" }),
        json!({ "detail": "why" }),
        json!([{ "error": { "message": "why" } }]),
        json!({ "response": { "error": { "message": " why " } } }),
    ];
    for body in bodies {
        assert_eq!(words(&body).as_deref(), Some("why"), "{body}");
    }
    assert_eq!(words(&json!({ "error": { "code": 3 } })), None);
}

#[test]
fn a_body_that_is_no_json_is_told_as_it_is() {
    let error = blamed().status(StatusCode::BAD_GATEWAY, &HeaderMap::new(), "  down CANARY ");
    assert_eq!(
        error.message,
        "openai-responses (h) answered 502 Bad Gateway: down ***"
    );
    let error = blamed().status(StatusCode::BAD_GATEWAY, &HeaderMap::new(), "");
    assert_eq!(
        error.message,
        "openai-responses (h) answered 502 Bad Gateway"
    );
}

#[test]
fn an_event_that_nobody_knows_is_the_fault_of_the_server() {
    let error = blamed().event(&json!({ "error": { "type": "odd", "message": "x" } }).to_string());
    assert_eq!(error.trouble, Trouble::Status(500));
    let error = blamed().event("no json");
    assert_eq!(error.trouble, Trouble::Malformed);
}
