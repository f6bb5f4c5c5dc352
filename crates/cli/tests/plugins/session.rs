//! A session of haft over MCP.

use crate::bed::Answer;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Longer than any reply may take.
const LONG: Duration = Duration::from_secs(40);

pub(crate) struct Session {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// Replies that arrived while waiting for another one.
    early: HashMap<u64, Value>,
    /// Notifications received meanwhile.
    pub(crate) notifications: Vec<Value>,
    beside: Arc<Mutex<Vec<u8>>>,
    number: u64,
}

impl Session {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let (send, messages) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let message =
                    serde_json::from_str(&line).unwrap_or_else(|_| json!({ "bad": line }));
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        let beside = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&beside);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = stderr.read(&mut buffer) {
                heard.lock().unwrap().extend_from_slice(&buffer[..read]);
            }
        });
        let stdin = child.stdin.take();
        let mut session = Self {
            child,
            stdin,
            messages,
            early: HashMap::new(),
            notifications: Vec::new(),
            beside,
            number: 0,
        };
        let client = json!({ "name": "test", "version": "1" });
        session.request(
            "initialize",
            &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client }),
        );
        session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        session
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Haft's stderr so far.
    pub(crate) fn beside(&self) -> String {
        String::from_utf8_lossy(&self.beside.lock().unwrap()).into_owned()
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.number += 1;
        let number = self.number;
        self.send(&json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": params }));
        number
    }

    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let number = self.begin(method, params);
        self.reply(number)["result"].clone()
    }

    /// Starts a call with progress, without waiting for it.
    pub(crate) fn ask(&mut self, tool: &str, arguments: &Value) -> u64 {
        let meta = json!({ "progressToken": self.number + 1 });
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        self.begin("tools/call", &params)
    }

    /// Cancels a call.
    pub(crate) fn cancel(&mut self, number: u64) {
        self.send(&json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": number },
        }));
    }

    /// Waits for the whole reply message.
    #[track_caller]
    pub(crate) fn reply(&mut self, number: u64) -> Value {
        let begun = Instant::now();
        loop {
            if let Some(reply) = self.early.remove(&number) {
                return reply;
            }
            let left = LONG.saturating_sub(begun.elapsed());
            let message = self
                .messages
                .recv_timeout(left)
                .unwrap_or_else(|error| panic!("no reply to {number}: {error}: {}", self.beside()));
            assert!(message.get("bad").is_none(), "no JSON: {message}");
            match message["id"].as_u64() {
                Some(id) if message.get("method").is_none() => {
                    self.early.insert(id, message);
                }
                _ => self.notifications.push(message),
            }
        }
    }

    #[track_caller]
    pub(crate) fn answer(&mut self, number: u64) -> Answer {
        let reply = self.reply(number);
        let blocks = reply["result"]["content"].as_array();
        let blocks = blocks.unwrap_or_else(|| panic!("{reply}"));
        let texts = blocks.iter().filter_map(|block| block["text"].as_str());
        Answer {
            is_error: reply["result"]["isError"] == true,
            text: texts.collect::<Vec<_>>().join("\n"),
            beside: String::new(),
        }
    }

    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Answer {
        let number = self.ask(tool, arguments);
        self.answer(number)
    }

    /// The text of a call that must succeed.
    #[track_caller]
    pub(crate) fn reply_text(&mut self, tool: &str, arguments: &Value) -> String {
        let answer = self.call(tool, arguments);
        assert!(!answer.is_error, "{tool} {arguments}: {answer:?}");
        answer.text
    }

    #[track_caller]
    pub(crate) fn tools(&mut self) -> Vec<Value> {
        let list = self.request("tools/list", &json!({}));
        list["tools"].as_array().unwrap().clone()
    }

    /// Peak memory of haft itself, in KiB.
    pub(crate) fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.unwrap().trim().trim_end_matches(" kB");
        number.parse().unwrap()
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}
