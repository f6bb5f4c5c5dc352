//! `edit_file`: replaces an exact string; an ambiguous match is refused.

use super::reply;
use crate::prelude::*;
use haft_ops::edit::{self, NoChange, Occurrences};

/// Edit a file by replacing one exact string with another. `old_string` must be
/// unique in the file unless `replace_all` is true.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Absolute path to the file.
    file_path: String,
    /// Exact text to find and replace.
    old_string: String,
    /// Replacement text.
    new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

pub(super) struct EditFile;

impl Tool for EditFile {
    const NAME: &'static str = "edit_file";
    const EFFECT: Effect = Effect::Write;
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        Resource::edited(&args.file_path)
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let request = edit::Replace {
            path: cx.resolve(&args.file_path, Access::Write).await?,
            old: args.old_string,
            new: args.new_string,
            occurrences: if args.replace_all {
                Occurrences::All
            } else {
                Occurrences::ExactlyOne
            },
            no_change: NoChange::Refuse,
            repairs: cx.edit_repairs(),
        };
        let edited = edit::replace(cx.backend(), request).await?;
        let mut answer = reply::success(json!({
            "path": cx.named(&args.file_path), "occurrences": edited.replacements,
        }));
        reply::broken_links(&mut answer, edited.links_broken);
        reply::add_repaired(&mut answer, &edited.repaired);
        Ok(Reply::json(answer)
            .detail("diff", edited.diff)
            .detail("first_changed_line", edited.first_changed_line)
            .detail_if("repaired", edited.repaired))
    }
}
