//! `read`: returns a file as text, in windows that follow each other without a gap.

use crate::prelude::*;
use crate::toolsets::missing;
use crate::truncate::{self, format_size};
use haft_ops::read::{self, Found, Room, Shown, Window};
use haft_ops::{blocking, picture};

/// Read a file and return its content as text, or as an image for PNG, JPEG,
/// GIF and WebP. At most 2000 lines or 50KB are returned; a note then says how
/// to continue.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// File path, absolute or relative to the working directory.
    path: String,
    /// Line to start from, counted from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// Maximum number of lines to return. 0 means no limit of your own.
    #[schemars(range(min = 0))]
    limit: Option<u64>,
}

pub(super) struct Read;

impl Tool for Read {
    const NAME: &'static str = "read";
    const EFFECT: Effect = Effect::Read;
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        vec![Resource::Path(args.path.clone(), Access::Read)]
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let request = read::Read {
            path: cx.resolve(&args.path, Access::Read).await?,
            window: Window {
                first: args.offset.unwrap_or(1),
                lines: args.limit.filter(|limit| *limit > 0),
            },
            room: Room::Lines {
                bytes: truncate::MAX_BYTES,
                lines: truncate::MAX_LINES,
            },
            cancel: cx.cancel().clone(),
        };
        let found = match read::file(cx.backend(), request).await {
            Ok(found) => found,
            Err(error) => return Err(missing::suggest(error, &args.path, cx).await.into()),
        };
        match found {
            Found::Text(shown) => Ok(text(&args.path, shown, cx)),
            Found::Picture(bytes, media_type) => {
                let path = args.path;
                let picture = blocking::run(blocking::Weight::Heavy, move || {
                    picture::prepare(bytes, media_type, &path)
                })
                .await?;
                Ok(Reply::from(&picture))
            }
        }
    }
}

fn text(path: &str, shown: Shown, cx: &Context) -> Reply {
    if shown.total_lines == 0 {
        return Reply::from(format!("({path} is empty)"));
    }
    let last = shown.first + shown.lines.saturating_sub(1);
    let mut text = shown.text;
    if let Some(long) = shown.long_line {
        text.push_str(&format!(
            "\n\n[Line {} is {} bytes long; its first {} bytes are shown.",
            long.number, long.bytes, long.shown,
        ));
        let offered = cx.offered();
        let command = format!(
            "sed -n '{}p' {} | tail -c +{}",
            long.number,
            quoted(path),
            long.shown + 1
        );
        text.push_str(&match (offered.has("bash"), offered.has("grep")) {
            (true, true) => format!(
                " For the rest: {command}; or use grep, which shows the text around a match]"
            ),
            (true, false) => format!(" For the rest: {command}]"),
            (false, true) => " Use grep to see the text around a match]".to_owned(),
            (false, false) => "]".to_owned(),
        });
    }
    if last < shown.total_lines {
        let blank = if shown.long_line.is_some() {
            "\n"
        } else {
            "\n\n"
        };
        text.push_str(&format!(
            "{blank}[Showing lines {}-{last} of {} ({}). Use offset={} to continue.]",
            shown.first,
            shown.total_lines,
            format_size(shown.total_bytes),
            last + 1
        ));
    }
    Reply::from(text)
        .already_cut()
        .detail("first_line", shown.first)
        .detail("lines", shown.lines)
        .detail("total_lines", shown.total_lines)
        .detail("total_bytes", shown.total_bytes)
        .detail(
            "truncated",
            last < shown.total_lines || shown.long_line.is_some(),
        )
}

/// Quotes a path for a shell.
fn quoted(path: &str) -> String {
    format!("'{}'", path.replace('\'', "'\\''"))
}
