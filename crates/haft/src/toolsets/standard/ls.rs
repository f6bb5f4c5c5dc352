//! `ls`: lists one directory, with sizes and times.

use super::summary;
use crate::prelude::*;
use crate::truncate::format_size;
use haft_ops::backend::{Entry, Kind, Through};
use haft_ops::list::{self, Hidden, Listed};
use haft_ops::scope::filter::LeftOut;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// List a directory: names, sizes and modification times (UTC). Directories
/// come first and end in `/`.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Directory to list (default: the working directory).
    path: Option<String>,
    /// Include names that begin with a dot.
    #[serde(default)]
    show_hidden: bool,
}

pub(super) struct Ls;

impl Tool for Ls {
    const NAME: &'static str = "ls";
    const EFFECT: Effect = Effect::Read;
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        vec![Resource::Path(
            super::or_here(args.path.as_deref()),
            Access::Read,
        )]
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let request = list::List {
            path: cx
                .resolve(&super::or_here(args.path.as_deref()), Access::Read)
                .await?,
            hidden: if args.show_hidden {
                Hidden::Show
            } else {
                Hidden::Leave
            },
        };
        let Listed {
            mut entries,
            left_out,
        } = list::directory(cx.backend(), &request).await?;
        let count = entries.len();
        if entries.is_empty() {
            let (text, left_out) = nothing(cx, request).await?;
            return Ok(with_left_out(Reply::from(text), left_out).detail("entries", 0));
        }
        // A stable sort keeps the order by name in both halves.
        entries.sort_by_key(|entry| !is_directory(entry));
        // One at a time, because a folder may have very many entries.
        let mut text = String::new();
        for entry in entries {
            text.push_str(&line(&entry));
            text.push('\n');
        }
        text.pop();
        Ok(with_left_out(Reply::from(text), left_out).detail("entries", count))
    }
}

/// Adds a last line about entries that were left out.
fn with_left_out(reply: Reply, left_out: LeftOut) -> Reply {
    match summary::left_out(left_out) {
        Some(line) => reply.footer(line).detail("left_out", left_out.total()),
        None => reply,
    }
}

/// Returns the text for a folder without visible entries: it may have hidden ones.
async fn nothing(cx: &Context, request: list::List) -> Result<(String, LeftOut), Error> {
    let all = list::List {
        hidden: Hidden::Show,
        ..request
    };
    let Listed { entries, left_out } = list::directory(cx.backend(), &all).await?;
    let text = match entries.len() {
        0 if left_out.total() > 0 => "(no entries to show)".to_owned(),
        0 => "(empty directory)".to_owned(),
        1 => "(one hidden entry; use show_hidden)".to_owned(),
        many => format!("({many} hidden entries; use show_hidden)"),
    };
    Ok((text, left_out))
}

fn is_directory(entry: &Entry) -> bool {
    match &entry.target {
        None => entry.stat.kind == Kind::Directory,
        Some(target) => target.through == Through::To(Kind::Directory),
    }
}

fn line(entry: &Entry) -> String {
    let mut name = visible(&entry.name.to_string_lossy());
    if is_directory(entry) {
        name.push('/');
    }
    if let Some(target) = &entry.target {
        name.push_str(&format!(" -> {}", visible(&target.path.to_string_lossy())));
        if target.through == Through::Broken {
            name.push_str(" (broken)");
        }
    }
    let size = match entry.stat.kind {
        Kind::Directory => "-".to_owned(),
        Kind::Other(kind) => kind.to_owned(),
        Kind::File | Kind::Link => format_size(entry.stat.size),
    };
    let time = entry.stat.modified.map_or_else(|| "-".to_owned(), minutes);
    format!("{name}  {size}  {time}")
}

/// Formats a time as `2026-11-15 04:36`, in UTC.
fn minutes(time: SystemTime) -> String {
    // The formatter supports the years 1970 to 9999; a file's time can be any.
    let end = Duration::from_secs(253_402_300_799);
    if !time
        .duration_since(UNIX_EPOCH)
        .is_ok_and(|since| since < end)
    {
        return "-".to_owned();
    }
    let text = haft_ops::text::moment::to_seconds(time);
    text.replace('T', " ").chars().take(16).collect()
}

/// Escapes a name so that it stays on one line.
fn visible(name: &str) -> String {
    if name.contains(char::is_control) {
        name.escape_default().to_string()
    } else {
        name.to_owned()
    }
}
