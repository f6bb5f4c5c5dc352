//! A client that knows nothing but HTTP/1.1 and lines of text: one connection for each
//! request, and every byte as it was sent.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// Long enough for any machine; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where requests go, and what each of them brings.
#[derive(Debug, Clone)]
pub struct Client {
    /// The server.
    pub address: SocketAddr,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
}

/// An answer, of which the head was read.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its headers, with names in small letters.
    pub headers: Vec<(String, String)>,
    from: BufReader<TcpStream>,
    rest: Rest,
}

#[derive(Debug)]
enum Rest {
    Bytes(u64),
    Chunks { left: u64, is_over: bool },
}

/// One event of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Where the stream can be taken up.
    pub id: Option<String>,
    /// What it says; nothing for one that only has an id, or for a sign of life.
    pub data: Option<String>,
}

impl Event {
    /// The message that it carries.
    #[must_use]
    pub fn json(&self) -> Value {
        let data = self.data.as_deref().unwrap_or_default();
        serde_json::from_str(data).expect("an event carries a message")
    }
}

impl Client {
    /// A client for a server, with its token.
    #[must_use]
    pub fn new(address: SocketAddr, token: Option<&str>) -> Self {
        let mut headers = vec![
            ("host".to_owned(), address.to_string()),
            (
                "accept".to_owned(),
                "application/json, text/event-stream".to_owned(),
            ),
            ("content-type".to_owned(), "application/json".to_owned()),
        ];
        headers.extend(token.map(|token| ("authorization".to_owned(), format!("Bearer {token}"))));
        Self { address, headers }
    }

    /// The same with a header of that name, in the place of what it had.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut client = self.without(name);
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    /// The same without a header.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let mut client = self.clone();
        client.headers.retain(|(known, _)| known != name);
        client
    }

    /// A connection on which nothing was said.
    #[must_use]
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// The head of a request.
    #[must_use]
    pub fn head(&self, method: &str, path: &str, length: Option<usize>) -> String {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(length) = length {
            head.push_str(&format!("content-length: {length}\r\n"));
        }
        head.push_str("\r\n");
        head
    }

    /// Sends a request and reads the head of the answer.
    #[must_use]
    pub fn send(&self, method: &str, path: &str, body: Option<&[u8]>) -> Answer {
        let mut stream = self.connect();
        let head = self.head(method, path, body.map(<[u8]>::len));
        stream.write_all(head.as_bytes()).unwrap();
        // A server may answer before it has read everything.
        let _ = stream.write_all(body.unwrap_or_default());
        Answer::read(stream)
    }

    /// Posts a message.
    #[must_use]
    pub fn post(&self, message: &Value) -> Answer {
        self.send("POST", "/mcp", Some(message.to_string().as_bytes()))
    }

    /// Opens a stream, or takes one up after an event.
    #[must_use]
    pub fn get(&self, last: Option<&str>) -> Answer {
        match last {
            Some(last) => self.with("last-event-id", last).send("GET", "/mcp", None),
            None => self.send("GET", "/mcp", None),
        }
    }

    /// Begins a session: a client that names it from now on, and what the server said.
    #[must_use]
    pub fn initialize(&self, version: &str, capabilities: Value) -> (Self, Value) {
        let answer = self.post(&json!({
            "jsonrpc": "2.0", "id": "init", "method": "initialize",
            "params": {
                "protocolVersion": version,
                "capabilities": capabilities,
                "clientInfo": { "name": "test", "version": "0" },
            },
        }));
        assert_eq!(answer.status, 200);
        let id = answer
            .header("mcp-session-id")
            .expect("a session")
            .to_owned();
        let result = answer.message()["result"].clone();
        let version = result["protocolVersion"].as_str().expect("a version");
        let client = self
            .with("mcp-session-id", &id)
            .with("mcp-protocol-version", version);
        let told = client.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(told.status, 202);
        (client, result)
    }

    /// The same in a version without sessions: each request says what it needs.
    #[must_use]
    pub fn alone(&self, method: &str, name: Option<&str>) -> Self {
        let client = self
            .with("mcp-protocol-version", "2026-07-28")
            .with("mcp-method", method);
        match name {
            Some(name) => client.with("mcp-name", name),
            None => client,
        }
    }

    /// Calls a tool and gives the whole answer.
    #[must_use]
    pub fn call(&self, id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
        self.post(&call(id, tool, arguments)).message()
    }
}

