//! Checks the web search engines with a small query each.

use crate::exit::Failure;
use crate::session;
use haft::ops::text::decode::visible;
use haft_config::{Settings, lists_web};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Time limit per engine; a slower one is of no use to a model.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(5);

/// Query for which every engine has results.
const TEST_QUERY: &str = "weather";

pub(super) struct Web {
    /// Whether the model gets the web tools.
    is_offered: bool,
    /// Engines in order, each with its response time or error; `None` if it was not
    /// tried.
    engines: Vec<(&'static str, Option<Result<Duration, String>>)>,
    has_proxy: bool,
}

/// Examines the engines. If the web tools are not offered, no engine is queried, because
/// that sends a request to another machine.
pub(super) async fn examine(settings: &Settings) -> Result<Web, Failure> {
    let own = &settings.web;
    let is_offered = own.enabled || lists_web(&settings.toolset, settings.preset.as_deref());
    let (_, searcher) = session::web(settings)?;
    let mut engines = Vec::new();
    let should_query = is_offered || own.names_engines;
    let searcher = &searcher;
    let health = searcher.engines().iter().map(|engine| async move {
        if !should_query {
            return (engine.name(), None);
        }
        let begun = Instant::now();
        let found = searcher.ask(engine, TEST_QUERY, 1, ENGINE_TIMEOUT).await;
        let health = match found {
            Ok(hits) if hits.is_empty() => Err("it answers, but finds nothing".to_owned()),
            Ok(_) => Ok(begun.elapsed()),
            Err(why) => Err(visible(&why.to_string())),
        };
        (engine.name(), Some(health))
    });
    engines.extend(futures::future::join_all(health).await);
    Ok(Web {
        is_offered,
        engines,
        has_proxy: own.proxy.is_some(),
    })
}

impl Web {
    /// Formats the findings as lines, with what to do about engines that do not work.
    pub(super) fn lines(&self) -> Vec<String> {
        let proxy = if self.has_proxy {
            ", through a proxy"
        } else {
            ""
        };
        let mut lines = vec![match self.is_offered {
            true => format!("web: search and pages{proxy}"),
            false => format!(
                "web: not offered to the model{proxy}; enable it with --preset web, --preset all or tools.web.enabled"
            ),
        }];
        let count = self.engines.len();
        for (name, health) in &self.engines {
            lines.push(match health {
                None => format!("  {name}: not tried"),
                Some(Ok(took)) => format!("  {name}: answers ({:.1} s)", took.as_secs_f64()),
                Some(Err(why)) if count == 1 => {
                    format!("  {name}: {why}; add other engines in tools.web.engines")
                }
                Some(Err(why)) => format!("  {name}: {why}"),
            });
        }
        if count == 0 {
            lines.push("  no usable engine in tools.web.engines".to_owned());
        }
        lines
    }

    /// Returns the findings as JSON.
    pub(super) fn json(&self) -> Value {
        let engines = self.engines.iter().map(|(name, health)| {
            json!({
                "name": name,
                "works": health.as_ref().map(Result::is_ok),
                "reason": health.as_ref().and_then(|health| health.as_ref().err()),
            })
        });
        json!({
            "offered": self.is_offered,
            "proxy": self.has_proxy,
            "engines": engines.collect::<Vec<_>>(),
        })
    }
}
