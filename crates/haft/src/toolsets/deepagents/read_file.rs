//! `read_file`: returns the numbered lines of a text, or an image.

use super::{MAX_BYTES, reply};
use crate::prelude::*;
use crate::toolsets::missing;
use haft_ops::read::{self, Found, Room, Shown, Window};
use haft_ops::text::lines;
use haft_ops::{blocking, picture};

/// Read a file. Text is returned with line numbers, an image (PNG, JPEG, GIF, WebP) as an
/// image. If there are more lines, a note at the end says how to continue.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Absolute path to the file.
    file_path: String,
    /// Line to start from, counted from 0.
    #[serde(default)]
    #[schemars(range(min = 0))]
    offset: u64,
    /// Maximum number of lines to return.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 0))]
    limit: u64,
}

const fn default_limit() -> u64 {
    2000
}

pub(super) struct ReadFile;

impl Tool for ReadFile {
    const NAME: &'static str = "read_file";
    const EFFECT: Effect = Effect::Read;
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        vec![Resource::Path(args.file_path.clone(), Access::Read)]
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let limit = match args.limit {
            0 => default_limit(),
            limit => limit,
        };
        let request = read::Read {
            path: cx.resolve(&args.file_path, Access::Read).await?,
            window: Window {
                first: args.offset.saturating_add(1),
                lines: Some(limit),
            },
            room: Room::Lines {
                bytes: MAX_BYTES,
                lines: usize::MAX,
            },
            cancel: cx.cancel().clone(),
        };
        match read::file(cx.backend(), request).await {
            Ok(Found::Text(shown)) => Ok(text(&shown, cx)),
            Ok(Found::Picture(bytes, media_type)) => image(bytes, media_type, args.file_path).await,
            Err(haft_ops::Error::PastEnd { lines, .. }) => Ok(content_reply(format!(
                "No content at offset {} (file has {lines} lines)",
                args.offset
            ))),
            Err(error) => Err(missing::suggest(error, &args.file_path, cx).await.into()),
        }
    }
}

fn content_reply(content: String) -> Reply {
    Reply::json(reply::success(json!({ "content": content })))
}

async fn image(bytes: Vec<u8>, media_type: &'static str, path: String) -> Result<Reply, Error> {
    let prepare = move || picture::prepare(bytes, media_type, &path);
    let picture = blocking::run(blocking::Weight::Heavy, prepare).await?;
    let content = json!({ "type": "image", "media_type": picture.media_type });
    let answer = reply::success(json!({ "content": content }));
    Ok(Reply::json(answer).and_image(&picture.bytes, picture.media_type))
}

fn text(shown: &Shown, cx: &Context) -> Reply {
    if shown.total_lines == 0 {
        return content_reply("System reminder: File exists but has empty contents".to_owned());
    }
    let first = usize::try_from(shown.first).unwrap_or(usize::MAX);
    // Line numbers need room too: as many whole lines as fit with them.
    let (mut content, mut last) = (String::new(), shown.first.saturating_sub(1));
    // Counted, because the last line may be empty.
    let count = usize::try_from(shown.lines).unwrap_or(usize::MAX);
    for (line, number) in shown.text.split('\n').take(count).zip(first..) {
        let mut row = String::new();
        lines::number_line(&mut row, number, line, lines::CHUNK_CHARS);
        let room = MAX_BYTES.saturating_sub(content.len());
        if row.len() >= room && !content.is_empty() {
            break;
        }
        if !content.is_empty() {
            content.push('\n');
        }
        content.push_str(&row);
        last += 1;
    }
    if let Some(long) = shown.long_line {
        let offered = cx.offered();
        let next = offered.first(&[(&["grep"], ". Use grep to see the text around a match")]);
        content.push_str(&format!(
            "\n\n... (line {} has {} bytes; its first {} are shown{next})",
            long.number, long.bytes, long.shown
        ));
    }
    let more = shown.total_lines.saturating_sub(last);
    if more > 0 {
        content.push_str(&format!(
            "\n\n... ({more} more lines. Use offset={last} to continue reading)"
        ));
    }
    content_reply(content)
        .detail("first_line", shown.first)
        .detail("lines", last + 1 - shown.first)
        .detail("total_lines", shown.total_lines)
        .detail("truncated", more > 0 || shown.long_line.is_some())
}
