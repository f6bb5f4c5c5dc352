//! Proxies: only the configured one, for every request, and not a way around the guard. Also
//! HTTP/2.

use crate::bed::{Bed, Book, failure, fetch, html, read};
use crate::http_server::Server;
use crate::tls::certified;
use haft_web::Secret;

fn through(proxy: &Server, allow: &[&str]) -> Bed {
    let mut bed = Bed::allowing(allow);
    bed.settings.proxy = Some(Secret::new(format!(
        "http://me:hunter2@127.0.0.1:{}",
        proxy.port
    )));
    bed
}

#[tokio::test]
async fn every_request_uses_the_configured_proxy() {
    let proxy = Server::new([html("<p>by proxy"), html("<p>by proxy")]).await;
    let direct = Server::new([]).await;
    let book = Book::default().with("public.example", &[&["93.184.216.34"]]);
    let allowed = format!("127.0.0.1:{}", direct.port);
    let runtime = through(&proxy, &[&allowed]).dns(book.dns()).session();
    assert_eq!(
        read(&fetch(&runtime, "http://public.example/x").await),
        "by proxy"
    );
    // An allowed host does not bypass it.
    assert_eq!(read(&fetch(&runtime, &direct.base()).await), "by proxy");
    assert_eq!(direct.connections(), 0);
    let seen = proxy.seen();
    assert_eq!(seen[0].line, "GET http://public.example/x HTTP/1.1");
    assert_eq!(
        seen[0].header("proxy-authorization"),
        Some("Basic bWU6aHVudGVyMg==")
    );
}

#[tokio::test]
async fn the_proxy_does_not_bypass_the_guard() {
    let proxy = Server::new([]).await;
    let book = Book::default()
        .with("evil.example", &[&["127.0.0.1"]])
        .with("both.example", &[&["93.184.216.34", "10.0.0.1"]]);
    let runtime = through(&proxy, &[]).dns(book.dns()).session();
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "2130706433",
        "169.254.169.254",
        "evil.example",
        "both.example",
    ] {
        let (text, outcome) = failure(&fetch(&runtime, &format!("http://{host}/")).await);
        assert_eq!(outcome, "not_allowed", "{host}: {text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    // A name that does not resolve here is refused, unless the user allows the host.
    let (text, _) = failure(&fetch(&runtime, "http://unknown.example/").await);
    assert!(
        text.starts_with("cannot find the host unknown.example"),
        "{text}"
    );
    assert_eq!(proxy.connections(), 0);
    let proxy = Server::new([html("<p>by proxy")]).await;
    let runtime = through(&proxy, &["unknown.example"])
        .dns(book.dns())
        .session();
    assert_eq!(
        read(&fetch(&runtime, "http://unknown.example/").await),
        "by proxy"
    );
}

#[tokio::test]
async fn http_2_is_supported() {
    let certified = certified("localhost");
    let mut config = (*certified.config).clone();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        let stream = acceptor.accept(stream).await.expect("TLS");
        let mut connection = h2::server::handshake(stream).await.expect("HTTP/2");
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            let answer = http::Response::builder()
                .header("content-type", "text/html")
                .body(())
                .expect("an answer");
            let mut body = respond.send_response(answer, false).expect("an answer");
            let text = format!("<p>{:?} {}", request.version(), request.uri().path());
            body.send_data(text.into(), true).expect("a body");
        }
    });
    let mut bed = Bed::allowing(&["localhost"]);
    bed.settings.ca_file = Some(certified.authority.clone());
    let reply = fetch(&bed.session(), &format!("https://localhost:{port}/x")).await;
    assert_eq!(read(&reply), "HTTP/2.0 /x");
}

/// Certificates that are untrusted, for another host, or expired.
#[tokio::test]
async fn pages_need_a_valid_certificate() {
    for name in ["localhost", "example.org"] {
        let certified = certified(name);
        let server = Server::on("127.0.0.1:0", Some(certified.acceptor.clone()), []).await;
        let mut bed = Bed::allowing(&["localhost"]);
        // The first certificate is untrusted, the second is for another host.
        bed.settings.ca_file = (name != "localhost").then(|| certified.authority.clone());
        let url = format!("https://localhost:{}/", server.port);
        let (text, outcome) = failure(&fetch(&bed.session(), &url).await);
        assert!(
            text.starts_with("no secure connection to localhost"),
            "{text}"
        );
        assert!(text.contains("tools.web.ca_file"), "{text}");
        assert_eq!(outcome, "no_answer");
        assert!(server.seen().is_empty());
    }
}
