//! Turns a body into text for a model, and recognises pages that are not the requested content.

use super::address::display_url;
use super::media::{self, Media};
use super::{FetchError, charset, json};
use crate::html::{self, Attribute, Page, Tag};
use haft_ops::text::decode::prefix;
use std::sync::atomic::AtomicBool;
use url::Url;

/// A page with at least this much text is never treated as blocked.
const MIN_PAGE_BYTES: usize = 1500;

/// Unmistakable bot challenges have less text than this.
const MAX_CHALLENGE_BYTES: usize = 500;

/// A page with less text than this may depend on its scripts.
const MAX_SHELL_BYTES: usize = 150;

/// A page with less text than this has no content: `Loading…`, `Are you a robot?`.
const MAX_PLACEHOLDER_BYTES: usize = 40;

/// Number of bytes of an error page that are shown.
const EXCERPT_BYTES: usize = 600;

/// A response body before it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RawPage {
    pub(super) url: Url,
    pub(super) status: u16,
    pub(super) content_type: String,
    pub(super) bytes: Vec<u8>,
    /// Whether only the beginning was received.
    pub(super) is_truncated: bool,
}

/// The text of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageText {
    pub(super) title: Option<String>,
    /// The main part of the page, then everything around it.
    pub(super) text: String,
    /// Byte offset in `text` at which the main part ends.
    pub(super) main: usize,
    /// Whether only the beginning of the page was read.
    pub(super) is_truncated: bool,
}

/// Text that appears on pages that block bots, and what such a page shows.
const BLOCK_SIGNS: [(&str, &str); 16] = [
    ("challenges.cloudflare.com", "a captcha"),
    ("cf-challenge", "a captcha"),
    ("cf_chl_", "a captcha"),
    ("/cdn-cgi/challenge-platform", "a captcha"),
    ("<title>just a moment...", "a captcha"),
    (
        "attention required! | cloudflare",
        "a notice that bots are blocked",
    ),
    ("g-recaptcha", "a captcha"),
    ("h-captcha", "a captcha"),
    ("px-captcha", "a captcha"),
    ("captcha-delivery.com", "a captcha"),
    ("_incapsula_resource", "a captcha"),
    ("anomaly-modal", "a captcha"),
    ("unusual traffic from your computer", "a captcha"),
    ("verify you are human", "a captcha"),
    ("are you a robot", "a captcha"),
    ("access denied</title>", "a notice that bots are blocked"),
];

/// Those that also appear in forms on ordinary pages.
const ALSO_IN_FORMS: [&str; 6] = [
    "challenges.cloudflare.com",
    "/cdn-cgi/challenge-platform",
    "g-recaptcha",
    "h-captcha",
    "verify you are human",
    "are you a robot",
];

/// Whether a page can only be a bot challenge.
fn is_challenge(html: &str) -> bool {
    let html = html.to_ascii_lowercase();
    let mut signs = BLOCK_SIGNS.iter().map(|(sign, _)| *sign);
    signs.any(|sign| !ALSO_IN_FORMS.contains(&sign) && html.contains(sign))
}

/// Returns how a page blocks bots, if it does.
pub(super) fn bot_protection(html: &str) -> Option<&'static str> {
    let html = html.to_ascii_lowercase();
    BLOCK_SIGNS
        .iter()
        .find(|(sign, _)| html.contains(sign))
        .map(|(_, what)| *what)
}

/// Reads a body, stopping early once `stop` is set because the caller is gone.
///
/// # Errors
/// Fails if the body is not the requested page or contains no text.
pub(super) fn read(raw: &RawPage, stop: &AtomicBool) -> Result<PageText, FetchError> {
    if raw.bytes.is_empty() {
        return Err(FetchError::Empty {
            url: display_url(&raw.url),
            status: raw.status,
        });
    }
    match media::detect(&raw.bytes, &raw.content_type) {
        Media::Binary(what) => Err(FetchError::NotText {
            url: display_url(&raw.url),
            what,
            bytes: raw.bytes.len() as u64,
        }),
        Media::Html => read_html(raw, stop),
        Media::Json => {
            let text = charset::decode(&raw.bytes, &raw.content_type);
            Ok(unstructured(json::pretty(&text).unwrap_or(text)))
        }
        Media::Text => Ok(unstructured(charset::decode(&raw.bytes, &raw.content_type))),
    }
}

fn unstructured(text: String) -> PageText {
    PageText {
        title: None,
        main: text.len(),
        text,
        is_truncated: false,
    }
}

