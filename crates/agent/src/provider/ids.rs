//! Ids of calls. A provider accepts the ids it made, and may reject those of others, so they
//! are converted in the call and in its result alike.

use std::collections::{HashMap, HashSet};

/// Replaces characters that some provider rejects, and cuts after 64.
pub(super) fn legal(id: &str) -> String {
    let is_legal = |char: char| char.is_ascii_alphanumeric() || "_-".contains(char);
    let fit = |char| if is_legal(char) { char } else { '_' };
    id.chars().map(fit).take(64).collect()
}

/// The ids of a conversation's calls, as they are sent.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    fitted: HashMap<String, String>,
    taken: HashSet<String>,
}

impl CallIds {
    /// Keeps an id unchanged.
    pub(super) fn keep(&mut self, id: &str) {
        self.fitted.remove(id);
        self.taken.insert(id.to_owned());
    }

    /// Sends an id as `fitted`, or as a variant of it if another call has that id.
    pub(super) fn fit(&mut self, id: &str, mut fitted: String) -> String {
        for count in 1.. {
            if !fitted.is_empty() && self.taken.insert(fitted.clone()) {
                break;
            }
            let end = count.to_string();
            let kept = fitted.chars().count().saturating_sub(end.len());
            fitted = fitted.chars().take(kept).chain(end.chars()).collect();
        }
        self.fitted.insert(id.to_owned(), fitted.clone());
        fitted
    }

    /// Returns an id as it is sent.
    pub(super) fn of(&self, id: &str) -> String {
        self.fitted.get(id).map_or(id, String::as_str).to_owned()
    }
}
