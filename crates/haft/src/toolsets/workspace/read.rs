//! `read`: returns a file as text, in windows of lines if it is long.

use super::{MAX_BYTES, reply};
use crate::prelude::*;
use crate::toolsets::missing;
use haft_ops::read::{self, Found, Room, Shown, Window};

/// Read a text file. At most 100000 bytes are returned; `truncated` is then true and
/// `next_offset` says where to continue.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// File to read, absolute or relative to the workspace.
    pub(super) path: String,
    /// Line to start from, counted from 1.
    #[schemars(range(min = 1))]
    pub(super) offset: Option<u64>,
    /// Maximum number of lines to return. 0 means no limit of your own.
    #[schemars(range(min = 0))]
    pub(super) limit: Option<u64>,
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
                bytes: MAX_BYTES,
                lines: usize::MAX,
            },
            cancel: cx.cancel().clone(),
        };
        let found = match read::file(cx.backend(), request).await {
            Ok(found) => found,
            Err(error) => return Err(missing::suggest(error, &args.path, cx).await.into()),
        };
        match found {
            Found::Text(shown) => Ok(text(&args.path, shown, cx)),
            Found::Picture(bytes, media_type) => Err(haft_ops::Error::Binary {
                path: args.path,
                size: bytes.len() as u64,
                kind: Some(media_type),
            }
            .into()),
        }
    }
}

fn text(path: &str, shown: Shown, cx: &Context) -> Reply {
    let last = shown.first + shown.lines.saturating_sub(1);
    let is_last = last >= shown.total_lines;
    let mut content = shown.text;
    let mut is_cut = shown.hit.is_some();
    let mut is_open = false;
    // Each window ends with its newline, so that together they are the file.
    if shown.lines > 0 && shown.long_line.is_none() && (!is_last || shown.final_newline) {
        if content.len() < MAX_BYTES {
            content.push('\n');
        } else {
            is_cut = true;
            is_open = is_last;
        }
    }
    let mut answer = json!({
        "success": true, "path": path, "content": content, "size": shown.total_bytes,
    });
    if is_cut {
        reply::add(&mut answer, "truncated", true);
    }
    if is_cut || !is_last {
        reply::add(&mut answer, "total_lines", shown.total_lines);
    }
    if !is_last {
        reply::add(&mut answer, "next_offset", last + 1);
    }
    if let Some(long) = shown.long_line {
        let hint = format!(
            "line {} is {} bytes long and its first {} bytes are shown",
            long.number, long.bytes, long.shown,
        );
        let rest = format!(
            "; for the rest use exec: sed -n '{}p' FILE | tail -c +{}",
            long.number,
            long.shown + 1
        );
        let hint = match cx.offered().has("exec") {
            true => hint + &rest,
            false => hint,
        };
        reply::add(&mut answer, "hint", hint);
    }
    if is_open {
        let hint = "only the newline at the end of the file is left out";
        reply::add(&mut answer, "hint", hint);
    }
    Reply::json(answer)
        .detail("first_line", shown.first)
        .detail("lines", shown.lines)
        .detail("total_lines", shown.total_lines)
        .detail("truncated", is_cut)
}
