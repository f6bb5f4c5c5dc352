//! A client of `haft mcp` over pipes.

use crate::bed::Answer;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Longer than any reply may take.
const LONG: Duration = Duration::from_secs(40);

pub(crate) struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    replies: Receiver<Value>,
    /// Replies that arrived while waiting for another one.
    early: HashMap<u64, Value>,
    /// Tokens of progress notifications.
    progress: Vec<Value>,
    next: u64,
}

impl Server {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let (send, replies) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                // Invalid JSON is passed on, and fails the waiting test.
                let message = serde_json::from_slice(&line)
                    .unwrap_or_else(|error| json!({ "bad": error.to_string() }));
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        let mut server = Self {
            child,
            stdin,
            replies,
            early: HashMap::new(),
            progress: Vec::new(),
            next: 1,
        };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let id = server.request("initialize", &hello);
        server.reply(id);
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a command, and does not wait.
    pub(crate) fn ask(&mut self, arguments: &Value) -> u64 {
        self.request(
            "tools/call",
            &json!({"name": "bash", "arguments": arguments}),
        )
    }

    /// Sends a command, with progress notifications.
    pub(crate) fn ask_to_be_told(&mut self, arguments: &Value) -> u64 {
        let meta = json!({ "progressToken": self.next });
        self.request(
            "tools/call",
            &json!({"name": "bash", "arguments": arguments, "_meta": meta}),
        )
    }

    /// Number of progress notifications for a request so far.
    pub(crate) fn progress_count(&self, id: u64) -> usize {
        self.progress
            .iter()
            .filter(|token| **token == json!(id))
            .count()
    }

    /// Calls any tool.
    #[track_caller]
    pub(crate) fn tool(&mut self, name: &str, arguments: &Value) -> Answer {
        let id = self.request("tools/call", &json!({"name": name, "arguments": arguments}));
        self.answer(id)
    }

    /// Waits for the whole reply message.
    #[track_caller]
    pub(crate) fn reply(&mut self, id: u64) -> Value {
        let begun = Instant::now();
        loop {
            if let Some(reply) = self.early.remove(&id) {
                return reply;
            }
            let left = LONG.saturating_sub(begun.elapsed());
            let message = self
                .replies
                .recv_timeout(left)
                .unwrap_or_else(|error| panic!("no answer to {id}: {error}"));
            assert!(message.get("bad").is_none(), "{message}");
            if message["method"] == "notifications/progress" {
                self.progress
                    .push(message["params"]["progressToken"].clone());
            }
            if let Some(id) = message["id"].as_u64() {
                self.early.insert(id, message);
            }
        }
    }

    #[track_caller]
    pub(crate) fn answer(&mut self, id: u64) -> Answer {
        let reply = self.reply(id);
        Answer::new(&reply["result"])
    }

    #[track_caller]
    pub(crate) fn call(&mut self, arguments: &Value) -> Answer {
        let id = self.ask(arguments);
        self.answer(id)
    }

    #[track_caller]
    pub(crate) fn bash(&mut self, script: &str) -> Answer {
        self.call(&json!({ "command": script, "timeout": 30 }))
    }

    /// Runs each script separately, in one command; returns those that succeeded.
    #[track_caller]
    pub(crate) fn tries(&mut self, scripts: &[&str]) -> Vec<String> {
        let tries: Vec<String> = scripts
            .iter()
            .enumerate()
            .map(|(at, script)| {
                let script = script.replace('\'', r"'\''");
                // Their output is dropped: it could be more than a reply holds.
                format!("if timeout -k 1 10 bash -c '{script}' >/dev/null 2>&1; then echo; echo did-{at}; else echo; echo did-not-{at}; fi")
            })
            .collect();
        let answer = self.bash(&tries.join("\n"));
        let lines: Vec<&str> = answer.text.lines().collect();
        scripts
            .iter()
            .enumerate()
            .filter(|(at, script)| {
                let did = lines.contains(&format!("did-{at}").as_str());
                let did_not = lines.contains(&format!("did-not-{at}").as_str());
                assert!(did != did_not, "{script}: {answer:?}");
                did
            })
            .map(|(_, script)| (*script).to_owned())
            .collect()
    }

    pub(crate) fn cancel(&mut self, id: u64) {
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "test"}}));
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Closes the server's input.
    pub(crate) fn close(&mut self) {
        self.stdin = None;
    }

    /// Waits for the server to end.
    #[track_caller]
    pub(crate) fn ended(&mut self, limit: Duration) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < limit, "haft still runs");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn lives(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Returns a number from `/proc/PID/status`.
    pub(crate) fn status(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let number = line.unwrap().split_whitespace().next().unwrap();
        number.parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
