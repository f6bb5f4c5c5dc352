//! A minimal HTTP/1.1 client for tests: one connection per request, and access to every byte of
//! the response.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// Long enough for any machine; a test that waits this long has failed.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The server's address, and the headers sent with each request.
#[derive(Debug, Clone)]
pub struct Client {
    /// Address of the server.
    pub address: SocketAddr,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
}

/// A response whose head has been read.
#[derive(Debug)]
pub struct Response {
    /// HTTP status code.
    pub status: u16,
    /// Headers, with lower-case names.
    pub headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
    remaining: BodyLength,
}

#[derive(Debug)]
enum BodyLength {
    Bytes(u64),
    Chunks { left: u64, is_complete: bool },
}

/// One server-sent event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Event id, at which the stream can be resumed.
    pub id: Option<String>,
    /// Data; `None` for an event with only an id or for a keep-alive.
    pub data: Option<String>,
}

impl Event {
    /// Parses the data as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let data = self.data.as_deref().unwrap_or_default();
        serde_json::from_str(data).expect("an event carries a message")
    }
}

impl Client {
    /// Creates a client for an MCP server, with a bearer token.
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

    /// Returns a copy with this header set.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut client = self.without(name);
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    /// Returns a copy without this header.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let mut client = self.clone();
        client.headers.retain(|(known, _)| known != name);
        client
    }

    /// Opens a connection without sending anything.
    #[must_use]
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the server listens");
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Formats the head of a request.
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

    /// Sends a request and reads the head of the response.
    #[must_use]
    pub fn send(&self, method: &str, path: &str, body: Option<&[u8]>) -> Response {
        let mut stream = self.connect();
        let head = self.head(method, path, body.map(<[u8]>::len));
        stream.write_all(head.as_bytes()).unwrap();
        // A server may respond before it has read everything.
        let _ = stream.write_all(body.unwrap_or_default());
        Response::read(stream)
    }

    /// Posts a JSON-RPC message.
    #[must_use]
    pub fn post(&self, message: &Value) -> Response {
        self.send("POST", "/mcp", Some(message.to_string().as_bytes()))
    }

    /// Opens an event stream, or resumes one after an event.
    #[must_use]
    pub fn get(&self, last: Option<&str>) -> Response {
        match last {
            Some(last) => self.with("last-event-id", last).send("GET", "/mcp", None),
            None => self.send("GET", "/mcp", None),
        }
    }

    /// Starts a session. Returns a client that uses it and the server's result.
    #[must_use]
    pub fn initialize(&self, version: &str, capabilities: Value) -> (Self, Value) {
        let response = self.post(&json!({
            "jsonrpc": "2.0", "id": "init", "method": "initialize",
            "params": {
                "protocolVersion": version,
                "capabilities": capabilities,
                "clientInfo": { "name": "test", "version": "0" },
            },
        }));
        assert_eq!(response.status, 200);
        let id = response
            .header("mcp-session-id")
            .expect("a session")
            .to_owned();
        let result = response.message()["result"].clone();
        let version = result["protocolVersion"].as_str().expect("a version");
        let client = self
            .with("mcp-session-id", &id)
            .with("mcp-protocol-version", version);
        let response =
            client.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(response.status, 202);
        (client, result)
    }

    /// Returns a client for one request of the protocol version without sessions.
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

    /// Calls a tool and returns the complete response message.
    #[must_use]
    pub fn call(&self, id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
        self.post(&call(id, tool, arguments)).message()
    }
}

/// Builds the message for a tool call.
#[must_use]
pub fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    json!({
        "jsonrpc": "2.0", "id": id.into(), "method": "tools/call",
        "params": { "name": tool, "arguments": arguments },
    })
}

/// Adds the metadata that the protocol version without a handshake requires.
#[must_use]
pub fn stateless(mut message: Value, capabilities: Value) -> Value {
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] =
        json!({ "name": "test", "version": "0" });
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    message
}

impl Response {
    /// Reads the head of a response.
    #[must_use]
    pub fn read(stream: TcpStream) -> Self {
        Self::try_read(stream).expect("the server answers")
    }

    /// Like `read`, but returns `None` if the server closes the connection.
    #[must_use]
    pub fn try_read(stream: TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let status = line.split(' ').nth(1)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            line.clear();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let find = |name: &str| headers.iter().find(|(known, _)| known == name);
        let remaining = match find("content-length") {
            Some((_, length)) => BodyLength::Bytes(length.parse().ok()?),
            None if find("transfer-encoding").is_some() => BodyLength::Chunks {
                left: 0,
                is_complete: false,
            },
            None => BodyLength::Bytes(0),
        };
        Some(Self {
            status,
            headers,
            reader,
            remaining,
        })
    }

    /// Returns the value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether the response is an event stream.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    fn byte(&mut self) -> Option<u8> {
        let left = match &mut self.remaining {
            BodyLength::Bytes(left) => left,
            BodyLength::Chunks {
                is_complete: true, ..
            } => return None,
            BodyLength::Chunks { left, is_complete } => {
                if *left == 0 {
                    let mut line = String::new();
                    while line.trim().is_empty() {
                        line.clear();
                        self.reader
                            .read_line(&mut line)
                            .ok()
                            .filter(|read| *read > 0)?;
                    }
                    *left = u64::from_str_radix(line.trim(), 16).expect("the length of a chunk");
                    *is_complete = *left == 0;
                }
                left
            }
        };
        *left = left.checked_sub(1)?;
        let mut byte = [0];
        self.reader.read_exact(&mut byte).ok()?;
        Some(byte[0])
    }

    /// Returns the whole body as text.
    #[must_use]
    pub fn text(mut self) -> String {
        let bytes: Vec<u8> = std::iter::from_fn(|| self.byte()).collect();
        String::from_utf8(bytes).expect("text")
    }

    /// Parses the body as JSON.
    #[must_use]
    pub fn json(self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("not JSON: {text}"))
    }

    /// Returns the last message: the body, or the last one in the stream.
    #[must_use]
    pub fn message(mut self) -> Value {
        if !self.is_stream() {
            return self.json();
        }
        let mut last = None;
        while let Some(event) = self.event() {
            last = event.data.filter(|data| !data.is_empty()).or(last);
        }
        serde_json::from_str(&last.expect("the stream contains a message")).expect("a message")
    }

    /// Returns the next event, or `None` at the end of the stream.
    pub fn event(&mut self) -> Option<Event> {
        let mut event = Event::default();
        let mut line = Vec::new();
        let mut has_lines = false;
        loop {
            match self.byte()? {
                b'\n' => {
                    let text = String::from_utf8(std::mem::take(&mut line)).expect("text");
                    match text.split_once(':') {
                        _ if text.is_empty() && has_lines => return Some(event),
                        Some(("id", id)) => event.id = Some(id.trim().to_owned()),
                        Some(("data", data)) => event.data = Some(data.trim().to_owned()),
                        _ => {}
                    }
                    has_lines = true;
                }
                byte => line.push(byte),
            }
        }
    }

    /// Returns the next event that carries a message, with its id.
    pub fn next_message(&mut self) -> Option<(String, Value)> {
        loop {
            let event = self.event()?;
            if event.data.as_deref().is_some_and(|data| !data.is_empty()) {
                return Some((event.id.clone().expect("an id"), event.json()));
            }
        }
    }

    /// Closes the connection.
    pub fn hang_up(self) {
        let _ = self.reader.get_ref().shutdown(Shutdown::Both);
    }
}
