//! Telling the model which channels for messages there are.

use crate::tool::Redefined;
use crate::{AnyTool, Definition};
use haft_ops::text::brief;
use haft_ops::text::decode::visible;
use std::sync::Arc;

/// Maximum number of channels that are named. A wrong name is answered with all of them.
const MOST_NAMED: usize = 30;

/// Maximum length of a name, in bytes.
const LONGEST: usize = 60;

/// A tool as a model sees it: one that sends messages names the channels.
pub(super) fn named(tool: &Arc<dyn AnyTool>, channels: &[String]) -> Arc<dyn AnyTool> {
    if !tool.sends_messages() || channels.is_empty() {
        return Arc::clone(tool);
    }
    let mut names: Vec<String> = channels
        .iter()
        .take(MOST_NAMED)
        .map(|name| visible(&brief(name, LONGEST)).replace('\n', "\\n"))
        .collect();
    if channels.len() > MOST_NAMED {
        names.push(format!("and {} more", channels.len() - MOST_NAMED));
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
