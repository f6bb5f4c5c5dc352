//! Connections that the proxy passes through unread, once it has seen that their beginning
//! belongs to the host that was judged. Clients that speak plain HTTP in such a connection, as
//! Node does, are served like those that ask the proxy for each request.

use super::dial::Destination;
use super::request::{Content, forwarded, reach, sentence};
use super::{Inner, forward};
use haft_ops::exec::network::{HostJudge, Refusal};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::server::Acceptor;
use std::convert::Infallible;
use std::io::{self, Cursor};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, copy_buf,
};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use url::Host;

/// Maximum size of the beginning that is inspected. TLS greetings are much shorter.
const MAX_GREETING: usize = 64 << 10;

/// Time limit for the rest of the beginning, once its first bytes have arrived.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);

/// Size of the buffer for each direction.
const BUFFER: usize = 64 << 10;

/// Returns the destination of a `CONNECT` request.
pub(super) fn destination(request: &Request<Incoming>) -> Result<Destination, &'static str> {
    let authority = request.uri().authority().ok_or("CONNECT needs HOST:PORT")?;
    let port = authority.port_u16().ok_or("CONNECT needs HOST:PORT")?;
    if authority.as_str().contains('@') {
        return Err("the address must not contain a user name");
    }
    Destination::parse(authority.host(), port).ok_or("the address is not valid")
}

/// A tunnel to a host that was judged.
pub(super) struct Tunnel {
    pub(super) proxy: Arc<Inner>,
    /// Judge of the call that opened it.
    pub(super) judge: Arc<dyn HostJudge>,
    pub(super) to: Destination,
}

/// Reason why bytes are not passed on any more.
enum Stopped {
    /// One side is gone, or the client broke the rules.
    Failed,
    /// The client named another host than the judged one, or none.
    OtherName(String),
    /// The client speaks plain HTTP, and began like this.
    Http(Vec<u8>),
}

impl From<io::Error> for Stopped {
    fn from(_: io::Error) -> Self {
        Self::Failed
    }
}

impl Tunnel {
    /// Connects the client to the server once the client has received the response. If it
    /// fails, both sides see the connection close.
    pub(super) async fn run(self, request: Request<Incoming>, mut server: TcpStream) {
        let Ok(upgraded) = hyper::upgrade::on(request).await else {
            return;
        };
        let Ok(parts) = upgraded.downcast::<TokioIo<TcpStream>>() else {
            return;
        };
        let (client_read, mut client_write) = parts.io.into_inner().into_split();
        let mut client_read = BufReader::with_capacity(BUFFER, client_read);
        let received = parts.read_buf.to_vec();
        let passed = pass(
            (&mut client_read, &mut client_write),
            &mut server,
            received,
            &self.to,
        );
        match passed.await {
            Ok(()) | Err(Stopped::Failed) => {}
            Err(Stopped::OtherName(what)) => {
                let reason = Refusal::Name(what);
                self.judge.refused(&self.to.name(), self.to.port, reason);
            }
            Err(Stopped::Http(greeting)) => {
                let client = Cursor::new(greeting).chain(client_read);
                let client = tokio::io::join(client, client_write);
                self.serve_http(client, server).await;
            }
        }
    }

    /// Serves the requests of a client that speaks plain HTTP in the tunnel. The first one uses
    /// the connection that the tunnel has made.
    async fn serve_http(
        self,
        client: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        server: TcpStream,
    ) {
        let tunnel = Arc::new(self);
        let first = Arc::new(Mutex::new(Some(server)));
        let service = service_fn(move |inner| {
            let tunnel = Arc::clone(&tunnel);
            let connected = first.lock().unwrap_or_else(PoisonError::into_inner).take();
            async move { Ok::<_, Infallible>(tunnel.answer(inner, connected).await) }
        });
        let connection = super::http_server().serve_connection(TokioIo::new(client), service);
        let _ = connection.await;
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        connected: Option<TcpStream>,
    ) -> Response<Content> {
        if let Err(why) = forward::belongs_to(&request, &self.to) {
            return sentence(StatusCode::BAD_REQUEST, why);
        }
        let reached = match connected {
            Some(server) => Ok(server),
            None => reach(&self.proxy, &self.judge, &self.to).await,
        };
        match reached {
            Ok(server) => forwarded(request, server).await,
            Err(response) => response,
        }
    }
}

