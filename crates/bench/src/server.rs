//! A small MCP client over the standard streams of a program: enough to call tools.

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server.
pub(crate) struct Server {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    next: u64,
}

/// The answer to a call.
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

impl Server {
    pub(crate) fn start(command: &[String], dir: &std::path::Path) -> Result<Self> {
        let (program, arguments) = command.split_first().context("the command is empty")?;
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        let input = child.stdin.take().context("the server has no input")?;
        let output = child.stdout.take().context("the server has no output")?;
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let mut server = Self {
            child,
            input,
            lines,
            next: 0,
        };
        server.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "haft-bench", "version": env!("CARGO_PKG_VERSION") },
            }),
        )?;
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(server)
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        self.input.write_all(message.to_string().as_bytes())?;
        self.input.write_all(b"\n")?;
        self.input.flush()?;
        Ok(())
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let line = match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => bail!("no answer to {method}"),
                Err(RecvTimeoutError::Disconnected) => bail!("the server ended during {method}"),
            };
            let Ok(message) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            if message.get("method").is_some() {
                // A request of the server, such as for the roots: it is not supported.
                if let Some(theirs) = message.get("id") {
                    let error = json!({ "code": -32601, "message": "not supported" });
                    self.send(&json!({ "jsonrpc": "2.0", "id": theirs, "error": error }))?;
                }
                continue;
            }
            if message.get("id") == Some(&json!(id)) {
                return Ok(message);
            }
        }
    }

    /// Returns the definitions of the tools.
    pub(crate) fn tools(&mut self) -> Result<Vec<Value>> {
        let answer = self.request("tools/list", &json!({}))?;
        let tools = answer.pointer("/result/tools").and_then(Value::as_array);
        Ok(tools.cloned().unwrap_or_default())
    }

    /// Calls a tool. An error of the protocol is an answer, too: the model sees its text.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Answer> {
        let answer = self.request(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        )?;
        if let Some(error) = answer.get("error") {
            let text = error
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or_default();
            return Ok(Answer {
                text: text.to_owned(),
                is_error: true,
            });
        }
        let blocks = answer.pointer("/result/content").and_then(Value::as_array);
        let texts: Vec<&str> = blocks
            .into_iter()
            .flatten()
            .filter_map(|block| block.get("text").and_then(Value::as_str))
            .collect();
        Ok(Answer {
            text: texts.join("\n"),
            is_error: answer
                .pointer("/result/isError")
                .and_then(Value::as_bool)
                .unwrap_or(false),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
