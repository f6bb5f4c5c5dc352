//! `web_fetch`: a page of the web as text.

use super::LONGEST_ADDRESS;
use super::window::{Room, window};
use crate::fetch::{self, Ask, Fetched, Fetcher, Trouble, brief};
use haft::prelude::*;
use haft::truncate::{Hit, Keep, Limit, MAX_LINES, format_size};
use std::time::Duration;

/// Fetch a page and return it as readable text: HTML becomes Markdown-like text
/// (headings, lists, tables, code, links), JSON is indented, other text is passed on.
/// What the page is about comes first. At most 2000 lines are returned at a time; a note
/// says how to read on.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Address to fetch, with http:// or https://.
    url: String,
    /// Maximum bytes of text to return.
    #[serde(default = "default_bytes")]
    #[schemars(range(min = 1024, max = 102_400))]
    max_bytes: usize,
    /// Byte of the text to start from, as a note of an earlier call says.
    #[serde(default)]
    #[schemars(range(min = 0))]
    offset: usize,
}

const fn default_bytes() -> usize {
    51_200
}

pub(super) struct WebFetch(pub(super) Fetcher);

impl Tool for WebFetch {
    const NAME: &'static str = "web_fetch";
    const EFFECT: Effect = Effect::Network;
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        let host = fetch::address(&args.url).ok();
        let host = host.and_then(|url| Some(url.host_str()?.to_owned()));
        host.map(Resource::Host).into_iter().collect()
    }

    fn timeout(&self) -> Option<Duration> {
        Some(fetch::TIMEOUT)
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let may_reach = |host: &str| cx.allows(Resource::Host(host.to_owned()));
        let ask = Ask {
            time: cx.time_left(fetch::TIMEOUT),
            reads_on: args.offset > 0,
            may_reach: &may_reach,
        };
        let failed = |trouble| failed(&trouble, cx);
        let url = fetch::address(&args.url).map_err(failed)?;
        let fetched = self.0.fetch(&url, ask).await.map_err(failed)?;
        reply(&fetched, &args, cx)
    }
}

fn failed(trouble: &Trouble, cx: &Context) -> Error {
    let error = Error::Failed {
        text: trouble.to_string(),
        hint: Some(trouble.advice(&cx.offered())).filter(|advice| !advice.is_empty()),
    };
    error.detail("outcome", trouble.name())
}

fn reply(fetched: &Fetched, args: &Args, cx: &Context) -> Result<Reply, Error> {
    let whole = fetched.text.as_str();
    let room = Room {
        bytes: args.max_bytes,
        lines: MAX_LINES,
    };
    let Some(window) = window(whole, fetched.main, args.offset, room) else {
        return Err(Error::Failed {
            text: format!(
                "offset {} is past the end: the text has {} bytes",
                args.offset,
                whole.len()
            ),
            hint: Some("Use a smaller offset.".to_owned()),
        });
    };
    let mut text = match fetched.hops {
        0 => String::new(),
        _ => format!(
            "[Redirected to: {}]\n\n",
            brief(&fetched.url, LONGEST_ADDRESS)
        ),
    };
    let part = whole.get(window.start..window.end).unwrap_or_default();
    text.push_str(part.trim_end());
    let mut notes = Vec::new();
    if fetched.is_cut {
        notes.push("[The page is too large: only its beginning was read. Look for a page about a part of it]".to_owned());
    }
    let mut path = None;
    if let Some(hit) = window.hit {
        path = cx.keep_text(whole);
        notes.push(format!(
            "[Showing bytes {}-{} of {}. Use offset={} to continue.]",
            window.start,
            window.end,
            whole.len(),
            window.end
        ));
        let limit = match hit {
            Hit::Bytes => format_size(args.max_bytes as u64),
            Hit::Lines => format!("{MAX_LINES} lines"),
        };
        notes.push(match &path {
            Some(path) => {
                format!("[Output truncated at {limit}. Full output saved to: {path}]")
            }
            None => format!("[Output truncated at {limit}. The full output was not kept]"),
        });
    } else if window.end < whole.len() {
        notes.push(format!(
            "[Left out: {} around the page, such as navigation. Use offset={} to read it.]",
            format_size((whole.len() - window.end) as u64),
            window.end
        ));
    }
    if !notes.is_empty() {
        text.push_str("\n\n");
        text.push_str(&notes.join("\n"));
    }
    let outcome = if fetched.is_cut { "too_large" } else { "ok" };
    let limit = Limit {
        bytes: args.max_bytes,
        lines: MAX_LINES,
        keep: Keep::Head,
    };
    let reply = Reply::from(text).limited(limit).already_cut();
    let reply = match path {
        Some(path) => reply.detail("output_path", path),
        None => reply,
    };
    Ok(reply
        .detail("outcome", outcome)
        .detail("url", fetched.url.as_str())
        .detail("title", fetched.title.clone())
        .detail("media_type", fetched.media_type.as_str())
        .detail("fetched_bytes", fetched.bytes)
        .detail("text_bytes", whole.len())
        .detail("from", fetched.from.name()))
}