/// Passes both directions on, after an inspection of what the client sends first.
async fn pass(
    (client_read, client_write): (&mut BufReader<OwnedReadHalf>, &mut OwnedWriteHalf),
    server: &mut TcpStream,
    received: Vec<u8>,
    to: &Destination,
) -> Result<(), Stopped> {
    let (server_read, mut server_write) = server.split();
    let has_answered = AtomicBool::new(false);
    // The server may speak first.
    let down = async {
        copy_down(server_read, client_write, &has_answered)
            .await
            .map_err(Stopped::from)
    };
    let up = async {
        let greeting = inspect(client_read, received, to).await?;
        match is_tls(&greeting) {
            true => server_write.write_all(&greeting).await?,
            false => watch(client_read, &mut server_write, greeting, &has_answered).await?,
        }
        copy_buf(client_read, &mut server_write).await?;
        server_write.shutdown().await.map_err(Stopped::from)
    };
    tokio::try_join!(up, down).map(drop)
}

/// Passes on what a client sends, its greeting first, until the server answers. HTTP after
/// something else ends the connection: it would not be judged, and some servers skip what they
/// do not understand.
async fn watch(
    client: &mut BufReader<OwnedReadHalf>,
    server: &mut (impl AsyncWrite + Unpin),
    greeting: Vec<u8>,
    has_answered: &AtomicBool,
) -> Result<(), Stopped> {
    let hidden = || Stopped::OtherName("it sent HTTP after something else".to_owned());
    let mut last = greeting;
    if names_http(&last) {
        return Err(hidden());
    }
    server.write_all(&last).await?;
    while !has_answered.load(Ordering::Relaxed) {
        // A version may be cut in two.
        last.drain(..last.len().saturating_sub(VERSION.len()));
        let part = client.fill_buf().await?;
        if part.is_empty() {
            return Ok(());
        }
        let length = part.len();
        last.extend_from_slice(part);
        if !has_answered.load(Ordering::Relaxed) && names_http(&last) {
            return Err(hidden());
        }
        server.write_all(client.buffer()).await?;
        client.consume(length);
    }
    Ok(())
}

/// Start of the version in a line of HTTP.
const VERSION: &[u8] = b"HTTP/1.";

fn names_http(bytes: &[u8]) -> bool {
    let mut words = bytes.windows(VERSION.len());
    words.any(|word| word.eq_ignore_ascii_case(VERSION))
}

/// Type of a record of TLS with a handshake message.
const HANDSHAKE: u8 = 22;

fn is_tls(greeting: &[u8]) -> bool {
    greeting.first() == Some(&HANDSHAKE)
}

/// Whether a greeting may be that of TLS in the form of SSL 2, which has no name of a host.
/// `None` if more of it is needed.
fn is_old_tls(greeting: &[u8]) -> Option<bool> {
    match greeting {
        [first, ..] if first & 0x80 == 0 => Some(false),
        // A greeting, of version 2 or 3.
        [_, _, kind, major, ..] => Some(*kind == 1 && matches!(major, 0 | 2 | 3)),
        _ => None,
    }
}

/// Passes both directions on until both have ended.
pub(super) async fn relay(inside: &mut TcpStream, outside: &mut TcpStream) -> io::Result<()> {
    tokio::io::copy_bidirectional_with_sizes(inside, outside, BUFFER, BUFFER)
        .await
        .map(drop)
}

async fn copy_down(
    from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    has_answered: &AtomicBool,
) -> io::Result<()> {
    let mut from = BufReader::with_capacity(BUFFER, from);
    has_answered.store(!from.fill_buf().await?.is_empty(), Ordering::Relaxed);
    copy_buf(&mut from, &mut to).await?;
    to.shutdown().await
}

