//! DuckDuckGo Lite: an HTML table with three rows per result.

use super::engine::{Engine, EngineRequest, EngineResponse};
use super::{EngineError, Hit, hit};
use crate::client::{Header, Method};
use crate::html::{Attribute, Tag, Tree};
use url::Url;

/// Text that appears only on the page that blocks bots.
const SIGNS: [&str; 4] = [
    "anomaly-modal",
    "challenge-form",
    "anomaly.js",
    "bots use duckduckgo too",
];

pub(super) fn request(engine: &Engine, query: &str) -> EngineRequest {
    let mut url = engine.url_for(&["lite"]);
    if let Ok(mut path) = url.path_segments_mut() {
        path.push("");
    }
    url.query_pairs_mut().append_pair("q", query);
    EngineRequest {
        method: Method::Get,
        url,
        headers: vec![Header::Plain("accept", "text/html".to_owned())],
        body: None,
    }
}

/// Whether a page is the one that blocks bots.
pub(super) fn is_blocked(page: &str) -> bool {
    let page = page.to_ascii_lowercase();
    SIGNS.iter().any(|sign| page.contains(sign))
}

pub(super) fn read(response: &EngineResponse) -> Result<Vec<Hit>, EngineError> {
    let tree = Tree::parse(&response.text);
    let links: Vec<usize> = tree
        .elements(Tag::A)
        .filter(|node| tree.has_class(*node, "result-link"))
        .collect();
    let mut hits = Vec::new();
    for (index, link) in links.iter().enumerate() {
        if is_sponsored(&tree, *link) {
            continue;
        }
        let href = tree.attribute(*link, Attribute::Href).unwrap_or_default();
        let Some(url) = target(&response.url, href) else {
            continue;
        };
        let until = links.get(index + 1).copied().unwrap_or(tree.count());
        let snippet = (*link..until).find(|node| tree.has_class(*node, "result-snippet"));
        let snippet = snippet.map(|node| tree.plain_text(node));
        hits.extend(hit(
            &tree.plain_text(*link),
            url.as_str(),
            &snippet.unwrap_or_default(),
        ));
    }
    let says_none = || response.text.to_ascii_lowercase().contains("no results");
    match hits.is_empty() {
        false => Ok(hits),
        // A page with nothing but ads also has no results.
        true if !links.is_empty() || says_none() => Ok(hits),
        true if response.status == 202 => Err(EngineError::Blocked {
            status: response.status,
        }),
        true => Err(EngineError::Unknown),
    }
}

/// Whether a result is an ad, marked by the class of its row.
fn is_sponsored(tree: &Tree, link: usize) -> bool {
    let mut node = link;
    for _ in 0..8 {
        if tree.has_class(node, "result-sponsored") {
            return true;
        }
        node = tree.parent(node);
    }
    false
}

/// Returns the URL of a result, unwrapping DuckDuckGo's redirect.
fn target(page: &Url, href: &str) -> Option<Url> {
    let url = page.join(href.trim()).ok()?;
    // `query_pairs` has already decoded the value.
    if let Some((_, wrapped)) = url.query_pairs().find(|(name, _)| name == "uddg") {
        let wrapped = Url::parse(&wrapped).ok()?;
        return (!is_own(&wrapped)).then_some(wrapped);
    }
    (!is_own(&url) && url.origin() != page.origin()).then_some(url)
}

/// Whether a URL belongs to DuckDuckGo itself: an ad or navigation.
fn is_own(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    host == "duckduckgo.com" || host.ends_with(".duckduckgo.com")
}
