//! Servers to test with: small programs in Python that do what they should, or not.

use crate::bed::Bed;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

/// Start of every server. `serve` handles the protocol; a test adds tools and their
/// behaviour.
pub(crate) const PRELUDE: &str = r#"#!/usr/bin/env python3
import json, os, signal, sys, threading, time
me = os.path.basename(sys.argv[0])
def note(file, text):
    try:
        with open(file + "-" + me, "a") as out: out.write(text + "\n")
    except OSError: pass
note("starts", str(os.getpid()))
lock = threading.Lock()
def raw(text):
    with lock:
        sys.stdout.write(text)
        sys.stdout.flush()
def say(message): raw(json.dumps(message) + "\n")
def answer(id, result): say({"jsonrpc": "2.0", "id": id, "result": result})
def error(id, code, message): say({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
def tell(method, params={}): say({"jsonrpc": "2.0", "method": method, "params": params})
def text(words, **more): return dict({"content": [{"type": "text", "text": words}]}, **more)
def tool(name, properties={}, description="Tests.", **more):
    schema = {"type": "object", "properties": properties}
    return dict({"name": name, "description": description, "inputSchema": schema}, **more)
def hello(message):
    answer(message["id"], {"protocolVersion": message["params"]["protocolVersion"],
        "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": me, "version": "1.2.3"}})
def messages():
    for line in iter(sys.stdin.readline, ""):
        note("got", line.rstrip("\n"))
        yield json.loads(line)
def serve(tools, call, other=None):
    for message in messages():
        method = message.get("method")
        if method == "initialize": hello(message)
        elif method == "tools/list": answer(message["id"], {"tools": tools() if callable(tools) else tools})
        elif method == "ping": answer(message["id"], {})
        elif method == "tools/call": call(message)
        elif other and other(message): pass
        elif method and "id" in message: error(message["id"], -32601, "unknown method")
def arguments(message): return message["params"].get("arguments", {})
def progress(message, n, words):
    token = message["params"]["_meta"]["progressToken"]
    tell("notifications/progress", {"progressToken": token, "progress": n, "message": words})
def echo(message): answer(message["id"], text(json.dumps(arguments(message))))
"#;

/// A server that echoes.
pub(crate) const ECHO: &str = "serve([tool('echo', {'words': {'type': 'string'}})], echo)";

impl Bed {
    /// Writes a Python server of the user.
    pub(crate) fn server(&self, name: &str, body: &str) {
        self.program(&format!("plugins/{name}"), format!("{PRELUDE}{body}\n"));
    }

    /// Its entry in a file.
    pub(crate) fn entry(&self, name: &str) -> Value {
        json!({ "command": self.path("plugins").join(name) })
    }

    /// A bed with these servers in the user's configuration.
    pub(crate) fn serving(servers: &[(&str, &str)]) -> Self {
        let bed = Self::new();
        let mut all = serde_json::Map::new();
        for (name, body) in servers {
            bed.server(name, body);
            all.insert((*name).to_owned(), bed.entry(name));
        }
        bed.configure(&json!({ "tools": { "mcp": all } }));
        bed
    }

    /// Number of times a server was started.
    pub(crate) fn starts(&self, name: &str) -> usize {
        self.noted("starts", name).len()
    }

    /// The messages that a server got.
    pub(crate) fn got(&self, name: &str) -> Vec<Value> {
        let got = self.noted("got", name);
        got.iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// Common code of HTTP servers. Each prints its port, then the requests it gets.
const HTTP: &str = r#"
import json, sys, threading, time, queue
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
def note(**what): print(json.dumps(what), flush=True)
def tool(name, description="Tests."):
    return {"name": name, "description": description, "inputSchema": {"type": "object", "properties": {"words": {"type": "string"}}}}
def result(message):
    method = message.get("method")
    if method == "initialize":
        return {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "http", "version": "1"}}
    if method == "tools/list": return {"tools": [tool("echo")]}
    if method == "tools/call": return {"content": [{"type": "text", "text": json.dumps(message["params"].get("arguments", {}))}]}
    if method == "ping": return {}
    return None
def reply(message):
    found = result(message)
    if found is None: return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown method"}}
    return {"jsonrpc": "2.0", "id": message["id"], "result": found}
class Base(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args): pass
    def body(self): return self.rfile.read(int(self.headers.get("content-length", 0)))
    def send(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items(): self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)
    def heard(self, **more):
        note(method=self.command, path=self.path, headers={k.lower(): v for k, v in self.headers.items()}, **more)
def run(handler, port=0):
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()
"#;

/// A server on loopback, beside haft.
pub(crate) struct Web {
    child: Child,
    pub(crate) port: u16,
    heard: Arc<Mutex<Vec<Value>>>,
}

impl Web {
    pub(crate) fn start(body: &str) -> Self {
        let mut child = Command::new("python3")
            .args(["-c", &format!("{HTTP}{body}\n")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap().parse().unwrap();
        let heard: Arc<Mutex<Vec<Value>>> = Arc::default();
        let hears = Arc::clone(&heard);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Ok(value) = serde_json::from_str(&line) {
                    hears.lock().unwrap().push(value);
                }
            }
        });
        Self { child, port, heard }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The requests that it got.
    pub(crate) fn heard(&self) -> Vec<Value> {
        self.heard.lock().unwrap().clone()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command at a terminal, and says what stands there so far.
pub(crate) struct Terminal {
    child: std::process::Child,
    reading: Option<std::thread::JoinHandle<()>>,
    shown: Arc<Mutex<String>>,
}

impl Terminal {
    pub(crate) fn run(bed: &Bed, args: &str) -> Self {
        let haft = env!("CARGO_BIN_EXE_haft");
        let mut child = Command::new("script")
            .args(["-qec", &format!("{haft} {args}"), "/dev/null"])
            .current_dir(bed.work(""))
            .env_clear()
            .env("HOME", bed.path("home"))
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("TERM", "dumb")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        let shown = Arc::new(Mutex::new(String::new()));
        let seen = Arc::clone(&shown);
        let reading = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = out.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..read]).into_owned();
                seen.lock().unwrap().push_str(&text);
            }
        });
        Self {
            child,
            reading: Some(reading),
            shown,
        }
    }

    pub(crate) fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }

    pub(crate) fn type_in(&mut self, text: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn wait(&mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        // The last of it may still be on its way.
        self.reading.take().unwrap().join().unwrap();
        (code, self.shown())
    }
}
