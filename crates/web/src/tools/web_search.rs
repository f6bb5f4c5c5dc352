//! `web_search`: titles, addresses and snippets from a search engine.

use super::MAX_URL_CHARS;
use crate::fetch::shorten;
use crate::search::{self, EngineFailure, SearchResults, Searcher};
use haft::prelude::*;
use std::fmt::Write as _;
use std::time::Duration;

/// Search the web. Returns the title, URL and a snippet of each result; use
/// web_fetch to read a page.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// What to search for.
    query: String,
    /// Maximum number of results.
    #[serde(default = "default_max")]
    #[schemars(range(min = 1, max = 20))]
    max_results: usize,
}

const fn default_max() -> usize {
    10
}

/// Maximum length of a query in characters; no engine accepts longer ones.
const MAX_QUERY: usize = 2000;

pub(super) struct WebSearch(pub(super) Searcher);

impl Tool for WebSearch {
    const NAME: &'static str = "web_search";
    const EFFECT: Effect = Effect::Network;
    const MENTIONS: &'static [Mention] = &[Mention {
        text: "; use web_fetch to read a page",
        tools: &["web_fetch"],
        otherwise: "",
    }];
    type Args = Args;

    fn resources(&self, _: &Args) -> Vec<Resource> {
        let mut hosts: Vec<String> = self.0.engines().iter().map(search::Engine::host).collect();
        hosts.dedup();
        hosts.into_iter().map(Resource::Host).collect()
    }

    fn timeout(&self) -> Option<Duration> {
        Some(search::TIMEOUT)
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let query = args.query.trim();
        if query.is_empty() {
            return Err(Error::invalid("parameter \"query\" is empty"));
        }
        if query.chars().count() > MAX_QUERY {
            return Err(Error::invalid(format!(
                "parameter \"query\" has more than {MAX_QUERY} characters"
            )));
        }
        let time = cx.time_left(search::TIMEOUT);
        match self.0.search(query, args.max_results, time).await {
            Ok(found) => Ok(reply(query, &found)),
            Err(failed) => Err(all_failed(&failed)),
        }
    }
}

fn reply(query: &str, found: &SearchResults) -> Reply {
    let mut text = format!("Search results for: \"{query}\"\n");
    for (index, hit) in found.hits.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n{}. **{}**\n   URL: {}\n",
            index + 1,
            hit.title,
            shorten(&hit.url, MAX_URL_CHARS)
        );
        if !hit.snippet.is_empty() {
            let _ = writeln!(text, "   {}", hit.snippet);
        }
    }
    if found.hits.is_empty() {
        text = "No results found.".to_owned();
    }
    let failed: Vec<String> = found.failed.iter().map(EngineFailure::to_string).collect();
    Reply::from(text.trim_end())
        .detail("engine", found.engine)
        .detail("results", found.hits.len())
        .detail("failed", failed)
}

fn all_failed(failed: &[EngineFailure]) -> Error {
    let reasons: Vec<String> = failed.iter().map(EngineFailure::to_string).collect();
    let text = match reasons.is_empty() {
        true => "web search failed: no engine is configured".to_owned(),
        false => format!("web search failed: {}", reasons.join("; ")),
    };
    let blocked =
        |failed: &EngineFailure| matches!(failed.error, search::EngineError::Blocked { .. });
    let is_blocked = !failed.is_empty() && failed.iter().all(blocked);
    let hint = "Try again later, or fetch a page whose URL you know. The user can add engines: tools.web.engines in haft.yaml (brave, searxng, tavily).";
    Error::Failed {
        text,
        hint: Some(hint.to_owned()),
    }
    .detail("outcome", if is_blocked { "blocked" } else { "no_answer" })
    .detail("failed", reasons)
}
