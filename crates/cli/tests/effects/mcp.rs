//! Clients of `haft mcp`: their calls are recorded, and they are asked by elicitation.

use crate::bed::Bed;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

pub(crate) struct Client {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Client {
    pub(crate) fn start(bed: &Bed, flags: &[&str], capabilities: &Value) -> Self {
        let mut command = bed.command(&[&["mcp"], flags].concat());
        let mut server = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = server.stdin.take().unwrap();
        let output = BufReader::new(server.stdout.take().unwrap());
        let mut client = Self {
            server,
            input,
            output,
        };
        client.send(
            &json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": capabilities,
            "clientInfo": { "name": "test", "version": "1" } } }),
        );
        assert_eq!(client.receive()["id"], 0);
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line:?}"))
    }

    /// Makes a request without parameters and returns the result.
    pub(crate) fn request(&mut self, method: &str) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": method }));
        loop {
            let message = self.receive();
            if message["id"] == 7 {
                return message["result"].clone();
            }
        }
    }

    /// Calls a tool and returns the result.
    pub(crate) fn calls(&mut self, tool: &str, arguments: &Value) -> Value {
        self.send(
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": tool, "arguments": arguments } }),
        );
        loop {
            let message = self.receive();
            if message["id"] == 1 {
                return message["result"].clone();
            }
        }
    }

    fn call(&mut self, id: u64, line: &str) {
        self.send(
            &json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": "bash", "arguments": { "command": line } } }),
        );
    }

    /// Calls a tool that asks a question, answers it, and returns the question and the result.
    pub(crate) fn asked(
        &mut self,
        tool: &str,
        arguments: &Value,
        answer: &Value,
    ) -> (Value, Value) {
        let (mut asked, result) = self.answering(tool, arguments, answer);
        assert_eq!(asked.len(), 1, "{asked:?} {result}");
        (asked.remove(0), result)
    }

    /// Calls a tool, gives every question the same answer, and returns the questions and the
    /// result.
    pub(crate) fn answering(
        &mut self,
        tool: &str,
        arguments: &Value,
        answer: &Value,
    ) -> (Vec<Value>, Value) {
        self.send(
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": tool, "arguments": arguments } }),
        );
        let mut questions = Vec::new();
        loop {
            let message = self.receive();
            if message["method"] == "elicitation/create" {
                self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": answer }));
                questions.push(message);
            } else if message["id"] == 1 {
                return (questions, message["result"].clone());
            }
        }
    }

    pub(crate) fn end(mut self) {
        drop(self.input);
        self.server.wait().unwrap();
    }
}

const SPOIL: &str = "rm victim.txt; echo new > new.txt";

#[test]
fn the_user_of_a_client_keeps_or_reverts() {
    for (content, keeps) in [
        (json!({ "decision": "keep" }), true),
        (json!({ "decision": "revert", "reason": "not that" }), false),
        (json!({}), false),
    ] {
        let bed = Bed::new();
        bed.user("policy:\n  - { review: bash }\n");
        bed.put("victim.txt", "alive\n");
        let mut client = Client::start(&bed, &[], &json!({ "elicitation": {} }));
        client.call(1, SPOIL);
        let asked = client.receive();
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let message = asked["params"]["message"].as_str().unwrap();
        let deleted = message.find("deleted    victim.txt");
        assert!(deleted < message.find("created    new.txt"), "{message}");
        let decision = &asked["params"]["requestedSchema"]["properties"]["decision"];
        assert_eq!(decision["enum"], json!(["keep", "revert"]), "{asked}");
        client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": {
            "action": "accept", "content": content } }));
        let answer = client.receive();
        assert_eq!(
            (&answer["id"], &answer["result"]["isError"]),
            (&1.into(), &(!keeps).into())
        );
        let word = if keeps { "kept" } else { "reverted, because" };
        assert!(answer.to_string().contains(word), "{answer}");
        client.end();
        assert_eq!(bed.read("victim.txt").is_none(), keeps);
        assert_eq!(bed.read("new.txt").is_some(), keeps);
    }
}

#[test]
fn a_client_that_cannot_ask_gets_a_reverted_call() {
    let bed = Bed::new();
    bed.user("policy:\n  - { review: bash }\n");
    bed.put("victim.txt", "alive\n");
    let mut client = Client::start(&bed, &[], &json!({}));
    client.call(1, SPOIL);
    let answer = client.receive();
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(answer.to_string().contains("reverted, because"), "{answer}");
    assert!(
        answer.to_string().contains("no user can be asked"),
        "{answer}"
    );
    client.end();
    assert_eq!(bed.read("victim.txt").unwrap(), "alive\n");
    assert_eq!(bed.read("new.txt"), None);
}

#[test]
fn calls_of_a_client_are_undone_by_the_user() {
    let bed = Bed::new();
    bed.put("victim.txt", "alive\n");
    let mut client = Client::start(&bed, &[], &json!({}));
    client.call(1, SPOIL);
    assert_eq!(client.receive()["result"]["isError"], false);
    // While the client is connected.
    assert_eq!(bed.changes(&[]).len(), 1);
    bed.says(&["undo"]);
    assert_eq!(bed.read("victim.txt").unwrap(), "alive\n");
    client.call(2, "cat victim.txt");
    assert!(client.receive().to_string().contains("alive"));
    client.end();
}

#[test]
fn the_user_of_a_client_is_asked_once_for_each_host() {
    let listener = std::net::TcpListener::bind("127.0.0.2:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let _ = std::io::Read::read(&mut stream, &mut head);
            let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nreply\n";
            let _ = stream.write_all(reply);
        }
    });
    for decision in ["approve", "reject"] {
        let bed = Bed::new();
        if !bed.says(&["doctor"]).contains("sandbox: full") {
            println!("skipped: this machine has no namespaces");
            return;
        }
        bed.user("policy:\n  - { ask: network, host: 127.0.0.2 }\n");
        let mut client = Client::start(&bed, &[], &json!({ "elicitation": {} }));
        let fetch = format!("curl -sS http://{address}/");
        client.call(1, &format!("{fetch} & {fetch} & wait; {fetch}"));
        let asked = client.receive();
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let message = asked["params"]["message"].as_str().unwrap();
        for wanted in [&address.to_string(), &fetch] {
            assert!(message.contains(wanted.as_str()), "{message}");
        }
        client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": {
            "action": "accept", "content": { "decision": decision } } }));
        let answer = client.receive();
        assert_eq!(answer["id"], 1, "asked again: {answer}");
        let text = answer["result"]["content"].to_string();
        let replies = if decision == "approve" { 3 } else { 0 };
        assert_eq!(text.matches("reply\\n").count(), replies, "{text}");
        let is_named = text.contains(&format!("the user refused connections to {address}"));
        assert_eq!(is_named, decision == "reject", "{text}");
        client.end();
    }
}
