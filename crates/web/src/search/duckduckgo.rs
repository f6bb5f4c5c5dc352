//! DuckDuckGo's page for small devices: a table, three rows for each result.

use super::engine::{Answer, Engine, Question};
use super::{Hit, Why, hit};
use crate::client::{Header, Method};
use crate::html::{Name, Tag, Tree};
use url::Url;

/// Words that only the page has which keeps programs out.
const SIGNS: [&str; 4] = [
    "anomaly-modal",
    "challenge-form",
    "anomaly.js",
    "bots use duckduckgo too",
];

pub(super) fn question(engine: &Engine, query: &str) -> Question {
    let mut url = engine.at(&["lite"]);
    if let Ok(mut path) = url.path_segments_mut() {
        path.push("");
    }
    url.query_pairs_mut().append_pair("q", query);
    Question {
        method: Method::Get,
        url,
        headers: vec![Header::Plain("accept", "text/html".to_owned())],
        body: None,
    }
}

/// Whether a page is the one that keeps programs out.
pub(super) fn keeps_out(page: &str) -> bool {
    let page = page.to_ascii_lowercase();
    SIGNS.iter().any(|sign| page.contains(sign))
}

pub(super) fn read(answer: &Answer) -> Result<Vec<Hit>, Why> {
    let tree = Tree::parse(&answer.text);
    let links: Vec<usize> = tree
        .elements(Tag::A)
        .filter(|node| tree.has_class(*node, "result-link"))
        .collect();
    let mut hits = Vec::new();
    for (at, link) in links.iter().enumerate() {
        if is_sponsored(&tree, *link) {
            continue;
        }
        let href = tree.attribute(*link, Name::Href).unwrap_or_default();
        let Some(url) = target(&answer.url, href) else {
            continue;
        };
        let until = links.get(at + 1).copied().unwrap_or(tree.count());
        let snippet = (*link..until).find(|node| tree.has_class(*node, "result-snippet"));
        let snippet = snippet.map(|node| tree.plain_text(node));
        hits.extend(hit(
            &tree.plain_text(*link),
            url.as_str(),
            &snippet.unwrap_or_default(),
        ));
    }
    let says_none = || answer.text.to_ascii_lowercase().contains("no results");
    match hits.is_empty() {
        false => Ok(hits),
        // Only ads are nothing too.
        true if !links.is_empty() || says_none() => Ok(hits),
        true if answer.status == 202 => Err(Why::Blocked {
            status: answer.status,
        }),
        true => Err(Why::Unknown),
    }
}

/// Whether a result was paid for: its row says so, or its address does.
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

/// Where a result leads: the page wraps it into an address of its own.
fn target(page: &Url, href: &str) -> Option<Url> {
    let url = page.join(href.trim()).ok()?;
    // The reader of the query decodes once, and once is right.
    if let Some((_, wrapped)) = url.query_pairs().find(|(name, _)| name == "uddg") {
        let wrapped = Url::parse(&wrapped).ok()?;
        return (!is_own(&wrapped)).then_some(wrapped);
    }
    (!is_own(&url) && url.origin() != page.origin()).then_some(url)
}

/// Addresses of the engine itself are ads and more of the same.
fn is_own(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    host == "duckduckgo.com" || host.ends_with(".duckduckgo.com")
}
