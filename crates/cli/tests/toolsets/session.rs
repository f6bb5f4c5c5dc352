//! A folder with a home, and sessions of haft over MCP in it.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// Folders of a test.
pub(crate) struct Bed {
    base: haft_testing::bed::Bed,
}

/// Reply of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) is_error: bool,
    pub(crate) text: String,
}

impl Answer {
    /// The reply as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {}", self.text))
    }
}

impl Bed {
    pub(crate) fn new() -> Self {
        let base =
            haft_testing::bed::Bed::new(env!("CARGO_BIN_EXE_haft"), env!("CARGO_TARGET_TMPDIR"));
        std::fs::create_dir(base.path("outside")).unwrap();
        Self { base }
    }

    pub(crate) fn outside(&self, below: &str) -> PathBuf {
        self.path("outside").join(below)
    }

    /// The database of the store.
    pub(crate) fn store(&self) -> PathBuf {
        self.state("store.db")
    }

    pub(crate) fn file(&self, below: &str, content: impl AsRef<[u8]>) {
        self.write(&format!("work/{below}"), content);
    }

    /// Writes a user configuration outside the work folder.
    pub(crate) fn config(&self, content: &str) -> String {
        let path = self.write("config.yaml", content);
        path.to_string_lossy().into_owned()
    }

    /// Makes one call in a new process.
    #[track_caller]
    pub(crate) fn call(&self, flags: &[&str], tool: &str, arguments: &Value) -> Answer {
        let arguments = arguments.to_string();
        let args = [flags, &["call", tool, arguments.as_str()]].concat();
        let ended = self.haft(&args);
        assert_ne!(ended.code, Some(2), "{ended:?}");
        Answer {
            is_error: ended.code == Some(1),
            text: ended.out.trim_end().to_owned(),
        }
    }

    /// A session over MCP.
    pub(crate) fn session(&self, flags: &[&str]) -> Session {
        self.session_of(flags, "all")
    }

    /// A session over MCP with the tools of a preset.
    pub(crate) fn session_of(&self, flags: &[&str], preset: &str) -> Session {
        let mut child = self
            .command(&[flags, &["mcp", "--preset", preset]].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut session = Session {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            number: 0,
            notifications: Vec::new(),
        };
        let client = json!({ "name": "test", "version": "1" });
        session.request(
            "initialize",
            &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client }),
        );
        session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        session
    }
}

impl std::ops::Deref for Bed {
    type Target = haft_testing::bed::Bed;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
}

pub(crate) struct Session {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    number: u64,
    /// Notifications received meanwhile.
    pub(crate) notifications: Vec<String>,
}

impl Session {
    fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        self.number += 1;
        let number = self.number;
        self.send(&json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "haft ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == number {
                return message["result"].clone();
            }
            if let Some(method) = message["method"].as_str() {
                self.notifications.push(method.to_owned());
            }
        }
    }

    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Answer {
        let params = json!({ "name": tool, "arguments": arguments });
        let result = self.request("tools/call", &params);
        let blocks = result["content"].as_array().unwrap();
        let texts = blocks.iter().filter_map(|block| block["text"].as_str());
        Answer {
            is_error: result["isError"] == true,
            text: texts.collect::<Vec<_>>().join("\n"),
        }
    }

    /// A call that must succeed.
    #[track_caller]
    pub(crate) fn done(&mut self, tool: &str, arguments: &Value) -> Answer {
        let answer = self.call(tool, arguments);
        assert!(!answer.is_error, "{tool} {arguments}: {}", answer.text);
        answer
    }

    pub(crate) fn tools(&mut self) -> Vec<String> {
        let list = self.request("tools/list", &json!({}));
        let tools = list["tools"].as_array().unwrap();
        let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
        names.map(str::to_owned).collect()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}
