//! Which machines may be spoken to.
//!
//! A model that may fetch a page could be talked into fetching one from the
//! person's own network. So nothing is dialled but addresses of the open
//! internet, unless the person's configuration names the place.

mod entry;
mod own;
mod range;

pub use entry::{BadEntry, Entries, Entry};

use std::net::IpAddr;

/// What a place is that the configuration denies.
pub(crate) const DENIED: &str = "a place the configuration denies";

/// Why an address is not dialled, as the end of a sentence: `a loopback
/// address`. `None` for an address of the open internet.
#[must_use]
pub fn refusal(address: IpAddr) -> Option<&'static str> {
    range::kind(address).or_else(|| own::is(address).then_some("an address of this machine"))
}

/// The same for a name that needs no asking: these mean this machine or the
/// cloud's metadata service wherever they are asked for.
#[must_use]
pub fn refusal_of_name(host: &str) -> Option<&'static str> {
    let host = entry::canonical(host);
    if host == "localhost" || host.ends_with(".localhost") {
        Some("this machine")
    } else if matches!(
        host.as_str(),
        "metadata.google.internal" | "metadata" | "instance-data"
    ) {
        Some("a metadata service")
    } else {
        None
    }
}

/// Endings of names that only a private network gives out.
const PRIVATE: [&str; 9] = [
    "corp",
    "home",
    "home.arpa",
    "internal",
    "intranet",
    "lan",
    "local",
    "localdomain",
    "private",
];

/// Whether a name belongs to a private network by its form: it has one part, or ends as
/// no name of the open internet does.
#[must_use]
pub fn is_private_name(host: &str) -> bool {
    let host = entry::canonical(host);
    let ends_in = |ending: &&str| {
        let before = host.strip_suffix(*ending);
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    !host.contains('.') || PRIVATE.iter().any(ends_in)
}

#[cfg(test)]
mod tests;
