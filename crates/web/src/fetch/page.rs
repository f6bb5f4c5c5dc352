//! From a body to what a model reads of it; and whether it is the page that was asked
//! for at all.

use super::address::shown;
use super::media::{self, Media};
use super::{Trouble, charset, json};
use crate::html::{self, Name, Page, Tag};
use haft_ops::text::decode::prefix;
use std::sync::atomic::AtomicBool;
use url::Url;

/// A page with more text than that is a page, whatever else is in it.
const A_PAGE: usize = 1500;

/// A page that keeps programs out has less text than that.
const A_CHALLENGE: usize = 500;

/// A page with less text than that may be one that its scripts have yet to make.
const A_SHELL: usize = 150;

/// A page with less text than that says nothing: `Loading…`, `Are you a robot?`.
const A_WORD: usize = 40;

/// How much of the page of an error is repeated.
const EXCERPT: usize = 600;

/// A body as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Raw {
    pub(super) url: Url,
    pub(super) status: u16,
    pub(super) content_type: String,
    pub(super) bytes: Vec<u8>,
    /// Whether it is only the beginning.
    pub(super) cut: bool,
}

/// What is read of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) title: Option<String>,
    /// All of it: what the page is about, and then what stands around that.
    pub(super) text: String,
    /// Where the first of these ends.
    pub(super) main: usize,
    /// Whether it is only the beginning.
    pub(super) is_cut: bool,
}

/// Words that only pages have which keep programs out, and what those are.
const SIGNS: [(&str, &str); 16] = [
    ("challenges.cloudflare.com", "a captcha"),
    ("cf-challenge", "a captcha"),
    ("cf_chl_", "a captcha"),
    ("/cdn-cgi/challenge-platform", "a captcha"),
    ("<title>just a moment...", "a captcha"),
    ("attention required! | cloudflare", "a refusal of programs"),
    ("g-recaptcha", "a captcha"),
    ("h-captcha", "a captcha"),
    ("px-captcha", "a captcha"),
    ("captcha-delivery.com", "a captcha"),
    ("_incapsula_resource", "a captcha"),
    ("anomaly-modal", "a captcha"),
    ("unusual traffic from your computer", "a captcha"),
    ("verify you are human", "a captcha"),
    ("are you a robot", "a captcha"),
    ("access denied</title>", "a refusal of programs"),
];

/// Those of them that stand in forms of pages that keep nobody out.
const IN_FORMS: [&str; 6] = [
    "challenges.cloudflare.com",
    "/cdn-cgi/challenge-platform",
    "g-recaptcha",
    "h-captcha",
    "verify you are human",
    "are you a robot",
];

/// Whether nothing can be meant by a page but to keep programs out.
fn is_challenge(html: &str) -> bool {
    let html = html.to_ascii_lowercase();
    let mut signs = SIGNS.iter().map(|(sign, _)| *sign);
    signs.any(|sign| !IN_FORMS.contains(&sign) && html.contains(sign))
}

/// Whether a page keeps programs out, and how.
pub(super) fn keeps_out(html: &str) -> Option<&'static str> {
    let html = html.to_ascii_lowercase();
    SIGNS
        .iter()
        .find(|(sign, _)| html.contains(sign))
        .map(|(_, what)| *what)
}

/// Reads a body, until `stop` is set: then nobody waits for it.
///
/// # Errors
/// When it is not what was asked for, or nothing to read.
pub(super) fn read(raw: &Raw, stop: &AtomicBool) -> Result<Read, Trouble> {
    if raw.bytes.is_empty() {
        return Err(Trouble::Empty {
            place: shown(&raw.url),
            status: raw.status,
        });
    }
    match media::of(&raw.bytes, &raw.content_type) {
        Media::Binary(what) => Err(Trouble::NotText {
            place: shown(&raw.url),
            what,
            bytes: raw.bytes.len() as u64,
        }),
        Media::Html => of_html(raw, stop),
        Media::Json => {
            let text = charset::decode(&raw.bytes, &raw.content_type);
            Ok(whole(json::pretty(&text).unwrap_or(text)))
        }
        Media::Text => Ok(whole(charset::decode(&raw.bytes, &raw.content_type))),
    }
}

