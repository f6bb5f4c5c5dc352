//! Addresses as models write them.

use super::Trouble;
use haft_ops::text::size::size;
use url::{ParseError, Url};

/// How long an address may be.
const MOST_BYTES: usize = 64 << 10;

/// How much of one is repeated.
const SHOWN: usize = 200;

/// Reads an address. Nothing is guessed: an address that was read otherwise than it
/// was meant would be judged otherwise too.
///
/// # Errors
/// What is wrong with it.
pub fn read(given: &str) -> Result<Url, Trouble> {
    let wrong = |reason: String, next: &str| Trouble::Address {
        reason,
        next: next.to_owned(),
    };
    let given = given.trim_matches(' ');
    if given.is_empty() {
        return Err(wrong("the address is empty".to_owned(), ""));
    }
    if given.len() > MOST_BYTES {
        let reason = format!(
            "the address is too long: {}, at most {}",
            size(given.len() as u64),
            size(MOST_BYTES as u64)
        );
        return Err(wrong(reason, ""));
    }
    // The parser would drop some of them without a word.
    if given.contains(char::is_control) {
        let reason = "the address has a control character in it".to_owned();
        return Err(wrong(reason, ""));
    }
    let url = match Url::parse(given) {
        Ok(url) => url,
        Err(ParseError::RelativeUrlWithoutBase) => return Err(without_scheme(given)),
        Err(error) => {
            let reason = format!("not an address: {error}");
            return Err(wrong(reason, "Write a whole one: https://host/path."));
        }
    };
    if !matches!(url.scheme(), "http" | "https") {
        // `example.org:8080/x` reads like a scheme.
        if url.scheme().contains('.') || url.path().starts_with(|c: char| c.is_ascii_digit()) {
            return Err(without_scheme(given));
        }
        let reason = format!(
            "only http and https addresses can be fetched, not {}:",
            url.scheme().chars().take(20).collect::<String>()
        );
        let next = match url.scheme() {
            "file" => "A file is read with a file tool, by its path.",
            _ => "",
        };
        return Err(wrong(reason, next));
    }
    if !url.username().is_empty() || url.password().is_some() {
        let reason = "an address with a user name or password is not fetched".to_owned();
        return Err(wrong(reason, "Leave out what stands before the @."));
    }
    Ok(url)
}

fn without_scheme(given: &str) -> Trouble {
    // What stands before an @ may be a password.
    let shown: String = match given.contains('@') {
        true => String::new(),
        false => given.chars().take(SHOWN).collect(),
    };
    let is_host = shown
        .split(['/', ':'])
        .next()
        .is_some_and(|host| host.contains('.') && !host.contains(' '));
    Trouble::Address {
        reason: "the address has no scheme".to_owned(),
        next: match is_host {
            true => format!("Write https://{shown}"),
            false => "Write a whole one: https://host/path.".to_owned(),
        },
    }
}

/// An address as it is, but not without end: `most` characters of it.
pub(crate) fn brief(url: &Url, most: usize) -> String {
    let text = url.as_str();
    match text.chars().count() > most {
        true => text.chars().take(most).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// An address that may be repeated: without its query, which may hold a key.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let text = url.as_str();
    match text.chars().count() > SHOWN {
        true => text.chars().take(SHOWN).chain(['…']).collect(),
        false => text.to_owned(),
    }
}