/// The message of a call.
#[must_use]
pub fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    json!({
        "jsonrpc": "2.0", "id": id.into(), "method": "tools/call",
        "params": { "name": tool, "arguments": arguments },
    })
}

/// A message with what a version without a handshake wants in it.
#[must_use]
pub fn stateless(mut message: Value, capabilities: Value) -> Value {
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] =
        json!({ "name": "test", "version": "0" });
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    message
}

impl Answer {
    /// Reads the head of an answer.
    #[must_use]
    pub fn read(stream: TcpStream) -> Self {
        Self::try_read(stream).expect("the server answers")
    }

    /// The same; nothing when the server hangs up instead.
    #[must_use]
    pub fn try_read(stream: TcpStream) -> Option<Self> {
        let mut from = BufReader::new(stream);
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let status = line.split(' ').nth(1)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            line.clear();
            from.read_line(&mut line).ok().filter(|read| *read > 0)?;
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let find = |name: &str| headers.iter().find(|(known, _)| known == name);
        let rest = match find("content-length") {
            Some((_, length)) => Rest::Bytes(length.parse().ok()?),
            None if find("transfer-encoding").is_some() => Rest::Chunks {
                left: 0,
                is_over: false,
            },
            None => Rest::Bytes(0),
        };
        Some(Self {
            status,
            headers,
            from,
            rest,
        })
    }

    /// A header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether it is a stream of events.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    fn byte(&mut self) -> Option<u8> {
        let left = match &mut self.rest {
            Rest::Bytes(left) => left,
            Rest::Chunks { is_over: true, .. } => return None,
            Rest::Chunks { left, is_over } => {
                if *left == 0 {
                    let mut line = String::new();
                    while line.trim().is_empty() {
                        line.clear();
                        self.from
                            .read_line(&mut line)
                            .ok()
                            .filter(|read| *read > 0)?;
                    }
                    *left = u64::from_str_radix(line.trim(), 16).expect("the length of a chunk");
                    *is_over = *left == 0;
                }
                left
            }
        };
        *left = left.checked_sub(1)?;
        let mut byte = [0];
        self.from.read_exact(&mut byte).ok()?;
        Some(byte[0])
    }

    /// All of the body as text.
    #[must_use]
    pub fn text(mut self) -> String {
        let bytes: Vec<u8> = std::iter::from_fn(|| self.byte()).collect();
        String::from_utf8(bytes).expect("text")
    }

    /// The body as JSON.
    #[must_use]
    pub fn json(self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}"))
    }

    /// The last message: the body, or what the stream ended with.
    #[must_use]
    pub fn message(mut self) -> Value {
        if !self.is_stream() {
            return self.json();
        }
        let mut last = None;
        while let Some(event) = self.event() {
            last = event.data.filter(|data| !data.is_empty()).or(last);
        }
        serde_json::from_str(&last.expect("the stream says something")).expect("a message")
    }

    /// The next event; nothing at the end of the stream.
    pub fn event(&mut self) -> Option<Event> {
        let mut event = Event::default();
        let mut line = Vec::new();
        let mut is_begun = false;
        loop {
            match self.byte()? {
                b'\n' => {
                    let text = String::from_utf8(std::mem::take(&mut line)).expect("text");
                    match text.split_once(':') {
                        _ if text.is_empty() && is_begun => return Some(event),
                        Some(("id", id)) => event.id = Some(id.trim().to_owned()),
                        Some(("data", data)) => event.data = Some(data.trim().to_owned()),
                        _ => {}
                    }
                    is_begun = true;
                }
                byte => line.push(byte),
            }
        }
    }

    /// The next event that carries a message.
    pub fn next_message(&mut self) -> Option<(String, Value)> {
        loop {
            let event = self.event()?;
            if event.data.as_deref().is_some_and(|data| !data.is_empty()) {
                return Some((event.id.clone().expect("an id"), event.json()));
            }
        }
    }

    /// Goes away without a word.
    pub fn hang_up(self) {
        let _ = self.from.get_ref().shutdown(Shutdown::Both);
    }
}
