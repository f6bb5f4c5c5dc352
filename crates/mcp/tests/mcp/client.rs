//! A minimal client that reads and writes lines of JSON.

use haft::Runtime;
use haft_mcp::{ServeError, Server, ServerName, ToolsChanged};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Client {
    pub(crate) input: DuplexStream,
    output: BufReader<DuplexStream>,
    serving: JoinHandle<Result<(), ServeError>>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) changed: ToolsChanged,
}

pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited too long for {what}"),
    }
}

impl Client {
    /// Connects without sending anything.
    pub(crate) fn silent(runtime: Runtime) -> Self {
        let (input, server_input) = tokio::io::duplex(64 << 10);
        let (server_output, output) = tokio::io::duplex(64 << 10);
        let server = Server::new(runtime, ServerName::new("haft-test", "1.2.3"));
        let changed = server.tools_changed();
        let shutdown = CancellationToken::new();
        let token = shutdown.clone();
        let serving =
            tokio::spawn(async move { server.serve(server_input, server_output, token).await });
        Self {
            input,
            output: BufReader::new(output),
            serving,
            shutdown,
            changed,
        }
    }

    /// Connects and completes a handshake.
    pub(crate) async fn connect(runtime: Runtime) -> Self {
        let mut client = Self::silent(runtime);
        client.initialize("2025-06-18").await;
        client
    }

    /// Connects and completes a handshake with these capabilities.
    pub(crate) async fn able(runtime: Runtime, version: &str, capabilities: Value) -> Self {
        let mut client = Self::silent(runtime);
        let mut hello = initialize(version);
        hello["params"]["capabilities"] = capabilities;
        client.send(hello).await;
        client.receive().await;
        client
            .send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        client
    }

    pub(crate) async fn initialize(&mut self, version: &str) -> Value {
        self.send(initialize(version)).await;
        let answer = self.receive().await;
        assert_eq!(answer["id"], "init", "{answer}");
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        answer["result"].clone()
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        within("the server to read", self.input.write_all(bytes))
            .await
            .expect("the server reads");
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    pub(crate) async fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) {
        self.send(call(id, tool, arguments)).await;
    }

    pub(crate) async fn receive(&mut self) -> Value {
        let mut line = String::new();
        let read = within("a message", self.output.read_line(&mut line)).await;
        assert_ne!(
            read.expect("it can be read"),
            0,
            "the server has closed its output"
        );
        serde_json::from_str(&line).expect("stdout carries only protocol")
    }

    /// Sends a request whose response must be the next message.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.send(json!({ "jsonrpc": "2.0", "id": "ask", "method": method, "params": params }))
            .await;
        let answer = self.receive().await;
        assert_eq!(answer["id"], "ask", "{answer}");
        answer
    }

    /// Checks that the server responds and has not sent anything else.
    pub(crate) async fn alive(&mut self) {
        let answer = self.ask("tools/list", json!({})).await;
        assert!(answer["result"]["tools"].is_array(), "{answer}");
    }

    /// Closes the input and returns the remaining messages.
    pub(crate) async fn end(self) -> Vec<Value> {
        drop(self.input);
        finish(self.output, self.serving).await
    }

    /// Waits for the server to end while the input is open.
    pub(crate) async fn ended(self) -> Vec<Value> {
        let _open = self.input;
        finish(self.output, self.serving).await
    }

    /// Stops reading the server's output.
    pub(crate) async fn vanish_output(self) -> (DuplexStream, JoinHandle<Result<(), ServeError>>) {
        drop(self.output);
        (self.input, self.serving)
    }
}

async fn finish(
    mut output: BufReader<DuplexStream>,
    serving: JoinHandle<Result<(), ServeError>>,
) -> Vec<Value> {
    let mut rest = String::new();
    within("the end of output", output.read_to_string(&mut rest))
        .await
        .expect("it can be read");
    within("the server to end", serving)
        .await
        .expect("it does not panic")
        .expect("a clean end");
    rest.lines()
        .map(|line| serde_json::from_str(line).expect("stdout carries only protocol"))
        .collect()
}

pub(crate) fn initialize(version: &str) -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": "init",
        "method": "initialize",
        "params": {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "0" },
        },
    })
}

pub(crate) fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": id.into(),
        "method": "tools/call",
        "params": { "name": tool, "arguments": arguments },
    })
}

pub(crate) fn cancelled(id: impl Into<Value>) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": { "requestId": id.into(), "reason": "no longer needed" },
    })
}
