//! Each client has a session of its own, and each is recorded.

use crate::bed::{Bed, FREE};
use haft_testing::http::{Client, call, stateless};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

fn structured(reply: &Value) -> &Value {
    assert_eq!(reply["result"]["isError"], false, "{reply}");
    &reply["result"]["structuredContent"]
}

fn begin(client: &Client) -> Client {
    client.initialize("2025-11-25", json!({})).0
}

#[test]
fn todos_and_virtual_files_are_of_the_session() {
    let bed = Bed::new();
    bed.user("backend: { routes: { /scratch: state, /: filesystem } }\n");
    let server = bed.serve(&["--toolset", "deepagents"]);
    let (one, other) = (begin(&server.client), begin(&server.client));
    let todos = json!([{ "content": "mine", "status": "pending" }]);
    let _ = structured(&one.call(1, "write_todos", json!({ "todos": todos })));
    let write = json!({ "file_path": "/scratch/a.txt", "content": "one" });
    let _ = structured(&one.call(2, "write_file", write));
    let disk = json!({ "file_path": "/b.txt", "content": "both" });
    let _ = structured(&one.call(3, "write_file", disk));
    let seen = |client: &Client| {
        let todos = client.call(4, "read_todos", json!({}));
        let file = client.call(5, "read_file", json!({ "file_path": "/scratch/a.txt" }));
        let shared = client.call(6, "read_file", json!({ "file_path": "/b.txt" }));
        (
            structured(&todos)["todos"].as_array().unwrap().len(),
            file["result"]["isError"].clone(),
            shared["result"]["isError"].clone(),
        )
    };
    assert_eq!(seen(&one), (1, json!(false), json!(false)));
    assert_eq!(seen(&other), (0, json!(true), json!(false)));
}

#[test]
fn each_session_is_recorded_even_with_equal_call_ids() {
    let bed = Bed::new();
    let server = bed.serve(&[]);
    let (one, other) = (begin(&server.client), begin(&server.client));
    let _silent = begin(&server.client);
    for (client, name) in [(&one, "one"), (&other, "other")] {
        for _ in 0..2 {
            let write = json!({ "path": format!("{name}.txt"), "content": name });
            assert_eq!(client.call(1, "write", write)["result"]["isError"], false);
        }
    }
    // Clients without sessions share one.
    for id in [1, 1] {
        let message = call(id, "read", json!({ "path": "one.txt" }));
        let client = server.client.alone("tools/call", Some("read"));
        let reply = client.post(&stateless(message, json!({}))).message();
        assert_eq!(reply["result"]["content"][0]["text"], "one");
    }
    let ended = server.end(Signal::TERM);
    assert_eq!((ended.code, ended.err.as_str()), (Some(143), ""));
    let recorded = bed.recorded();
    assert_eq!(recorded.len(), 3, "{recorded:?}");
    for session in &recorded {
        assert_eq!(session["kind"], "mcp");
        assert_eq!(session["in_use_by"], Value::Null);
        let id = session["id"].as_str().unwrap();
        let exported = bed.haft(&["sessions", "export", id]);
        let lines = exported.out;
        let calls: Vec<Value> = lines
            .lines()
            .skip(1)
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(calls.len(), 2, "{lines}");
        assert!(
            calls.iter().all(|call| call["reply"].is_object()),
            "{lines}"
        );
    }
}

#[test]
fn a_rule_that_asks_asks_the_client() {
    let bed = Bed::new();
    bed.user("policy:\n  - ask: write\n");
    let server = bed.serve(&[]);
    let (able, _) = server
        .client
        .initialize("2025-11-25", json!({ "elicitation": {} }));
    let write = |name: &str| json!({ "path": name, "content": "x" });
    for (decision, is_there) in [("reject", false), ("approve", true)] {
        let mut stream = able.post(&call(1, "write", write("asked.txt")));
        let (_, asked) = stream.next_message().unwrap();
        let text = asked["params"]["message"].as_str().unwrap();
        for part in ["Allow write to run?", "asked.txt", "haft.yaml:2"] {
            assert!(text.contains(part), "{text}");
        }
        let result = json!({ "action": "accept", "content": { "decision": decision } });
        let reported = able.post(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }));
        assert_eq!(reported.status, 202);
        assert_eq!(stream.message()["result"]["isError"], !is_there);
        assert_eq!(bed.work("asked.txt").exists(), is_there);
    }
    let unable = begin(&server.client);
    let refused = unable.call(2, "write", write("b.txt"));
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("no user can be asked here"), "{text}");
    assert!(!bed.work("b.txt").exists());
}

/// Replies with its process id, to identify the server.
const PLUGIN: &str = r#"#!/usr/bin/env python3
import json, os, sys
for line in iter(sys.stdin.readline, ""):
    message = json.loads(line)
    if message["type"] == "describe":
        answer = {"name": "who", "description": "Says who it is.", "parameters": {"type": "object", "properties": {}}}
    else:
        answer = {"content": [{"type": "text", "text": str(os.getpid())}]}
    print(json.dumps(answer), flush=True)
"#;

#[test]
fn plugins_are_started_once_for_all() {
    let bed = Bed::new();
    let plugin = bed.work("who.py");
    std::fs::write(&plugin, PLUGIN).unwrap();
    std::fs::set_permissions(&plugin, std::fs::Permissions::from_mode(0o755)).unwrap();
    let flag = plugin.display().to_string();
    let server = bed.serve(&[&FREE[..], &["--plugin", &flag]].concat());
    let mut seen = Vec::new();
    for _ in 0..5 {
        let client = begin(&server.client);
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
        let tools = client.post(&list).message()["result"]["tools"].clone();
        assert!(tools.to_string().contains("\"who\""), "{tools}");
        let reply = client.call(2, "who", json!({}));
        assert_eq!(reply["result"]["isError"], false, "{reply}");
        seen.push(reply["result"]["content"].clone());
    }
    seen.dedup();
    assert_eq!(seen.len(), 1, "{seen:?}");
    // Each session is notified of a change to the file.
    let client = begin(&server.client);
    let mut stream = client.get(None);
    std::fs::write(&plugin, PLUGIN.replace("who it is", "another thing")).unwrap();
    let (_, reported) = stream.next_message().unwrap();
    assert_eq!(reported["method"], "notifications/tools/list_changed");
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert!(client.post(&list).text().contains("another thing"));
}

#[test]
fn clients_without_sessions_are_kept_apart_despite_equal_ids() {
    let bed = Bed::new();
    let server = bed.serve(&FREE);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let client = server.client.alone("tools/call", Some("bash"));
            scope.spawn(move || {
                let command = format!("sleep 0.3; echo mark-{number}");
                let message = call(1, "bash", json!({ "command": command }));
                let reply = client.post(&stateless(message, json!({}))).message();
                let text = reply["result"]["content"][0]["text"].as_str().unwrap();
                assert_eq!(text.trim(), format!("mark-{number}"));
            });
        }
    });
    drop(server.end(Signal::TERM));
    let recorded = bed.recorded();
    assert_eq!(recorded.len(), 1, "{recorded:?}");
    let exported = bed.haft(&["sessions", "export", recorded[0]["id"].as_str().unwrap()]);
    let lines = exported.out;
    let calls: Vec<Value> = lines
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(calls.len(), 8);
    for call in calls {
        let asked = call["arguments"].to_string();
        let (_, mark) = asked.split_once("echo ").unwrap();
        let mark = mark.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        assert!(call["reply"].to_string().contains(mark), "{call}");
    }
}
