//! A SearXNG instance with JSON output.

use super::engine::{Engine, EngineRequest, EngineResponse};
use super::{EngineError, Hit, hit};
use crate::client::{Header, Method};
use serde_json::Value;

pub(super) fn request(engine: &Engine, query: &str) -> EngineRequest {
    let mut url = engine.url_for(&["search"]);
    url.query_pairs_mut()
        .append_pair("q", query)
        .append_pair("format", "json");
    EngineRequest {
        method: Method::Get,
        url,
        headers: vec![Header::Plain("accept", "application/json".to_owned())],
        body: None,
    }
}

pub(super) fn read(response: &EngineResponse) -> Result<Vec<Hit>, EngineError> {
    results(response)
}

/// Parses a document with a list `results` of `title`, `url` and `content`.
pub(super) fn results(response: &EngineResponse) -> Result<Vec<Hit>, EngineError> {
    let document: Value = serde_json::from_str(&response.text).map_err(|_| EngineError::Unknown)?;
    let results = document.get("results").and_then(Value::as_array);
    let results = results.ok_or(EngineError::Unknown)?;
    let hits = results.iter().filter_map(|result| {
        let text = |key: &str| result.get(key).and_then(Value::as_str).unwrap_or_default();
        hit(text("title"), text("url"), text("content"))
    });
    Ok(hits.collect())
}
