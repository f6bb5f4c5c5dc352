//! Finding the file with the full output of a truncated reply.

use crate::{Content, Reply};
use haft_ops::spill::Spill;
use serde_json::Value;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Returns the file with the full output of a call. Only a file of this session counts,
/// because the path comes from the reply and could be anything.
pub(super) fn file(spill: &Spill, reply: &Reply) -> Option<PathBuf> {
    // Streams that were saved separately have their own field.
    const NAMES: [&str; 3] = ["output_path", "stdout_path", "stderr_path"];
    let details = NAMES.iter().find_map(|name| reply.details.get(*name));
    if let Some(path) = details.and_then(Value::as_str) {
        return spill.real(Path::new(path));
    }
    let document = match reply.document() {
        Some(document) => Cow::Borrowed(document),
        None => Cow::Owned(printed(reply)?),
    };
    let named = NAMES.iter().find_map(|name| document.get(*name));
    spill.real(Path::new(named?.as_str()?))
}

/// Returns the document that a program printed, if it may name a file.
fn printed(reply: &Reply) -> Option<Value> {
    let [Content::Text { text }] = &reply.content[..] else {
        return None;
    };
    let may_name = text.starts_with('{') && text.contains("_path\"");
    may_name.then(|| serde_json::from_str(text).ok())?
}
