//! Finding the file with the full output of a truncated reply.

use crate::{Content, Reply};
use haft_ops::spill::Spill;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Returns the file with the full output of a call. Only a file of this session counts,
/// because the path comes from the reply and could be anything.
pub(super) fn file(spill: &Spill, reply: &Reply) -> Option<PathBuf> {
    // Streams that were saved separately have their own field.
    const NAMES: [&str; 3] = ["output_path", "stdout_path", "stderr_path"];
    let details = NAMES.iter().find_map(|name| reply.details.get(*name));
    let path = match details.and_then(Value::as_str) {
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
    spill.real(Path::new(&path))
}
