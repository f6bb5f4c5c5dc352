//! Tavily's API.

use super::engine::{Answer, Engine, Question};
use super::{Hit, Why, searxng};
use crate::Secret;
use crate::client::{Header, Method};
use serde_json::json;

pub(super) fn question(engine: &Engine, query: &str, most: usize) -> Question {
    let body = json!({ "query": query, "max_results": most.min(20) });
    Question {
        method: Method::Post,
        url: engine.at(&["search"]),
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

pub(super) fn read(answer: &Answer) -> Result<Vec<Hit>, Why> {
    searxng::results(answer)
}
