//! Errors of fetching a page. Each has a stable name, a message, and advice on
//! what to try next.

use super::address::shorten;
use crate::client::{HttpError, format_seconds};
use crate::guard::DENIED;
use haft::Offered;
use haft_ops::text::size::size;
use std::time::Duration;
use url::Url;

/// Maximum length of a redirect target in a message. Long enough to be fetched next.
const MAX_TARGET_CHARS: usize = 2000;

const SEARCH: &str = "web_search";

/// A page that could not be fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The URL is not valid.
    #[error("{reason}")]
    Address {
        /// One lower-case clause.
        reason: String,
        /// What to write instead, in a sentence.
        next: String,
    },
    /// No response arrived.
    #[error("{0}")]
    NoAnswer(HttpError),
    /// The site blocks bots.
    #[error("blocked: {} answered HTTP {status} with {what}", .url)]
    Blocked {
        /// URL without its query.
        url: String,
        /// HTTP status code.
        status: u16,
        /// Content of the blocking page: `a captcha`.
        what: &'static str,
    },
    /// The content is loaded by scripts.
    #[error("needs JavaScript: {} has no text without it", .url)]
    NeedsJavaScript {
        /// URL without its query.
        url: String,
    },
    /// The page redirects to a host that the rules do not allow without asking, or redirects
    /// with a `<meta>` element.
    #[error("redirected: {} redirects to {}", .url, shorten(.to, MAX_TARGET_CHARS))]
    Elsewhere {
        /// URL without its query.
        url: String,
        /// Target of the redirect.
        to: Box<Url>,
    },
    /// The content is not text.
    #[error("not text: {} is {what} ({})", .url, size(*.bytes))]
    NotText {
        /// URL without its query.
        url: String,
        /// Description of the content: `a PDF document`.
        what: String,
        /// Size as declared, or as far as it was read.
        bytes: u64,
    },
    /// The response has no content.
    #[error("empty: {} answered HTTP {status} with 0 bytes", .url)]
    Empty {
        /// URL without its query.
        url: String,
        /// HTTP status code.
        status: u16,
    },
    /// The server returned an error status.
    #[error("HTTP {line}: {}{}", .url, on_new_line(.excerpt))]
    Status {
        /// URL without its query.
        url: String,
        /// HTTP status code.
        status: u16,
        /// The status with its usual phrase: `404 Not Found`.
        line: String,
        /// Beginning of the error page.
        excerpt: String,
        /// Value of `Retry-After`.
        wait: Option<Duration>,
    },
}

fn on_new_line(excerpt: &str) -> String {
    match excerpt {
        "" => String::new(),
        excerpt => format!("\n{excerpt}"),
    }
}

impl From<HttpError> for FetchError {
    fn from(error: HttpError) -> Self {
        Self::NoAnswer(error)
    }
}

impl FetchError {
    /// Stable name, for programs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Address { .. } => "bad_address",
            Self::NoAnswer(HttpError::Forbidden { .. }) => "not_allowed",
            Self::NoAnswer(HttpError::TimedOut { .. }) => "timed_out",
            Self::NoAnswer(HttpError::TooLarge { .. }) => "too_large",
            Self::NoAnswer(_) => "no_answer",
            Self::Blocked { .. } => "blocked",
            Self::NeedsJavaScript { .. } => "needs_javascript",
            Self::Elsewhere { .. } => "redirected",
            Self::NotText { .. } => "not_text",
            Self::Empty { .. } => "empty",
            Self::Status { .. } => "http_error",
        }
    }

    /// Returns what to try next, in a sentence, or an empty string.
    #[must_use]
    pub fn advice(&self, tools: &Offered) -> String {
        let advice = match self {
            Self::Address { next, .. } => return next.clone(),
            Self::NoAnswer(error) => http_error_advice(error, tools),
            Self::Blocked { .. } => {
                tools.first(&[
            (&[SEARCH], "Trying again will not help. Look for another source with web_search, or for an API or feed of the same site."),
            (&[], "Trying again will not help. Look for another source, or for an API or feed of the same site."),
        ])
            }
            Self::NeedsJavaScript { .. } => {
                tools.first(&[
            (&[SEARCH], "Look for an API, a feed or a plain version of the page, or for another source with web_search."),
            (&[], "Look for an API, a feed or a plain version of the page, or for another source."),
        ])
            }
            Self::Elsewhere { .. } => "Fetch that URL if it is what you want.",
            Self::NotText { what, .. } if what.contains("PDF") => {
                "PDF documents are not read. Look for the same content as a web page, or download it with a command if commands have network access."
            }
            Self::NotText { .. } => {
                "Only text is read. Look for a page about it, or download it with a command if commands have network access."
            }
            Self::Empty { .. } => "The response is empty. Check the URL.",
            Self::Status { status, wait, .. } => return status_advice(*status, *wait, tools),
        };
        advice.to_owned()
    }
}

fn http_error_advice(error: &HttpError, tools: &Offered) -> &'static str {
    match error {
        HttpError::Forbidden { kind, .. } if *kind == DENIED => {
            "tools.web.deny_hosts in the user's configuration lists it. Look for another source."
        }
        HttpError::Forbidden { .. } => {
            "Only the user can allow it, in tools.web.allow_hosts of their own haft.yaml."
        }
        HttpError::UnknownHost { .. } => tools.first(&[
            (
                &[SEARCH],
                "Check the spelling, or use web_search to find the URL.",
            ),
            (&[], "Check the spelling."),
        ]),
        HttpError::NotSecure { .. } => {
            "Its certificate is not trusted, so nothing was sent. The user can add certificates with tools.web.ca_file."
        }
        HttpError::NotTls { .. } => {
            "Nothing was sent. If the page is not encrypted, write http:// instead of https://."
        }
        HttpError::TimedOut { .. } | HttpError::Broken { .. } | HttpError::NotConnected { .. } => {
            tools.first(&[
                (
                    &[SEARCH],
                    "Try again later, or look for another source with web_search.",
                ),
                (&[], "Try again later, or look for another source."),
            ])
        }
        HttpError::Redirect { .. } => "Look for the URL of the page itself.",
        _ => "",
    }
}

fn status_advice(status: u16, wait: Option<Duration>, tools: &Offered) -> String {
    match (status, wait) {
        (429 | 503, Some(wait)) => {
            format!(
                "The server asks to wait {} before the next request.",
                format_seconds(wait)
            )
        }
        (429 | 503, None) => {
            "Two attempts failed. Wait before you try again, or look for another source.".to_owned()
        }
        (401 | 402 | 407, _) => {
            "The page requires signing in, which haft cannot do. Look for another source."
                .to_owned()
        }
        (403, _) => tools
            .first(&[
                (
                    &[SEARCH],
                    "The server refuses this. Look for another source with web_search.",
                ),
                (&[], "The server refuses this. Look for another source."),
            ])
            .to_owned(),
        (404 | 410, _) => tools
            .first(&[
                (
                    &[SEARCH],
                    "Check the URL, or use web_search to find where the page moved.",
                ),
                (&[], "Check the URL."),
            ])
            .to_owned(),
        (500.., _) => "The server failed. Try again later.".to_owned(),
        _ => String::new(),
    }
}
