//! What can come of fetching a page beside the page. Each has a name, says what
//! happened to what, and what to try next.

use super::address::brief;
use crate::client::{HttpError, words};
use crate::guard::DENIED;
use haft::Offered;
use haft_ops::text::size::size;
use std::time::Duration;
use url::Url;

/// How much of an address is told that can be fetched next.
const LONGEST_NEXT: usize = 2000;

/// The tool that finds other pages.
const SEARCH: &str = "web_search";

/// Why there is no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// No address that can be fetched.
    #[error("{reason}")]
    Address {
        /// What is wrong with it.
        reason: String,
        /// What to write instead.
        next: String,
    },
    /// No answer.
    #[error("{0}")]
    NoAnswer(HttpError),
    /// A page that is there for people only.
    #[error("blocked: {} answered HTTP {status} with {what}", .place)]
    Blocked {
        /// Where, without its query.
        place: String,
        /// The status.
        status: u16,
        /// What it shows instead, `a captcha`.
        what: &'static str,
    },
    /// A page that is made by its scripts.
    #[error("needs JavaScript: {} has nothing to read without it", .place)]
    NeedsJavaScript {
        /// Where, without its query.
        place: String,
    },
    /// A page that leads to a host that the rules do not simply allow, or that says
    /// itself where to go on.
    #[error("redirected elsewhere: {} leads to {}", .place, brief(.to, LONGEST_NEXT))]
    Elsewhere {
        /// Where from, without its query.
        place: String,
        /// Where to.
        to: Box<Url>,
    },
    /// Something that is not for reading.
    #[error("not text: {} is {what} ({})", .place, size(*.bytes))]
    NotText {
        /// Where, without its query.
        place: String,
        /// What it is, `a PDF document`.
        what: String,
        /// How large it is, as far as that is known.
        bytes: u64,
    },
    /// Nothing at all.
    #[error("empty: {} answered HTTP {status} with 0 bytes", .place)]
    Empty {
        /// Where, without its query.
        place: String,
        /// The status.
        status: u16,
    },
    /// An error of the server's.
    #[error("HTTP {line}: {}{}", .place, said(.excerpt))]
    Status {
        /// Where, without its query.
        place: String,
        /// The status.
        status: u16,
        /// The status with its usual words.
        line: String,
        /// How the page begins that came with it.
        excerpt: String,
        /// How long the server wants to be left alone.
        wait: Option<Duration>,
    },
}

fn said(excerpt: &str) -> String {
    match excerpt {
        "" => String::new(),
        excerpt => format!("\n{excerpt}"),
    }
}

impl From<HttpError> for Trouble {
    fn from(error: HttpError) -> Self {
        Self::NoAnswer(error)
    }
}

impl Trouble {
    /// Its name, for programs.
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

    /// What to try next, in a sentence; empty where there is nothing.
    #[must_use]
    pub fn advice(&self, tools: &Offered) -> String {
        let words = match self {
            Self::Address { next, .. } => return next.clone(),
            Self::NoAnswer(error) => of_answer(error, tools),
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
            Self::Elsewhere { .. } => "Fetch that address if it is what you want.",
            Self::NotText { what, .. } if what.contains("PDF") => {
                "PDF documents are not read. Look for the same as a web page, or download it with a command where those have the network."
            }
            Self::NotText { .. } => {
                "Only text is read. Look for a page about it, or download it with a command where those have the network."
            }
            Self::Empty { .. } => "There is nothing to read. Check the address.",
            Self::Status { status, wait, .. } => return of_status(*status, *wait, tools),
        };
        words.to_owned()
    }
}

fn of_answer(error: &HttpError, tools: &Offered) -> &'static str {
    match error {
        HttpError::Forbidden { kind, .. } if *kind == DENIED => {
            "tools.web.deny_hosts of the person's configuration names it. Look for another source."
        }
        HttpError::Forbidden { .. } => {
            "Only the person can allow that: tools.web.allow_hosts in their own haft.yaml names hosts that may be reached."
        }
        HttpError::UnknownHost { .. } => tools.first(&[
            (
                &[SEARCH],
                "Check the spelling, or use web_search to find the address.",
            ),
            (&[], "Check the spelling."),
        ]),
        HttpError::NotSecure { .. } => {
            "Its certificate is not trusted. Nothing was sent; tools.web.ca_file names certificates of one's own."
        }
        HttpError::NotTls { .. } => {
            "Nothing was sent. If a page without encryption is meant, write http:// for https://."
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
        HttpError::Redirect { .. } => "Look for the address of the page itself.",
        _ => "",
    }
}

fn of_status(status: u16, wait: Option<Duration>, tools: &Offered) -> String {
    match (status, wait) {
        (429 | 503, Some(wait)) => {
            format!("The server asks to be left alone for {}.", words(wait))
        }
        (429 | 503, None) => {
            "It was tried twice. Wait before you try again, or look for another source.".to_owned()
        }
        (401 | 402 | 407, _) => {
            "It needs an account, which haft does not have. Look for another source.".to_owned()
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
                    "Check the address, or use web_search to find where it went.",
                ),
                (&[], "Check the address."),
            ])
            .to_owned(),
        (500.., _) => "The server failed. Try again later.".to_owned(),
        _ => String::new(),
    }
}
