//! The web tools. They are part of the toolset `standard`, and other toolsets may include them.
//! They are in this crate because only this crate opens connections.

mod web_fetch;
mod web_search;
mod window;

use crate::{Fetcher, Searcher};
use haft::{AnyTool, erase};
use std::sync::Arc;

/// Maximum length of a URL in a reply, in characters.
const MAX_URL_CHARS: usize = 500;

/// Returns the tools in the order in which a model sees them. To add a tool, add a file to this
/// folder and a line here.
#[must_use]
pub fn tools(fetcher: Fetcher, searcher: Searcher) -> Vec<Arc<dyn AnyTool>> {
    vec![
        erase(web_search::WebSearch(searcher)),
        erase(web_fetch::WebFetch(fetcher)),
    ]
}
