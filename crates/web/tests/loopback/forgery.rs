//! Whatever a model, a page or the owner of a domain tries, only addresses on the public internet
//! are dialled.

use crate::bed::{Bed, Book, failure, fetch, html, read};
use crate::http_server::{Server, Step, redirect};
use haft_web::guard::HostPatterns;
use std::net::Ipv4Addr;

/// Names and spellings of this machine.
fn spellings() -> Vec<String> {
    let given = [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "017700000001",
        "0x7f000001",
        "0x7f.1",
        "0X7F.0.0.0x1",
        "0177.0.0.1",
        "127.0.0.1.",
        "127.255.255.254",
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "LocalHost",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::]",
        "0.0.0.0",
        "0",
        "0x0",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[::ffff:0:127.0.0.1]",
        "[0:0:0:0:0:ffff:7f00:0001]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "１２７.0.0.1",
        "127。0。0。1",
        "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
        "%31%32%37.0.0.1",
    ];
    given.iter().map(|host| (*host).to_owned()).collect()
}

/// Addresses that are neither this machine nor the public internet.
const INSIDE: [&str; 34] = [
    "169.254.169.254",
    "[::ffff:a9fe:a9fe]",
    "[0:0:0:0:0:ffff:a9fe:a9fe]",
    "[fd00:ec2::254]",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "metadata.google.internal",
    "METADATA.google.internal.",
    "10.0.0.1",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "100.127.255.255",
    "198.18.0.1",
    "198.19.255.255",
    "192.0.2.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "[fc00::1]",
    "[fdff::1]",
    "[fe80::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[2001:db8::1]",
    "[64:ff9b::a00:1]",
    "[2002:c0a8:101::]",
];

#[tokio::test]
async fn no_spelling_reaches_a_private_address() {
    let server = Server::on("0.0.0.0:0", None, []).await;
    let six = Server::on("[::1]:0", None, []).await;
    let runtime = Bed::default().session();
    let inside = INSIDE.iter().map(|host| (*host).to_owned());
    for host in spellings().into_iter().chain(inside) {
        for port in [server.port, six.port] {
            let reply = fetch(&runtime, &format!("http://{host}:{port}/?k=hunter2")).await;
            let (text, outcome) = failure(&reply);
            assert_eq!(outcome, "not_allowed", "{host}: {text}");
            assert!(!text.contains("hunter2"), "{text}");
            assert!(text.contains("tools.web.allow_hosts"), "{text}");
        }
    }
    assert_eq!(server.connections() + six.connections(), 0);
}

/// A name can resolve to anything, and to something else each time.
#[tokio::test]
async fn names_that_resolve_to_private_addresses_are_refused() {
    let server = Server::on("0.0.0.0:0", None, []).await;
    for answer in [
        "127.0.0.1",
        "::1",
        "0.0.0.0",
        "10.0.0.1",
        "169.254.169.254",
        "::ffff:127.0.0.1",
        "fd00::1",
        "64:ff9b::7f00:1",
        "100.64.0.1",
    ] {
        let book = Book::default().with("evil.example", &[&[answer]]);
        let runtime = Bed::default().dns(book.dns()).session();
        let url = format!("http://evil.example:{}/", server.port);
        let (text, outcome) = failure(&fetch(&runtime, &url).await);
        assert_eq!(outcome, "not_allowed", "{answer}: {text}");
    }
    assert_eq!(server.connections(), 0);
}

/// DNS rebinding: the first lookup returns a public address, every later one this machine. The
/// checked address is the one that is dialled, without a second lookup.
#[tokio::test]
async fn dns_rebinding_is_not_possible() {
    let book = Book::default().with("evil.example", &[&["127.0.0.2"], &["127.0.0.1"]]);
    let canary = Server::on("127.0.0.1:0", None, []).await;
    let address = format!("127.0.0.2:{}", canary.port);
    let once = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nfirst";
    let stand_in = Server::on(&address, None, [Step::Last(once.to_vec())]).await;
    let mut bed = Bed::default().dns(book.dns());
    bed.settings.allow = HostPatterns::parse(["127.0.0.2/32"]).expect("entries");
    let runtime = bed.session();
    let url = format!("http://evil.example:{}/", canary.port);
    assert_eq!(read(&fetch(&runtime, &url).await), "first");
    assert_eq!(book.asked().len(), 1, "one lookup per request");
    let (_, outcome) = failure(&fetch(&runtime, &url).await);
    assert_eq!(outcome, "not_allowed");
    assert_eq!(book.asked().len(), 2);
    assert_eq!((canary.connections(), stand_in.connections()), (0, 1));
}

