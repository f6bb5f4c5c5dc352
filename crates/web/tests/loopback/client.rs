use crate::http_server::{Server, Step, answer, redirect};
use haft_web::Secret;
use haft_web::client::{
    Client, Header, HttpError, Method, Origin, Redirects, Request, Response, Settings, Url,
};
use haft_web::guard::HostPatterns;
use std::time::Duration;

pub(crate) fn client(allow: &[&str]) -> Client {
    Client::new(Settings {
        allow: HostPatterns::parse(allow).expect("entries"),
        ..Settings::default()
    })
    .expect("a client")
}

pub(crate) fn get(url: &str) -> Request {
    Request {
        method: Method::Get,
        url: Url::parse(url).expect(url),
        origin: Origin::Untrusted,
        headers: Vec::new(),
        body: None,
        timeout: Duration::from_secs(10),
        limit: 1000,
        redirects: Redirects::Follow,
    }
}

async fn text(response: Response) -> String {
    let body = response.body().await.expect("a body");
    assert!(!body.is_truncated);
    String::from_utf8(body.bytes).expect("UTF-8")
}

fn error(result: Result<Response, HttpError>) -> HttpError {
    match result {
        Ok(response) => panic!("an answer: {}", response.status_line()),
        Err(error) => error,
    }
}

