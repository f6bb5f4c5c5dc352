//! Brave's search API.

use super::engine::{Engine, EngineRequest, EngineResponse};
use super::{EngineError, Hit, hit, without_markup};
use crate::Secret;
use crate::client::{Header, Method};
use serde_json::Value;

pub(super) fn request(engine: &Engine, query: &str, max: usize) -> EngineRequest {
    let mut url = engine.url_for(&["res", "v1", "web", "search"]);
    url.query_pairs_mut()
        .append_pair("q", query)
        .append_pair("count", &max.min(20).to_string());
    EngineRequest {
        method: Method::Get,
        url,
        headers: vec![
            Header::Plain("accept", "application/json".to_owned()),
            Header::Credential("x-subscription-token", Secret::new(engine.key())),
        ],
        body: None,
    }
}

pub(super) fn read(response: &EngineResponse) -> Result<Vec<Hit>, EngineError> {
    let document: Value = serde_json::from_str(&response.text).map_err(|_| EngineError::Unknown)?;
    // A response without results has no `web`.
    if document.get("type").is_none() && document.get("web").is_none() {
        return Err(EngineError::Unknown);
    }
    let results = document.pointer("/web/results").and_then(Value::as_array);
    let text = |result: &Value, key: &str| -> String {
        result
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    Ok(results
        .into_iter()
        .flatten()
        .filter_map(|result| {
            hit(
                &without_markup(&text(result, "title")),
                &text(result, "url"),
                &without_markup(&text(result, "description")),
            )
        })
        .collect())
}
