//! `edit`: replaces one exact piece of text; nothing else changes.

use crate::prelude::*;
use crate::toolsets::advice::{broken_links, repaired};
use haft_ops::edit::{self, NoChange, Occurrences};

/// Replace one exact piece of text in a file. `old_text` must match the file
/// character for character, including whitespace, and be there exactly once.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// File to edit.
    path: String,
    /// Exact text to find.
    old_text: String,
    /// Text to put in its place.
    new_text: String,
}

pub(super) struct Edit;

impl Tool for Edit {
    const NAME: &'static str = "edit";
    const EFFECT: Effect = Effect::Write;
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        Resource::edited(&args.path)
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let named = cx.named(&args.path);
        let request = edit::Replace {
            path: cx.resolve(&args.path, Access::Write).await?,
            old: args.old_text,
            new: args.new_text,
            occurrences: Occurrences::ExactlyOne,
            no_change: NoChange::Refuse,
            repairs: cx.edit_repairs(),
        };
        let edited = edit::replace(cx.backend(), request).await?;
        let mut text = format!("Successfully replaced text in {named}.");
        if let Some(repaired) = repaired(&edited.repaired) {
            text.push('\n');
            text.push_str(&repaired);
        }
        if edited.links_broken > 0 {
            text.push('\n');
            text.push_str(&broken_links(edited.links_broken));
        }
        Ok(Reply::from(text)
            .detail("path", named)
            .detail("diff", edited.diff)
            .detail("first_changed_line", edited.first_changed_line)
            .detail_if("repaired", edited.repaired))
    }
}
