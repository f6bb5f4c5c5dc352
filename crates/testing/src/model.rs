//! A model provider on the loopback interface that follows a script. It supports five protocols,
//! told apart by the path of a request, over a minimal HTTP/1.1 server. It records the requests
//! it receives and can fail in the ways real providers fail.
//!
//! It runs on its own threads, so it works for tests with and without an async runtime, and for
//! programs that a test starts.

mod anthropic;
mod google;
mod ollama;
mod openai;
mod script;

pub use script::{Call, Ending, ModelReply, Numbered, Script, Tokens, Turn};

use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A request that the server received.
#[derive(Debug, Clone)]
pub struct Received {
    /// Path and query.
    pub path: String,
    /// Headers, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// Body as received.
    pub body: Vec<u8>,
}

impl Received {
    /// Parses the body as JSON.
    ///
    /// # Panics
    /// Panics if the body is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body of a request is JSON")
    }

    /// Returns the value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

struct Shared {
    script: Box<dyn Script>,
    count: AtomicUsize,
    connections: AtomicUsize,
    /// Size of the chunks in which a response is sent; 0 sends it in one.
    chunk_size: AtomicUsize,
    records: AtomicBool,
    received: Mutex<Vec<Received>>,
    is_stopped: AtomicBool,
}

/// The server. Stops when dropped.
pub struct Scripted {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Scripted {
    /// Starts a server.
    ///
    /// # Panics
    /// Panics if no port is available.
    pub fn start(script: impl Script + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port of loopback");
        let address = listener.local_addr().expect("its address");
        let shared = Arc::new(Shared {
            script: Box::new(script),
            count: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            chunk_size: AtomicUsize::new(0),
            records: AtomicBool::new(true),
            received: Mutex::default(),
            is_stopped: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if accepting.is_stopped.load(Ordering::Acquire) {
                    return;
                }
                accepting.connections.fetch_add(1, Ordering::AcqRel);
                let shared = Arc::clone(&accepting);
                thread::spawn(move || {
                    // It is fine for a client to disconnect.
                    let _ = shared.serve(&stream);
                });
            }
        });
        Self { address, shared }
    }

    /// Sends every response in chunks of `size` bytes, wherever the boundaries fall.
    #[must_use]
    pub fn chopped(self, size: usize) -> Self {
        self.shared.chunk_size.store(size, Ordering::Release);
        self
    }

    /// Does not record requests, for tests that send very many.
    #[must_use]
    pub fn forgetful(self) -> Self {
        self.shared.records.store(false, Ordering::Release);
        self
    }

