//! `edit`: replaces text wherever it occurs, or a range of lines.

use super::reply;
use crate::prelude::*;
use haft_ops::edit::{self, Edited, NoChange, Occurrences};

/// Change part of an existing file, in one of two ways. Text replacement: give
/// `old_text`, which must match the file exactly; every occurrence is replaced
/// unless `replace_all` is false. Line range: give `start_line` and `end_line`; those
/// lines are replaced by `new_text`, or deleted if it is empty.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// File to edit, absolute or relative to the workspace.
    path: String,
    /// Exact text to find.
    old_text: Option<String>,
    /// Text to put in its place.
    new_text: String,
    /// Replace every occurrence of `old_text`; false replaces the first only.
    #[serde(default = "yes")]
    replace_all: bool,
    /// First line to replace, counted from 1.
    start_line: Option<i64>,
    /// Last line to replace, included.
    end_line: Option<i64>,
}

const fn yes() -> bool {
    true
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
        let path = cx.resolve(&args.path, Access::Write).await?;
        let lines = (args.start_line, args.end_line);
        let unused = args.old_text.is_some() && lines != (None, None);
        let (edited, changes) = match (args.old_text, lines) {
            (Some(old), _) => {
                let request = edit::Replace {
                    path,
                    old,
                    new: args.new_text,
                    occurrences: if args.replace_all {
                        Occurrences::All
                    } else {
                        Occurrences::First
                    },
                    no_change: NoChange::Refuse,
                    repairs: cx.edit_repairs(),
                };
                let edited = edit::replace(cx.backend(), request).await?;
                let changes = edited.replacements;
                (edited, changes)
            }
            (None, (Some(first), Some(last))) => {
                let (first, last) = range(first, last)?;
                let request = edit::ReplaceLines {
                    path,
                    first,
                    last,
                    new: args.new_text,
                    no_change: NoChange::Refuse,
                };
                (edit::replace_lines(cx.backend(), request).await?, 1)
            }
            (None, (None, None)) => {
                return Err(Error::failed(
                    "either old_text or start_line/end_line is required",
                ));
            }
            (None, _) => {
                return Err(Error::failed("both start_line and end_line are required"));
            }
        };
        Ok(answer(&named, edited, changes, unused))
    }
}

fn range(first: i64, last: i64) -> Result<(usize, usize), Error> {
    let line = |line: i64| usize::try_from(line).ok().filter(|line| *line > 0);
    match (line(first), line(last)) {
        (Some(first), Some(last)) if last < first => {
            Err(Error::failed("end_line must be >= start_line"))
        }
        (Some(first), Some(last)) => Ok((first, last)),
        _ => Err(Error::Failed {
            text: "line range out of bounds".to_owned(),
            hint: Some("lines are counted from 1".to_owned()),
        }),
    }
}

fn answer(path: &str, edited: Edited, changes: usize, unused: bool) -> Reply {
    let mut answer = json!({
        "success": true, "path": path, "changes": changes, "lines": edited.lines,
        "size": edited.size,
    });
    reply::add_repaired(&mut answer, &edited.repaired);
    reply::broken_links(&mut answer, edited.links_broken);
    if unused {
        let hint = "start_line and end_line were not used, because old_text was given";
        reply::add(&mut answer, "hint", hint);
    }
    Reply::json(answer)
        .detail("diff", edited.diff)
        .detail("first_changed_line", edited.first_changed_line)
        .detail("changes", changes)
        .detail("lines", edited.lines)
        .detail_if("repaired", edited.repaired)
}
