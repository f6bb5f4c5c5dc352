//! Help: small enough for any terminal, and its examples work.

use crate::call::on_a_terminal;
use crate::scratch::{Ended, Scratch};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const COMMANDS: &[&[&str]] = &[
    &[],
    &["run"],
    &["resume"],
    &["call"],
    &["changes"],
    &["undo"],
    &["redo"],
    &["clean"],
    &["why"],
    &["tools"],
    &["acp"],
    &["mcp"],
    &["mcp", "list"],
    &["mcp", "test"],
    &["mcp", "add"],
    &["mcp", "import"],
    &["mcp", "remove"],
    &["mcp", "install"],
    &["init"],
    &["config"],
    &["config", "show"],
    &["config", "schema"],
    &["plugin"],
    &["plugin", "test"],
    &["plugin", "new"],
    &["plugin", "log"],
    &["sessions"],
    &["sessions", "list"],
    &["sessions", "show"],
    &["sessions", "resume"],
    &["sessions", "fork"],
    &["sessions", "export"],
    &["sessions", "output"],
    &["sessions", "files"],
    &["sessions", "todos"],
    &["sessions", "delete"],
    &["store"],
    &["store", "list"],
    &["store", "get"],
    &["store", "put"],
    &["store", "delete"],
    &["trust"],
    &["completions"],
    &["demo"],
    &["doctor"],
    &["help"],
    // Not a command, but `haft help` knows it.
    &["flags"],
];

fn help(command: &[&str]) -> String {
    if command == ["flags"] {
        return Scratch::new().haft(&["help", "flags"]).out;
    }
    let mut args = command.to_vec();
    args.push("--help");
    let ended = Scratch::new().haft(&args);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    ended.out
}

fn examples(help: &str) -> Vec<&str> {
    help.lines()
        .skip_while(|line| *line != "Examples:")
        .skip(1)
        .map(str::trim)
        .collect()
}

#[test]
fn every_help_fits_a_terminal() {
    for command in COMMANDS {
        let help = help(command);
        let first = help.lines().next().unwrap();
        assert!(
            first.ends_with('.') && !first.trim_end_matches('.').contains(". "),
            "{first}"
        );
        assert!(help.lines().count() <= 24, "{help}");
        assert!(
            help.lines().all(|line| line.chars().count() <= 80),
            "{help}"
        );
        assert_eq!(examples(&help).len(), 2, "{help}");
    }
}

#[test]
fn every_command_is_in_the_list_of_this_test() {
    let help = help(&[]);
    let described = help
        .lines()
        .skip_while(|line| !line.starts_with("Usage"))
        .skip(3)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next());
    let others = help
        .lines()
        .find_map(|line| line.strip_prefix("More commands: "));
    let mut named: Vec<_> = described.chain(others.unwrap().split(", ")).collect();
    named.sort_unstable();
    let mut known: Vec<_> = COMMANDS
        .iter()
        .filter_map(|command| command.first().copied())
        .filter(|name| !["help", "flags"].contains(name))
        .collect();
    known.sort_unstable();
    known.dedup();
    assert_eq!(named, known);
}

