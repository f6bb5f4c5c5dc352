//! Resolves a host and connects to it, if its addresses may be dialled.

use super::Inner;
use crate::guard;
use haft_ops::exec::network::HostVerdict;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpStream;
use url::Host;

/// Time limit for resolving a name and connecting to one of its addresses.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of addresses that are tried.
const MAX_ATTEMPTS: usize = 4;

/// Host and port that a client wants to reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) host: Host<String>,
    pub(super) port: u16,
}

impl Destination {
    /// Parses a host as a URL has it. Unusual spellings of addresses become usual ones.
    pub(super) fn parse(host: &str, port: u16) -> Option<Self> {
        let host = Host::parse(host).ok()?;
        let host = match host {
            Host::Domain(name) => {
                let name = name.strip_suffix('.').unwrap_or(&name).to_owned();
                if name.is_empty() || name.len() > 253 {
                    return None;
                }
                // Without the dot it may be an address.
                Host::parse(&name).ok()?
            }
            address => address,
        };
        (port != 0).then_some(Self { host, port })
    }

    /// Returns the host as rules name it.
    pub(super) fn name(&self) -> String {
        match &self.host {
            Host::Domain(name) => name.clone(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        }
    }

    fn literal(&self) -> Option<IpAddr> {
        match &self.host {
            Host::Domain(_) => None,
            Host::Ipv4(address) => Some((*address).into()),
            Host::Ipv6(address) => Some((*address).into()),
        }
    }
}

/// Reason why a connection was not made, as a sentence for the client.
pub(super) enum NotDialled {
    /// The host has no address that it may have.
    OutOfReach(String),
    /// It was not found or did not answer.
    Failed(String),
}

/// Connects to a destination that was judged.
pub(super) async fn dial(
    proxy: &Inner,
    to: &Destination,
    verdict: HostVerdict,
) -> Result<TcpStream, NotDialled> {
    let name = to.name();
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, async {
        let addresses = match to.literal() {
            Some(address) => vec![address],
            None => {
                let refusal = guard::refusal_of_name(&name);
                if let Some(refusal) = refusal.filter(|_| verdict != HostVerdict::Any) {
                    return Err(NotDialled::OutOfReach(format!("{name} is {refusal}")));
                }
                proxy.dns.addresses_of(&name).await
            }
        };
        let Some(first) = addresses.first() else {
            return Err(NotDialled::Failed(format!("{name} was not found")));
        };
        let is_allowed =
            |address: &&IpAddr| verdict == HostVerdict::Any || guard::refusal(**address).is_none();
        let allowed: Vec<&IpAddr> = addresses.iter().filter(is_allowed).collect();
        if allowed.is_empty() {
            let refusal = guard::refusal(*first).unwrap_or("not a public address");
            return Err(NotDialled::OutOfReach(match to.literal() {
                Some(_) => format!("{name} is {refusal}"),
                None => format!("{name} has the address {first}, which is {refusal}"),
            }));
        }
        let mut failed = String::new();
        for address in allowed.into_iter().take(MAX_ATTEMPTS) {
            match TcpStream::connect(SocketAddr::new(*address, to.port)).await {
                Ok(stream) => {
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Err(error) => failed = format!("{name}:{}: {error}", to.port),
            }
        }
        Err(NotDialled::Failed(failed))
    });
    let timed_out = |_| {
        let why = format!("{name}:{} did not answer in time", to.port);
        Err(NotDialled::Failed(why))
    };
    connected.await.unwrap_or_else(timed_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_one_spelling() {
        let name = |host: &str| Destination::parse(host, 443).map(|to| to.name());
        assert_eq!(name("EXAMPLE.com.").as_deref(), Some("example.com"));
        assert_eq!(name("0x7f.1").as_deref(), Some("127.0.0.1"));
        assert_eq!(name("2130706433").as_deref(), Some("127.0.0.1"));
        assert_eq!(name("127.0.0.1.").as_deref(), Some("127.0.0.1"));
        assert_eq!(name("[::1]").as_deref(), Some("::1"));
        assert_eq!(
            name("bücher.example").as_deref(),
            Some("xn--bcher-kva.example")
        );
        for bad in ["", ".", "a b", "a/b", "a@b", "a\0b", &"a".repeat(300)] {
            assert_eq!(name(bad), None, "{bad:?}");
        }
        assert_eq!(Destination::parse("example.com", 0), None);
    }
}
