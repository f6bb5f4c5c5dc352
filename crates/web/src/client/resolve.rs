//! Names to addresses that may be dialled. The library dials exactly these.

use super::Names;
use crate::guard::{self, Entries};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// What is held against an address.
pub(super) enum Judge {
    /// All that is not the open internet, unless a range allows it.
    Guard {
        /// What is allowed.
        allow: Entries,
        /// What is not, come what may.
        deny: Entries,
    },
    /// Only what the configuration denies.
    Deny {
        /// That.
        deny: Entries,
    },
}

impl Judge {
    pub(super) fn refusal(&self, address: IpAddr) -> Option<&'static str> {
        match self {
            Self::Guard { deny, .. } | Self::Deny { deny } if deny.strike(address) => {
                Some(guard::DENIED)
            }
            Self::Guard { allow, .. } if allow.hold(address) => None,
            Self::Guard { .. } => guard::refusal(address),
            Self::Deny { .. } => None,
        }
    }
}

/// A name that leads nowhere, or nowhere allowed.
#[derive(Debug)]
pub(super) struct NotDialled {
    /// What its addresses are; `None` where it has none.
    pub(super) kind: Option<&'static str>,
}

impl fmt::Display for NotDialled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.unwrap_or("no address"))
    }
}

impl std::error::Error for NotDialled {}

pub(super) struct Resolver {
    judge: Arc<Judge>,
    names: Names,
}

impl Resolver {
    pub(super) fn new(judge: Judge, names: Names) -> Self {
        Self {
            judge: Arc::new(judge),
            names,
        }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (judge, names) = (Arc::clone(&self.judge), self.names.clone());
        Box::pin(async move {
            let mut kind = None;
            let found = names.of(name.as_str()).await;
            let allowed: Vec<SocketAddr> = found
                .into_iter()
                .filter(|address| {
                    let refused = judge.refusal(*address);
                    kind = kind.or(refused);
                    refused.is_none()
                })
                .map(|address| SocketAddr::new(address, 0))
                .collect();
            if allowed.is_empty() {
                return Err(NotDialled { kind }.into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(judge: Judge) -> Result<Vec<SocketAddr>, Option<&'static str>> {
        let name = "localhost".parse().expect("a name");
        match Resolver::new(judge, Names::default()).resolve(name).await {
            Ok(addresses) => Ok(addresses.collect()),
            Err(error) => Err(error.downcast_ref::<NotDialled>().expect("a reason").kind),
        }
    }

    #[tokio::test]
    async fn only_addresses_that_may_be_dialled_are_handed_on() {
        let entries = |entries: &[&str]| Entries::parse(entries).expect("entries");
        let guard = |allow: &[&str], deny: &[&str]| Judge::Guard {
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
        // What is denied by its address is so by any name; what is allowed is not.
        let exact = ["127.0.0.1", "::1"];
        assert_eq!(ask(guard(&both, &exact)).await, denied);
        let refused = Err(Some("a loopback address"));
        assert_eq!(ask(guard(&exact, &[])).await, refused);
        assert_eq!(ask(guard(&both, &both)).await, denied);
        let open = Judge::Deny { deny: entries(&[]) };
        assert!(!ask(open).await.expect("an address").is_empty());
        let deny = Judge::Deny {
            deny: entries(&both),
        };
        assert_eq!(ask(deny).await, denied);
    }
}