#[tokio::test]
async fn no_name_of_this_machine_is_reachable() {
    let server = Server::on("0.0.0.0:0", None, []).await;
    let port = server.port;
    let client = client(&[]);
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "[::1]",
        "[::]",
        "0.0.0.0",
        "0",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[::ffff:0:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "１２７.0.0.1",
    ] {
        let error = error(
            client
                .send(get(&format!("http://{host}:{port}/?k=secret")))
                .await,
        );
        assert!(
            matches!(error, HttpError::Forbidden { .. }),
            "{host}: {error}"
        );
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn an_allowed_host_is_reachable() {
    let server = Server::new([
        answer("200 OK", &[("x-kind", "test")], "one"),
        answer("404 Not Found", &[], "two"),
        answer("200 OK", &[], "three"),
    ])
    .await;
    let port = server.port;
    let client = client(&[&format!("127.0.0.1:{port}"), "localhost"]);
    let response = client
        .send(get(&format!("{}/a?b=c", server.base())))
        .await
        .expect("an answer");
    assert_eq!((response.status, response.hops), (200, 0));
    assert_eq!(response.header("X-Kind"), Some("test"));
    assert_eq!(text(response).await, "one");
    let response = client.send(get(&server.base())).await.expect("an answer");
    assert_eq!(response.status_line(), "404 Not Found");
    let by_name = format!("http://LocalHost:{port}/");
    let response = client.send(get(&by_name)).await.expect("an answer");
    assert_eq!(text(response).await, "three");
    let seen = server.seen();
    assert_eq!(seen[0].line, "GET /a?b=c HTTP/1.1");
    assert_eq!(
        seen[0].header("user-agent"),
        Some(concat!("haft/", env!("CARGO_PKG_VERSION")))
    );
    assert_eq!(seen[0].header("content-length"), None);
    // Another port of the same host is not allowed.
    let other = Server::new([]).await;
    let error = error(client.send(get(&other.base())).await);
    assert_eq!(
        error.to_string(),
        "not allowed to connect to 127.0.0.1: it is a loopback address"
    );
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn an_allowed_range_is_reachable_by_name() {
    let server = Server::new([answer("200 OK", &[], "")]).await;
    let client = client(&["127.0.0.0/8"]);
    let response = client.send(get(&server.base())).await.expect("an answer");
    assert_eq!(response.status, 200);
}

#[tokio::test]
async fn a_denied_host_is_denied_for_every_origin() {
    let server = Server::new([]).await;
    let client = Client::new(Settings {
        allow: HostPatterns::parse(["127.0.0.1", "localhost"]).expect("entries"),
        deny: HostPatterns::parse(["127.0.0.0/8"]).expect("entries"),
        ..Settings::default()
    })
    .expect("a client");
    for url in [server.base(), format!("http://localhost:{}", server.port)] {
        let mut request = get(&url);
        request.origin = Origin::Configuration;
        let error = error(client.send(request).await);
        assert!(matches!(error, HttpError::Forbidden { .. }), "{error}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn only_http_urls_without_credentials() {
    let client = client(&[]);
    for url in [
        "file:///etc/passwd",
        "ftp://example.org/",
        "gopher://example.org/",
        "data:text/plain,x",
        "javascript:1",
        "unix:/run/x",
        "http://user:hunter2@example.org/",
        "http://hunter2@example.org/",
    ] {
        let error = error(client.send(get(url)).await);
        assert!(matches!(error, HttpError::Invalid { .. }), "{url}: {error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn every_redirect_is_checked() {
    let inner = Server::new([]).await;
    let to = [
        inner.base(),
        format!("//127.0.0.1:{}/", inner.port),
        format!("http://localhost:{}/", inner.port),
        "file:///etc/passwd".to_owned(),
        "http://user:hunter2@example.org/".to_owned(),
        "http://[".to_owned(),
    ];
    for status in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Same",
        "308 Same",
    ] {
        for to in &to {
            let server = Server::new([redirect(status, to)]).await;
            let client = client(&[&format!("127.0.0.1:{}", server.port)]);
            let error = error(client.send(get(&server.base())).await);
            assert!(
                matches!(
                    error,
                    HttpError::Forbidden { .. }
                        | HttpError::Redirect { .. }
                        | HttpError::Invalid { .. }
                ),
                "{to}: {error}"
            );
        }
    }
    assert_eq!(inner.connections(), 0);
}

#[tokio::test]
async fn at_most_ten_redirects_are_followed() {
    let steps = |count| (0..count).map(|n| redirect("302 Found", &format!("/{n}")));
    let server = Server::new(steps(10).chain([answer("200 OK", &[], "end")])).await;
    let allowing = |server: &Server| client(&[&format!("127.0.0.1:{}", server.port)]);
    let response = allowing(&server)
        .send(get(&server.base()))
        .await
        .expect("an answer");
    assert_eq!((response.hops, response.url.path()), (10, "/9"));
    assert_eq!(text(response).await, "end");
    let server = Server::new(steps(11)).await;
    let error = error(allowing(&server).send(get(&server.base())).await);
    assert!(matches!(error, HttpError::Redirect { .. }), "{error}");
    assert_eq!(server.seen().len(), 11);
}

#[tokio::test]
async fn credentials_stay_with_their_host() {
    let other = Server::new([answer("200 OK", &[], "")]).await;
    let server = Server::new([
        redirect("302 Found", "/here"),
        redirect("302 Found", &other.base()),
    ])
    .await;
    let client = client(&["127.0.0.1"]);
    let mut request = get(&server.base());
    request.headers = vec![
        Header::Credential("authorization", Secret::new("Bearer hunter2")),
        Header::Credential("x-key", Secret::new("hunter2")),
        Header::Plain("cookie", "hunter2".to_owned()),
        Header::Plain("x-plain", "kept".to_owned()),
    ];
    client.send(request).await.expect("an answer");
    for seen in server.seen() {
        assert_eq!(seen.header("authorization"), Some("Bearer hunter2"));
        assert_eq!(seen.header("x-key"), Some("hunter2"));
    }
    let seen = other.only();
    assert_eq!(seen.header("x-plain"), Some("kept"));
    assert!(!format!("{seen:?}").contains("hunter2"), "{seen:?}");
}

#[tokio::test]
async fn a_posted_body_stays_with_its_host() {
    let post = |server: &Server| Request {
        method: Method::Post,
        body: Some(b"{}".to_vec()),
        headers: vec![Header::Plain("content-type", "application/json".to_owned())],
        ..get(&server.base())
    };
    let client = client(&["127.0.0.1"]);
    let other = Server::new([]).await;
    let server = Server::new([redirect("307 Same", &other.base())]).await;
    let refused = error(client.send(post(&server)).await);
    assert!(matches!(refused, HttpError::Redirect { .. }), "{refused}");
    assert_eq!(other.connections(), 0);
    // A 303 is followed with a GET without the body.
    let server = Server::new([redirect("303 See Other", "/a"), answer("200 OK", &[], "")]).await;
    client.send(post(&server)).await.expect("an answer");
    let seen = server.seen();
    assert_eq!(
        (seen[0].line.as_str(), seen[0].body.as_str()),
        ("POST / HTTP/1.1", "{}")
    );
    assert_eq!(
        (seen[1].line.as_str(), seen[1].body.as_str()),
        ("GET /a HTTP/1.1", "")
    );
    assert_eq!(seen[1].header("content-type"), None);
}

#[tokio::test]
async fn a_configured_host_is_trusted_but_not_its_redirects() {
    let other = Server::new([]).await;
    let server = Server::new([
        redirect("302 Found", "/again"),
        answer("200 OK", &[], ""),
        redirect("302 Found", &other.base()),
        redirect("302 Found", "https://127.0.0.1/"),
    ])
    .await;
    let client = client(&[]);
    let ask = || Request {
        origin: Origin::Configuration,
        ..get(&server.base())
    };
    assert_eq!(client.send(ask()).await.expect("an answer").status, 200);
    for _ in 0..2 {
        let error = error(client.send(ask()).await);
        assert!(matches!(error, HttpError::Forbidden { .. }), "{error}");
    }
    assert_eq!(other.connections(), 0);
    assert_eq!(server.seen().len(), 4);
}

/// Runs another test of this file in a process with proxies in its environment.
#[test]
fn proxies_from_the_environment_are_not_used() {
    let this = std::env::current_exe().expect("this program");
    #[expect(
        clippy::disallowed_methods,
        reason = "environment variables cannot be set safely in this process"
    )]
    let mut command = std::process::Command::new(this);
    for name in [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ] {
        command.env(name, "http://127.0.0.1:9");
    }
    let output = command
        .args(["client::an_allowed_host_is_reachable", "--exact"])
        .output()
        .expect("output");
    let reply = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && reply.contains("1 passed"),
        "{reply}"
    );
}

#[tokio::test]
async fn a_broken_response_is_reported() {
    for step in [
        Step::Cut,
        Step::Answer(b"not HTTP at all\r\n\r\n".to_vec()),
        Step::Answer(b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n".to_vec()),
    ] {
        let server = Server::new([step]).await;
        let error = error(client(&["127.0.0.1"]).send(get(&server.base())).await);
        assert!(
            matches!(error, HttpError::Broken { was_sent: true, .. }),
            "{error:?}"
        );
        assert!(
            error
                .to_string()
                .contains(&format!("127.0.0.1:{}", server.port)),
            "{error}"
        );
    }
}
