//! `web_fetch`: fetches a page as text.

use super::MAX_URL_CHARS;
use super::window::{Limits, Window, window};
use crate::fetch::{self, FetchError, FetchOptions, Fetched, Fetcher, shorten};
use haft::truncate::{Hit, Keep, Limit, MAX_LINES, format_size};
use haft::{Offered, prelude::*};
use std::time::Duration;

/// Fetch a page and return it as readable text: HTML becomes Markdown-like text
/// (headings, lists, tables, code, links), JSON is indented, other text is returned
/// unchanged. The main content comes first. At most 2000 lines are returned at a time; a
/// note says how to continue.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// URL to fetch, with http:// or https://.
    url: String,
    /// Maximum bytes of text to return.
    #[serde(default = "default_bytes")]
    #[schemars(range(min = 1024, max = 102_400))]
    max_bytes: usize,
    /// Byte offset to start from, as given in the note of an earlier call.
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
        let host = fetch::parse_url(&args.url).ok();
        let host = host.and_then(|url| Some(url.host_str()?.to_owned()));
        host.map(Resource::Host).into_iter().collect()
    }

    fn refusal(&self, args: &Args, tools: &Offered) -> Option<Error> {
        let url = fetch::parse_url(&args.url);
        let refused = url.and_then(|url| self.0.permits(&url)).err();
        refused.map(|error| failed(&error, tools))
    }

    fn timeout(&self) -> Option<Duration> {
        Some(fetch::TIMEOUT)
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let may_redirect_to = |host: &str| cx.allows(Resource::Host(host.to_owned()));
        let options = FetchOptions {
            time: cx.time_left(fetch::TIMEOUT),
            continues: args.offset > 0,
            may_redirect_to: &may_redirect_to,
        };
        let failed = |error| failed(&error, &cx.offered());
        let url = fetch::parse_url(&args.url).map_err(failed)?;
        let fetched = self.0.fetch(&url, options).await.map_err(failed)?;
        reply(&fetched, &args, cx)
    }
}

fn failed(error: &FetchError, tools: &Offered) -> Error {
    let hint = Some(error.advice(tools)).filter(|advice| !advice.is_empty());
    let text = error.to_string();
    Error::Failed { text, hint }.detail("outcome", error.name())
}

fn reply(fetched: &Fetched, args: &Args, cx: &Context) -> Result<Reply, Error> {
    let full_text = fetched.text.as_str();
    let limits = Limits {
        bytes: args.max_bytes,
        lines: MAX_LINES,
    };
    let (offset, total) = (args.offset, full_text.len());
    let Some(Window { start, end, hit }) = window(full_text, fetched.main, offset, limits) else {
        return Err(Error::Failed {
            text: format!("offset {offset} is past the end: the text has {total} bytes"),
            hint: Some("Use a smaller offset.".to_owned()),
        });
    };
    let mut text = match fetched.hops {
        0 => String::new(),
        _ => format!(
            "[Redirected to: {}]\n\n",
            shorten(&fetched.url, MAX_URL_CHARS)
        ),
    };
    let part = full_text.get(start..end).unwrap_or_default();
    text.push_str(part.trim_end());
    let mut notes = Vec::new();
    if fetched.is_truncated {
        notes.push("[The page is too large: only the beginning was read. Look for a smaller page on the subject]".to_owned());
    }
    let mut path = None;
    if let Some(hit) = hit {
        path = cx.keep_text(full_text);
        notes.push(format!(
            "[Showing bytes {start}-{end} of {total}. Use offset={end} to continue.]"
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
    } else if end < total {
        notes.push(format!(
            "[Left out: {} around the page, such as navigation. Use offset={end} to read it.]",
            format_size((total - end) as u64)
        ));
    }
    if !notes.is_empty() {
        text.push_str("\n\n");
        text.push_str(&notes.join("\n"));
    }
    let outcome = if fetched.is_truncated {
        "too_large"
    } else {
        "ok"
    };
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
        .detail("text_bytes", total)
        .detail("from", fetched.source.name()))
}
