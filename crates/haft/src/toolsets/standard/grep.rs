//! `grep`: finds lines that match a regular expression, and reports what was searched.

use super::summary::{self, Summary};
use crate::prelude::*;
use haft_ops::search::{self, Case, Collect, FileMatches, LineKind, Searched};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// Search files for a regular expression, one match per line of a file.
/// Ignore files (.gitignore) are honoured and hidden files searched; a path you
/// name is searched even if ignored. Output is `path:line:text`.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Regular expression (RE2-like: no look-around, no backreferences).
    pattern: String,
    /// File or directory to search (default: the working directory).
    path: Option<String>,
    /// Which files, e.g. `*.rs` or `src/**/*.{ts,tsx}`.
    glob: Option<String>,
    /// Whether case matters.
    #[serde(default)]
    case_sensitive: bool,
    /// Lines of context around each match.
    #[schemars(range(min = 0, max = 100))]
    context_lines: Option<usize>,
    /// Maximum number of matches to return.
    #[serde(default = "default_max")]
    #[schemars(range(min = 1, max = 100_000))]
    max_results: usize,
}

const fn default_max() -> usize {
    100
}

/// Time after which a search returns what it has found.
const TIME: Duration = Duration::from_secs(60);

/// Maximum length of a line, in bytes; longer ones are cut around the match.
const MAX_LINE: usize = 500;

pub(super) struct Grep;

impl Tool for Grep {
    const NAME: &'static str = "grep";
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
        let context = args.context_lines.unwrap_or(0);
        let (pattern, literal) = summary::pattern(args.pattern);
        let request = search::Search {
            path,
            pattern,
            case: if args.case_sensitive {
                Case::Sensitive
            } else {
                Case::Insensitive
            },
            glob: args.glob,
            collect: Collect::Lines,
            context,
            max_matches: args.max_results,
            max_line: MAX_LINE,
            deadline: Some(cx.deadline(TIME)),
            cancel: cx.cancel().clone(),
        };
        let watch = |progress: search::Progress| {
            cx.update(format!(
                "{} files searched, {} matches",
                progress.files, progress.matches
            ));
        };
        let searched = search::files(cx.backend(), request, &watch).await?;
        let reply = reply(&searched, cx, &start, context);
        Ok(summary::with_literal(reply, literal))
    }
}

fn reply(searched: &Searched, cx: &Context, start: &Path, context: usize) -> Reply {
    let skipped = searched.skipped;
    let summary = Summary {
        shown: searched.shown,
        total: searched.total,
        searched: searched.searched,
        skipped: &[
            (skipped.binary, "binary"),
            (skipped.unreadable, "unreadable"),
            (skipped.too_long_lines, "with lines too long"),
            (skipped.special, "special"),
            (skipped.hidden, "not allowed"),
            (skipped.excluded.denied, summary::DENIED),
            (skipped.excluded.asks, summary::ASKS),
            (
                skipped.links,
                if skipped.links == 1 { "link" } else { "links" },
            ),
        ],
        stopped: searched.stopped,
    };
    let mut text = String::new();
    for file in &searched.files {
        lines(&mut text, file, cx, start, context);
    }
    let text = if searched.total == 0 && searched.stopped.is_some() {
        "No matches found so far".to_owned()
    } else if searched.total == 0 {
        "No matches found".to_owned()
    } else {
        text
    };
    summary::details(Reply::from(text), &summary).footer(summary.line())
}

/// Formats the matches of one file; `--` separates groups that do not touch.
fn lines(text: &mut String, file: &FileMatches, cx: &Context, start: &Path, context: usize) {
    let below = file.below.as_path();
    let path = cx.shown(&if below.as_os_str().is_empty() {
        start.to_owned()
    } else {
        start.join(below)
    });
    let mut last = None;
    for line in &file.lines {
        let touches = last.is_some_and(|last| line.number == last + 1);
        if context > 0 && !touches && !text.is_empty() {
            text.push_str("--\n");
        }
        let mark = if line.kind == LineKind::Match {
            ':'
        } else {
            '-'
        };
        let _ = writeln!(text, "{path}{mark}{}{mark}{}", line.number, line.text);
        last = Some(line.number);
    }
}
