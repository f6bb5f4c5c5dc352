//! Parses the URLs that models write.

use super::FetchError;
use haft_ops::text::size::size;
use url::{ParseError, Url};

/// Maximum length of a URL.
const MAX_BYTES: usize = 64 << 10;

/// Number of characters of a URL shown in messages.
const MAX_SHOWN: usize = 200;

/// Parses a URL. Guesses nothing: a URL that is read differently than intended would also be
/// checked differently.
///
/// # Errors
/// Returns what is wrong with it.
pub fn parse_url(text: &str) -> Result<Url, FetchError> {
    let wrong = |reason: String, next: &str| FetchError::Address {
        reason,
        next: next.to_owned(),
    };
    let text = text.trim_matches(' ');
    if text.is_empty() {
        return Err(wrong("the address is empty".to_owned(), ""));
    }
    if text.len() > MAX_BYTES {
        let reason = format!(
            "the address is too long: {}, at most {}",
            size(text.len() as u64),
            size(MAX_BYTES as u64)
        );
        return Err(wrong(reason, ""));
    }
    // The URL parser silently drops some of them.
    if text.contains(char::is_control) {
        let reason = "the address contains a control character".to_owned();
        return Err(wrong(reason, ""));
    }
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(ParseError::RelativeUrlWithoutBase) => return Err(without_scheme(text)),
        Err(error) => {
            let reason = format!("not a valid URL: {error}");
            return Err(wrong(reason, "Write the full URL: https://host/path."));
        }
    };
    if !matches!(url.scheme(), "http" | "https") {
        // `example.org:8080/x` parses as a URL with the scheme `example.org`.
        if url.scheme().contains('.') || url.path().starts_with(|c: char| c.is_ascii_digit()) {
            return Err(without_scheme(text));
        }
        let reason = format!(
            "only http and https addresses can be fetched, not {}:",
            url.scheme().chars().take(20).collect::<String>()
        );
        let next = match url.scheme() {
            "file" => "Read local files with a file tool, by path.",
            _ => "",
        };
        return Err(wrong(reason, next));
    }
    if !url.username().is_empty() || url.password().is_some() {
        let reason = "URLs with a user name or password are not fetched".to_owned();
        return Err(wrong(reason, "Remove the part before the @."));
    }
    Ok(url)
}

fn without_scheme(text: &str) -> FetchError {
    // The part before an @ may be a password.
    let shown: String = match text.contains('@') {
        true => String::new(),
        false => text.chars().take(MAX_SHOWN).collect(),
    };
    let is_host = shown
        .split(['/', ':'])
        .next()
        .is_some_and(|host| host.contains('.') && !host.contains(' '));
    FetchError::Address {
        reason: "the address has no scheme".to_owned(),
        next: match is_host {
            true => format!("Write https://{shown}"),
            false => "Write the full URL: https://host/path.".to_owned(),
        },
    }
}

/// Returns at most `max` characters of a URL.
pub(crate) fn shorten(url: &Url, max: usize) -> String {
    let text = url.as_str();
    match text.chars().count() > max {
        true => text.chars().take(max).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// Returns a URL for messages: without its query, which may contain a key.
pub(super) fn display_url(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let text = url.as_str();
    match text.chars().count() > MAX_SHOWN {
        true => text.chars().take(MAX_SHOWN).chain(['…']).collect(),
        false => text.to_owned(),
    }
}
