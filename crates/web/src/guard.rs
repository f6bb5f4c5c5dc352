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

#[cfg(test)]
mod tests;
