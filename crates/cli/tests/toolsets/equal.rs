//! The four toolsets give the same facts in the same words.

use crate::session::{Answer, Bed, Session};
use serde_json::{Value, json};

const TOOLSETS: [&str; 4] = ["standard", "workspace", "deepagents", "ah"];

/// An edit in the style of each toolset.
fn edit(toolset: &str, file: &str, old: &str, new: &str) -> (&'static str, Value) {
    match toolset {
        "standard" => (
            "edit",
            json!({ "path": file, "old_text": old, "new_text": new }),
        ),
        "workspace" => (
            "edit",
            json!({ "path": file, "old_text": old, "new_text": new }),
        ),
        "ah" => (
            "edit",
            json!({ "path": file, "old_string": old, "new_string": new }),
        ),
        _ => (
            "edit_file",
            json!({ "file_path": format!("/{file}"), "old_string": old, "new_string": new }),
        ),
    }
}

fn read(toolset: &str, file: &str) -> (&'static str, Value) {
    match toolset {
        "deepagents" => ("read_file", json!({ "file_path": format!("/{file}") })),
        _ => ("read", json!({ "path": file })),
    }
}

fn run(toolset: &str, command: &str) -> (&'static str, Value) {
    match toolset {
        "workspace" => ("exec", json!({ "command": command })),
        "deepagents" => ("execute", json!({ "command": command })),
        _ => ("bash", json!({ "command": command })),
    }
}

fn call(session: &mut Session, (tool, arguments): (&str, Value)) -> Answer {
    session.call(tool, &arguments)
}

