//! `glob`: finds files whose path matches a pattern.

use super::entry::{described, followed};
use super::{MAX_BYTES, reply};
use crate::prelude::*;
use haft_ops::glob::{self, Anchored, Dots, IgnoreFiles, Kinds, Matching, Stopped};
use haft_ops::scope::spelling::Misspelling;
use std::path::Path;
use std::time::Duration;

/// Find files by a glob pattern, e.g. `**/*.py`, `src/{a,b}/*.ts`. `*` stays within a
/// directory, `**` matches any depth, and a leading dot must be written explicitly.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Glob pattern, from `path`.
    pattern: String,
    /// Directory to search.
    #[serde(default = "root")]
    path: String,
}

fn root() -> String {
    "/".to_owned()
}

/// Time after which a search returns what it has found.
const TIME: Duration = Duration::from_secs(60);

/// Maximum number of files listed, including those saved to a file.
const FILES: usize = 100_000;

pub(super) struct Glob;

impl Tool for Glob {
    const NAME: &'static str = "glob";
    const EFFECT: Effect = Effect::Read;
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        vec![Resource::Path(args.path.clone(), Access::Read)]
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let path = cx.resolve(&args.path, Access::Read).await?;
        if args.pattern.split('/').any(|part| part == "..") {
            return Err(haft_ops::Error::Misspelt {
                path: args.pattern,
                how: Misspelling::Traversal,
            }
            .into());
        }
        let start = path.clone();
        let request = glob::Glob {
            path,
            matching: Matching::Glob {
                pattern: from_start(&cx.named(&args.pattern), start.virtual_path()),
                anchored: Anchored::ToPath,
            },
            dots: Dots::ExplicitOnly,
            kinds: Kinds::Files,
            ignored: IgnoreFiles::Disregard,
            max: FILES,
            deadline: Some(cx.deadline(TIME)),
            cancel: cx.cancel().clone(),
        };
        let watch = |progress: glob::Progress| {
            cx.update(format!("{} files looked at", progress.files));
        };
        let found = match glob::entries(cx.backend(), request, &watch).await {
            Ok(found) => found,
            Err(haft_ops::Error::NotFound { .. }) => {
                return Ok(Reply::json(reply::success(json!({ "entries": [] }))));
            }
            Err(error) => return Err(error.into()),
        };
        let below = found.entries.iter().map(|entry| &entry.below);
        let paths: Vec<_> = below.filter_map(|below| start.descendant(below)).collect();
        let places: Vec<_> = paths
            .iter()
            .map(|path| path.virtual_path().to_owned())
            .collect();
        let mut entries = Vec::new();
        for (place, stat) in places.iter().zip(glob::stats(cx.backend(), paths).await?) {
            // `None` if it was removed since it was found.
            if let Some(stat) = stat {
                let stat = followed(place, stat, None, cx).await;
                entries.push((place, stat));
            }
        }
        let mut answer = reply::success(json!({}));
        let entries = entries.iter().map(|(place, stat)| described(place, stat));
        let mut is_cut = reply::add_entries(&mut answer, "entries", entries, MAX_BYTES, cx);
        is_cut |= found.total > found.entries.len() as u64 || found.stopped.is_some();
        if is_cut {
            reply::add(&mut answer, "truncated", true);
            reply::add(&mut answer, "total", found.total);
        }
        reply::add_left_out(&mut answer, found.skipped.excluded);
        if found.stopped == Some(Stopped::Deadline) {
            let hint =
                "the time limit was reached before everything was searched: there may be more";
            reply::add(&mut answer, "hint", hint);
        } else if found.skipped.unreadable > 0 {
            let hint = format!("{} directories could not be read", found.skipped.unreadable);
            reply::add(&mut answer, "hint", hint);
        }
        Ok(Reply::json(answer)
            .detail("entries", found.total)
            .detail("truncated", is_cut))
    }
}

/// Interprets a pattern that starts with `/`: if it names the start folder, it is relative
/// to the root of the tree, otherwise relative to the start folder, as if the slash were
/// missing.
pub(super) fn from_start(pattern: &str, start: &Path) -> String {
    let Some(rooted) = pattern.strip_prefix('/') else {
        return pattern.to_owned();
    };
    let start = start.to_string_lossy();
    let below = format!("{}/", start.trim_matches('/'));
    match rooted.strip_prefix(below.as_str()) {
        Some(inside) if below.len() > 1 => inside.to_owned(),
        _ => rooted.to_owned(),
    }
}
