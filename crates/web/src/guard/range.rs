//! Address ranges outside the public internet, from the IANA registries of special-purpose
//! addresses (RFC 6890 and its successors).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns what a special-purpose address is for, or `None` for an ordinary one.
pub(super) fn special_purpose(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    Some(match address.octets() {
        // Metadata services of clouds. The usual 169.254.169.254 would otherwise be reported as
        // link-local.
        [168, 63, 129, 16] => "a metadata service",
        [169, 254, 169, 254] | [100, 100, 100, 200] | [192, 0, 0, 192] => "a metadata service",
        [0, 0, 0, 0] => "the unspecified address",
        [0, ..] => "an address of this network",
        [127, ..] => "a loopback address",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "a private address",
        [169, 254, ..] => "a link-local address",
        [100, 64..=127, ..] => "a carrier's private address",
        [198, 18..=19, ..] => "an address for benchmarks",
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => "an address for documentation",
        [192, 0, 0, _] => "an address of a protocol",
        // Anycast for the former 6to4 relays: the nearest one answers.
        [192, 88, 99, _] => "an address of a protocol",
        [224..=239, ..] => "a multicast address",
        [255, 255, 255, 255] => "the broadcast address",
        [240..=255, ..] => "a reserved address",
        _ => return None,
    })
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    let segments = address.segments();
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => return Some("the unspecified address"),
        [0, 0, 0, 0, 0, 0, 0, 1] => return Some("a loopback address"),
        // Metadata service of AWS over IPv6.
        [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254] => return Some("a metadata service"),
        [0xfe80..=0xfebf, ..] => return Some("a link-local address"),
        [0xfec0..=0xfeff, ..] => return Some("a site-local address"),
        [0xfc00..=0xfdff, ..] => return Some("a private address"),
        [0xff00..=0xffff, ..] => return Some("a multicast address"),
        [0x0100, 0, 0, 0, ..] => return Some("an address that leads nowhere"),
        [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => {
            return Some("an address for documentation");
        }
        [0x2001, 0x0002, 0, ..] => return Some("an address for benchmarks"),
        // Overlay identifiers (ORCHID), which are not routable.
        [0x2001, 0x0010..=0x002f, ..] => return Some("a reserved address"),
        [0x5f00, ..] => return Some("a reserved address"),
        _ => {}
    }
    if let Some(inside) = embedded(&segments) {
        // A translator would forward to the embedded IPv4 address, so judge that one.
        return inside.into_iter().find_map(special_v4);
    }
    // The rest of `::/16`, which contains the embedded forms above, is unassigned.
    matches!(segments, [0, ..]).then_some("a reserved address")
}

/// Returns the IPv4 addresses embedded in an IPv6 address.
fn embedded(segments: &[u16; 8]) -> Option<Vec<Ipv4Addr>> {
    let from = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    let &[_, second, third, fourth, .., seventh, eighth] = segments;
    let last = from(seventh, eighth);
    Some(match segments {
        // Mapped `::ffff:a.b.c.d`, translated `::ffff:0:a.b.c.d`, compatible
        // `::a.b.c.d`.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] | [0, 0, 0, 0, 0, 0, ..] => {
            vec![last]
        }
        // NAT64: the well-known prefix, and the prefix for local use, where RFC 6052 allows the
        // address at several positions.
        [0x0064, 0xff9b, 0, 0, 0, 0, ..] => vec![last],
        [0x0064, 0xff9b, 1, ..] => {
            let [_, _, _, a, b, c, ..] = *segments;
            vec![
                last,
                // After 48 bits, skipping the octet that is always zero.
                from(a, ((b & 0xff) << 8) | (c >> 8)),
                // After 56 bits.
                from(((a & 0xff) << 8) | (b & 0xff), c),
                // After 64 bits.
                from(
                    ((b & 0xff) << 8) | (c >> 8),
                    ((c & 0xff) << 8) | (seventh >> 8),
                ),
            ]
        }
        // 6to4: the address follows the prefix.
        [0x2002, ..] => vec![from(second, third)],
        // Teredo: the server, and the client with all bits inverted.
        [0x2001, 0, ..] => vec![from(third, fourth), from(!seventh, !eighth)],
        // ISATAP: `…:0:5efe:a.b.c.d` under any prefix.
        [_, _, _, _, 0 | 0x0200, 0x5efe, ..] => vec![last],
        _ => return None,
    })
}