    /// Returns the base URL: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests received so far.
    ///
    /// # Panics
    /// Panics if a thread of the server panicked.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        self.shared.received.lock().expect("requests").clone()
    }

    /// Returns the number of requests so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shared.count.load(Ordering::Acquire)
    }

    /// Returns the number of connections so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Acquire)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Release);
        // Unblocks the accepting thread.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    /// Serves the requests of one connection.
    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::with_capacity(64 * 1024, stream);
        while let Some(request) = read_request(&mut reader)? {
            let number = self.count.fetch_add(1, Ordering::AcqRel);
            let path = request.path.clone();
            let body = match self.script.reads() {
                true => serde_json::from_slice(&request.body).unwrap_or(Value::Null),
                false => Value::Null,
            };
            if self.records.load(Ordering::Acquire) {
                self.received.lock().expect("requests").push(request);
            }
            let turn = self.script.turn(&body, number);
            if !self.respond_to(stream, &path, &body, turn)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Responds to a request. Returns whether the connection stays open.
    fn respond_to(
        &self,
        mut stream: &TcpStream,
        path: &str,
        body: &Value,
        turn: Turn,
    ) -> std::io::Result<bool> {
        let Some(protocol) = Protocol::of(path) else {
            let missing = r#"{"error":{"message":"no such path"}}"#;
            return respond(stream, 404, &[], missing).map(|()| true);
        };
        let (text, ending) = match turn {
            Turn::Reply(reply) => (protocol.write(&reply, body), Ending::Whole),
            Turn::Cut {
                reply,
                after,
                ending,
            } => {
                let mut text = protocol.write(&reply, body).into_bytes();
                text.truncate(after);
                (String::from_utf8_lossy(&text).into_owned(), ending)
            }
            Turn::Raw(text) => (text, Ending::Whole),
            Turn::Status {
                status,
                headers,
                body,
            } => return respond(stream, status, &headers, &body).map(|()| true),
            Turn::Silent => {
                self.wait(stream);
                return Ok(false);
            }
            Turn::Closed => return Ok(false),
        };
        let kind = match protocol {
            Protocol::Ollama => "application/x-ndjson",
            _ => "text/event-stream",
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        let text = text.as_bytes();
        let chunk_size = match self.chunk_size.load(Ordering::Acquire) {
            0 => text.len().max(1),
            size => size,
        };
        let mut out = head.into_bytes();
        for piece in text.chunks(chunk_size) {
            write!(out, "{:x}\r\n", piece.len())?;
            out.extend_from_slice(piece);
            out.extend_from_slice(b"\r\n");
        }
        if ending != Ending::Broken {
            out.extend_from_slice(b"0\r\n\r\n");
        }
        if ending == Ending::Stalled {
            out.truncate(out.len() - 5);
        }
        stream.write_all(&out)?;
        match ending {
            Ending::Stalled => self.wait(stream),
            Ending::Whole | Ending::Broken => {}
        }
        Ok(ending == Ending::Whole)
    }

    /// Sends nothing until the client disconnects or the server stops.
    fn wait(&self, mut stream: &TcpStream) {
        let _ = stream.set_read_timeout(Some(Duration::from_millis(50)));
        let mut byte = [0];
        while !self.is_stopped.load(Ordering::Acquire) {
            match stream.read(&mut byte) {
                Ok(0) => return,
                Err(error)
                    if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return;
                }
                _ => {}
            }
        }
    }
}

/// The supported protocols.
#[derive(Debug, Clone, Copy)]
enum Protocol {
    Anthropic,
    Responses,
    Completions,
    Google,
    Ollama,
}

impl Protocol {
    fn of(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        let suffixes = [
            ("/v1/messages", Self::Anthropic),
            ("/responses", Self::Responses),
            ("/chat/completions", Self::Completions),
            (":streamGenerateContent", Self::Google),
            ("/api/chat", Self::Ollama),
        ];
        let found = suffixes.into_iter().find(|(end, _)| path.ends_with(end));
        found.map(|(_, protocol)| protocol)
    }

    fn write(self, reply: &ModelReply, request: &Value) -> String {
        let model = request
            .get("model")
            .and_then(Value::as_str)
            .unwrap_or("scripted");
        match self {
            Self::Anthropic => anthropic::write(reply, model),
            Self::Responses => openai::responses(reply, model),
            Self::Completions => openai::completions(reply, model),
            Self::Google => google::write(reply),
            Self::Ollama => ollama::write(reply, model),
        }
    }
}

/// Writes one event of a stream; some protocols name their events.
fn event(out: &mut String, name: Option<&str>, data: &Value) {
    if let Some(name) = name {
        let _ = writeln!(out, "event: {name}");
    }
    let _ = write!(out, "data: {data}\n\n");
}

/// Splits a text into chunks as a model would stream it.
fn chunks(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars
        .chunks(24)
        .map(|piece| piece.iter().collect())
        .collect()
}

fn respond(
    mut stream: &TcpStream,
    status: u16,
    headers: &[(String, String)],
    body: &str,
) -> std::io::Result<()> {
    let mut out = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        let _ = write!(out, "{name}: {value}\r\n");
    }
    out.push_str("\r\n");
    out.push_str(body);
    stream.write_all(out.as_bytes())
}

fn read_request(reader: &mut impl BufRead) -> std::io::Result<Option<Received>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split_whitespace().nth(1).unwrap_or("/").to_owned();
    let mut headers = Vec::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        let (name, value) = (name.to_lowercase(), value.trim().to_owned());
        if name == "content-length" {
            length = value.parse().unwrap_or(0);
        }
        headers.push((name, value));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Received {
        path,
        headers,
        body,
    }))
}