/// Reads the beginning of what the client sends, and returns it if it may be sent to the host.
async fn inspect(
    client: &mut (impl AsyncRead + Unpin),
    mut received: Vec<u8>,
    to: &Destination,
) -> Result<Vec<u8>, Stopped> {
    if received.is_empty() && client.read_buf(&mut received).await? == 0 {
        return Ok(received);
    }
    let judged = tokio::time::timeout(GREETING_TIMEOUT, async {
        let mut greeting = Greeting::new();
        let mut at = 0;
        loop {
            let fresh = received.get(at..).unwrap_or_default();
            at = received.len();
            match greeting.push(fresh, to) {
                Judged::Fine => return Ok(false),
                Judged::Http => return Ok(true),
                Judged::Refused => return Err(Stopped::Failed),
                Judged::OtherName(what) => return Err(Stopped::OtherName(what)),
                Judged::Unfinished if received.len() >= MAX_GREETING => {
                    return Err(Stopped::Failed);
                }
                Judged::Unfinished => {}
            }
            if client.read_buf(&mut received).await? == 0 {
                return Err(Stopped::Failed);
            }
        }
    });
    match judged.await.unwrap_or(Err(Stopped::Failed))? {
        true => Err(Stopped::Http(received)),
        false => Ok(received),
    }
}

/// Judgement of the bytes so far.
#[derive(Debug, PartialEq, Eq)]
enum Judged {
    Fine,
    /// Plain HTTP, whose requests have to be judged one by one.
    Http,
    Refused,
    /// The greeting names another host, or none. The text is a clause.
    OtherName(String),
    Unfinished,
}

/// The beginning of what a client sends.
struct Greeting {
    tls: Acceptor,
    is_tls: Option<bool>,
    /// The beginning of what is not TLS, until it is known not to be an older form of it.
    start: Option<Vec<u8>>,
    line: Vec<u8>,
}

impl Greeting {
    fn new() -> Self {
        Self {
            tls: Acceptor::default(),
            is_tls: None,
            start: Some(Vec::new()),
            line: Vec::new(),
        }
    }

    fn push(&mut self, bytes: &[u8], to: &Destination) -> Judged {
        let Some(first) = bytes.first() else {
            return Judged::Unfinished;
        };
        match *self.is_tls.get_or_insert(*first == HANDSHAKE) {
            true => self.push_tls(bytes, to),
            false => {
                let Some(mut start) = self.start.take() else {
                    return self.push_text(bytes);
                };
                start.extend_from_slice(bytes);
                match is_old_tls(&start) {
                    None => {
                        self.start = Some(start);
                        Judged::Unfinished
                    }
                    Some(true) => Judged::Refused,
                    Some(false) => self.push_text(&start),
                }
            }
        }
    }

    /// The name in a TLS greeting must be the host that was judged.
    fn push_tls(&mut self, mut bytes: &[u8], to: &Destination) -> Judged {
        while !bytes.is_empty() {
            match self.tls.read_tls(&mut bytes) {
                Ok(0) | Err(_) => return Judged::Refused,
                Ok(_) => {}
            }
            match self.tls.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => {
                    let hello = accepted.client_hello();
                    return match (&to.host, hello.server_name()) {
                        (Host::Domain(host), Some(name)) if is_same(host, name) => Judged::Fine,
                        // Addresses are not sent as names.
                        (Host::Ipv4(_) | Host::Ipv6(_), None) => Judged::Fine,
                        (_, Some(name)) => {
                            Judged::OtherName(format!("its TLS greeting was for {name}"))
                        }
                        (_, None) => Judged::OtherName("its TLS greeting named no host".to_owned()),
                    };
                }
                Err(_) => return Judged::Refused,
            }
        }
        Judged::Unfinished
    }

    /// Plain HTTP could name another host of the same server, so it does not pass unread. Other
    /// protocols, such as ssh, do.
    fn push_text(&mut self, bytes: &[u8]) -> Judged {
        const MAX_LINE: usize = 16 << 10;
        for byte in bytes {
            match byte {
                b'\r' | b'\n' if self.line.is_empty() => {}
                b'\n' => {
                    let mut words = self.line.windows(5);
                    return match words.any(|word| word.eq_ignore_ascii_case(b"HTTP/")) {
                        true => Judged::Http,
                        false => Judged::Fine,
                    };
                }
                // Not text, so not HTTP.
                0..=8 | 14..=31 | 127.. if !self.line.contains(&b' ') => return Judged::Fine,
                _ if self.line.len() >= MAX_LINE => return Judged::Refused,
                byte => self.line.push(*byte),
            }
        }
        Judged::Unfinished
    }
}

