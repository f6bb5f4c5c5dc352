//! A worker process for tests.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use haft_script::{Limits, Load, Rights};
use serde_json::{Value, json};

/// Longer than anything takes on a busy machine, so that a hanging test ends.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    notes: Option<JoinHandle<String>>,
}

/// Returns a module whose `execute` has this body, on its third line.
pub(crate) fn tool(body: &str) -> String {
    with_head("", body)
}

/// Returns a module with one line before the table.
pub(crate) fn with_head(head: &str, body: &str) -> String {
    format!(
        "{head}\nreturn {{name = 'tool', description = 'd', input_schema = {{type = 'object'}}, execute = function(input)\n{body}\nend}}"
    )
}

pub(crate) fn quick() -> Limits {
    Limits {
        seconds: 0.15,
        ..Limits::default()
    }
}

impl Worker {
    /// Starts a process and sends nothing yet.
    pub(crate) fn bare() -> Self {
        let mut child = Command::new(program())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .env("SECRET_OF_THE_TEST", "leaked")
            .spawn()
            .unwrap();
        let (sender, lines) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines() {
                if sender.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        let mut errors = child.stderr.take().unwrap();
        let notes = std::thread::spawn(move || {
            let mut text = Vec::new();
            errors.read_to_end(&mut text).unwrap();
            String::from_utf8_lossy(&text).into_owned()
        });
        Self {
            input: child.stdin.take(),
            child,
            lines,
            notes: Some(notes),
        }
    }

    pub(crate) fn load(source: &str, rights: Rights, limits: Limits) -> Self {
        let mut worker = Self::bare();
        let load = Load {
            path: "tools/x.lua".to_owned(),
            source: source.to_owned(),
            rights,
            limits,
        };
        worker.line(&load.line());
        worker
    }

    /// Starts a pure module with the default limits.
    pub(crate) fn pure(source: &str) -> Self {
        Self::load(source, Rights::Pure, Limits::default())
    }

    pub(crate) fn line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.line(&message.to_string());
    }

    pub(crate) fn receive(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("an answer");
        serde_json::from_str(&line).unwrap()
    }

    pub(crate) fn describe(&mut self) -> Value {
        self.send(&json!({"type": "describe", "protocol": 2}));
        self.receive()
    }

    pub(crate) fn begin(&mut self, call_id: &str, params: &Value) {
        self.send(&json!({"type": "call", "name": "tool", "call_id": call_id, "params": params}));
    }

    /// Makes a call whose result is one text. Returns the text, and whether it is an error.
    pub(crate) fn call(&mut self, params: &Value) -> (String, bool) {
        self.begin("c", params);
        let result = self.receive();
        assert_eq!(
            (&result["type"], &result["call_id"]),
            (&json!("result"), &json!("c")),
            "{result}"
        );
        outcome(&result)
    }

    pub(crate) fn success(&mut self) -> String {
        let (text, error) = self.call(&json!({}));
        assert!(!error, "{text}");
        text
    }

    pub(crate) fn failure(&mut self) -> String {
        let (text, error) = self.call(&json!({}));
        assert!(error, "{text}");
        text
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn close(&mut self) {
        self.input = None;
    }

    /// Waits for the process to end by itself.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < PATIENCE, "the worker does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn code(&mut self) -> Option<i32> {
        self.wait().code()
    }

    /// Ends the worker and returns what it wrote to standard error.
    pub(crate) fn notes(mut self) -> String {
        self.close();
        self.wait();
        self.notes.take().unwrap().join().unwrap()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn outcome(result: &Value) -> (String, bool) {
    let content = result["content"].as_array().unwrap();
    assert_eq!(content.len(), 1, "{result}");
    (
        content[0]["text"].as_str().unwrap().to_owned(),
        result["error"].as_bool().unwrap(),
    )
}

/// Returns the path of the example `worker`, which `cargo test -p haft-script` builds.
fn program() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let program = here
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples/worker");
    assert!(
        program.exists(),
        "{} is missing: cargo build -p haft-script --examples",
        program.display()
    );
    program
}
