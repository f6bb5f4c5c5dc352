//! Listing the message channels in tool descriptions.

use crate::tool::Redefined;
use crate::{AnyTool, Definition};
use haft_ops::text::brief;
use haft_ops::text::decode::visible;
use std::sync::Arc;

/// Maximum number of channels listed. The reply to a wrong name lists all of them.
const MAX_LISTED: usize = 30;

/// Maximum length of a channel name, in bytes.
const MAX_NAME_BYTES: usize = 60;

/// Returns the tool with the channels in its description, if it sends messages.
pub(super) fn named(tool: &Arc<dyn AnyTool>, channels: &[String]) -> Arc<dyn AnyTool> {
    if !tool.sends_messages() || channels.is_empty() {
        return Arc::clone(tool);
    }
    let mut names: Vec<String> = channels
        .iter()
        .take(MAX_LISTED)
        .map(|name| visible(&brief(name, MAX_NAME_BYTES)).replace('\n', "\\n"))
        .collect();
    if channels.len() > MAX_LISTED {
        names.push(format!("and {} more", channels.len() - MAX_LISTED));
    }
    let definition = tool.definition().clone();
    let description = format!(
        "{} Channels: {}.",
        definition.description.trim_end(),
        names.join(", ")
    );
    Arc::new(Redefined {
        tool: Arc::clone(tool),
        definition: Definition {
            description,
            ..definition
        },
    })
}
