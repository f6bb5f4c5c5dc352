//! The proxy for commands, spoken to as a hostile command would.

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures::FutureExt;
use haft_ops::exec::network::{Gateway, HostJudge, HostVerdict, Pass, Refusal};
use haft_web::client::DnsLookup;
use haft_web::gateway::Proxy;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::{self, crypto::ring, pki_types::ServerName};

/// Allows the names that begin with `open` whatever their address, and those that begin with
/// `public` if it is public.
#[derive(Default)]
struct Judge {
    asked: Mutex<Vec<String>>,
    refused: Mutex<Vec<Refusal>>,
}

#[async_trait]
impl HostJudge for Judge {
    async fn judge(self: Arc<Self>, host: &str, port: u16) -> HostVerdict {
        self.asked.lock().unwrap().push(format!("{host}:{port}"));
        match host {
            _ if host.starts_with("open") || host == "127.0.0.3" => HostVerdict::Any,
            _ if host.starts_with("closed") => HostVerdict::Refused,
            _ => HostVerdict::Public,
        }
    }

    fn refused(&self, _: &str, _: u16, reason: Refusal) {
        self.refused.lock().unwrap().push(reason);
    }
}

struct Bed {
    proxy: Proxy,
    address: SocketAddr,
    judge: Arc<Judge>,
    pass: Pass,
    lookups: Arc<AtomicUsize>,
    _serving: Box<dyn Send + Sync>,
}

fn bed() -> Bed {
    let lookups = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&lookups);
    let dns = DnsLookup::custom(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        async { vec![IpAddr::from([127, 0, 0, 1])] }.boxed()
    });
    let proxy = Proxy::new(dns, Vec::new());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = proxy.serve(listener, Vec::new()).unwrap();
    let judge = Arc::new(Judge::default());
    let pass = proxy.admit(Arc::clone(&judge) as Arc<dyn HostJudge>);
    Bed {
        proxy,
        address,
        judge,
        pass,
        lookups,
        _serving: serving,
    }
}

impl Bed {
    fn authorization(&self) -> String {
        let word = BASE64_STANDARD.encode(format!("{}:haft", self.pass.name));
        format!("Proxy-Authorization: Basic {word}\r\n")
    }

    /// Sends bytes and returns everything that comes back within a moment.
    async fn says(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        let _ = tokio::time::timeout(Duration::from_millis(400), read).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.judge.asked.lock().unwrap())
    }
}

/// A server that answers each request and keeps what it received.
async fn server() -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let received = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&received);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let kept = Arc::clone(&kept);
            tokio::spawn(async move {
                let mut all = Vec::new();
                let mut part = [0; 4096];
                let wait = Duration::from_millis(100);
                while let Ok(Ok(count @ 1..)) =
                    tokio::time::timeout(wait, stream.read(&mut part)).await
                {
                    all.extend(&part[..count]);
                }
                kept.lock()
                    .unwrap()
                    .push(String::from_utf8_lossy(&all).into_owned());
                let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nreply";
                let _ = stream.write_all(reply).await;
            });
        }
    });
    (port, received)
}