fn whole(text: String) -> Read {
    Read {
        title: None,
        main: text.len(),
        text,
        is_cut: false,
    }
}

fn of_html(raw: &Raw, stop: &AtomicBool) -> Result<Read, Trouble> {
    let html = charset::decode(&raw.bytes, &raw.content_type);
    let page = Page::parse(&html, &raw.url);
    let html::Text {
        title,
        main,
        rest,
        is_cut,
    } = page.text(stop);
    // The title alone is nothing to read.
    let heading = title.as_ref().map(|title| format!("# {title}\n\n"));
    let heading = heading.filter(|heading| main.starts_with(heading.as_str()));
    let all = main.len() + rest.len() - heading.map_or(0, |heading| heading.len());
    let mut note = None;
    if all < A_PAGE
        && let Some(what) = keeps_out(&html)
    {
        let most = if is_challenge(&html) {
            A_CHALLENGE
        } else {
            A_WORD
        };
        if all < most {
            return Err(Trouble::Blocked {
                place: shown(&raw.url),
                status: raw.status,
                what,
            });
        }
        note = Some(format!(
            "[The page shows {what}: parts of it may be missing]"
        ));
    }
    if all < A_SHELL {
        if let Some(to) = page.forwards_to().filter(|to| *to != raw.url) {
            return Err(Trouble::Elsewhere {
                place: shown(&raw.url),
                to: Box::new(to),
            });
        }
        if needs_scripts(&page, all == 0) {
            let asks = |text: &str| text.to_ascii_lowercase().contains("javascript");
            if says_nothing(&main, &rest, all) || asks(&main) || asks(&rest) {
                return Err(Trouble::NeedsJavaScript {
                    place: shown(&raw.url),
                });
            }
            note = Some(
                "[The page may need JavaScript: this is all there is to read without it]"
                    .to_owned(),
            );
        }
    }
    let title = title.filter(|title| !title.is_empty());
    let mut read = Read {
        main: main.len(),
        text: main,
        title,
        is_cut,
    };
    if read.text.is_empty() && rest.is_empty() {
        read.text = match &read.title {
            Some(title) => format!("# {title}\n\n(the page has no text)"),
            None => "(the page has no text)".to_owned(),
        };
        read.main = read.text.len();
    } else if read.text.is_empty() {
        read = Read {
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

/// Whether a text is only what stands there while a page is made.
fn says_nothing(main: &str, rest: &str, length: usize) -> bool {
    let waits = |text: &str| {
        let text = text.to_ascii_lowercase();
        ["loading", "please wait", "one moment"]
            .iter()
            .any(|sign| text.contains(sign))
    };
    length == 0 || (length < A_WORD && (waits(main) || waits(rest)))
}

/// Whether a page with next to no text is one that its scripts would fill.
fn needs_scripts(page: &Page, is_empty: bool) -> bool {
    let tree = page.tree();
    let has_scripts = tree.elements(Tag::Script).next().is_some();
    let says_so = tree.elements(Tag::Noscript).any(|node| {
        tree.all_text(node)
            .to_ascii_lowercase()
            .contains("javascript")
    });
    let has_root = tree.elements(Tag::Div).any(|node| {
        let id = tree.attribute(node, Name::Id).unwrap_or_default();
        matches!(
            id,
            "root" | "app" | "__next" | "__nuxt" | "___gatsby" | "svelte" | "app-root" | "main-app"
        )
    });
    says_so || (has_scripts && (has_root || is_empty))
}

/// How the page begins that came with an error.
pub(super) fn excerpt(raw: &Raw, stop: &AtomicBool) -> String {
    let text = match media::of(&raw.bytes, &raw.content_type) {
        Media::Binary(_) => return String::new(),
        Media::Html => {
            let html = charset::decode(&raw.bytes, &raw.content_type);
            Page::parse(&html, &raw.url).text(stop).main
        }
        Media::Json | Media::Text => charset::decode(&raw.bytes, &raw.content_type),
    };
    let text = text.trim();
    let start = prefix(text, EXCERPT);
    match start.len() < text.len() {
        true => format!("{start} …"),
        false => start.to_owned(),
    }
}
