//! `find`: files and directories by name.

use super::summary::{self, Summary};
use crate::prelude::*;
use haft_ops::glob::{self, Anchored, Dots, IgnoreFiles, Kinds, Matching};
use std::time::Duration;

/// Find files and directories by name, recursively. Ignore files (.gitignore)
/// are honoured. Output is one path per line; directories end in `/`.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Directory to search (default: the working directory).
    path: Option<String>,
    /// Glob (`*_test.rs`, `src/**/*.{ts,tsx}`) or part of a name.
    pattern: Option<String>,
    /// What to find; both if not given.
    #[serde(rename = "type")]
    kind: Option<EntryKind>,
    /// Maximum number of results to return.
    #[serde(default = "default_max")]
    #[schemars(range(min = 1, max = 100_000))]
    max_results: usize,
}

#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum EntryKind {
    File,
    Dir,
}

const fn default_max() -> usize {
    200
}

/// Time after which a search returns what it has found.
const TIME: Duration = Duration::from_secs(60);

pub(super) struct Find;

impl Tool for Find {
    const NAME: &'static str = "find";
    const EFFECT: Effect = Effect::Read;
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        vec![Resource::Path(
            super::or_here(args.path.as_deref()),
            Access::Read,
        )]
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let path = cx
            .resolve(&super::or_here(args.path.as_deref()), Access::Read)
            .await?;
        let start = path.real().to_owned();
        let request = glob::Glob {
            path,
            matching: matching(args.pattern),
            dots: Dots::Match,
            kinds: match args.kind {
                Some(EntryKind::File) => Kinds::Files,
                Some(EntryKind::Dir) => Kinds::Directories,
                None => Kinds::Both,
            },
            ignored: IgnoreFiles::Honour,
            max: args.max_results,
            deadline: Some(cx.deadline(TIME)),
            cancel: cx.cancel().clone(),
        };
        let watch = |progress: glob::Progress| {
            cx.update(format!(
                "{} entries seen, {} matches",
                progress.files, progress.matches
            ));
        };
        let found = glob::entries(cx.backend(), request, &watch).await?;
        let mut lines: Vec<String> = found
            .entries
            .iter()
            .map(|entry| {
                cx.shown(&start.join(&entry.below)) + if entry.is_dir() { "/" } else { "" }
            })
            .collect();
        if lines.is_empty() {
            lines.push("No matches found".to_owned());
        }
        let summary = Summary {
            shown: found.entries.len() as u64,
            total: found.total,
            searched: found.visited,
            skipped: &[
                (found.skipped.unreadable, "unreadable"),
                (found.skipped.special, "special"),
                (found.skipped.hidden, "not allowed"),
                (found.skipped.excluded.denied, summary::DENIED),
                (found.skipped.excluded.asks, summary::ASKS),
            ],
            stopped: found.stopped,
        };
        let reply = summary::details(Reply::from(lines.join("\n")), &summary);
        Ok(if summary.is_partial() {
            reply.footer(summary.line())
        } else {
            reply
        })
    }
}

/// Returns a glob if the pattern has glob characters, or else a part of the name.
fn matching(pattern: Option<String>) -> Matching {
    match pattern.filter(|pattern| !pattern.is_empty()) {
        None => Matching::Everything,
        Some(pattern) if pattern.contains(['*', '?', '[', '{', '/']) => Matching::Glob {
            pattern,
            anchored: Anchored::AnyDepthByName,
        },
        Some(pattern) => Matching::NameContains(pattern),
    }
}
