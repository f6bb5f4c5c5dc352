//! Calls from the documentation of other agents that need a session or a service, as
//! printed.

#[path = "../command/printed/blocks.rs"]
mod blocks;

use crate::session::Bed;
use blocks::{blocks, calls, results};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

const WORKSPACE: &str = include_str!("../seeds/workspace.md");
const DEEPAGENTS: &str = include_str!("../seeds/deepagents.md");
const FLAGS: [&str; 2] = ["--toolset", "workspace"];

fn printed(tool: &str) -> Vec<Value> {
    let all = blocks(WORKSPACE).into_iter();
    all.filter(|block| block.tool == tool && block.language == "json")
        .map(|block| serde_json::from_str(&block.text).unwrap())
        .collect()
}

fn keys(reply: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = reply
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys
}

/// Start, status, log, kill and list, one after the other. The program may not be
/// installed: the shell reports that, and the replies have the same fields.
#[test]
fn a_background_process_from_its_start_to_the_list() {
    let bed = Bed::new();
    let calls = printed("process");
    let [start, status, log, kill, list] = calls.as_slice() else {
        panic!("five calls are printed: {calls:?}");
    };
    let mut session = bed.session(&FLAGS);
    let started = session.done("process", start).json();
    assert_eq!(
        keys(&started),
        [
            "command",
            "process_id",
            "running",
            "started_at",
            "success",
            "working_dir"
        ]
    );
    assert_eq!(started["process_id"], "proc-1");
    assert_eq!(started["command"], start["command"]);
    assert_eq!(
        (&started["success"], &started["running"]),
        (&json!(true), &json!(true))
    );
    let work = bed.work("").canonicalize().unwrap();
    assert_eq!(
        started["working_dir"],
        work.to_string_lossy().trim_end_matches('/')
    );
    session.done(
        "process",
        &json!({ "action": "wait", "process_id": "proc-1", "timeout": 60 }),
    );

    let fields = [
        "command",
        "ended_at",
        "exit_code",
        "process_id",
        "running",
        "started_at",
        "working_dir",
    ];
    let ended = session.done("process", status).json();
    assert_eq!(ended["running"], false, "{ended}");
    // A process that did not exit with code 0 has an error too.
    let failed = ended["exit_code"] != 0;
    assert_eq!(ended.get("error").is_some(), failed, "{ended}");
    let with = |more: &[&'static str]| {
        let error = failed.then_some("error");
        let mut all: Vec<&str> = fields.iter().chain(more).copied().chain(error).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(keys(&ended), with(&[]));
    let shown = session.done("process", log).json();
    assert_eq!(keys(&shown), with(&["stderr", "stdout", "tail"]));
    assert_eq!(shown["tail"], log["tail"]);
    if !std::path::Path::new("/usr/local/go/bin/go").exists() {
        assert_eq!(ended["exit_code"], 127);
        let stderr = shown["stderr"].as_str().unwrap();
        assert!(
            stderr.contains("/usr/local/go/bin/go: No such file"),
            "{stderr}"
        );
    }
    let killed = session.done("process", kill).json();
    assert_eq!(keys(&killed), with(&["killed"]));
    // It had already ended.
    assert_eq!(killed["killed"], false);
    assert_eq!(session.done("process", list).json(), json!([ended]));
    // The alias on the page.
    let by_alias = json!({ "action": "status", "pid": "proc-1" });
    assert_eq!(session.done("process", &by_alias).json(), ended);
}

/// The same with one that runs until it is killed.
#[test]
fn a_background_process_that_is_killed() {
    let bed = Bed::new();
    let calls = printed("process");
    let mut session = bed.session(&FLAGS);
    let mut start = calls[0].clone();
    start["command"] = json!("echo ready; exec sleep 600");
    session.done("process", &start);
    let ready = json!({ "action": "wait", "process_id": "proc-1", "until": "log", "pattern": "ready", "timeout": 60 });
    assert_eq!(session.done("process", &ready).json()["met"], true);
    let status = session.done("process", &calls[1]).json();
    assert_eq!(
        keys(&status),
        [
            "command",
            "process_id",
            "running",
            "started_at",
            "working_dir"
        ]
    );
    assert_eq!(status["running"], true);
    assert_eq!(
        session.done("process", &calls[2]).json()["stdout"],
        "ready\n"
    );
    let killed = session.done("process", &calls[3]).json();
    assert_eq!(
        (&killed["killed"], &killed["running"]),
        (&json!(true), &json!(false))
    );
}

/// Answers one request to Telegram, and returns it.
fn telegram() -> (u16, std::thread::JoinHandle<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = std::thread::spawn(move || {
        let mut stream = BufReader::new(listener.accept().unwrap().0);
        let mut first = String::new();
        stream.read_line(&mut first).unwrap();
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            let line = line.trim().to_lowercase();
            if let Some(number) = line.strip_prefix("content-length: ") {
                length = number.parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        let answer = r#"{"ok":true,"result":{"message_id":1}}"#;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
        let length = answer.len();
        write!(
            stream.get_mut(),
            "{head}\r\ncontent-length: {length}\r\n\r\n{answer}"
        )
        .unwrap();
        (first, serde_json::from_slice(&body).unwrap())
    });
    (port, served)
}

#[test]
fn a_message_to_the_printed_channel() {
    let bed = Bed::new();
    let calls = printed("message");
    let [call] = calls.as_slice() else {
        panic!("one call is printed: {calls:?}");
    };
    let (port, served) = telegram();
    let config = bed.config(&format!(
        "tools:\n  channels:\n    telegram-main: {{ kind: telegram, token: t, base_url: \"http://127.0.0.1:{port}\" }}\n"
    ));
    let flags = ["--config", &config, "--toolset", "workspace"];
    let answer = bed.call(&flags, "message", call);
    assert!(!answer.is_error, "{answer:?}");
    let mut expected = call.clone();
    expected["success"] = json!(true);
    assert_eq!(answer.json(), expected);
    let (first, body) = served.join().unwrap();
    assert!(first.starts_with("POST /bott/sendMessage "), "{first}");
    assert_eq!(
        (&body["chat_id"], &body["text"]),
        (&call["chatId"], &call["content"])
    );
}

/// Reading returns the list that was written.
#[test]
fn todos_that_are_read_back() {
    let all = blocks(DEEPAGENTS);
    let text = |tool: &str, language: &str, beginning: &str| {
        let is = |block: &&blocks::Block| {
            block.tool == tool && block.language == language && block.text.starts_with(beginning)
        };
        &all.iter().find(is).unwrap().text
    };
    let bed = Bed::new();
    let mut session = bed.session(&["--toolset", "deepagents"]);
    let read = &calls(text("read_todos", "", "Tool call: "))[0].1;
    for (title, printed) in results(text("read_todos", "python", "# ")).iter().rev() {
        if title == "With todos" {
            session.done("write_todos", printed);
        }
        assert_eq!(&session.done("read_todos", read).json(), printed, "{title}");
    }
    let write = &calls(text("write_todos", "", "Tool call: "))[0].1;
    let count = &results(text("write_todos", "python", "{\"status\""))[0].1;
    assert_eq!(&session.done("write_todos", write).json(), count);
    assert_eq!(&session.done("read_todos", read).json(), write);
}
