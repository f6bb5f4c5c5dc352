//! MCP servers that the editor passes: over http and sse, and what they ask the user.

use crate::bed::{Bed, calls, says};
use haft_testing::acp::Client;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A server in Python: streamable HTTP at `/mcp`, the older transport at `/sse`.
const SERVER: &str = r#"
import http.server, json, queue
streams = queue.Queue()
def reply(message):
    method, result = message.get("method"), {}
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "remote", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "hello", "description": "Says hello.", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "hello from afar"}]}
    elif method == "server/discover":
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown method"}}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *words): pass
    def start(self, status, kind="application/json", length=None):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is not None: self.send_header("Content-Length", str(length))
        self.end_headers()
    def do_GET(self):
        if self.path != "/sse" or self.headers.get("X-Key") != "open": return self.start(405, length=0)
        self.start(200, "text/event-stream")
        self.wfile.write(b"event: endpoint\ndata: /messages\n\n"); self.wfile.flush()
        while True:
            self.wfile.write(b"event: message\ndata: " + json.dumps(streams.get()).encode() + b"\n\n"); self.wfile.flush()
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("X-Key") != "open" or self.path not in ("/mcp", "/messages"): return self.start(405, length=0)
        message = json.loads(body)
        if "id" not in message: return self.start(202, length=0)
        if self.path == "/messages":
            streams.put(reply(message))
            return self.start(202, length=0)
        answer = json.dumps(reply(message)).encode()
        self.start(200, length=len(answer))
        self.wfile.write(answer)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// A server that asks for a name before it answers.
