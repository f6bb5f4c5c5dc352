use super::{HostPattern, HostPatterns, is_private_name, range, refusal, refusal_of_name};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[test]
fn special_addresses_are_refused() {
    for (text, kind) in [
        ("127.0.0.1", "a loopback address"),
        ("127.255.255.254", "a loopback address"),
        ("::1", "a loopback address"),
        ("0.0.0.0", "the unspecified address"),
        ("0.1.2.3", "an address of this network"),
        ("::", "the unspecified address"),
        ("::ffff:127.0.0.1", "a loopback address"),
        ("::ffff:7f00:1", "a loopback address"),
        ("::127.0.0.1", "a loopback address"),
        ("::ffff:0:127.0.0.1", "a loopback address"),
        ("0:0:0:0:0:ffff:a9fe:a9fe", "a metadata service"),
        ("169.254.169.254", "a metadata service"),
        ("fd00:ec2::254", "a metadata service"),
        ("100.100.100.200", "a metadata service"),
        ("168.63.129.16", "a metadata service"),
        ("192.0.0.192", "a metadata service"),
        ("10.0.0.0", "a private address"),
        ("10.255.255.255", "a private address"),
        ("172.16.0.0", "a private address"),
        ("172.31.255.255", "a private address"),
        ("192.168.0.0", "a private address"),
        ("192.168.255.255", "a private address"),
        ("fc00::1", "a private address"),
        ("fdff:ffff::1", "a private address"),
        ("169.254.0.1", "a link-local address"),
        ("fe80::1", "a link-local address"),
        ("febf::1", "a link-local address"),
        ("fec0::1", "a site-local address"),
        ("100.64.0.0", "a carrier's private address"),
        ("100.127.255.255", "a carrier's private address"),
        ("198.18.0.1", "an address for benchmarks"),
        ("198.19.255.255", "an address for benchmarks"),
        ("2001:2::1", "an address for benchmarks"),
        ("192.0.2.1", "an address for documentation"),
        ("198.51.100.1", "an address for documentation"),
        ("203.0.113.1", "an address for documentation"),
        ("2001:db8::1", "an address for documentation"),
        ("3fff::1", "an address for documentation"),
        ("192.0.0.1", "an address of a protocol"),
        ("192.88.99.1", "an address of a protocol"),
        ("224.0.0.1", "a multicast address"),
        ("239.255.255.255", "a multicast address"),
        ("ff02::1", "a multicast address"),
        ("240.0.0.1", "a reserved address"),
        ("255.255.255.255", "the broadcast address"),
        ("100::1", "an address that leads nowhere"),
        ("64:ff9b::10.0.0.1", "a private address"),
        ("64:ff9b:1::10.0.0.1", "a private address"),
        ("2002:7f00:1::1", "a loopback address"),
        ("2002:c0a8:101::", "a private address"),
        ("2001:0:a00:1::", "a private address"),
        ("2606:2800::5efe:10.0.0.1", "a private address"),
        ("0:1::1", "a reserved address"),
    ] {
        assert_eq!(refusal(address(text)), Some(kind), "{text}");
    }
}

#[test]
fn public_addresses_are_not_special() {
    for text in [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "93.184.216.34",
        "100.63.255.255",
        "100.128.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700::1111",
        "2a00:1450:4001:80b::200e",
        "64:ff9b::1.1.1.1",
        "::ffff:1.1.1.1",
        "2002:101:101::1",
    ] {
        assert_eq!(range::special_purpose(address(text)), None, "{text}");
    }
}

/// Generates IPv4 addresses, most of them in a refused range.
fn some_address() -> impl Strategy<Value = u32> {
    let ranges = [
        (0x0000_0000, 8),
        (0x0a00_0000, 8),
        (0x6440_0000, 10),
        (0x7f00_0000, 8),
        (0xa9fe_0000, 16),
        (0xac10_0000, 12),
        (0xc000_0000, 24),
        (0xc0a8_0000, 16),
        (0xc612_0000, 15),
        (0xe000_0000, 3),
    ];
    let within = (proptest::sample::select(ranges.to_vec()), any::<u32>())
        .prop_map(|((base, bits), noise): ((u32, u32), u32)| base | (noise >> bits));
    prop_oneof![4 => within, 1 => any::<u32>()]
}

proptest! {
    /// An IPv4 address embedded in an IPv6 address in any form is judged like the address itself.
    #[test]
    fn no_ipv6_form_hides_an_ipv4_address(bits in some_address(), noise in any::<u128>()) {
        let inside = Ipv4Addr::from(bits);
        let blocked = range::special_purpose(IpAddr::V4(inside)).is_some();
        let low = u128::from(bits);
        let forms: Vec<(u128, u128)> = vec![
            (0x0000_0000_0000_0000_0000_ffff_0000_0000 | low, 0),
            (0x0000_0000_0000_0000_ffff_0000_0000_0000 | low, 0),
            ((0x0064_ff9b << 96) | low, 0),
            // In the remaining forms, every bit that does not encode the address is noise.
            ((0x0064_ff9b_0001 << 80) | low, 0x0000_0000_0000_ffff_ffff_ffff_0000_0000),
            ((0x2002 << 112) | (low << 80), (1 << 80) - 1),
            ((0x2001_0000 << 96) | (low << 64), (1 << 64) - 1),
            ((0x2001_0000 << 96) | u128::from(!bits), 0x0000_0000_ffff_ffff_ffff_ffff_0000_0000),
        ];
        for (form, free) in forms {
            let address = Ipv6Addr::from(form | (noise & free));
            if blocked {
                prop_assert!(range::special_purpose(IpAddr::V6(address)).is_some(), "{address}");
            }
        }
        // The compatible form (`::a.b.c.d`) is refused like the address itself.
        if blocked {
            prop_assert!(range::special_purpose(IpAddr::V6(Ipv6Addr::from(low))).is_some());
        }
    }
}

