//! Host patterns in the configuration: a host, a host with a port, or an address range.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// One pattern: `example.org`, `example.org:8080`, `*.example.org`, `[::1]:8080` or `10.0.0.0/8`.
///
/// A name matches exactly that host, ignoring case and a final dot; it matches neither longer
/// names nor subdomains. `*.` before a name matches all subdomains, but not the name itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern(PatternKind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternKind {
    Host { name: String, port: Option<u16> },
    Subdomains { name: String, port: Option<u16> },
    Range { base: IpAddr, bits: u8 },
}

/// Text that is not a valid host pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a host, host:port, *.host or range of addresses: {pattern:?}")]
pub struct InvalidHostPattern {
    /// The text as configured.
    pub pattern: String,
}

/// A list of host patterns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostPatterns(Vec<HostPattern>);

/// Converts an address to the form used for comparison: an IPv4 address embedded in an IPv6
/// address (IPv4-mapped or NAT64) becomes plain IPv4.
fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(wide) => match wide.segments() {
            [0x0064, 0xff9b, 0, 0, 0, 0, high, low] => {
                Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)).into()
            }
            _ => address.to_canonical(),
        },
        IpAddr::V4(_) => address,
    }
}

/// Converts a host to the spelling used for comparison.
pub(super) fn canonical(host: &str) -> String {
    let host = host
        .strip_prefix('[')
        .and_then(|inside| inside.strip_suffix(']'))
        .unwrap_or(host);
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    match host.parse::<IpAddr>() {
        Ok(address) => plain(address).to_string(),
        Err(_) => host,
    }
}

impl HostPatterns {
    /// Parses patterns from the configuration.
    ///
    /// # Errors
    /// Returns the first pattern that is not valid.
    pub fn parse<T: AsRef<str>>(
        patterns: impl IntoIterator<Item = T>,
    ) -> Result<Self, InvalidHostPattern> {
        patterns
            .into_iter()
            .map(|pattern| pattern.as_ref().parse())
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether a pattern matches this host and port.
    #[must_use]
    pub fn matches(&self, host: &str, port: u16) -> bool {
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        let literal = literal.parse::<IpAddr>().ok();
        let host = canonical(host);
        let fits = |only: &Option<u16>| only.is_none_or(|only| only == port);
        self.0.iter().any(|pattern| match &pattern.0 {
            PatternKind::Host { name, port } => *name == host && fits(port),
            PatternKind::Subdomains { name, port } => {
                let prefix = host.strip_suffix(name.as_str());
                let prefix = prefix.and_then(|prefix| prefix.strip_suffix('.'));
                prefix.is_some_and(|prefix| !prefix.is_empty()) && fits(port)
            }
            PatternKind::Range { .. } => literal.is_some_and(|address| pattern.contains(address)),
        })
    }

    /// Whether a range contains this address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|pattern| pattern.contains(address))
    }

    /// Whether a range contains this address, or a pattern without a port is exactly this
    /// address. For deny lists only: denying an address denies every name that resolves to it,
    /// but allowing one must not, because anyone can point a name at it.
    #[must_use]
    pub fn denies(&self, address: IpAddr) -> bool {
        let literal = plain(address).to_string();
        let is_this = |pattern: &HostPattern| matches!(&pattern.0, PatternKind::Host { name, port: None } if *name == literal);
        self.contains(address) || self.0.iter().any(is_this)
    }
}

impl HostPattern {
    fn contains(&self, address: IpAddr) -> bool {
        match self.0 {
            PatternKind::Range { base, bits } => within(base, bits, address),
            PatternKind::Host { .. } | PatternKind::Subdomains { .. } => false,
        }
    }
}

fn within(base: IpAddr, bits: u8, address: IpAddr) -> bool {
    // The range itself may be in one of the IPv6 forms.
    let is_within = |address| match (base, address) {
        (IpAddr::V4(base), IpAddr::V4(address)) => {
            (base.to_bits() ^ address.to_bits()).leading_zeros() >= u32::from(bits)
        }
        (IpAddr::V6(base), IpAddr::V6(address)) => {
            (base.to_bits() ^ address.to_bits()).leading_zeros() >= u32::from(bits)
        }
        _ => false,
    };
    is_within(address) || is_within(plain(address))
}

impl FromStr for HostPattern {
    type Err = InvalidHostPattern;

    fn from_str(text: &str) -> Result<Self, InvalidHostPattern> {
        parse(text.trim())
            .map(Self)
            .ok_or_else(|| InvalidHostPattern {
                pattern: text.to_owned(),
            })
    }
}

fn parse(text: &str) -> Option<PatternKind> {
    if let Some((base, bits)) = text.split_once('/') {
        let base: IpAddr = base.parse().ok()?;
        let max_bits = if base.is_ipv4() { 32 } else { 128 };
        let bits = bits.parse().ok().filter(|bits| *bits <= max_bits)?;
        return Some(PatternKind::Range { base, bits });
    }
    // IPv6 addresses contain colons that do not precede a port.
    let (host, port) = match text.rsplit_once(':') {
        _ if text.parse::<IpAddr>().is_ok() => (text, None),
        Some((host, port)) => (host, Some(port.parse().ok()?)),
        None => (text, None),
    };
    let (host, is_wildcard) = match host.strip_prefix("*.") {
        Some(name) => (name, true),
        None => (host, false),
    };
    // A star anywhere else would be taken literally and match nothing.
    if host.contains('*') {
        return None;
    }
    // Use the spelling of a parsed URL: non-ASCII letters are encoded, and `127.1` becomes
    // `127.0.0.1`.
    let bare = canonical(host);
    let host = match bare.parse::<Ipv6Addr>() {
        Ok(address) => url::Host::Ipv6(address),
        Err(_) => url::Host::parse(&bare).ok()?,
    };
    let name = canonical(&host.to_string());
    match is_wildcard {
        _ if name.is_empty() => None,
        // An IP address has no subdomains.
        true => {
            matches!(host, url::Host::Domain(_)).then_some(PatternKind::Subdomains { name, port })
        }
        false => Some(PatternKind::Host { name, port }),
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            PatternKind::Host { name, port: None } => f.write_str(name),
            PatternKind::Host {
                name,
                port: Some(port),
            } if name.contains(':') => write!(f, "[{name}]:{port}"),
            PatternKind::Host {
                name,
                port: Some(port),
            } => write!(f, "{name}:{port}"),
            PatternKind::Subdomains { name, port: None } => write!(f, "*.{name}"),
            PatternKind::Subdomains {
                name,
                port: Some(port),
            } => write!(f, "*.{name}:{port}"),
            PatternKind::Range { base, bits } => write!(f, "{base}/{bits}"),
        }
    }
}