/// Whether the name in a greeting is that of a host.
fn is_same(host: &str, name: &str) -> bool {
    host.eq_ignore_ascii_case(name.strip_suffix('.').unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(host: &str) -> Destination {
        Destination::parse(host, 443).unwrap()
    }

    /// Returns the greeting that rustls sends to a host.
    fn hello(host: &str) -> Vec<u8> {
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let name = rustls::pki_types::ServerName::try_from(host.to_owned()).unwrap();
        let mut client = rustls::ClientConnection::new(std::sync::Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    fn judge_in_steps(bytes: &[u8], step: usize, to: &Destination) -> Judged {
        let mut greeting = Greeting::new();
        for chunk in bytes.chunks(step) {
            match greeting.push(chunk, to) {
                Judged::Unfinished => {}
                judged => return judged,
            }
        }
        Judged::Unfinished
    }

    /// Splits the handshake message of a greeting over records of a few bytes each.
    fn in_small_records(hello: &[u8]) -> Vec<u8> {
        let mut records = Vec::new();
        for chunk in hello[5..].chunks(7) {
            records.extend([22, 3, 1, 0, u8::try_from(chunk.len()).unwrap()]);
            records.extend(chunk);
        }
        records
    }

    #[test]
    fn the_name_in_the_greeting_must_be_the_judged_host() {
        let bytes = hello("allowed.example");
        let other = || Judged::OtherName("its TLS greeting was for allowed.example".to_owned());
        for step in [1, 7, 100, bytes.len()] {
            assert_eq!(
                judge_in_steps(&bytes, step, &to("allowed.example")),
                Judged::Fine
            );
            assert_eq!(
                judge_in_steps(&bytes, step, &to("Allowed.Example.")),
                Judged::Fine
            );
            assert_eq!(judge_in_steps(&bytes, step, &to("denied.example")), other());
            assert_eq!(judge_in_steps(&bytes, step, &to("203.0.113.7")), other());
        }
        let split = in_small_records(&bytes);
        assert_eq!(judge_in_steps(&split, 11, &to("denied.example")), other());
        // An address is not sent as a name.
        let bytes = hello("203.0.113.7");
        assert_eq!(judge_in_steps(&bytes, 50, &to("203.0.113.7")), Judged::Fine);
        assert_eq!(
            judge_in_steps(&bytes, 50, &to("allowed.example")),
            Judged::OtherName("its TLS greeting named no host".to_owned())
        );
    }

    #[test]
    fn plain_http_does_not_pass_unread() {
        let to = to("allowed.example");
        for text in [
            "GET / HTTP/1.1\r\nHost: denied.example\r\n\r\n",
            "\r\n\r\nPOST /x HTTP/1.0\r\n",
            "PRI * HTTP/2.0\r\n\r\n",
            "FOO \u{e9} HTTP/1.1\r\n",
            "get / http/1.1\n",
        ] {
            for step in [1, 3, 100] {
                let judged = judge_in_steps(text.as_bytes(), step, &to);
                assert_eq!(judged, Judged::Http, "{text:?} by {step}");
            }
        }
        for bytes in [
            &b"SSH-2.0-OpenSSH_9.2\r\n"[..],
            b"EHLO me\r\n",
            &[0, 0, 0, 8, 4],
        ] {
            assert_eq!(judge_in_steps(bytes, 1, &to), Judged::Fine, "{bytes:?}");
        }
        assert_eq!(
            judge_in_steps(b"\x16\x03\x01\x00\x05\xff\x00\x00\x01\xff", 7, &to),
            Judged::Refused
        );
        // The greeting of TLS in the form of SSL 2 names no host.
        for step in [1, 3, 100] {
            let greeting = b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10";
            assert_eq!(judge_in_steps(greeting, step, &to), Judged::Refused);
        }
        assert_eq!(judge_in_steps(&[0x80, 1, 2, 9, 9], 1, &to), Judged::Fine);
    }
}