#[test]
fn every_example_works() {
    let folder = Path::new(env!("CARGO_BIN_EXE_haft")).parent().unwrap();
    for command in COMMANDS {
        let scratch = Scratch::new();
        // Create what the examples use.
        let logs = scratch.home(".local/state/haft/plugins");
        std::fs::create_dir_all(&logs).unwrap();
        std::fs::write(logs.join("weather.log"), "started\n").unwrap();
        sessions_in(&scratch);
        store_in(&scratch);
        changes_in(&scratch);
        let servers = r#"{"mcpServers": {"docs": {"command": "docs-server"}}}"#;
        scratch.file(".mcp.json", servers);
        std::fs::write(scratch.home(".claude.json"), servers).unwrap();
        std::fs::create_dir_all(scratch.home(".codex")).unwrap();
        let codex = "[mcp_servers.fast]\ncommand = \"fast-server\"\n";
        std::fs::write(scratch.home(".codex/config.toml"), codex).unwrap();
        // A model and a server that answer.
        let server = scratch.home("docs.py");
        std::fs::write(&server, SERVER).unwrap();
        scratch.user(&format!(
            "provider: replay\nreplay: session.jsonl\ntools:\n  mcp:\n    docs: {{ command: python3, args: [{}] }}\n",
            server.display()
        ));
        let config = scratch.home(".config/haft/session.jsonl");
        std::fs::write(config, RECORDING).unwrap();
        // Without a terminal `haft trust` works only where everything is trusted already.
        let trusted = scratch.haft(&["trust", "--yes"]);
        assert_eq!(trusted.code, Some(0), "{trusted:?}");
        let help = help(command);
        for example in examples(&help) {
            // An HTTP server runs until it is stopped, and its port may be in use here.
            let is_server = example.contains("--http");
            let run = match is_server {
                true => format!("exec {}", example.replace("--http 8080", "--http 0")),
                false => example.to_owned(),
            };
            let mut child = Command::new("/bin/sh")
                .args(["-c", &run])
                .current_dir(scratch.work(""))
                .env_clear()
                .env("HOME", scratch.home(""))
                .env("PATH", format!("{}:/usr/bin:/bin", folder.display()))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            if is_server {
                let mut first = String::new();
                let mut stdout = BufReader::new(child.stdout.take().unwrap());
                stdout.read_line(&mut first).unwrap();
                assert!(first.starts_with("{\"url\":"), "{example}: {first}");
                kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
                assert_eq!(child.wait().unwrap().code(), Some(143), "{example}");
                continue;
            }
            let ended = Ended::from(child.wait_with_output().unwrap());
            assert_eq!(ended.code, Some(0), "{example}: {ended:?}");
        }
    }
}

/// The server that examples name.
const SERVER: &str = r#"
import json, sys
for line in iter(sys.stdin.readline, ""):
    asked = json.loads(line)
    known = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "docs", "version": "1"}},
        "tools/list": {"tools": [{"name": "search", "inputSchema": {"type": "object"}}]},
    }
    if "id" not in asked: continue
    answer = {"result": known[asked["method"]]} if asked["method"] in known else {"error": {"code": -32601, "message": "unknown"}}
    print(json.dumps(dict(answer, jsonrpc="2.0", id=asked["id"])), flush=True)
"#;

const RECORDING: &str = concat!(
    r#"{"type":"session","version":1,"id":"k3f9","model":"recorded"}"#,
    "\n",
    r#"{"type":"message","id":1,"parent":null,"message":{"role":"assistant","parts":[{"type":"text","text":"Done."}],"stop":"end"}}"#,
    "\n"
);

