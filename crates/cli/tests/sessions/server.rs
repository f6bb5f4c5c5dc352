//! `haft mcp` records its client's calls.

use crate::bed::{Bed, lines};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

struct Server {
    child: Child,
    stdin: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Server {
    fn start(bed: &Bed) -> Self {
        let mut child = bed.command(&["mcp"]).stdin(Stdio::piped()).spawn().unwrap();
        let mut server = Self {
            stdin: child.stdin.take().unwrap(),
            answers: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
        };
        server.send(&json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}));
        server.answer();
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    fn answer(&mut self) -> Value {
        serde_json::from_str(&self.answers.next().unwrap().unwrap()).unwrap()
    }

    fn ask(&mut self, id: usize, tool: &str, arguments: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}));
    }

    fn call(&mut self, id: usize, tool: &str, arguments: Value) -> Value {
        self.ask(id, tool, arguments);
        self.answer()
    }
}

#[test]
fn each_connection_has_one_session() {
    let bed = Bed::new();
    let mut server = Server::start(&bed);
    assert!(
        bed.listed().is_empty(),
        "a client that calls nothing leaves nothing"
    );
    server.call(1, "write", json!({"path": "a.txt", "content": "one"}));
    // The same id again, as some clients send it.
    server.call(1, "read", json!({"path": "a.txt"}));
    server.call(1, "write", json!({"path": "a.txt", "content": "two"}));
    let listed = bed.listed();
    assert_eq!((listed.len(), &listed[0]["kind"]), (1, &"mcp".into()));
    assert_eq!(listed[0]["in_use_by"], server.child.id());
    let id = listed[0]["id"].as_str().unwrap();
    drop(server.stdin);
    assert!(server.child.wait().unwrap().success());
    let calls: Vec<Value> = lines(&bed.says(&["sessions", "export", id]));
    let tools: Vec<&str> = calls
        .iter()
        .skip(1)
        .map(|call| call["tool"].as_str().unwrap())
        .collect();
    assert_eq!(tools, ["write", "read", "write"]);
    assert!(calls.iter().skip(1).all(|call| call["reply"].is_object()));
    assert_eq!(bed.listed()[0]["in_use_by"], Value::Null);
}

/// The outcome of a command is unknown if the server was killed while it ran.
#[test]
fn a_kill_between_intent_and_outcome_is_seen() {
    let bed = Bed::new();
    let mut server = Server::start(&bed);
    server.call(1, "write", json!({"path": "a.txt", "content": "one"}));
    server.ask(2, "bash", json!({"command": "touch begun; sleep 60"}));
    let begun = Instant::now();
    while !bed.work("begun").exists() {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(5));
    }
    let id = bed.listed()[0]["id"].as_str().unwrap().to_owned();
    let shown = bed.says(&["sessions", "show", &id]);
    assert!(shown.contains(&format!("? {id}-2: running")), "{shown}");
    let ended = bed.haft(&["sessions", "delete", &id, "--yes"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("is in use by process"), "{ended:?}");
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let shown = bed.says(&["sessions", "show", &id]);
    assert!(
        shown.contains(&format!("? {id}-2: outcome unknown: it may have run")),
        "{shown}"
    );
    let ended = bed.haft(&["sessions", "output", &format!("{id}-2")]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("has no outcome"), "{ended:?}");
    let lines = lines(&bed.says(&["sessions", "export", &id]));
    assert_eq!(lines[2]["reply"], Value::Null);
    assert_eq!(lines[2]["is_error"], Value::Null);
    bed.says(&["sessions", "delete", &id, "--yes"]);
}

/// Reads are recorded with a short delay.
#[test]
fn reads_are_recorded_soon_even_before_a_kill() {
    let bed = Bed::new();
    std::fs::write(bed.work("a.txt"), "x").unwrap();
    let mut server = Server::start(&bed);
    for id in 0..20 {
        server.call(id, "read", json!({"path": "a.txt"}));
    }
    let begun = Instant::now();
    loop {
        let listed = bed.listed();
        if listed.first().is_some_and(|session| session["calls"] == 20) {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{listed:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    assert_eq!(bed.listed()[0]["calls"], 20);
}