#[test]
fn addresses_of_this_machine_are_local() {
    // The source address of an outgoing packet is on one of the interfaces.
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    if socket.connect("1.1.1.1:9").is_ok() {
        let own = socket.local_addr().expect("an address").ip();
        assert!(super::local::is_local(own), "{own}");
    }
    assert!(super::local::is_local(address("127.0.0.1")));
    assert!(!super::local::is_local(address("1.1.1.1")));
    assert!(!super::local::is_local(address("2606:4700::1111")));
}

#[test]
fn some_names_are_refused_without_a_lookup() {
    for name in [
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "metadata.google.internal",
    ] {
        assert!(refusal_of_name(name).is_some(), "{name}");
    }
    for name in ["localhost.example.org", "notlocalhost", "example.org"] {
        assert!(refusal_of_name(name).is_none(), "{name}");
    }
}

#[test]
fn names_of_private_networks() {
    for name in [
        "intranet",
        "Intranet.",
        "x.internal",
        "printer.LOCAL",
        "nas.lan",
        "a.b.corp",
        "router.home.arpa",
        "local",
    ] {
        assert!(is_private_name(name), "{name}");
    }
    for name in [
        "example.org",
        "internal.example.org",
        "notlocal.example",
        "mylan.net",
    ] {
        assert!(!is_private_name(name), "{name}");
    }
}

#[test]
fn patterns_match_exactly() {
    let patterns = HostPatterns::parse([
        "example.com",
        "Example.org:8080",
        "10.1.0.0/16",
        "[::1]:99",
        "bücher.example",
    ])
    .expect("valid patterns");
    for (host, port) in [
        ("example.com", 1),
        ("EXAMPLE.com.", 443),
        ("example.org", 8080),
        ("10.1.255.1", 5),
        ("[::1]", 99),
        ("xn--bcher-kva.example", 443),
    ] {
        assert!(patterns.matches(host, port), "{host}:{port}");
    }
    for (host, port) in [
        ("example.com.evil.org", 443),
        ("evilexample.com", 443),
        ("www.example.com", 443),
        ("example.org", 80),
        ("10.2.0.1", 5),
        ("[::1]", 98),
        ("10.1.evil.org", 80),
    ] {
        assert!(!patterns.matches(host, port), "{host}:{port}");
    }
    assert!(patterns.contains(address("10.1.2.3")) && !patterns.contains(address("10.2.2.3")));
    assert!(patterns.contains(address("::ffff:10.1.2.3")));
    assert!(!patterns.denies(address("10.2.2.3")));
}

#[test]
fn no_form_of_an_address_evades_a_pattern() {
    let patterns = HostPatterns::parse(["1.2.3.4", "5.6.0.0/16", "9.9.9.9:80", "::ffff:8.8.8.8"]);
    let patterns = patterns.expect("valid patterns");
    for host in [
        "1.2.3.4",
        "[::ffff:1.2.3.4]",
        "[::ffff:102:304]",
        "[64:ff9b::1.2.3.4]",
        "[::ffff:5.6.7.8]",
        "[64:ff9b::506:708]",
        "[::ffff:9.9.9.9]",
        "8.8.8.8",
    ] {
        assert!(patterns.matches(host, 80), "{host}");
        let literal = address(host.trim_matches(['[', ']']));
        let has_port = host.contains("9.9");
        assert_eq!(patterns.denies(literal), !has_port, "{host}");
    }
    for host in [
        "1.2.3.5",
        "[::ffff:1.2.3.5]",
        "[::1.2.3.4]",
        "[2001::102:304]",
    ] {
        assert!(!patterns.matches(host, 80), "{host}");
    }
    // A range may also cover the IPv6 forms themselves.
    let patterns = HostPatterns::parse(["64:ff9b::/96", "::ffff:0:0/96"]).expect("valid patterns");
    assert!(
        patterns.contains(address("64:ff9b::1.2.3.4"))
            && patterns.contains(address("::ffff:1.2.3.4"))
    );
    assert!(patterns.matches("[64:ff9b::1.2.3.4]", 80) && !patterns.matches("1.2.3.4", 80));
}

#[test]
fn a_star_matches_all_subdomains() {
    let patterns =
        HostPatterns::parse(["*.Evil.example", "*.b.example:8080"]).expect("valid patterns");
    for (host, port) in [
        ("a.evil.example", 1),
        ("a.B.evil.example.", 443),
        ("a.b.example", 8080),
    ] {
        assert!(patterns.matches(host, port), "{host}:{port}");
    }
    for (host, port) in [
        ("evil.example", 443),
        ("notevil.example", 443),
        ("a.evil.example.org", 443),
        ("a.b.example", 80),
    ] {
        assert!(!patterns.matches(host, port), "{host}:{port}");
    }
}

#[test]
fn patterns_display_as_they_were_parsed() {
    for text in [
        "example.com",
        "example.com:80",
        "10.0.0.0/8",
        "fd00::/8",
        "[::1]:80",
        "::1",
        "0.0.0.0/0",
        "*.example.com",
        "*.example.com:80",
    ] {
        assert_eq!(text.parse::<HostPattern>().expect(text).to_string(), text);
    }
    for text in [
        "",
        " ",
        "http://x",
        "a/b",
        "10.0.0.0/33",
        "x:y",
        "x:70000",
        "a b",
        "user@host",
        "*",
        "*.",
        "a.*.example",
        "*.*.example",
        "*.1.2.3.4",
    ] {
        assert!(text.parse::<HostPattern>().is_err(), "{text:?}");
    }
}
