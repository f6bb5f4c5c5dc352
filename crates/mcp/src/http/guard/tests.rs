use super::*;

fn guard(is_local: bool) -> Guard {
    Guard {
        token: Some(Token::new("secret-secret")),
        hosts: vec!["tools.example".to_owned()],
        is_local,
    }
}

fn status(guard: &Guard, uri: &str, headers: &[(&str, &str)]) -> u16 {
    let mut request = http::Request::builder().uri(uri);
    for (name, value) in headers {
        let value = HeaderValue::from_bytes(value.as_bytes()).expect("a value");
        request = request.header(*name, value);
    }
    let (parts, ()) = request.body(()).expect("a request").into_parts();
    guard
        .check(&parts)
        .map_or(200, |response| response.status().as_u16())
}

const TOKEN: (&str, &str) = ("authorization", "Bearer secret-secret");
const HOST_HERE: (&str, &str) = ("host", "localhost:8080");

/// Hosts that are never accepted, wherever the server listens.
const EVIL_HOSTS: &[&str] = &[
    // Other names, and names that start or end like ours.
    "evil.example",
    "evil.example:8080",
    "localhost.evil.example:8080",
    "evil.localhost:8080",
    "localhostevil:8080",
    "localhost-:8080",
    "127.0.0.1.evil.example:8080",
    "tools.example.evil:8080",
    "eviltools.example",
    // Other spellings of the right name.
    "localhost.:8080",
    "localhost..:8080",
    ".localhost:8080",
    "localhost.",
    "127.0.0.1.:8080",
    "tools.example.",
    "localhost。:8080",
    "localhost．:8080",
    "localhost｡:8080",
    "ⓛocalhost:8080",
    "loc%61lhost:8080",
    "local\u{ad}host:8080",
    // Other spellings of the right address.
    "127.1:8080",
    "127.0.1:8080",
    "2130706433:8080",
    "0x7f.1:8080",
    "0x7f000001:8080",
    "0x7f.0.0.1:8080",
    "0177.0.0.1:8080",
    "0177.1:8080",
    "127.0.0.01:8080",
    "127.0.0.1.1:8080",
    "127.0.0.256:8080",
    "127.0.0.-1:8080",
    "１２７.0.0.1:8080",
    "[127.0.0.1]:8080",
    "::1",
    "::1:8080",
    "[::1",
    "::1]:8080",
    "[::1]]:8080",
    "[[::1]]:8080",
    "[]:8080",
    "[::1%lo]:8080",
    "[::1%25lo]:8080",
    "[::1].evil.example:8080",
    "[::1]evil.example:8080",
    "[::1]:8080.evil.example",
    "[localhost]:8080",
    "[v1.localhost]:8080",
    // More than a host and a port.
    "localhost:8080@evil.example",
    "localhost@evil.example:8080",
    "evil.example@localhost:8080",
    "@localhost:8080",
    ":@localhost:8080",
    "localhost:8080/",
    "localhost:8080/mcp",
    "localhost/evil.example",
    "localhost:8080?x",
    "localhost:8080#x",
    "localhost\\evil.example",
    "http://localhost:8080",
    "//localhost:8080",
    "localhost:8080, evil.example",
    "localhost:8080,localhost:8080",
    "localhost;8080",
    "localhost 8080",
    " localhost:8080",
    "localhost:8080 ",
    "localhost\t:8080",
    "a b",
    // A missing or invalid port.
    "localhost:",
    "localhost::8080",
    "localhost:8080:8080",
    "localhost:+8080",
    "localhost:-8080",
    "localhost:08080",
    "localhost:0x1f90",
    "localhost:73616",
    "localhost:8080.evil.example",
    "localhost:８０８０",
    "localhost:http",
    "localhost:0",
    // Not a host at all.
    "",
    ":",
    ":8080",
    ".",
    "*",
    "null",
    "-",
];

#[test]
fn a_name_that_resolves_to_this_machine_is_refused() {
    let host =
        |is_local: bool, host: &str| status(&guard(is_local), "/mcp", &[("host", host), TOKEN]);
    for good in [
        "localhost:8080",
        "LOCALHOST:8080",
        "LocalHost:8080",
        "127.0.0.1:8080",
        "127.9.8.7:8080",
        "[::1]:8080",
        "[0:0:0:0:0:0:0:1]:8080",
        "tools.example",
        "TOOLS.example:443",
        // Any port, because of tunnels.
        "localhost",
        "localhost:80",
        "127.0.0.1:8081",
        "[::1]",
    ] {
        assert_eq!(host(true, good), 200, "{good}");
        assert_eq!(host(false, good), 200, "{good}");
    }
    assert!(EVIL_HOSTS.len() >= 60);
    for evil in EVIL_HOSTS {
        assert_eq!(host(true, evil), 403, "{evil}");
        assert_eq!(host(false, evil), 403, "{evil}");
    }
    // A server that others can reach accepts any address.
    for outside in [
        "192.0.2.1:8080",
        "0.0.0.0:8080",
        "[::]:8080",
        "[2001:db8::1]:8080",
        "[::ffff:127.0.0.1]:8080",
        "[::ffff:7f00:1]:8080",
        "[::127.0.0.1]:8080",
        "192.0.2.1",
    ] {
        assert_eq!(host(true, outside), 403, "{outside}");
        assert_eq!(host(false, outside), 200, "{outside}");
    }
}