/// The files of the store that examples name.
fn store_in(scratch: &Scratch) {
    scratch.file("notes.md", "notes\n");
    for (path, namespace) in [("/notes.md", ""), ("/a.md", "notes"), ("/b.md", "notes")] {
        let args = ["store", "put", path, "notes.md", "--namespace", namespace];
        let ended = scratch.haft(&args);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
}

/// The changes that examples name: those of two calls stand, those of two others are undone.
fn changes_in(scratch: &Scratch) {
    use haft_ops::effects::{Bounds, Calls, End, Selection, Skip, Store, Touch, UndoMode};
    let bounds = Bounds {
        max_file: 1 << 20,
        max_session: 1 << 30,
        keep: std::time::Duration::from_secs(3600),
        skip: Skip::default(),
    };
    let store = Store::new(scratch.home(".local/state/haft/effects"), bounds);
    let work = scratch.work("").canonicalize().unwrap();
    let session = store.session("k3f9x2m4p7qz", &work, &[]);
    let create = |call: &str, name: &str| {
        let recorder = session.begin(call, "write");
        recorder.before(&work.join(name), Touch::Content);
        std::fs::write(work.join(name), name).unwrap();
        assert_eq!(recorder.finish(End::Done).created, 1, "{name}");
    };
    for (call, name) in [("call-5", "five.txt"), ("call-6", "six.txt")] {
        create(call, name);
    }
    for _ in 0..2 {
        let last = Selection {
            calls: Calls::Last,
            paths: Vec::new(),
        };
        session.undo(&last, UndoMode::Careful).unwrap();
    }
    for (call, name) in [("call-7", "notes.txt"), ("call-8", "eight.txt")] {
        create(call, name);
    }
}

/// The sessions that examples name.
fn sessions_in(scratch: &Scratch) {
    use haft_store::sessions::{
        Batch, Call, NewMessage, NewSession, Outcome, SessionKind, Sessions,
    };
    let sessions = Sessions::open(scratch.home(".local/state/haft/sessions.db")).unwrap();
    for id in ["k3f9x2m4p7qz", "7q2m8c1d0vta", "9xk4w5n6b7ha"] {
        let new = NewSession {
            id: Some(id.to_owned()),
            kind: SessionKind::Agent,
            work_dir: scratch.work("").components().collect(),
            toolset: "standard".to_owned(),
            provider: "replay".to_owned(),
            model: "scripted".to_owned(),
            title: Some("an example".to_owned()),
            parent: None,
            system: None,
        };
        let mut batch = Batch::default();
        if id.starts_with('k') {
            batch.messages.push(NewMessage {
                role: "user".to_owned(),
                body: r#"{"role":"user","content":[]}"#.to_owned(),
                usage: None,
            });
            batch.calls.push(Call {
                call_id: "call-1".to_owned(),
                tool: "read".to_owned(),
                arguments: "{}".to_owned(),
                has_effect: false,
            });
            batch.outcomes.push(Outcome {
                call_id: "call-1".to_owned(),
                reply: "{}".to_owned(),
                is_error: false,
                duration_ms: 1,
                output: None,
            });
        }
        sessions.begin(new).unwrap().commit_blocking(batch).unwrap();
    }
}

#[test]
fn without_arguments_it_explains_what_to_do() {
    let ended = Scratch::new().haft(&[]);
    assert_eq!(ended.code, Some(2));
    for step in ["haft demo", "haft call", "haft mcp"] {
        assert!(ended.err.contains(step), "{ended:?}");
    }
}

#[test]
fn the_version_is_one_line() {
    let ended = Scratch::new().haft(&["--version"]);
    assert_eq!(ended.out, format!("haft {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_know_the_commands() {
    let scratch = Scratch::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = scratch.haft(&["completions", shell]);
        assert_eq!(ended.code, Some(0));
        assert!(
            ended.out.contains("config") && ended.out.contains("sandbox"),
            "{shell}"
        );
    }
    scratch.file("haft.bash", scratch.haft(&["completions", "bash"]).out);
    let checked = Command::new("/bin/bash")
        .arg("-n")
        .arg(scratch.work("haft.bash"))
        .status()
        .unwrap();
    assert!(checked.success());
    assert_eq!(scratch.haft(&["completions", "bsh"]).code, Some(2));
}

#[test]
fn help_is_also_a_command() {
    let scratch = Scratch::new();
    for command in COMMANDS {
        let mut args = vec!["help"];
        args.extend(*command);
        let ended = scratch.haft(&args);
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
        assert_eq!(ended.out, help(command));
    }
    let ended = scratch.haft(&["help", "nope"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
    // Help never runs anything.
    let ended = scratch.haft(&["help", "--", "init", "--"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let ended = scratch.haft(&["help", "--", "call", "write", "--", "path=a", "content=b"]);
    assert_ne!(ended.code, Some(1), "{ended:?}");
    assert_eq!(std::fs::read_dir(scratch.work("")).unwrap().count(), 0);
}

#[test]
fn a_wrong_argument_cannot_act_on_the_terminal() {
    let scratch = Scratch::new();
    for args in [
        &["--x\x1b[2J"][..],
        &["\x1b]0;title\x07"],
        &["call", "read", "--y\u{9b}2J"],
        &["--sandbox", "\x1b[31m\u{202e}"],
        &["completions", "\x1b[2J"],
        &["help", "\x1b[2J"],
        &["call", "\x1b[2J"],
    ] {
        let ended = scratch.haft(args);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
        assert!(
            !ended.err.contains(['\x1b', '\x07', '\u{9b}', '\u{202e}']),
            "{ended:?}"
        );
        assert!(ended.err.starts_with("error: "), "{ended:?}");
        assert!(ended.err.ends_with('\n'), "{ended:?}");
        let shown = on_a_terminal(&scratch, args);
        assert!(shown.starts_with("error: "), "{shown:?}");
        assert!(
            !shown.contains(['\x1b', '\x07', '\u{9b}', '\u{202e}']),
            "{shown:?}"
        );
    }
}

#[test]
fn looking_up_flags_as_a_command_gives_a_hint() {
    let ended = Scratch::new().haft(&["flags"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("haft help flags"), "{ended:?}");
}