#[tokio::test]
async fn only_the_commands_of_a_running_call_are_served() {
    let mut bed = bed();
    let (port, received) = server().await;
    let request = |authorization: &str| {
        format!(
            "GET http://open.example:{port}/ HTTP/1.1\r\nHost: open.example:{port}\r\n{authorization}Connection: close\r\n\r\n"
        )
    };
    let own = bed.authorization();
    assert!(bed.says(request(&own).as_bytes()).await.ends_with("reply"));
    let other = BASE64_STANDARD.encode("0123456789abcdef0123456789abcdef:haft");
    for wrong in [
        String::new(),
        format!("Proxy-Authorization: Basic {other}\r\n"),
        "Proxy-Authorization: Basic !!!\r\n".to_owned(),
        "Proxy-Authorization: Bearer x\r\n".to_owned(),
    ] {
        let answer = bed.says(request(&wrong).as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 407"), "{wrong} {answer}");
        assert!(
            answer.contains("Proxy-Authenticate: Basic")
                || answer.contains("proxy-authenticate: Basic"),
            "{answer}"
        );
    }
    bed.pass = bed
        .proxy
        .admit(Arc::clone(&bed.judge) as Arc<dyn HostJudge>);
    let answer = bed.says(request(&own).as_bytes()).await;
    assert!(
        answer.starts_with("HTTP/1.1 407"),
        "the call has ended: {answer}"
    );
    let received = received.lock().unwrap();
    assert_eq!(received.len(), 1);
    assert!(
        !received[0].to_ascii_lowercase().contains("proxy-auth"),
        "{received:?}"
    );
}

#[tokio::test]
async fn a_request_cannot_hide_another_one() {
    let bed = bed();
    let (port, received) = server().await;
    let own = bed.authorization();
    let inner = "GET http://closed.example/ HTTP/1.1\r\nHost: closed.example\r\n\r\n";
    let both = format!(
        "POST http://open.example:{port}/ HTTP/1.1\r\nHost: open.example:{port}\r\n{own}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}"
    );
    let _ = bed.says(both.as_bytes()).await;
    for one in received.lock().unwrap().drain(..) {
        assert!(!one.contains("closed.example"), "{one}");
        let lower = one.to_ascii_lowercase();
        let is_both = lower.contains("content-length") && lower.contains("transfer-encoding");
        assert!(!is_both, "{one}");
    }
    // A second request on the same connection is judged by itself.
    bed.asked();
    let two = format!(
        "GET http://open.example:{port}/ HTTP/1.1\r\nHost: open.example:{port}\r\n{own}\r\nGET http://closed.example/ HTTP/1.1\r\nHost: closed.example\r\n{own}\r\n"
    );
    let answer = bed.says(two.as_bytes()).await;
    assert_eq!(
        bed.asked(),
        [
            format!("open.example:{port}"),
            "closed.example:80".to_owned()
        ]
    );
    assert!(
        answer.contains("the sandbox refuses connections to closed.example:80"),
        "{answer}"
    );
    for (line, headers) in [
        (
            format!("GET http://open.example:{port}/ HTTP/1.1"),
            "Host: closed.example\r\n".to_owned(),
        ),
        (
            format!("GET http://open.example:{port}/ HTTP/1.1"),
            format!("Host: open.example:{port}\r\nHost: closed.example\r\n"),
        ),
        (
            format!("GET http://open.example:{port}/ HTTP/1.1"),
            format!("X: a\r\n b\r\nHost: closed.example\r\nY: {port}\r\n"),
        ),
        (
            format!("GET http://open.example:{port}@closed.example/ HTTP/1.1"),
            "Host: closed.example\r\n".to_owned(),
        ),
        (
            "GET / HTTP/1.1".to_owned(),
            format!("Host: open.example:{port}\r\n"),
        ),
        (
            format!("GET ftp://open.example:{port}/ HTTP/1.1"),
            format!("Host: open.example:{port}\r\n"),
        ),
        (
            "GET http://open.example:0/ HTTP/1.1".to_owned(),
            "Host: open.example:0\r\n".to_owned(),
        ),
        (
            format!("CONNECT open.example:{port}@closed.example:443 HTTP/1.1"),
            "Host: x\r\n".to_owned(),
        ),
        (
            "CONNECT open.example HTTP/1.1".to_owned(),
            "Host: open.example\r\n".to_owned(),
        ),
        (
            "CONNECT open.example:0 HTTP/1.1".to_owned(),
            "Host: open.example:0\r\n".to_owned(),
        ),
        (
            format!("CONNECT {}.example:443 HTTP/1.1", "open".repeat(100)),
            "Host: x\r\n".to_owned(),
        ),
    ] {
        received.lock().unwrap().clear();
        let answer = bed
            .says(format!("{line}\r\n{headers}{own}\r\n").as_bytes())
            .await;
        assert!(
            answer.starts_with("HTTP/1.1 400") || answer.is_empty(),
            "{line} {headers}: {answer}"
        );
        assert!(received.lock().unwrap().is_empty(), "{line} {headers}");
    }
}

#[tokio::test]
async fn plain_http_in_a_tunnel_is_judged_request_by_request() {
    let bed = bed();
    let (port, received) = server().await;
    let own = bed.authorization();
    let to = format!("open.example:{port}");
    let tunnel = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{own}\r\n");
    let good = format!("GET /a HTTP/1.1\r\nHost: {to}\r\n\r\n");
    let last = format!("GET /b HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(bed.address).await.unwrap();
    let all = format!("{tunnel}{good}{last}");
    stream.write_all(all.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer.matches("reply").count(), 2, "{answer}");
    let paths: Vec<String> = received
        .lock()
        .unwrap()
        .drain(..)
        .map(|one| one.lines().next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(paths, ["GET /a HTTP/1.1", "GET /b HTTP/1.1"]);
    assert_eq!(bed.asked(), [to.clone(), to.clone()]);
    let inner = "GET /x HTTP/1.1\r\nHost: closed.example\r\n\r\n";
    for hostile in [
        inner.to_owned(),
        format!("GET http://closed.example/ HTTP/1.1\r\nHost: {to}\r\n\r\n"),
        format!("GET http://{to}/ HTTP/1.1\r\nHost: {to}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: {to}\r\nHost: closed.example\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: closed.example@{to}\r\n\r\n"),
        "GET / HTTP/1.1\r\nHost: open.example\r\n\r\n".to_owned(),
        "GET / HTTP/1.0\r\n\r\n".to_owned(),
        format!("CONNECT closed.example:80 HTTP/1.1\r\nHost: {to}\r\n\r\n"),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        format!("get / http/1.1\r\nhost: {to}\r\n\r\n"),
        format!(
            "POST / HTTP/1.1\r\nHost: {to}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}"
        ),
    ] {
        let answer = bed.says(format!("{tunnel}{hostile}").as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{hostile}: {answer}");
        for one in received.lock().unwrap().drain(..) {
            assert!(!one.contains("closed.example"), "{hostile}: {one}");
            // Only the last one has a beginning that may be sent on.
            assert!(
                one.is_empty() || hostile.starts_with("POST"),
                "{hostile}: {one}"
            );
        }
    }
}

#[tokio::test]
async fn http_after_something_else_in_a_tunnel_is_not_sent() {
    let bed = bed();
    let (port, received) = server().await;
    let own = bed.authorization();
    let to = format!("open.example:{port}");
    let tunnel = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{own}\r\n");
    let inner = "GET /x HTTP/1.1\r\nHost: closed.example\r\n\r\n";
    for before in [
        &b"\x80"[..],
        b"\x01 ",
        b"FOO\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n",
    ] {
        let hostile = [tunnel.as_bytes(), before, inner.as_bytes()].concat();
        bed.says(&hostile).await;
        // In two parts, of which the first is harmless.
        let mut stream = TcpStream::connect(bed.address).await.unwrap();
        let first = [tunnel.as_bytes(), before, b"GET /x HT"].concat();
        stream.write_all(&first).await.unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        let _ = stream
            .write_all(b"TP/1.1\r\nHost: closed.example\r\n\r\n")
            .await;
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    }
    for one in received.lock().unwrap().iter() {
        assert!(!one.contains("closed.example"), "{one}");
    }
    let noted = bed.judge.refused.lock().unwrap().clone();
    let why = "it sent HTTP after something else".to_owned();
    assert!(noted.contains(&Refusal::Name(why)), "{noted:?}");
}

#[tokio::test]
async fn tunnels_count_as_connections_and_end_with_the_session() {
    let mut bed = bed();
    // A server that says nothing.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || listener.incoming().flatten().collect::<Vec<_>>());
    let own = bed.authorization();
    let to = format!("open.example:{port}");
    let tunnel = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{own}\r\n");
    let mut tunnels = Vec::new();
    for _ in 0..256 {
        let mut stream = TcpStream::connect(bed.address).await.unwrap();
        stream.write_all(tunnel.as_bytes()).await.unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 200");
        tunnels.push(stream);
    }
    assert_eq!(bed.says(tunnel.as_bytes()).await, "", "it has to wait");
    bed._serving = Box::new(());
    let mut rest = Vec::new();
    tunnels[0].read_to_end(&mut rest).await.unwrap();
}

#[tokio::test]
async fn the_address_that_was_checked_is_the_one_that_is_dialled() {
    let bed = bed();
    let (port, received) = server().await;
    let own = bed.authorization();
    let connect =
        |host: &str| format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{own}\r\n");
    for host in [
        "public.example",
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "2130706433",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "169.254.169.254",
        "10.0.0.1",
        "metadata.google.internal",
    ] {
        let answer = bed.says(connect(host).as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{host}: {answer}");
    }
    assert_eq!(bed.judge.refused.lock().unwrap().len(), 16);
    assert_eq!(bed.lookups.load(Ordering::SeqCst), 1, "only of the name");
    assert!(received.lock().unwrap().is_empty());
    // A refused name is not looked up.
    let answer = bed.says(connect("closed.example").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert_eq!(bed.lookups.load(Ordering::SeqCst), 1);
    // A name is looked up once for a connection.
    let answer = bed.says(connect("Open.Example.").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(bed.lookups.load(Ordering::SeqCst), 2);
    assert_eq!(bed.asked().last().unwrap(), &format!("open.example:{port}"));
}

/// Returns the TLS greeting for a host.
fn greeting(host: &str) -> Vec<u8> {
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn a_greeting_for_another_host_is_not_sent_and_the_refusal_is_noted() {
    let bed = bed();
    let (port, received) = server().await;
    let to = format!("open.example:{port}");
    let own = bed.authorization();
    let connect = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{own}\r\n");
    let answer = bed
        .says(&[connect.as_bytes(), &greeting("closed.example")].concat())
        .await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let noted = bed.judge.refused.lock().unwrap().clone();
    let why = "its TLS greeting was for closed.example".to_owned();
    assert_eq!(noted, [Refusal::Name(why)]);
    for one in received.lock().unwrap().iter() {
        assert_eq!(one, "", "nothing may reach the server");
    }
}

#[tokio::test]
async fn many_connections_at_once_are_served() {
    let bed = Arc::new(bed());
    let (port, received) = server().await;
    let own = bed.authorization();
    let request = format!(
        "GET http://open.example:{port}/ HTTP/1.1\r\nHost: open.example:{port}\r\n{own}Connection: close\r\n\r\n"
    );
    // Connections without a request do not keep others from being served.
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(TcpStream::connect(bed.address).await.unwrap());
    }
    let all = (0..200).map(|_| {
        let (bed, request) = (Arc::clone(&bed), request.clone());
        tokio::spawn(async move {
            let mut stream = TcpStream::connect(bed.address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer.ends_with("reply")
        })
    });
    let served = futures::future::join_all(all).await;
    assert!(served.into_iter().all(|one| one.unwrap()));
    assert_eq!(received.lock().unwrap().len(), 200);
}