/// The text of a reply, without the toolset's format.
fn words(answer: &Answer) -> String {
    match serde_json::from_str::<Value>(&answer.text) {
        Ok(Value::Object(fields)) => {
            let texts = fields.values().filter_map(Value::as_str);
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => answer.text.clone(),
    }
}

#[test]
fn an_edit_changes_the_same_bytes() {
    let cases: [(&[u8], &str, &str); 7] = [
        (b"one\r\ntwo\r\nthree", "two\n", "2\n2b\n"),
        (b"\xEF\xBB\xBFfirst\nsecond\n", "first", "1st"),
        (b"caf\xE9 au lait\nx\n", "au", "sans"),
        (b"mixed\r\nends\nhere\rnow\r\n", "ends\n", "end\n"),
        (b"no newline at the end", "end", "END"),
        (b"\ttab\n    spaces\n", "\ttab\n", "\t\ttab\n"),
        ("a \u{1F600} b\n".as_bytes(), "\u{1F600}", ":-)"),
    ];
    for (before, old, new) in cases {
        let mut results = Vec::new();
        for toolset in TOOLSETS {
            let bed = Bed::new();
            bed.file("f.txt", before);
            let mut session = bed.session(&["--toolset", toolset]);
            let answer = call(&mut session, edit(toolset, "f.txt", old, new));
            assert!(!answer.is_error, "{toolset}: {}", answer.text);
            results.push(std::fs::read(bed.work("f.txt")).unwrap());
        }
        assert!(
            results.windows(2).all(|pair| pair[0] == pair[1]),
            "{old:?}: {results:?}"
        );
        assert_ne!(results[0], before);
    }
}

#[test]
fn a_failed_edit_teaches_the_same() {
    for toolset in TOOLSETS {
        let bed = Bed::new();
        bed.file("f.py", "def f():\n\treturn 1\n\ndef g():\n    return 2\n");
        let mut session = bed.session(&["--toolset", toolset]);
        let wrong = edit(toolset, "f.py", "def f():\n    return 1", "pass");
        let answer = call(&mut session, wrong);
        assert!(answer.is_error, "{toolset}: {}", answer.text);
        let reply = words(&answer);
        assert!(
            reply.contains("4 spaces wanted, 1 tab found"),
            "{toolset}: {reply}"
        );
        assert!(reply.contains("lines 1-2"), "{toolset}: {reply}");
        let same = call(&mut session, edit(toolset, "f.py", "return 2", "return 2"));
        assert!(same.is_error, "{toolset}: {}", same.text);
        let nothing = call(&mut session, edit(toolset, "f.py", "", "x"));
        assert!(nothing.is_error, "{toolset}: {}", nothing.text);
        if toolset != "workspace" {
            let twice = call(&mut session, edit(toolset, "f.py", "return", "yield"));
            assert!(twice.is_error, "{toolset}: {}", twice.text);
            let reply = words(&twice);
            assert!(
                reply.contains("2, 5") || reply.contains("2 and 5"),
                "{toolset}: {reply}"
            );
        }
        let found = std::fs::read_to_string(bed.work("f.py")).unwrap();
        assert_eq!(
            found, "def f():\n\treturn 1\n\ndef g():\n    return 2\n",
            "{toolset}"
        );
    }
}

#[test]
fn unreadable_files_are_errors_in_every_toolset() {
    for toolset in TOOLSETS {
        let bed = Bed::new();
        bed.file("binary", b"\x7fELF\0\0\0");
        bed.file("folder/x", "x");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            bed.work("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        let mut session = bed.session(&["--toolset", toolset]);
        for name in ["binary", "folder", "pipe", "missing"] {
            let answer = call(&mut session, read(toolset, name));
            assert!(answer.is_error, "{toolset} {name}: {}", answer.text);
            assert!(
                words(&answer).contains(name),
                "{toolset} {name}: {}",
                answer.text
            );
        }
    }
}

#[test]
fn a_command_has_the_same_output_and_effects() {
    for toolset in TOOLSETS {
        let bed = Bed::new();
        let mut session = bed.session(&["--toolset", toolset]);
        let answer = call(
            &mut session,
            run(toolset, "echo here; sleep 300 & echo there; exit 7"),
        );
        let reply = words(&answer);
        assert!(
            reply.contains("here") && reply.contains("there"),
            "{toolset}: {reply}"
        );
        assert!(
            reply.contains("still running in the background: sleep"),
            "{toolset}: {reply}"
        );
        assert!(answer.text.contains('7'), "{toolset}: {}", answer.text);
        // The documents disagree on whether it is an error.
        let is_error = matches!(toolset, "deepagents" | "ah");
        assert_eq!(answer.is_error, is_error, "{toolset}: {}", answer.text);
        let refused = call(&mut session, run(toolset, "echo x > /usr/nothing"));
        assert!(
            words(&refused).contains("refused by the sandbox"),
            "{toolset}: {}",
            refused.text
        );
    }
}

#[test]
fn searches_find_the_same_files() {
    let bed = Bed::new();
    bed.file(".gitignore", "ignored/\n");
    for file in [
        "a.py",
        "src/b.py",
        "src/.hidden.py",
        "ignored/c.py",
        ".git/d.py",
        "e.md",
    ] {
        bed.file(file, "needle\n");
    }
    let mut standard = bed.session(&["--toolset", "standard"]);
    let mut deep = bed.session(&["--toolset", "deepagents"]);
    let one = standard.done("grep", &json!({ "pattern": "needle", "glob": "*.py" }));
    let other = deep.done("grep", &json!({ "pattern": "needle", "glob": "*.py" }));
    let lines = one.text.lines().filter_map(|line| line.split_once(":1:"));
    let one: Vec<String> = lines.map(|(path, _)| format!("/{path}")).collect();
    let other = other.json()["result"].as_str().unwrap().to_owned();
    assert_eq!(one.join("\n"), other);
    assert_eq!(one, ["/a.py", "/src/.hidden.py", "/src/b.py"]);
}

/// The log is searched from its start, however long it is, and processes left running are
/// reported and counted.
#[test]
fn a_process_is_known_by_all_it_said_and_all_it_left() {
    let bed = Bed::new();
    let mut session = bed.session(&["--toolset", "workspace"]);
    let mut process = |arguments: Value| session.done("process", &arguments).json();
    process(json!({ "action": "start", "command": "seq 300000" }));
    process(json!({ "action": "wait", "process_id": "proc-1" }));
    for (pattern, met) in [("^5$", true), ("^299999$", true), ("^300001$", false)] {
        let waited = process(json!({
            "action": "wait", "process_id": "proc-1", "until": "log", "pattern": pattern,
        }));
        assert_eq!(waited["met"], met, "{pattern}: {waited}");
    }
    process(json!({ "action": "start", "command": "(setsid sleep 300 &); echo left" }));
    let ended = process(json!({ "action": "wait", "process_id": "proc-2" }));
    assert_eq!(ended["running"], false, "{ended}");
    let hint = ended["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("left something running: sleep"), "{ended}");
    let killed = process(json!({ "action": "kill", "process_id": "proc-2" }));
    assert_eq!(killed["killed"], true, "{killed}");
    let again = process(json!({ "action": "kill", "process_id": "proc-2" }));
    assert_eq!(
        (&again["killed"], again.get("hint")),
        (&json!(false), None),
        "{again}"
    );
}
