//! `haft call`.

use crate::scratch::Scratch;
use rustix::pty::OpenptFlags;
use serde_json::{Value, json};
use std::io::Read;
use std::process::Stdio;

#[test]
fn json_stdin_and_pairs_say_the_same() {
    let scratch = Scratch::new();
    scratch.file("a.txt", "one\ntwo\nthree");
    for ended in [
        scratch.haft(&[
            "call",
            "read",
            r#"{"path": "a.txt", "offset": 2, "limit": 2}"#,
        ]),
        scratch.haft(&["call", "read", "path=a.txt", "offset=2", "limit=2"]),
        scratch.haft_reading(
            br#"{"path": "a.txt", "offset": 2, "limit": 2}"#,
            &["call", "read", "-"],
        ),
    ] {
        assert_eq!(
            (ended.code, ended.out.as_str(), ended.err.as_str()),
            (Some(0), "two\nthree\n", "")
        );
    }
}

#[test]
fn a_value_may_hold_anything() {
    let scratch = Scratch::new();
    let ended = scratch.haft(&["call", "write", "path=a.txt", "content=x=y={}\n"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(
        std::fs::read_to_string(scratch.work("a.txt")).unwrap(),
        "x=y={}\n"
    );
    // `ls` is not in the default preset, but users can call any tool.
    assert!(scratch.haft(&["call", "ls"]).out.starts_with("a.txt  7B  "));
}

#[test]
fn a_failure_is_a_result_and_exit_1() {
    let scratch = Scratch::new();
    for (args, words) in [
        (&["call", "read", "path=none.txt"][..], "none.txt"),
        (
            &["call", "read"],
            "validation error: missing required parameter \"path\"",
        ),
        (
            &[
                "call",
                "edit",
                "path=/etc/hosts",
                "old_text=a",
                "new_text=b",
            ],
            "path not allowed: /etc/hosts",
        ),
        (
            &["call", "write", "path=haft.yaml", "content=quiet: true"],
            "haft.yaml",
        ),
    ] {
        let ended = scratch.haft(args);
        assert_eq!((ended.code, ended.err.as_str()), (Some(1), ""), "{ended:?}");
        assert!(ended.out.contains(words), "{ended:?}");
    }
}

#[test]
fn the_exit_code_of_a_command_can_be_passed_on() {
    let scratch = Scratch::new();
    for (toolset, tool) in [
        ("standard", "bash"),
        ("workspace", "exec"),
        ("deepagents", "execute"),
        ("ah", "bash"),
    ] {
        for (command, code) in [("command=true", 0), ("command=exit 7", 7)] {
            let ended = scratch.haft(&["call", "--exit-code", "--toolset", toolset, tool, command]);
            assert_eq!(ended.code, Some(code), "{toolset}: {ended:?}");
        }
    }
    // A call without a command, or one that is refused.
    let ended = scratch.haft(&["call", "--exit-code", "read", "path=nowhere"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    scratch.file("haft.yaml", "policy: [{ deny: bash }]\n");
    let ended = scratch.haft(&["call", "--exit-code", "bash", "command=true"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
}

#[test]
fn as_json_on_one_line() {
    let scratch = Scratch::new();
    scratch.file("a.txt", "é");
    let ended = scratch.haft(&["call", "read", "path=a.txt", "--json"]);
    assert_eq!(ended.out.lines().count(), 1);
    let reply: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(reply["content"], json!([{ "type": "text", "text": "é" }]));
    assert_eq!(reply["is_error"], false);
    assert!(reply["details"].is_object());
    let ended = scratch.haft(&["call", "--json", "read", "path=none"]);
    let reply: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((ended.code, &reply["is_error"]), (Some(1), &json!(true)));
}

#[test]
fn mistakes_are_exit_2_with_help() {
    let scratch = Scratch::new();
    for (args, words) in [
        (&["call", "raed"][..], "did you mean \"read\"?"),
        (&["call"], "TOOL"),
        (&["call", "read", "path"], "KEY=VALUE"),
        (&["call", "read", "path=a", "path=b"], "duplicate argument"),
        (&["call", "read", "{\"path\": "], "not valid JSON"),
        (&["call", "read", "[1]"], "JSON object"),
        (&["call", "read", "--jsn"], "'--json'"),
        (&["cal", "read"], "'call'"),
        (
            &["call", "read", "path=a", "--sandbox", "strct"],
            "'strict'",
        ),
        (
            &["call", "read", "path=a", "--toolset", "standrd"],
            "'standard'",
        ),
        (
            &["call", "read", "path=a", "--dir", "nowhere"],
            "folder not found: nowhere",
        ),
        (&["tools", "--preset", "al"], "has no preset \"al\""),
    ] {
        let ended = scratch.haft(args);
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (Some(2), ""),
            "{args:?} {ended:?}"
        );
        assert!(ended.err.contains(words), "{args:?} {ended:?}");
    }
    for stdin in [&b"{"[..], b"[1]", b"\xff"] {
        assert_eq!(
            scratch.haft_reading(stdin, &["call", "read", "-"]).code,
            Some(2)
        );
    }
}

#[test]
fn flags_go_before_and_after_the_command() {
    let scratch = Scratch::new();
    scratch.file("sub/a.txt", "inside");
    for args in [
        &["--dir", "sub", "call", "read", "path=a.txt"][..],
        &["call", "--dir", "sub", "read", "path=a.txt"],
        &["call", "read", "path=a.txt", "--dir=sub"],
    ] {
        assert_eq!(scratch.haft(args).out, "inside\n");
    }
    let ended = scratch.haft(&[
        "--sandbox",
        "read-only",
        "call",
        "write",
        "path=b",
        "content=c",
    ]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.out.contains("path not allowed"), "{ended:?}");
}

#[test]
fn a_picture_is_named() {
    let scratch = Scratch::new();
    // The smallest PNG: one transparent pixel.
    scratch.file(
        "p.png",
        [
            0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52,
            0, 0, 0, 1, 0, 0, 0, 1, 8, 6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0a, 0x49,
            0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0, 1, 0, 0, 5, 0, 1, 0x0d, 0x0a, 0x2d, 0xb4, 0, 0,
            0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
        ],
    );
    let ended = scratch.haft(&["call", "read", "path=p.png"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains("[image image/png, 6"), "{ended:?}");
}

#[test]
fn a_read_leaves_its_record_and_nothing_else_in_the_home_folder() {
    let scratch = Scratch::new();
    scratch.file("a.txt", "x");
    for nothing in [&["tools"][..], &["call", "nothing"], &["sessions", "list"]] {
        scratch.haft(nothing);
        assert_eq!(std::fs::read_dir(scratch.home("")).unwrap().count(), 0);
    }
    scratch.haft(&["call", "read", "path=a.txt"]);
    let state = std::fs::read_dir(scratch.home(".local/state/haft")).unwrap();
    for entry in state.flatten() {
        let name = entry.file_name().into_string().unwrap();
        assert!(name.starts_with("sessions.db"), "{name}");
    }
    assert_eq!(std::fs::read_dir(scratch.home("")).unwrap().count(), 1);
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let scratch = Scratch::new();
    scratch.file("a.txt", "line\n".repeat(1900));
    let mut child = scratch
        .command(&["call", "read", "path=a.txt"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), output.stderr.as_slice()),
        (Some(0), &b""[..])
    );
}

#[test]
fn a_full_disk_behind_stdout_is_a_failure() {
    let scratch = Scratch::new();
    scratch.file("a.txt", "x");
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = scratch
        .command(&["call", "read", "path=a.txt"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write to stdout"));
}

/// Returns the command's output on a terminal.
pub(crate) fn on_a_terminal(scratch: &Scratch, args: &[&str]) -> String {
    let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    rustix::pty::grantpt(&ours).unwrap();
    rustix::pty::unlockpt(&ours).unwrap();
    let name = rustix::pty::ptsname(&ours, Vec::new()).unwrap();
    let theirs = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let mut child = scratch
        .command(args)
        .env("TERM", "xterm")
        .stdout(theirs.try_clone().unwrap())
        .stderr(theirs)
        .spawn()
        .unwrap();
    // Read before waiting for the end: a terminal buffers only so much.
    let reading = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // A terminal returns an error, not EOF, when the last writer is gone.
        let _ = std::fs::File::from(ours).read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    child.wait().unwrap();
    reading.join().unwrap()
}

#[test]
fn a_terminal_never_gets_raw_escapes() {
    let scratch = Scratch::new();
    let words = "plain words that make the file text ".repeat(8);
    scratch.file(
        "a.txt",
        format!("{words}\u{1b}[31m\u{1b}]0;title\u{7}\u{9b}1m"),
    );
    for args in [
        &["call", "read", "path=a.txt"][..],
        &["call", "read", "path=a.txt", "--json"],
    ] {
        let shown = on_a_terminal(&scratch, args);
        assert!(
            shown.contains("[31m") && shown.contains("title"),
            "{shown:?}"
        );
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{9b}']), "{shown:?}");
    }
    // Not a terminal: the bytes are unchanged.
    let ended = scratch.haft(&["call", "read", "path=a.txt"]);
    assert!(ended.out.contains("\u{1b}[31m"), "{ended:?}");
    // Colour is for terminals that want it.
    assert!(on_a_terminal(&scratch, &["demo"]).contains("\u{1b}[1m"));
    assert!(!scratch.haft(&["demo"]).out.contains('\u{1b}'));
}

/// The preset in a file may belong to another toolset.
#[test]
fn a_call_does_not_care_for_the_preset_of_a_file() {
    let scratch = Scratch::new();
    scratch.file("haft.yaml", "tools:\n  preset: coding\n");
    let args = [
        "call",
        "exec",
        "command=echo fine",
        "--toolset",
        "workspace",
    ];
    let ended = scratch.haft(&args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains("fine"), "{ended:?}");
    let ended = scratch.haft(&["tools", "--toolset", "workspace"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("--preset NAME"), "{ended:?}");
}
