//! `edit`: replaces one exact piece of text; the reply shows the changed lines.

use crate::prelude::*;
use crate::toolsets::advice::{broken_links, repaired};
use haft_ops::edit::{self, NoChange, Occurrences};
use haft_ops::text::diff;

/// Find and replace text in a file. `old_string` must match exactly one place. The reply
/// shows the removed (`- `) and added (`+ `) lines.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// File path.
    path: String,
    /// Text to find; must be unique in the file.
    old_string: String,
    /// Replacement text.
    new_string: String,
}

pub(super) struct Edit;

impl Tool for Edit {
    const NAME: &'static str = "edit";
    const EFFECT: Effect = Effect::Write;
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        Resource::edited(&args.path)
    }

    fn guidance(&self) -> Option<&str> {
        Some(
            "Copy old_string from the file exactly, whitespace included, with enough lines around \
             it to be in one place only. When an edit fails the file is as it was: the reply shows \
             the nearest place and what differs there.",
        )
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let named = cx.named(&args.path);
        let request = edit::Replace {
            path: cx.resolve(&args.path, Access::Write).await?,
            old: args.old_string,
            new: args.new_string,
            occurrences: Occurrences::ExactlyOne,
            no_change: NoChange::Refuse,
            repairs: cx.edit_repairs(),
        };
        let edited = edit::replace(cx.backend(), request).await?;
        let mut reply = Reply::from(diff::changed_lines(&edited.diff));
        let links = (edited.links_broken > 0).then(|| broken_links(edited.links_broken));
        let notes: Vec<String> = repaired(&edited.repaired)
            .into_iter()
            .chain(links)
            .collect();
        if !notes.is_empty() {
            reply = reply.footer(notes.join("\n"));
        }
        Ok(reply
            .limited(super::CHANGE)
            .detail("path", named)
            .detail("diff", edited.diff)
            .detail("first_changed_line", edited.first_changed_line)
            .detail_if("repaired", edited.repaired))
    }
}
