//! A server, and a client for it.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running MCP server.
pub(crate) struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

/// Result of a call.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) json: Value,
    pub(crate) is_error: bool,
    pub(crate) images: Vec<String>,
}

impl Answer {
    pub(crate) fn text(&self, name: &str) -> &str {
        let text = self.json.get(name).and_then(Value::as_str);
        text.unwrap_or_else(|| panic!("no {name}: {}", self.json))
    }
}

impl Server {
    /// Starts haft-sandbox without haft.
    pub(crate) fn alone(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_haft-sandbox"));
        command.args(arguments);
        Self::start(command)
    }

    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut server = Self {
            child,
            input,
            output: BufReader::new(output),
            next: 0,
        };
        server.ask(
            "initialize",
            json!({
                "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            }),
        );
        server.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        server
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    /// Sends a request without waiting for its response.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Returns the next response.
    pub(crate) fn hear(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(
                self.output.read_line(&mut line).unwrap(),
                0,
                "the server has exited"
            );
            let message: Value = serde_json::from_str(&line).unwrap();
            if message.get("id").is_some() {
                return message;
            }
        }
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.hear();
        assert_eq!(answer["id"], id);
        answer["result"].clone()
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Answer {
        let result = self.ask(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        );
        answer(&result)
    }

    pub(crate) fn python(&mut self, code: &str) -> Answer {
        self.call("execute_python", json!({ "code": code }))
    }

    pub(crate) fn bash(&mut self, command: &str) -> Answer {
        self.call("execute_bash", json!({ "command": command }))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn answer(result: &Value) -> Answer {
    let blocks = result["content"].as_array().unwrap();
    let of = |kind: &str, field: &str| -> Vec<String> {
        let these = blocks.iter().filter(|block| block["type"] == kind);
        these
            .map(|block| block[field].as_str().unwrap().to_owned())
            .collect()
    };
    Answer {
        json: serde_json::from_str(&of("text", "text").concat()).unwrap(),
        is_error: result["isError"].as_bool().unwrap_or(false),
        images: of("image", "mimeType"),
    }
}

/// A work folder and a separate home folder.
pub(crate) struct Bed {
    folder: tempfile::TempDir,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Self { folder }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn file(&self, name: &str, content: &str) {
        std::fs::write(self.work().join(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.work().join(name)).unwrap()
    }

    /// Runs `haft` with this configuration, on a machine without any programs.
    pub(crate) fn haft(&self, config: &str, arguments: &[&str]) -> Command {
        let haft = Path::new(env!("CARGO_BIN_EXE_haft-sandbox")).with_file_name("haft");
        assert!(
            haft.exists(),
            "there is no {}: build it first, `cargo build -p haft-cli`",
            haft.display()
        );
        let file = self.folder.path().join("haft.yaml");
        std::fs::write(&file, format!("tools: {{ toolset: deepagents }}\n{config}")).unwrap();
        let mut command = Command::new(haft);
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", self.folder.path().join("no-programs"))
            .current_dir(self.work())
            .arg("--config")
            .arg(file)
            .args(arguments);
        command
    }

    /// Starts an MCP session of haft.
    pub(crate) fn session(&self, config: &str) -> Server {
        Server::start(self.haft(config, &["mcp"]))
    }
}