const ASKS: &str = r#"
import json, sys
def say(message): print(json.dumps(message), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        say({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}}, "serverInfo": {"name": "asks", "version": "1"}}})
    elif method == "tools/list":
        say({"jsonrpc": "2.0", "id": id, "result": {"tools": [{"name": "greet", "description": "Greets.", "inputSchema": {"type": "object"}}]}})
    elif method == "tools/call":
        call = id
        say({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "Who are you?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}})
    elif id == "q":
        say({"jsonrpc": "2.0", "id": call, "result": {"content": [{"type": "text", "text": json.dumps(message["result"])}]}})
    elif id is not None:
        say({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown method"}})
"#;

struct Remote {
    child: Child,
    port: String,
}

impl Remote {
    fn start() -> Self {
        let mut child = Command::new("python3")
            .args(["-c", SERVER])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut port).unwrap();
        Self {
            child,
            port: port.trim().to_owned(),
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn servers_over_http_and_sse_offer_their_tools() {
    let remote = Remote::start();
    for (kind, path) in [("http", "mcp"), ("sse", "sse")] {
        let script = vec![calls("c1", "remote_hello", &json!({})), says("Done")];
        let bed = Bed::new(script);
        let mut client = bed.client();
        let server = json!({
            "type": kind,
            "name": "remote",
            "url": format!("http://127.0.0.1:{}/{path}", remote.port),
            "headers": [{ "name": "X-Key", "value": "open" }],
        });
        let place = json!({ "cwd": bed.folder(), "mcpServers": [server] });
        let opened = client.ok("session/new", place);
        let session = opened["sessionId"].as_str().unwrap().to_owned();
        assert_eq!(client.prompt(&session, "Say hello"), "end_turn", "{kind}");
        let call = client.tool_call("c1");
        assert_eq!(call["status"], "completed", "{kind}: {call}");
        let content = call["content"].to_string();
        assert!(content.contains("hello from afar"), "{kind}: {call}");
    }
}

/// Opens a session with the server that asks, and sends a prompt that uses it.
fn asked(bed: &Bed, capabilities: &Value) -> (Client, u64) {
    let mut client = Client::start(&mut bed.agent());
    let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
    client.ok("initialize", params);
    let server = json!({ "name": "asks", "command": "python3", "args": ["-c", ASKS], "env": [] });
    let place = json!({ "cwd": bed.folder(), "mcpServers": [server] });
    let opened = client.ok("session/new", place);
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    let id = client.begin_prompt(&session, "Greet me");
    (client, id)
}

fn greeting() -> Bed {
    Bed::new(vec![calls("c1", "asks_greet", &json!({})), says("Done")])
}

#[test]
fn the_user_fills_in_the_form_of_a_server() {
    for (answer, expected) in [
        (
            json!({ "action": "accept", "content": { "name": "Ada" } }),
            "Ada",
        ),
        (json!({ "action": "decline" }), "decline"),
        (json!({ "action": "cancel" }), "cancel"),
        (json!({ "action": 7 }), "cancel"),
    ] {
        let bed = greeting();
        let (mut client, id) = asked(&bed, &json!({ "elicitation": { "form": {} } }));
        let form = client.wait(|message| message["method"] == "elicitation/create");
        let params = &form["params"];
        assert_eq!(params["mode"], "form", "{params}");
        let message = params["message"].as_str().unwrap();
        assert!(message.contains("Who are you?"), "{params}");
        let name = &params["requestedSchema"]["properties"]["name"]["type"];
        assert_eq!(name, "string");
        client.send(&json!({ "jsonrpc": "2.0", "id": form["id"], "result": answer }));
        assert_eq!(client.stop_reason(id), "end_turn");
        let content = client.tool_call("c1")["content"].to_string();
        assert!(content.contains(expected), "{answer}: {content}");
    }
}

#[test]
fn a_form_that_the_editor_cannot_show_is_declined() {
    let bed = greeting();
    let (mut client, id) = asked(&bed, &json!({}));
    assert_eq!(client.stop_reason(id), "end_turn");
    let content = client.tool_call("c1")["content"].to_string();
    assert!(content.contains("decline"), "{content}");
    let is_form = |message: &Value| message["method"] == "elicitation/create";
    assert!(!client.seen.iter().any(is_form));
}

#[test]
fn a_server_in_the_users_file_is_used_instead_of_one_with_the_same_name() {
    let remote = Remote::start();
    let own = format!(
        "tools: {{ mcp: {{ remote: {{ url: \"http://127.0.0.1:{}/mcp\", headers: {{ X-Key: open }} }} }} }}\n",
        remote.port
    );
    let script = vec![calls("c1", "remote_hello", &json!({})), says("Done")];
    let bed = Bed::with(script, &own);
    let mut client = bed.client();
    let server = json!({ "name": "remote", "command": "python3", "args": ["-c", ASKS], "env": [] });
    let place = json!({ "cwd": bed.folder(), "mcpServers": [server] });
    let opened = client.ok("session/new", place);
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(client.prompt(&session, "Say hello"), "end_turn");
    let content = client.tool_call("c1")["content"].to_string();
    assert!(content.contains("hello from afar"), "{content}");
}

#[test]
fn a_server_that_does_not_start_is_reported_in_the_editor() {
    let bed = Bed::new(vec![says("Hello")]);
    let mut client = bed.client();
    let servers = json!([
        { "name": "missing", "command": "/no/such/program", "args": [], "env": [] },
        { "name": "dead", "type": "http", "url": "http://127.0.0.1:9/mcp", "headers": [] },
    ]);
    let place = json!({ "cwd": bed.folder(), "mcpServers": servers });
    let opened = client.ok("session/new", place);
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    for name in ["missing", "dead"] {
        let is_told = |message: &Value| {
            let update = &message["params"]["update"];
            update["sessionUpdate"] == "agent_thought_chunk"
                && update["content"].to_string().contains(name)
        };
        if !client.seen.iter().any(is_told) {
            client.wait(is_told);
        }
    }
    assert_eq!(client.prompt(&session, "Hi"), "end_turn");
}

#[test]
fn a_server_that_is_not_described_right_is_refused() {
    let bed = Bed::new(vec![says("Hello")]);
    let mut client = bed.client();
    for (server, expected) in [
        (
            json!({ "name": " ", "command": "x", "args": [], "env": [] }),
            "needs a name",
        ),
        (
            json!({ "type": "ws", "name": "x", "url": "ws://x" }),
            "type http or sse",
        ),
    ] {
        let place = json!({ "cwd": bed.folder(), "mcpServers": [server] });
        let (code, message) = client.refused("session/new", place);
        assert_eq!(code, -32602);
        assert!(message.contains(expected), "{message}");
    }
}
