//! Whether the web can be searched: each engine is asked something small.

use crate::config::{Settings, lists_web};
use crate::exit::Failure;
use crate::session;
use haft::ops::text::decode::visible;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// An engine that needs longer is of no use to a model either.
const PATIENCE: Duration = Duration::from_secs(5);

/// What every engine knows something about.
const QUESTION: &str = "weather";

/// What was found.
pub(super) struct Web {
    /// Whether a model has the tools.
    is_offered: bool,
    /// The engines in order, and how long each took or why it does not answer; nothing
    /// where nobody wanted to know.
    engines: Vec<(&'static str, Option<Result<Duration, String>>)>,
    has_proxy: bool,
}

/// Looks. Without the tools nobody is asked anything: a search is a request to somebody
/// else's machine.
pub(super) async fn look(settings: &Settings) -> Result<Web, Failure> {
    let own = &settings.web;
    let is_offered = own.enabled || lists_web(&settings.toolset, settings.preset.as_deref());
    let (_, searcher) = session::web(settings)?;
    let mut engines = Vec::new();
    let asks = is_offered || own.names_engines;
    let searcher = &searcher;
    let health = searcher.engines().iter().map(|engine| async move {
        if !asks {
            return (engine.name(), None);
        }
        let begun = Instant::now();
        let found = searcher.ask(engine, QUESTION, 1, PATIENCE).await;
        let health = match found {
            Ok(hits) if hits.is_empty() => Err("it answers, and finds nothing".to_owned()),
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
    /// In words, with what to do about what does not work.
    pub(super) fn lines(&self) -> Vec<String> {
        let by = if self.has_proxy { ", by a proxy" } else { "" };
        let mut lines = vec![match self.is_offered {
            true => format!("web: search and pages{by}"),
            false => format!(
                "web: not offered to a model{by}; --preset web, --preset all or tools.web.enabled offers it"
            ),
        }];
        let count = self.engines.len();
        for (name, health) in &self.engines {
            lines.push(match health {
                None => format!("  {name}: not asked"),
                Some(Ok(took)) => format!("  {name}: answers ({:.1} s)", took.as_secs_f64()),
                Some(Err(why)) if count == 1 => {
                    format!("  {name}: {why}; tools.web.engines can name others")
                }
                Some(Err(why)) => format!("  {name}: {why}"),
            });
        }
        if count == 0 {
            lines.push("  no engine: tools.web.engines names none that can be asked".to_owned());
        }
        lines
    }

    /// The same for programs.
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
