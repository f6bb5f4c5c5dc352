//! Finds out whether an address belongs to this machine, even if it looks public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Whether connections to this address end on this machine.
///
/// Asks the kernel instead of listing interfaces: a socket can be bound only to a local address,
/// which includes addresses that are routed here without being on an interface, and addresses
/// added a moment ago. Sends nothing.
pub(super) fn is_local(address: IpAddr) -> bool {
    if binds(address) {
        // Some machines let a socket bind to any address; there, a successful `bind` proves
        // nothing.
        return !binds(elsewhere(address)) || answers_itself(address);
    }
    false
}

fn binds(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Returns an address reserved for documentation, which no machine has.
fn elsewhere(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 123).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x123).into(),
    }
}

/// Whether the route to an address starts at the address itself.
fn answers_itself(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    UdpSocket::bind((any, 0))
        .and_then(|socket| {
            socket.connect((address, 9))?;
            socket.local_addr()
        })
        .is_ok_and(|local| local.ip() == address)
}
