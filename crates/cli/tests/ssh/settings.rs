//! Configuration: `executor` in the user's own settings.

use crate::host::{Host, Shell};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

struct Person {
    host: Host,
    folder: tempfile::TempDir,
}

impl Person {
    fn new() -> Self {
        let person = Self {
            host: Host::new(Shell::Own),
            folder: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
        };
        for name in ["here", "there", "config/haft"] {
            std::fs::create_dir_all(person.folder.path().join(name)).unwrap();
        }
        let mut options = Host::options(person.host.keys.path());
        options.push(format!("Port={}", person.host.port));
        let settings = serde_json::json!({
            "executor": {
                "ssh": "127.0.0.1",
                "dir": person.folder.path().join("there"),
                "options": options,
            }
        });
        let file = person.folder.path().join("config/haft/haft.yaml");
        std::fs::write(file, settings.to_string()).unwrap();
        person
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_haft"));
        command
            .args(words)
            .current_dir(self.folder.path().join("here"))
            .env("HOME", self.folder.path())
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"))
            .env("XDG_STATE_HOME", self.folder.path().join("state"))
            .env("PERSON_VARIABLE", "of this machine");
        command
    }

    fn haft(&self, words: &[&str]) -> (Option<i32>, String) {
        let output = self.command(words).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    }

    /// Makes calls in one session over MCP, one after the other, and returns the results.
    fn session(&self, words: &[&str], calls: &[(&str, Value)]) -> Vec<Value> {
        let mut server = self
            .command(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = server.stdin.take().unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let mut ask = |id: usize, method: &str, params: Value| {
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
            writeln!(input, "{request}").unwrap();
            loop {
                let line = lines.next().unwrap().unwrap();
                let mut message: Value = serde_json::from_str(&line).unwrap();
                if message["id"] == id {
                    return message["result"].take();
                }
            }
        };
        ask(
            0,
            "initialize",
            json!({
                "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": { "name": "test", "version": "0" },
            }),
        );
        let calls = calls.iter().zip(1..).map(|((tool, arguments), id)| {
            let params = json!({ "name": tool, "arguments": arguments });
            ask(id, "tools/call", params)
        });
        let results = calls.collect();
        drop(input);
        assert!(server.wait().unwrap().success());
        results
    }
}

#[test]
fn a_port_there_cannot_be_waited_for_and_a_line_of_the_log_can() {
    let person = Person::new();
    let words = ["mcp", "--toolset", "workspace", "--sandbox", "off"];
    let wait = |more: Value| {
        let mut wait = json!({ "action": "wait", "process_id": "proc-1" });
        let more = more.as_object().unwrap().clone();
        wait.as_object_mut().unwrap().extend(more);
        ("process", wait)
    };
    let results = person.session(
        &words,
        &[
            (
                "process",
                json!({ "action": "start", "command": "echo ready; sleep 1000" }),
            ),
            // The port of the host itself, which is in use.
            wait(json!({ "until": "port", "port": person.host.port, "timeout": 20 })),
            wait(json!({ "until": "log", "pattern": "^ready$", "timeout": 20 })),
        ],
    );
    let [started, port, log] = &*results else {
        panic!("{results:?}");
    };
    assert_eq!(started["isError"], false, "{started}");
    assert_eq!(port["isError"], true, "{port}");
    let reported = &port["structuredContent"];
    assert_eq!(
        reported["error"],
        format!(
            "cannot wait for port {}: the process runs on another machine, where it cannot be checked which process listens",
            person.host.port
        )
    );
    let hint = reported["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("until=log with a pattern"), "{reported}");
    assert_eq!(log["structuredContent"]["met"], true, "{log}");
}

#[test]
fn commands_run_there_and_files_are_read_here() {
    let person = Person::new();
    let script = "command=pwd; echo ${PERSON_VARIABLE-nothing} $SSH_CONNECTION > made; exit 4";
    let (code, text) = person.haft(&["call", "bash", script, "--sandbox", "off"]);
    assert_eq!(code, Some(0), "{text}");
    let there = person.folder.path().join("there");
    assert_eq!(
        text,
        format!("{}\n\nExit code: 4\n", there.display()),
        "{text}"
    );
    let made = std::fs::read_to_string(there.join("made")).unwrap();
    assert!(made.starts_with("nothing"), "{made}");
    let (code, text) = person.haft(&["call", "read", "path=made", "--sandbox", "off"]);
    assert_eq!(
        (code, text.contains("not found")),
        (Some(1), true),
        "{text}"
    );
}

#[test]
fn commands_over_ssh_need_approval() {
    let person = Person::new();
    let (code, text) = person.haft(&["call", "bash", "command=touch ran"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("without a sandbox"), "{text}");
    assert!(!person.folder.path().join("there/ran").exists());
    let (code, text) = person.haft(&["call", "bash", "command=touch ran", "--approve", "auto"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(person.folder.path().join("there/ran").exists());
    let (code, text) = person.haft(&["doctor"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("commands: on 127.0.0.1, over ssh"), "{text}");
    assert!(text.contains("file tools stay on this machine"), "{text}");
}

#[test]
fn a_project_cannot_send_commands_elsewhere() {
    let person = Person::new();
    std::fs::write(
        person.folder.path().join("here/haft.yaml"),
        "executor: { ssh: evil.example }\n",
    )
    .unwrap();
    let (_, text) = person.haft(&["config", "show"]);
    assert!(text.contains("haft.yaml:1: executor is ignored"), "{text}");
    std::fs::write(
        person.folder.path().join("config/haft/haft.yaml"),
        "executor: { ssh: host, prot: 22 }\n",
    )
    .unwrap();
    let (code, text) = person.haft(&["call", "bash", "command=true"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("unknown key \"prot\" in executor"), "{text}");
}
