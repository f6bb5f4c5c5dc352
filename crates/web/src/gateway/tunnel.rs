//! Connections that the proxy passes through unread, once it has seen that their beginning
//! belongs to the host that was judged.

use super::dial::Destination;
use hyper::Request;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::server::Acceptor;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, copy_buf};
use tokio::net::TcpStream;
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

/// Connects the client to the server once the client has received the response.
pub(super) async fn run(request: Request<Incoming>, server: TcpStream, to: Destination) {
    let Ok(upgraded) = hyper::upgrade::on(request).await else {
        return;
    };
    let Ok(parts) = upgraded.downcast::<TokioIo<TcpStream>>() else {
        return;
    };
    let client = parts.io.into_inner();
    // Errors mean that one side is gone, or that the client broke the rules; both sides see the
    // connection close.
    let _ = inspect_and_relay(client, server, &to, parts.read_buf.to_vec()).await;
}

async fn inspect_and_relay(
    mut client: TcpStream,
    mut server: TcpStream,
    to: &Destination,
    received: Vec<u8>,
) -> io::Result<()> {
    let (client_read, client_write) = client.split();
    let (server_read, mut server_write) = server.split();
    let mut client_read = BufReader::with_capacity(BUFFER, client_read);
    // The server may speak first.
    let down = copy_down(server_read, client_write);
    let up = async {
        let greeting = inspect(&mut client_read, received, to).await?;
        server_write.write_all(&greeting).await?;
        drop(greeting);
        copy_buf(&mut client_read, &mut server_write).await?;
        server_write.shutdown().await
    };
    tokio::try_join!(up, down).map(drop)
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
) -> io::Result<()> {
    copy_buf(&mut BufReader::with_capacity(BUFFER, from), &mut to).await?;
    to.shutdown().await
}

/// Reads the beginning of what the client sends, and returns it if it may be sent to the host.
async fn inspect(
    client: &mut (impl AsyncRead + Unpin),
    mut received: Vec<u8>,
    to: &Destination,
) -> io::Result<Vec<u8>> {
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
                Judged::Fine => return Ok(()),
                Judged::Refused => return Err(io::ErrorKind::PermissionDenied.into()),
                Judged::Unfinished if received.len() >= MAX_GREETING => {
                    return Err(io::ErrorKind::PermissionDenied.into());
                }
                Judged::Unfinished => {}
            }
            if client.read_buf(&mut received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    });
    let judged: io::Result<()> = judged
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    judged.map(|()| received)
}

/// Judgement of the bytes so far.
#[derive(Debug, PartialEq, Eq)]
enum Judged {
    Fine,
    Refused,
    Unfinished,
}

/// The beginning of what a client sends.
struct Greeting {
    tls: Acceptor,
    is_tls: Option<bool>,
    line: Vec<u8>,
}

impl Greeting {
    fn new() -> Self {
        Self {
            tls: Acceptor::default(),
            is_tls: None,
            line: Vec::new(),
        }
    }

    fn push(&mut self, bytes: &[u8], to: &Destination) -> Judged {
        let Some(first) = bytes.first() else {
            return Judged::Unfinished;
        };
        /// Type of a record with a handshake message.
        const HANDSHAKE: u8 = 22;
        match *self.is_tls.get_or_insert(*first == HANDSHAKE) {
            true => self.push_tls(bytes, to),
            false => self.push_text(bytes),
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
                    let is_same = match (&to.host, hello.server_name()) {
                        (Host::Domain(host), Some(name)) => {
                            host.eq_ignore_ascii_case(name.strip_suffix('.').unwrap_or(name))
                        }
                        // Addresses are not sent as names.
                        (Host::Ipv4(_) | Host::Ipv6(_), None) => true,
                        _ => false,
                    };
                    return match is_same {
                        true => Judged::Fine,
                        false => Judged::Refused,
                    };
                }
                Err(_) => return Judged::Refused,
            }
        }
        Judged::Unfinished
    }

    /// Plain HTTP could name another host of the same server, so it has to be requested from
    /// the proxy in plain. Other protocols, such as ssh, pass.
    fn push_text(&mut self, bytes: &[u8]) -> Judged {
        const MAX_LINE: usize = 16 << 10;
        for byte in bytes {
            match byte {
                b'\r' | b'\n' if self.line.is_empty() => {}
                b'\n' => {
                    let mut words = self.line.windows(5);
                    return match words.any(|word| word.eq_ignore_ascii_case(b"HTTP/")) {
                        true => Judged::Refused,
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
        for step in [1, 7, 100, bytes.len()] {
            assert_eq!(
                judge_in_steps(&bytes, step, &to("allowed.example")),
                Judged::Fine
            );
            assert_eq!(
                judge_in_steps(&bytes, step, &to("Allowed.Example.")),
                Judged::Fine
            );
            assert_eq!(
                judge_in_steps(&bytes, step, &to("denied.example")),
                Judged::Refused
            );
            assert_eq!(
                judge_in_steps(&bytes, step, &to("203.0.113.7")),
                Judged::Refused
            );
        }
        let split = in_small_records(&bytes);
        assert_eq!(
            judge_in_steps(&split, 11, &to("denied.example")),
            Judged::Refused
        );
        // An address is not sent as a name.
        let bytes = hello("203.0.113.7");
        assert_eq!(judge_in_steps(&bytes, 50, &to("203.0.113.7")), Judged::Fine);
        assert_eq!(
            judge_in_steps(&bytes, 50, &to("allowed.example")),
            Judged::Refused
        );
    }

    #[test]
    fn plain_http_does_not_pass_through_a_tunnel() {
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
                assert_eq!(judged, Judged::Refused, "{text:?} by {step}");
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
    }
}
