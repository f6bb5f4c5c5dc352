//! Whether an address is one of this machine's own, whatever it looks like.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Whether connections to this address end on this machine.
///
/// The kernel is asked rather than a list of interfaces: a socket can be bound
/// only to what is local, and that includes addresses which are routed here
/// without being on an interface, and those that were added a moment ago.
/// Nothing is sent.
pub(super) fn is(address: IpAddr) -> bool {
    if binds(address) {
        // Some machines let a socket take any address. There the answer of
        // `bind` means nothing.
        return !binds(elsewhere(address)) || answers_itself(address);
    }
    false
}

fn binds(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// An address for documentation, which no machine has.
fn elsewhere(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 123).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x123).into(),
    }
}

/// Whether the route to an address begins at the address itself.
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
