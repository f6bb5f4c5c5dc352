//! Every call in the documentation of other agents, made with the built command.

use super::blocks::{Block, blocks, calls};
use crate::scratch::{Ended, Scratch};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

const STANDARD: &str = include_str!("../../seeds/standard.md");
const WORKSPACE: &str = include_str!("../../seeds/workspace.md");
const DEEPAGENTS: &str = include_str!("../../seeds/deepagents.md");

const GO: &str = "package agent\n\nfunc ServeHandler() {}\n";

/// A project with the files that the printed calls name, and programs that print how they
/// were called.
fn project() -> Scratch {
    let scratch = super::project();
    let lines: String = (5..=160).map(|line| format!("# {line}\n")).collect();
    let head = "import flask  # TODO\n\ndef hello():\n    print('hello')\n";
    scratch.file("src/main.py", format!("{head}{lines}"));
    for program in ["go", "python"] {
        let path = scratch.home(&format!("bin/{program}"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\necho {program} \"$@\" >&2\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    scratch
}

fn made(scratch: &Scratch, toolset: &str, tool: &str, arguments: &str) -> Ended {
    let path = format!("{}:/usr/bin:/bin", scratch.home("bin").display());
    let args = ["call", tool, arguments, "--toolset", toolset];
    scratch.haft_with(&[("PATH", &path)], &args)
}

/// The calls of a page that prints them as JSON.
fn printed(page: &str) -> Vec<Block> {
    let all = blocks(page).into_iter();
    all.filter(|block| block.language == "json").collect()
}

#[test]
fn of_the_standard_tools() {
    // The two web calls are tested elsewhere.
    let expected = [
        ("read", GO.to_owned()),
        ("bash", "go test ./...\n".to_owned()),
        (
            "edit",
            "Successfully replaced text in main.go.\n".to_owned(),
        ),
        (
            "write",
            "Successfully wrote 20 bytes to notes.md\n".to_owned(),
        ),
        (
            "grep",
            [
                "internal/agent/agent.go",
                "internal/agent/tool/tool.go",
                "pkg/agent/loop.go",
                "pkg/agent/loop_test.go",
            ]
            .map(|file| {
                format!("{file}-1-package agent\n{file}-2-\n{file}:3:func ServeHandler() {{}}\n")
            })
            .join("--\n")
                + "\n[4 matches; searched 5 files]\n",
        ),
        ("find", "pkg/agent/loop_test.go\n".to_owned()),
        ("ls", "loop.go  38B  \nloop_test.go  38B  \n".to_owned()),
    ];
    let calls = printed(STANDARD);
    let tools: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    let requested: Vec<&str> = expected.iter().map(|(tool, _)| *tool).collect();
    assert_eq!(
        tools,
        [&requested[..], &["web_search", "web_fetch"]].concat()
    );
    for (call, (tool, text)) in calls.iter().zip(&expected) {
        let scratch = project();
        let mut ended = made(&scratch, "standard", tool, &call.text);
        if *tool == "ls" {
            // Without the times.
            let lines = ended
                .out
                .lines()
                .map(|line| line.split_at(line.len() - 16).0);
            ended.out = lines.map(|line| format!("{line}\n")).collect();
        }
        assert_eq!((ended.code, &ended.out), (Some(0), text), "{ended:?}");
        let now = |file: &str| std::fs::read_to_string(scratch.work(file)).unwrap();
        match *tool {
            "edit" => assert_eq!(now("main.go"), "fmt.Println(\"world\")\n"),
            "write" => assert_eq!(now("notes.md"), "# Notes\n\n- item one\n"),
            _ => {}
        }
    }
}

#[test]
fn of_the_workspace_tools() {
    // Those of `process` are made in one session, that of `message` with a service.
    let expected = [
        (
            "read",
            json!({ "success": true, "path": "internal/agent/agent.go", "content": GO, "size": 38 }),
        ),
        (
            "write",
            json!({ "success": true, "path": "workspace/notes.txt", "size": 5 }),
        ),
        (
            "edit",
            json!({ "success": true, "path": "a.txt", "changes": 2, "lines": [1, 13], "size": 33 }),
        ),
        (
            "edit",
            json!({ "success": true, "path": "a.txt", "changes": 1, "lines": [10], "size": 34 }),
        ),
        (
            "list",
            json!({
                "success": true, "path": "internal/agent/tool", "count": 1,
                "files": [{ "name": "tool.go", "path": "internal/agent/tool/tool.go", "type": "file", "size": 38, "mode": "-rw-r--r--" }],
            }),
        ),
        (
            "delete",
            json!({ "success": true, "path": "tmp/output.log" }),
        ),
        (
            "file",
            json!({ "success": true, "path": "README.md", "content": "# Read me\n", "size": 10 }),
        ),
    ];
    let calls = printed(WORKSPACE);
    let tools: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    let requested: Vec<&str> = expected.iter().map(|(tool, _)| *tool).collect();
    let later = [
        "exec", "process", "process", "process", "process", "process", "message",
    ];
    assert_eq!(tools, [&requested[..], &later].concat());
    for (call, (tool, reply)) in calls.iter().zip(&expected) {
        let scratch = project();
        let ended = made(&scratch, "workspace", tool, &call.text);
        assert_eq!(ended.code, Some(0), "{}: {ended:?}", call.text);
        let actual: Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(&actual, reply, "{}", call.text);
        let now = |file: &str| std::fs::read_to_string(scratch.work(file)).unwrap();
        match (*tool, call.text.contains("start_line")) {
            ("write", _) => assert_eq!(now("workspace/notes.txt"), "hello"),
            ("edit", false) => assert_eq!(now("a.txt").matches("bar\n").count(), 2),
            ("edit", true) => assert!(now("a.txt").ends_with("\n9\nnew lines\nfoo\n")),
            ("delete", _) => assert!(!scratch.work("tmp/output.log").exists()),
            _ => {}
        }
    }
}

/// The program in the call may not be installed. The same call with an installed one shows
/// the printed reply.
#[test]
fn of_exec() {
    let calls = printed(WORKSPACE);
    let call = calls.iter().find(|call| call.tool == "exec").unwrap();
    let scratch = project();
    let program = "/usr/local/go/bin/go";
    if !std::path::Path::new(program).exists() {
        let ended = made(&scratch, "workspace", "exec", &call.text);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let reply: Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(reply["success"], false);
        let error = reply["error"].as_str().unwrap();
        assert!(
            error.starts_with(&format!("cannot start {program}: ")),
            "{error}"
        );
    }
    let own = scratch.home("bin/go").display().to_string();
    let working_dir = scratch.work("").canonicalize().unwrap();
    // The page names the two forms of a command in its text.
    for (arguments, command, message) in [
        (
            call.text.replace(program, &own),
            format!("{own} test ./internal/agent/tool/shellx"),
            "go test ./internal/agent/tool/shellx\n",
        ),
        (
            r#"{"command":"go test ./..."}"#.to_owned(),
            "go test ./...".to_owned(),
            "go test ./...\n",
        ),
    ] {
        let ended = made(&scratch, "workspace", "exec", &arguments);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let reply: Value = serde_json::from_str(&ended.out).unwrap();
        let requested = json!({
            "success": true, "command": command, "exit_code": 0, "stdout": "", "stderr": message,
            "working_dir": working_dir.to_string_lossy().trim_end_matches('/'),
        });
        assert_eq!(reply, requested);
    }
    // A command that fails is a result, one that takes too long is an error.
    let ended = made(&scratch, "workspace", "exec", r#"{"command":"exit 3"}"#);
    let reply: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(
        (&reply["success"], &reply["exit_code"]),
        (&json!(false), &json!(3))
    );
    let slow = r#"{"command":"sleep 60","timeout":1}"#;
    let ended = made(&scratch, "workspace", "exec", slow);
    let reply: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(
        (ended.code, &reply["error"]),
        (Some(1), &json!("command timeout after 1s"))
    );
}

#[test]
fn of_the_deepagents_tools() {
    let all = blocks(DEEPAGENTS).into_iter();
    let calls: Vec<(String, Value)> = all
        .filter(|block| block.language.is_empty())
        .flat_map(|block| calls(&block.text))
        .collect();
    let page = |first: usize, last: usize| -> String {
        let lines = (first..=last).map(|line| format!("{line:>6}\t# {line}"));
        lines.collect::<Vec<_>>().join("\n")
    };
    let head = "     1\timport flask  # TODO\n     2\t\n     3\tdef hello():\n     4\t    print('hello')\n";
    let file = |path: &str| json!({ "path": path, "is_dir": false });
    let workspace = if std::path::Path::new("/workspace").is_dir() {
        0
    } else {
        2
    };
    let expected = [
        (
            "ls",
            json!({ "status": "success", "entries": [file("/src/main.py")] }),
        ),
        (
            "read_file",
            json!({ "status": "success", "content": format!("{head}{}", page(5, 160)) }),
        ),
        (
            "read_file",
            json!({
                "status": "success",
                "content": format!("{}\n\n... (10 more lines. Use offset=150 to continue reading)", page(101, 150)),
            }),
        ),
        (
            "write_file",
            json!({ "status": "success", "path": "/src/utils.py" }),
        ),
        (
            "edit_file",
            json!({ "status": "success", "path": "/src/main.py", "occurrences": 1 }),
        ),
        (
            "glob",
            json!({ "status": "success", "entries": [file("/src/main.py")] }),
        ),
        (
            "glob",
            json!({ "status": "success", "entries": [file("/docs/index.md")] }),
        ),
        (
            "grep",
            json!({ "status": "success", "result": "/src/main.py:1:import flask  # TODO" }),
        ),
        (
            "grep",
            json!({ "status": "success", "result": "/src/main.py" }),
        ),
        ("write_todos", json!({ "status": "success", "count": 3 })),
        ("read_todos", json!({ "todos": [] })),
        (
            "execute",
            json!({
                "status": "success", "output": "python -m pytest tests/ -v\n", "exit_code": 0, "truncated": false,
            }),
        ),
        // A command sees the machine, where this folder may not be.
        (
            "execute",
            json!({ "exit_code": workspace, "truncated": false }),
        ),
    ];
    let tools: Vec<&str> = calls.iter().map(|(tool, _)| tool.as_str()).collect();
    let requested: Vec<&str> = expected.iter().map(|(tool, _)| *tool).collect();
    assert_eq!(tools, requested);
    for ((tool, arguments), (_, reply)) in calls.iter().zip(&expected) {
        let scratch = project();
        let ended = made(&scratch, "deepagents", tool, &arguments.to_string());
        let fails = reply["exit_code"] == 2;
        assert_eq!(
            ended.code,
            Some(i32::from(fails)),
            "{tool} {arguments}: {ended:?}"
        );
        let actual: Value = serde_json::from_str(&ended.out).unwrap();
        assert!(
            super::results::holds(reply, &actual),
            "{tool} {arguments}: wanted {reply}, got {actual}"
        );
        let now = |file: &str| std::fs::read_to_string(scratch.work(file)).unwrap();
        match tool.as_str() {
            "write_file" => assert_eq!(now("src/utils.py"), "def add(a, b):\n    return a + b\n"),
            "edit_file" => assert!(now("src/main.py").contains("\n    print('Hello, world!')\n")),
            _ => {}
        }
    }
}

/// The note at the end of a long output, and the file that it names.
#[test]
fn a_command_with_too_much_output() {
    let note = include_str!("../../seeds/note.txt").trim_end();
    let (before, _) = note.split_once("/tmp/").unwrap();
    let scratch = project();
    let command = r#"{"command": "for line in {1..100}; do printf '%01000d\\n' $line; done"}"#;
    let ended = made(&scratch, "standard", "bash", command);
    let last = ended.out.lines().last().unwrap();
    let path = last
        .strip_prefix(before)
        .and_then(|rest| rest.strip_suffix(']'));
    let path = path.unwrap_or_else(|| panic!("wanted {note}, got {last}"));
    assert_eq!(std::fs::read_to_string(path).unwrap().len(), 100 * 1001);
}
