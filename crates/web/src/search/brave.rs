//! Brave's API.

use super::engine::{Answer, Engine, Question};
use super::{Hit, Why, hit, without_markup};
use crate::Secret;
use crate::client::{Header, Method};
use serde_json::Value;

pub(super) fn question(engine: &Engine, query: &str, most: usize) -> Question {
    let mut url = engine.at(&["res", "v1", "web", "search"]);
    url.query_pairs_mut()
        .append_pair("q", query)
        .append_pair("count", &most.min(20).to_string());
    Question {
        method: Method::Get,
        url,
        headers: vec![
            Header::Plain("accept", "application/json".to_owned()),
            Header::Credential("x-subscription-token", Secret::new(engine.key())),
        ],
        body: None,
    }
}

pub(super) fn read(answer: &Answer) -> Result<Vec<Hit>, Why> {
    let document: Value = serde_json::from_str(&answer.text).map_err(|_| Why::Unknown)?;
    // Without results there is no `web`.
    if document.get("type").is_none() && document.get("web").is_none() {
        return Err(Why::Unknown);
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
