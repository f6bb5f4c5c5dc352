//! A server that follows a script, one step per request.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The server's reaction to a request.
#[derive(Clone)]
pub(crate) enum Step {
    /// Responds with these bytes.
    Answer(Vec<u8>),
    /// Responds with these bytes and closes the connection.
    Last(Vec<u8>),
    /// Closes the connection without a response.
    Cut,
    /// Never responds, but keeps the connection open.
    Hang,
    /// Starts a body and continues until the client disconnects.
    Endless,
    /// Starts a body and stops.
    Stall,
    /// Starts a body and sends a byte now and then.
    Drip,
}

pub(crate) fn answer(status: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Step {
    let body = body.as_ref();
    let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    Step::Answer([head.as_bytes(), body].concat())
}

pub(crate) fn json(status: &str, body: &str) -> Step {
    answer(status, &[("content-type", "application/json")], body)
}

pub(crate) fn redirect(status: &str, location: &str) -> Step {
    answer(status, &[("location", location)], "")
}

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) at: Instant,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

#[derive(Default)]
struct Shared {
    script: Mutex<VecDeque<Step>>,
    seen: Mutex<Vec<Seen>>,
    connections: AtomicUsize,
}

pub(crate) struct Server {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

impl Server {
    pub(crate) async fn new(script: impl IntoIterator<Item = Step>) -> Self {
        Self::on("127.0.0.1:0", None, script).await
    }

    pub(crate) async fn on(
        address: &str,
        tls: Option<TlsAcceptor>,
        script: impl IntoIterator<Item = Step>,
    ) -> Self {
        let listener = TcpListener::bind(address).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared::default());
        *shared.script.lock().expect("a script") = script.into_iter().collect();
        let theirs = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                theirs.connections.fetch_add(1, Ordering::SeqCst);
                let shared = Arc::clone(&theirs);
                let tls = tls.clone();
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, &shared).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, &shared).await;
                            }
                        }
                    }
                });
            }
        });
        Self { port, shared }
    }

    pub(crate) fn base(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().expect("requests").clone()
    }

    pub(crate) fn only(&self) -> Seen {
        let seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen[0].clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, shared: &Shared) {
    let mut stream = BufReader::new(stream);
    while let Some(seen) = read(&mut stream).await {
        shared.seen.lock().expect("requests").push(seen);
        let step = shared.script.lock().expect("a script").pop_front();
        let done = match step {
            Some(Step::Answer(bytes)) => stream.write_all(&bytes).await.is_err(),
            Some(Step::Last(bytes)) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.flush().await;
                true
            }
            Some(Step::Cut) => true,
            Some(Step::Hang) => std::future::pending().await,
            Some(Step::Stall) => {
                let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbegin";
                let _ = stream.write_all(head).await;
                let _ = stream.flush().await;
                tokio::time::sleep(Duration::from_secs(60)).await;
                true
            }
            Some(Step::Drip) => {
                let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n";
                let mut failed = stream.write_all(head).await.is_err();
                while !failed {
                    failed = stream.write_all(b"x").await.is_err() || stream.flush().await.is_err();
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                true
            }
            Some(Step::Endless) => {
                let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
                let mut failed = stream.write_all(head).await.is_err();
                let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
                while !failed {
                    failed = stream.write_all(chunk.as_bytes()).await.is_err();
                }
                true
            }
            None => panic!("unexpected request: the script has ended"),
        };
        if done || stream.flush().await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut (impl AsyncBufReadExt + Unpin)) -> Option<Seen> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|n| *n > 0)?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).await.ok()?;
        let Some((name, value)) = header.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut seen = Seen {
        line: line.trim_end().to_owned(),
        headers,
        body: String::new(),
        at: Instant::now(),
    };
    let length = seen
        .header("content-length")
        .map_or(0, |n| n.parse().expect("a length"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    seen.body = String::from_utf8(body).expect("UTF-8");
    Some(seen)
}
