//! `read`: returns the lines of a file with nothing added; the middle of a long file is
//! left out.

use crate::prelude::*;
use crate::toolsets::missing;
use crate::truncate::middle_of;
use haft_ops::read::{self, Found, Room, Shown, Window};
use haft_ops::{blocking, picture};

/// Read a file: its text, or an image for JPEG, PNG, GIF and WebP. If it has more than
/// 50000 bytes, its middle is left out; use `offset` and `limit` to see it.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// File path.
    path: String,
    /// Line to start from, counted from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// Maximum number of lines. 0 means all.
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

    fn guidance(&self) -> Option<&str> {
        Some(
            "Read a file before you change it. A reply is the file's own text, without line \
             numbers or notes. Where its middle was left out, read that part with offset and limit.",
        )
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let request = read::Read {
            path: cx.resolve(&args.path, Access::Read).await?,
            window: Window {
                first: args.offset.unwrap_or(1),
                lines: args.limit.filter(|limit| *limit > 0),
            },
            room: Room::Ends {
                bytes: super::FILE.bytes,
            },
            cancel: cx.cancel().clone(),
        };
        match read::file(cx.backend(), request).await {
            Ok(Found::Text(shown)) => Ok(text(shown)),
            Ok(Found::Picture(bytes, media_type)) => {
                let picture = blocking::run(blocking::Weight::Heavy, move || {
                    picture::prepare(bytes, media_type, &args.path)
                })
                .await?;
                Ok(Reply::from(&picture))
            }
            // A model that pages through a file reads until nothing is left.
            Err(haft_ops::Error::PastEnd { lines, .. }) => {
                Ok(Reply::from("").detail("total_lines", lines))
            }
            Err(error) => Err(missing::suggest(error, &args.path, cx).await.into()),
        }
    }
}

fn text(shown: Shown) -> Reply {
    let truncated = shown.gap.is_some();
    let text = match shown.gap {
        None => shown.text,
        Some(gap) => middle_of(&shown.text, gap.bytes, &gap.tail, super::FILE.bytes, None),
    };
    Reply::from(text)
        .limited(super::FILE)
        .already_cut()
        .detail("first_line", shown.first)
        .detail("lines", shown.lines)
        .detail("total_lines", shown.total_lines)
        .detail("total_bytes", shown.total_bytes)
        .detail("truncated", truncated)
}
