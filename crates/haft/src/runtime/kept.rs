//! Where the whole of a reply is kept that has a part of it.

use crate::{Content, Reply};
use haft_ops::spill::Spill;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The file that holds the whole output of a call. What a reply says may be anybody's
/// words, so only a file of the session's own is believed.
pub(super) fn file(spill: &Spill, reply: &Reply) -> Option<PathBuf> {
    // One of several streams has a name of its own.
    const NAMES: [&str; 3] = ["output_path", "stdout_path", "stderr_path"];
    let details = NAMES.iter().find_map(|name| reply.details.get(*name));
    let said = match details.and_then(Value::as_str) {
        Some(path) => path.to_owned(),
        None => {
            let [Content::Text { text }] = &reply.content[..] else {
                return None;
            };
            if !text.starts_with('{') || !text.contains("_path\"") {
                return None;
            }
            let document: Value = serde_json::from_str(text).ok()?;
            let named = NAMES.iter().find_map(|name| document.get(*name));
            named?.as_str()?.to_owned()
        }
    };
    spill.real(Path::new(&said))
}