fn read_html(raw: &RawPage, stop: &AtomicBool) -> Result<PageText, FetchError> {
    let html = charset::decode(&raw.bytes, &raw.content_type);
    let page = Page::parse(&html, &raw.url);
    let html::Text {
        title,
        main,
        rest,
        is_truncated,
    } = page.text(stop);
    // Do not count the title: by itself it is not content.
    let heading = title.as_ref().map(|title| format!("# {title}\n\n"));
    let heading = heading.filter(|heading| main.starts_with(heading.as_str()));
    let all = main.len() + rest.len() - heading.map_or(0, |heading| heading.len());
    let mut note = None;
    if all < MIN_PAGE_BYTES
        && let Some(what) = bot_protection(&html)
    {
        let max = if is_challenge(&html) {
            MAX_CHALLENGE_BYTES
        } else {
            MAX_PLACEHOLDER_BYTES
        };
        if all < max {
            return Err(FetchError::Blocked {
                url: display_url(&raw.url),
                status: raw.status,
                what,
            });
        }
        note = Some(format!(
            "[The page shows {what}: parts of it may be missing]"
        ));
    }
    if all < MAX_SHELL_BYTES {
        if let Some(to) = page.meta_redirect().filter(|to| *to != raw.url) {
            return Err(FetchError::Elsewhere {
                url: display_url(&raw.url),
                to: Box::new(to),
            });
        }
        if needs_scripts(&page, all == 0) {
            let asks = |text: &str| text.to_ascii_lowercase().contains("javascript");
            if is_placeholder(&main, &rest, all) || asks(&main) || asks(&rest) {
                return Err(FetchError::NeedsJavaScript {
                    url: display_url(&raw.url),
                });
            }
            note =
                Some("[The page may need JavaScript: this is all the text without it]".to_owned());
        }
    }
    let title = title.filter(|title| !title.is_empty());
    let mut read = PageText {
        main: main.len(),
        text: main,
        title,
        is_truncated,
    };
    if read.text.is_empty() && rest.is_empty() {
        read.text = match &read.title {
            Some(title) => format!("# {title}\n\n(the page has no text)"),
            None => "(the page has no text)".to_owned(),
        };
        read.main = read.text.len();
    } else if read.text.is_empty() {
        read = PageText {
            main: rest.len(),
            text: rest,
            ..read
        };
    } else if !rest.is_empty() {
        read.text.push_str("\n\n");
        read.main = read.text.len();
        read.text.push_str(&rest);
    }
    if let Some(note) = note {
        let note = note + "\n\n";
        read.text.insert_str(0, &note);
        read.main += note.len();
    }
    Ok(read)
}

/// Whether a text is only a placeholder shown while scripts load the page.
fn is_placeholder(main: &str, rest: &str, length: usize) -> bool {
    let waits = |text: &str| {
        let text = text.to_ascii_lowercase();
        ["loading", "please wait", "one moment"]
            .iter()
            .any(|sign| text.contains(sign))
    };
    length == 0 || (length < MAX_PLACEHOLDER_BYTES && (waits(main) || waits(rest)))
}

/// Whether a page with hardly any text depends on its scripts.
fn needs_scripts(page: &Page, is_empty: bool) -> bool {
    let tree = page.tree();
    let has_scripts = tree.elements(Tag::Script).next().is_some();
    let declares_it = tree.elements(Tag::Noscript).any(|node| {
        tree.all_text(node)
            .to_ascii_lowercase()
            .contains("javascript")
    });
    let has_root = tree.elements(Tag::Div).any(|node| {
        let id = tree.attribute(node, Attribute::Id).unwrap_or_default();
        matches!(
            id,
            "root" | "app" | "__next" | "__nuxt" | "___gatsby" | "svelte" | "app-root" | "main-app"
        )
    });
    declares_it || (has_scripts && (has_root || is_empty))
}

/// Returns the beginning of an error page.
pub(super) fn excerpt(raw: &RawPage, stop: &AtomicBool) -> String {
    let text = match media::detect(&raw.bytes, &raw.content_type) {
        Media::Binary(_) => return String::new(),
        Media::Html => {
            let html = charset::decode(&raw.bytes, &raw.content_type);
            Page::parse(&html, &raw.url).text(stop).main
        }
        Media::Json | Media::Text => charset::decode(&raw.bytes, &raw.content_type),
    };
    let text = text.trim();
    let start = prefix(text, EXCERPT_BYTES);
    match start.len() < text.len() {
        true => format!("{start} …"),
        false => start.to_owned(),
    }
}
