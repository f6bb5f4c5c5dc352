//! Decides which machines may be contacted.
//!
//! A prompt injection could make a model fetch pages from the user's own network. So only
//! addresses on the public internet are dialled, unless the user's configuration lists the host.

mod local;
mod pattern;
mod range;

pub use pattern::{HostPattern, HostPatterns, InvalidHostPattern};

use std::net::IpAddr;

/// Reason text for a host that the configuration denies.
pub(crate) const DENIED: &str = "a host that the configuration denies";

/// Returns why an address may not be dialled, as the end of a sentence (`a loopback address`), or
/// `None` for an address on the public internet.
#[must_use]
pub fn refusal(address: IpAddr) -> Option<&'static str> {
    range::special_purpose(address)
        .or_else(|| local::is_local(address).then_some("an address of this machine"))
}

/// Like [`refusal`], for names that can be judged without a DNS lookup: they mean this machine or
/// a cloud's metadata service everywhere.
#[must_use]
pub fn refusal_of_name(host: &str) -> Option<&'static str> {
    let host = pattern::canonical(host);
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

/// Suffixes of names that exist only in private networks.
const PRIVATE_SUFFIXES: [&str; 9] = [
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

/// Whether a name looks like one from a private network: a single label, or a suffix that the
/// public internet does not use.
#[must_use]
pub fn is_private_name(host: &str) -> bool {
    let host = pattern::canonical(host);
    let has_suffix = |suffix: &&str| {
        let before = host.strip_suffix(*suffix);
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    !host.contains('.') || PRIVATE_SUFFIXES.iter().any(has_suffix)
}

#[cfg(test)]
mod tests;
