//! An instance of SearXNG, asked for JSON.

use super::engine::{Answer, Engine, Question};
use super::{Hit, Why, hit};
use crate::client::{Header, Method};
use serde_json::Value;

pub(super) fn question(engine: &Engine, query: &str) -> Question {
    let mut url = engine.at(&["search"]);
    url.query_pairs_mut()
        .append_pair("q", query)
        .append_pair("format", "json");
    Question {
        method: Method::Get,
        url,
        headers: vec![Header::Plain("accept", "application/json".to_owned())],
        body: None,
    }
}

pub(super) fn read(answer: &Answer) -> Result<Vec<Hit>, Why> {
    results(answer)
}

/// The results of a document that has a list of them with `title`, `url` and
/// `content`.
pub(super) fn results(answer: &Answer) -> Result<Vec<Hit>, Why> {
    let document: Value = serde_json::from_str(&answer.text).map_err(|_| Why::Unknown)?;
    let results = document.get("results").and_then(Value::as_array);
    let results = results.ok_or(Why::Unknown)?;
    let hits = results.iter().filter_map(|result| {
        let text = |key: &str| result.get(key).and_then(Value::as_str).unwrap_or_default();
        hit(text("title"), text("url"), text("content"))
    });
    Ok(hits.collect())
}
