//! The tools of the web. They belong to the toolset `standard`, and any other may have
//! them; they live here because here is what speaks to other machines.

mod web_fetch;
mod web_search;
mod window;

use crate::{Fetcher, Searcher};
use haft::{AnyTool, erase};
use std::sync::Arc;

/// How much of an address is shown that is there to know a page by, in characters.
const LONGEST_ADDRESS: usize = 500;

/// The tools, in the order a model sees them. A new one is a file in this folder and a
/// line here.
#[must_use]
pub fn tools(fetcher: Fetcher, searcher: Searcher) -> Vec<Arc<dyn AnyTool>> {
    vec![
        erase(web_search::WebSearch(searcher)),
        erase(web_fetch::WebFetch(fetcher)),
    ]
}
