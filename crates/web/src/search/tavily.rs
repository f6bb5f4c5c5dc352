//! Tavily's search API.

use super::engine::{Engine, EngineRequest, EngineResponse};
use super::{EngineError, Hit, searxng};
use crate::Secret;
use crate::client::{Header, Method};
use serde_json::json;

pub(super) fn request(engine: &Engine, query: &str, max: usize) -> EngineRequest {
    let body = json!({ "query": query, "max_results": max.min(20) });
    EngineRequest {
        method: Method::Post,
        url: engine.url_for(&["search"]),
        headers: vec![
            Header::Plain("content-type", "application/json".to_owned()),
            Header::Credential(
                "authorization",
                Secret::new(format!("Bearer {}", engine.key())),
            ),
        ],
        body: Some(body.to_string().into_bytes()),
    }
}

pub(super) fn read(response: &EngineResponse) -> Result<Vec<Hit>, EngineError> {
    searxng::results(response)
}
