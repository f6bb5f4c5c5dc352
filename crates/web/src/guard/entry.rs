//! Places as a configuration names them: a host, a host with a port, a range.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// One place: `example.org`, `example.org:8080`, `*.example.org`, `[::1]:8080`,
/// `10.0.0.0/8`.
///
/// A name matches exactly that host, in any case and with or without a final
/// dot: neither what ends in it nor what begins with it. `*.` and a name matches all
/// hosts below the name, and not the name itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Host { name: String, port: Option<u16> },
    Below { name: String, port: Option<u16> },
    Range { base: IpAddr, bits: u8 },
}

/// Text that names no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a host, host:port, *.host or range of addresses: {entry:?}")]
pub struct BadEntry {
    /// What was given.
    pub entry: String,
}

/// Several places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entries(Vec<Entry>);

/// An address in the one form that is compared: one of the older protocol may be
/// written into the newer one, as a mapped address or for a translator (NAT64).
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

/// A host in the one spelling that is compared.
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

impl Entries {
    /// Reads entries as a configuration has them.
    ///
    /// # Errors
    /// The first that names no place.
    pub fn parse<T: AsRef<str>>(entries: impl IntoIterator<Item = T>) -> Result<Self, BadEntry> {
        entries
            .into_iter()
            .map(|entry| entry.as_ref().parse())
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether an entry names this host and port.
    #[must_use]
    pub fn names(&self, host: &str, port: u16) -> bool {
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        let literal = literal.parse::<IpAddr>().ok();
        let host = canonical(host);
        let fits = |only: &Option<u16>| only.is_none_or(|only| only == port);
        self.0.iter().any(|entry| match &entry.0 {
            Kind::Host { name, port } => *name == host && fits(port),
            Kind::Below { name, port } => {
                let front = host.strip_suffix(name.as_str());
                let front = front.and_then(|front| front.strip_suffix('.'));
                front.is_some_and(|front| !front.is_empty()) && fits(port)
            }
            Kind::Range { .. } => literal.is_some_and(|address| entry.holds(address)),
        })
    }

    /// Whether an entry is a range with this address in it.
    #[must_use]
    pub fn hold(&self, address: IpAddr) -> bool {
        self.0.iter().any(|entry| entry.holds(address))
    }

    /// The same, or whether an entry without a port is this very address: what is denied
    /// by its address is denied by any name of it. What is allowed by it is not, for
    /// anybody can give it a name.
    #[must_use]
    pub fn strike(&self, address: IpAddr) -> bool {
        let literal = plain(address).to_string();
        let is_it =
            |entry: &Entry| matches!(&entry.0, Kind::Host { name, port: None } if *name == literal);
        self.hold(address) || self.0.iter().any(is_it)
    }
}

impl Entry {
    fn holds(&self, address: IpAddr) -> bool {
        match self.0 {
            Kind::Range { base, bits } => within(base, bits, address),
            Kind::Host { .. } | Kind::Below { .. } => false,
        }
    }
}

fn within(base: IpAddr, bits: u8, address: IpAddr) -> bool {
    // A range may be one of the wide forms itself.
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

impl FromStr for Entry {
    type Err = BadEntry;

    fn from_str(given: &str) -> Result<Self, BadEntry> {
        parse(given.trim()).map(Self).ok_or_else(|| BadEntry {
            entry: given.to_owned(),
        })
    }
}

fn parse(given: &str) -> Option<Kind> {
    if let Some((base, bits)) = given.split_once('/') {
        let base: IpAddr = base.parse().ok()?;
        let most = if base.is_ipv4() { 32 } else { 128 };
        let bits = bits.parse().ok().filter(|bits| *bits <= most)?;
        return Some(Kind::Range { base, bits });
    }
    // An address of the newer protocol is full of colons, none before a port.
    let (host, port) = match given.rsplit_once(':') {
        _ if given.parse::<IpAddr>().is_ok() => (given, None),
        Some((host, port)) => (host, Some(port.parse().ok()?)),
        None => (given, None),
    };
    let (host, is_below) = match host.strip_prefix("*.") {
        Some(name) => (name, true),
        None => (host, false),
    };
    // A star elsewhere would stand for itself, and match nothing.
    if host.contains('*') {
        return None;
    }
    // Spelled as it is in an address that was read: letters beyond ASCII are
    // encoded, `127.1` is `127.0.0.1`.
    let bare = canonical(host);
    let host = match bare.parse::<Ipv6Addr>() {
        Ok(address) => url::Host::Ipv6(address),
        Err(_) => url::Host::parse(&bare).ok()?,
    };
    let name = canonical(&host.to_string());
    match is_below {
        _ if name.is_empty() => None,
        // Nothing is below an address.
        true => matches!(host, url::Host::Domain(_)).then_some(Kind::Below { name, port }),
        false => Some(Kind::Host { name, port }),
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Host { name, port: None } => f.write_str(name),
            Kind::Host {
                name,
                port: Some(port),
            } if name.contains(':') => write!(f, "[{name}]:{port}"),
            Kind::Host {
                name,
                port: Some(port),
            } => write!(f, "{name}:{port}"),
            Kind::Below { name, port: None } => write!(f, "*.{name}"),
            Kind::Below {
                name,
                port: Some(port),
            } => write!(f, "*.{name}:{port}"),
            Kind::Range { base, bits } => write!(f, "{base}/{bits}"),
        }
    }
}