#[test]
fn the_host_must_occur_once_and_match_the_request_line() {
    let local = guard(true);
    assert_eq!(status(&local, "/mcp", &[TOKEN]), 403, "no Host");
    for second in ["evil.example", "localhost:8080", ""] {
        let two = [HOST_HERE, ("host", second), TOKEN];
        assert_eq!(status(&local, "/mcp", &two), 403, "{second}");
    }
    let bytes = HeaderValue::from_bytes(b"localhost:8080\xff").expect("bytes");
    let (mut parts, ()) = http::Request::new(()).into_parts();
    parts.headers.insert(HOST, bytes);
    assert!(local.check(&parts).is_some());
    let line = |uri: &str| status(&local, uri, &[HOST_HERE, TOKEN]);
    assert_eq!(line("http://localhost:8080/mcp"), 200);
    for evil in [
        "http://evil.example/mcp",
        "http://evil.example:8080/mcp",
        "http://localhost.:8080/mcp",
        "http://localhost:8080@evil.example/mcp",
        "http://me@localhost:8080/mcp",
        "http://me:pw@localhost:8080/mcp",
        "evil.example:8080",
    ] {
        assert_eq!(line(evil), 403, "{evil}");
    }
    let other = [("host", "evil.example"), TOKEN];
    assert_eq!(status(&local, "http://localhost:8080/mcp", &other), 403);
}

#[test]
fn pages_of_other_origins_are_refused() {
    let origin = |origin: &str| {
        let headers = [HOST_HERE, ("origin", origin), TOKEN];
        status(&guard(true), "/mcp", &headers)
    };
    for good in [
        "http://localhost:3000",
        "http://localhost",
        "http://LOCALHOST:8080",
        "https://127.0.0.1",
        "http://[::1]:1",
        "http://[::1]",
    ] {
        assert_eq!(origin(good), 200, "{good}");
    }
    // An invalid host is an invalid origin too.
    for evil in EVIL_HOSTS {
        assert_eq!(origin(&format!("http://{evil}")), 403, "http://{evil}");
        assert_eq!(origin(&format!("https://{evil}")), 403, "https://{evil}");
    }
    for evil in [
        "http://evil.example",
        "http://tools.example",
        "null",
        "",
        "localhost:8080",
        "//localhost:8080",
        "http:localhost",
        "http:/localhost",
        "http:///localhost",
        "http://localhost.evil",
        "http://localhost:8080.evil.example",
        "http://[::1].evil.example",
        "http://[::1].evil.example:8080",
        "http://[::1]:8080/",
        "http://localhost/",
        "http://localhost:3000/page",
        "http://localhost?",
        "http://localhost#",
        "http://localhost@evil.example",
        "http://me@localhost",
        "http://192.0.2.1",
        "http://0.0.0.0:8080",
        "http://[::]:8080",
        "http://[::ffff:127.0.0.1]",
        "HTTP://localhost",
        "file://localhost",
        "file://",
        "ws://localhost",
        "chrome-extension://localhost",
        "javascript://localhost",
        "data:text/html,x",
        "http://localhost http://evil.example",
        "http://localhost, http://evil.example",
    ] {
        assert_eq!(origin(evil), 403, "{evil}");
    }
    let two = [
        HOST_HERE,
        ("origin", "http://localhost"),
        ("origin", "http://localhost"),
        TOKEN,
    ];
    assert_eq!(status(&guard(true), "/mcp", &two), 403);
    assert_eq!(status(&guard(true), "/mcp", &[HOST_HERE, TOKEN]), 200);
}

#[test]
fn the_token_is_required_for_every_path_and_in_one_header() {
    let with = |uri: &str, headers: &[(&str, &str)]| {
        let headers = [&[HOST_HERE], headers].concat();
        status(&guard(true), uri, &headers)
    };
    assert_eq!(with("/mcp", &[TOKEN]), 200);
    assert_eq!(
        with("/mcp", &[("authorization", "bearer secret-secret")]),
        200
    );
    for (uri, headers) in [
        ("/mcp", &[] as &[(&str, &str)]),
        ("/other", &[]),
        ("/mcp?token=secret-secret", &[]),
        ("/mcp", &[("authorization", "Bearer secret-secret2")]),
        ("/mcp", &[("authorization", "Bearer secret-secre")]),
        ("/mcp", &[("authorization", "Bearer")]),
        ("/mcp", &[("authorization", "Basic secret-secret")]),
        ("/mcp", &[TOKEN, TOKEN]),
    ] {
        assert_eq!(with(uri, headers), 401, "{uri} {headers:?}");
    }
    assert_eq!(with("/", &[TOKEN]), 404);
    assert_eq!(with("/mcp/", &[TOKEN]), 404);
    assert_eq!(with("/mcp/../mcp", &[TOKEN]), 404);
}