/// If a name has several addresses, only the allowed ones are dialled.
#[tokio::test]
async fn only_the_allowed_addresses_of_a_name_are_dialled() {
    let canary = Server::on("127.0.0.1:0", None, []).await;
    let address = format!("127.0.0.2:{}", canary.port);
    let stand_in = Server::on(&address, None, [html("<p>outside")]).await;
    let book = Book::default().with("evil.example", &[&["127.0.0.1", "127.0.0.2", "::1"]]);
    let mut bed = Bed::default().dns(book.dns());
    bed.settings.allow = HostPatterns::parse(["127.0.0.2/32"]).expect("entries");
    let url = format!("http://evil.example:{}/", canary.port);
    assert_eq!(read(&fetch(&bed.session(), &url).await), "outside");
    assert_eq!((canary.connections(), stand_in.connections()), (0, 1));
}

#[tokio::test]
async fn every_hop_is_checked() {
    let inner = Server::on("0.0.0.0:0", None, []).await;
    let to: Vec<String> = spellings()
        .iter()
        .take(12)
        .map(|host| format!("http://{host}:{}/", inner.port))
        .chain([
            format!("//127.0.0.1:{}/", inner.port),
            format!("\\\\127.0.0.1:{}\\", inner.port),
            format!("http://evil.example:{}/", inner.port),
            "http://169.254.169.254/latest/meta-data/".to_owned(),
            "file:///etc/passwd".to_owned(),
            "gopher://127.0.0.1/".to_owned(),
            "javascript:1".to_owned(),
            "http://me:hunter2@public.example/".to_owned(),
        ])
        .collect();
    let statuses = [
        "301 Moved",
        "302 Found",
        "303 Other",
        "307 Same",
        "308 Same",
    ];
    for (at, to) in to.iter().enumerate() {
        let status = statuses[at % statuses.len()];
        // The second redirect is the forbidden one, so that not only the first is checked.
        let server = Server::new([redirect(status, "/next"), redirect(status, to)]).await;
        let book = Book::default()
            .with("public.example", &[&["127.0.0.1"]])
            .with("evil.example", &[&["127.0.0.1"]]);
        let bed = Bed::allowing(&[&format!("public.example:{}", server.port)]);
        let runtime = bed.dns(book.dns()).session();
        let url = format!("http://public.example:{}/", server.port);
        let (text, outcome) = failure(&fetch(&runtime, &url).await);
        assert!(
            matches!(outcome.as_str(), "not_allowed" | "no_answer"),
            "{to}: {text}"
        );
        assert!(
            !text.contains("hunter2") && !text.contains("root:"),
            "{text}"
        );
        assert_eq!(server.seen().len(), 2, "{to}");
    }
    assert_eq!(inner.connections(), 0);
}

#[tokio::test]
async fn only_exactly_the_allowed_host_is_reachable() {
    let server = Server::new([html("<p>x")]).await;
    let port = server.port;
    let book = Book::default()
        .with("example.com", &[&["127.0.0.1"]])
        .with("example.com.evil.org", &[&["127.0.0.1"]])
        .with("evilexample.com", &[&["127.0.0.1"]])
        .with("www.example.com", &[&["127.0.0.1"]])
        .with("evil.org", &[&["127.0.0.1"]]);
    let allowed = format!("example.com:{port}");
    let runtime = Bed::allowing(&[&allowed]).dns(book.dns()).session();
    for url in [
        format!("http://example.com.evil.org:{port}/"),
        format!("http://evilexample.com:{port}/"),
        format!("http://www.example.com:{port}/"),
        format!("http://evil.org:{port}/?example.com"),
        format!("http://evil.org:{port}\\@example.com/"),
        format!("http://evil.org:{port}#@example.com:{port}/"),
        "http://example.com:1/".to_owned(),
    ] {
        let (text, outcome) = failure(&fetch(&runtime, &url).await);
        assert_eq!(outcome, "not_allowed", "{url}: {text}");
    }
    assert_eq!(server.connections(), 0);
    let reply = fetch(&runtime, &format!("http://EXAMPLE.com:{port}/")).await;
    assert_eq!(read(&reply), "x");
}

/// An address of this machine that looks like a public one.
#[tokio::test]
async fn addresses_of_this_machine_are_refused() {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a socket");
    let own = socket
        .connect("1.1.1.1:9")
        .and_then(|()| socket.local_addr())
        .map(|own| own.ip());
    let server = Server::on("0.0.0.0:0", None, []).await;
    // Without a network, use the loopback address.
    let own = own.unwrap_or(Ipv4Addr::LOCALHOST.into());
    let url = format!("http://{own}:{}/", server.port);
    let (_, outcome) = failure(&fetch(&Bed::default().session(), &url).await);
    assert_eq!(outcome, "not_allowed");
    assert_eq!(server.connections(), 0);
}
