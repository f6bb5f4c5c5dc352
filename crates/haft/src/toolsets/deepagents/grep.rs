//! `grep`: files that hold a text, the lines it is on, or how many there are.

use super::{FOUND, reply};
use crate::prelude::*;
use haft_ops::search::{self, Case, Collect, Pattern, Searched, Stopped};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// Search for a text within files. The pattern is literal text, not a regular
/// expression, and case matters. Ignore files (.gitignore) are honoured and hidden
/// files searched.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Text to search for.
    pattern: String,
    /// Directory or file to search (default: everything).
    path: Option<String>,
    /// Which files, e.g. `*.py` (at any depth) or `src/**/*.ts` (from `path`).
    glob: Option<String>,
    /// What to return: the paths of files, the matching lines, or the number of them
    /// in each file.
    #[serde(default)]
    output_mode: Mode,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    FilesWithMatches,
    Content,
    Count,
}

/// A search stops after this with what it has.
const TIME: Duration = Duration::from_secs(60);

/// How many lines are kept, with the file that has those which do not fit.
const LINES: usize = 200_000;

/// Longer lines are cut around the match.
const LINE: usize = 500;

pub(super) struct Grep;

impl Tool for Grep {
    const NAME: &'static str = "grep";
    const EFFECT: Effect = Effect::Read;
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        vec![Resource::Path(start(args), Access::Read)]
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let path = cx.resolve(&start(&args), Access::Read)?;
        let place = path.place().to_owned();
        let request = search::Search {
            path,
            pattern: Pattern::Literal(args.pattern),
            case: Case::Sensitive,
            glob: args.glob,
            collect: match args.output_mode {
                Mode::Content => Collect::Lines,
                Mode::FilesWithMatches | Mode::Count => Collect::Counts,
            },
            context: 0,
            max_matches: LINES,
            max_line: LINE,
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
        Ok(answer(&searched, &place, args.output_mode, cx))
    }
}

/// Where the search begins.
fn start(args: &Args) -> String {
    let path = args.path.as_deref().filter(|path| !path.is_empty());
    path.unwrap_or("/").to_owned()
}

fn answer(searched: &Searched, start: &Path, mode: Mode, cx: &Context) -> Reply {
    let mut found = String::new();
    for file in &searched.files {
        let path = if file.below.as_os_str().is_empty() {
            start.to_string_lossy().into_owned()
        } else {
            start.join(&file.below).to_string_lossy().into_owned()
        };
        let _ = match mode {
            Mode::FilesWithMatches => writeln!(found, "{path}"),
            Mode::Count => writeln!(found, "{path}: {}", file.matches),
            Mode::Content => file
                .lines
                .iter()
                .try_for_each(|line| writeln!(found, "{path}:{}:{}", line.number, line.text)),
        };
    }
    let found = found.trim_end_matches('\n');
    let mut answer = reply::success(json!({ "result": "No matches found." }));
    let fits = FOUND.min(found.len());
    let shown = match found.char_indices().nth(fits) {
        None => found,
        Some((end, _)) => {
            let cut = found.get(..end).unwrap_or_default();
            cut.rfind('\n')
                .and_then(|line| cut.get(..line))
                .unwrap_or(cut)
        }
    };
    let is_cut = shown.len() < found.len();
    if is_cut {
        let more = found.chars().count() - shown.chars().count();
        let result = format!("{shown}\n\n... (truncated {more} characters) ...");
        reply::add(&mut answer, "result", result);
        reply::add(&mut answer, "truncated", true);
        if let Some(path) = cx.keep_text(found) {
            reply::add(&mut answer, "output_path", path);
        }
    } else if !found.is_empty() {
        reply::add(&mut answer, "result", found);
    }
    reply::add(&mut answer, "searched", looked_at(searched));
    let hint = match searched.stopped {
        Some(Stopped::Deadline) => Some("time was over before everything was searched".to_owned()),
        _ if mode == Mode::Content && searched.total > searched.shown => Some(format!(
            "the first {} of {} matching lines are kept",
            searched.shown, searched.total
        )),
        _ => None,
    };
    if let Some(hint) = hint {
        reply::add(&mut answer, "hint", hint);
    }
    Reply::json(&answer)
        .detail("matches", searched.total)
        .detail("truncated", is_cut)
}

/// What was searched, and what was not and why.
fn looked_at(searched: &Searched) -> Value {
    let skipped = searched.skipped;
    let mut looked_at = json!({
        "files": searched.searched, "matches": searched.total, "skipped": skipped.total(),
    });
    for (name, number) in [
        ("binary", skipped.binary),
        ("unreadable", skipped.unreadable),
        ("too_long_lines", skipped.too_long_lines),
        ("special", skipped.special),
        ("not_allowed", skipped.hidden),
    ] {
        if number > 0 {
            reply::add(&mut looked_at, name, number);
        }
    }
    looked_at
}
