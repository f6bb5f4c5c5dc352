//! Resolves names to addresses that may be dialled. reqwest dials exactly these.

use super::DnsLookup;
use crate::guard::{self, HostPatterns};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Decides which resolved addresses may be dialled.
pub(super) enum AddressPolicy {
    /// Only public addresses, and ranges in `allow`.
    Guarded {
        /// Ranges that may be dialled although they are not public.
        allow: HostPatterns,
        /// Addresses that are never dialled; overrides `allow`.
        deny: HostPatterns,
    },
    /// Every address that the configuration does not deny.
    DenyOnly { deny: HostPatterns },
}

impl AddressPolicy {
    pub(super) fn refusal(&self, address: IpAddr) -> Option<&'static str> {
        match self {
            Self::Guarded { deny, .. } | Self::DenyOnly { deny } if deny.denies(address) => {
                Some(guard::DENIED)
            }
            Self::Guarded { allow, .. } if allow.contains(address) => None,
            Self::Guarded { .. } => guard::refusal(address),
            Self::DenyOnly { .. } => None,
        }
    }
}

/// The name does not resolve, or only to addresses that may not be dialled.
#[derive(Debug)]
pub(super) struct NoAllowedAddress {
    /// Kind of a refused address, `a loopback address`; `None` if the name has no address.
    pub(super) kind: Option<&'static str>,
}

impl fmt::Display for NoAllowedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.unwrap_or("no address"))
    }
}

impl std::error::Error for NoAllowedAddress {}

pub(super) struct Resolver {
    policy: Arc<AddressPolicy>,
    dns: DnsLookup,
}

impl Resolver {
    pub(super) fn new(policy: AddressPolicy, dns: DnsLookup) -> Self {
        Self {
            policy: Arc::new(policy),
            dns,
        }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (policy, dns) = (Arc::clone(&self.policy), self.dns.clone());
        Box::pin(async move {
            let mut kind = None;
            let found = dns.addresses_of(name.as_str()).await;
            let allowed: Vec<SocketAddr> = found
                .into_iter()
                .filter(|address| {
                    let refused = policy.refusal(*address);
                    kind = kind.or(refused);
                    refused.is_none()
                })
                .map(|address| SocketAddr::new(address, 0))
                .collect();
            if allowed.is_empty() {
                return Err(NoAllowedAddress { kind }.into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(policy: AddressPolicy) -> Result<Vec<SocketAddr>, Option<&'static str>> {
        let name = "localhost".parse().expect("a name");
        match Resolver::new(policy, DnsLookup::default())
            .resolve(name)
            .await
        {
            Ok(addresses) => Ok(addresses.collect()),
            Err(error) => Err(error
                .downcast_ref::<NoAllowedAddress>()
                .expect("a reason")
                .kind),
        }
    }

    #[tokio::test]
    async fn only_allowed_addresses_are_returned() {
        let entries = |entries: &[&str]| HostPatterns::parse(entries).expect("entries");
        let guard = |allow: &[&str], deny: &[&str]| AddressPolicy::Guarded {
            allow: entries(allow),
            deny: entries(deny),
        };
        assert_eq!(ask(guard(&[], &[])).await, Err(Some("a loopback address")));
        let allowed = ask(guard(&["127.0.0.0/8"], &[])).await.expect("an address");
        assert!(
            allowed.iter().all(|address| address.is_ipv4()),
            "{allowed:?}"
        );
        let both = ["127.0.0.0/8", "::/0"];
        let denied = Err(Some(guard::DENIED));
        // Denying an address denies every name for it; allowing an address does not.
        let exact = ["127.0.0.1", "::1"];
        assert_eq!(ask(guard(&both, &exact)).await, denied);
        let refused = Err(Some("a loopback address"));
        assert_eq!(ask(guard(&exact, &[])).await, refused);
        assert_eq!(ask(guard(&both, &both)).await, denied);
        let open = AddressPolicy::DenyOnly { deny: entries(&[]) };
        assert!(!ask(open).await.expect("an address").is_empty());
        let deny = AddressPolicy::DenyOnly {
            deny: entries(&both),
        };
        assert_eq!(ask(deny).await, denied);
    }
}
