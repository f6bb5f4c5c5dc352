//! `grep`: finds files that contain a text, the lines it is on, or their number.

use super::found;
use super::glob::from_start;
use crate::prelude::*;
use haft_ops::search::{self, Case, Collect, Pattern};
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
    #[schemars(extend("default" = "files_with_matches"))]
    output_mode: Mode,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    #[default]
    FilesWithMatches,
    Content,
    Count,
}

/// Time after which a search returns what it has found.
const TIME: Duration = Duration::from_secs(60);

/// Maximum number of lines, including those saved to a file.
const LINES: usize = 200_000;

/// Maximum length of a line, in bytes; longer ones are cut around the match.
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
        let path = cx.resolve(&start(&args), Access::Read).await?;
        let place = path.virtual_path().to_owned();
        let request = search::Search {
            path,
            pattern: Pattern::Literal(args.pattern),
            case: Case::Sensitive,
            glob: args.glob.map(|glob| filter(glob, &place, cx)),
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
        Ok(found::answer(&searched, &place, args.output_mode, cx))
    }
}

/// Converts a filter that starts with the real path of the work folder to one that starts
/// where the search does.
fn filter(glob: String, start: &Path, cx: &Context) -> String {
    match cx.named(&glob) {
        named if named == glob => glob,
        named => from_start(&named, start),
    }
}

/// Returns where the search starts.
fn start(args: &Args) -> String {
    let path = args.path.as_deref().filter(|path| !path.is_empty());
    path.unwrap_or("/").to_owned()
}
