//! Haft works even if stderr cannot be written.

use crate::scratch::{Ended, Scratch};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Runs the command with stderr made unusable by the shell: `2>&-`, `2>/dev/full`.
fn without(scratch: &Scratch, redirect: &str, args: &[&str], input: &str) -> Ended {
    let haft = scratch.command(&[]);
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("exec \"$0\" \"$@\" {redirect}"))
        .arg(haft.get_program())
        .args(args)
        .current_dir(scratch.work(""))
        .env_clear()
        .env("HOME", scratch.home(""))
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The command may not read it.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    Ended::from(child.wait_with_output().unwrap())
}

/// Messages of a client that makes one call.
const CLIENT: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{"path":"a.txt"}}}"#,
    "\n",
);

#[test]
fn a_stderr_that_cannot_be_written_ends_nothing() {
    let scratch = Scratch::new();
    scratch.file("a.txt", "hello\n");
    // Every command prints something to stderr.
    scratch.file("haft.yaml", "sandbox: off\nsystem_prompt: ${SOMETHING}\n");
    for redirect in ["2>/dev/full", "2>&-", "2>&1 >/dev/null | true"] {
        let is_piped = redirect.contains('|');
        for level in ["warn", "trace"] {
            let call = ["--log", level, "call", "read", "path=a.txt"];
            let ended = without(&scratch, redirect, &call, "");
            assert_eq!(ended.code, Some(0), "{redirect} {level} {ended:?}");
            let missing = ["--log", level, "call", "read", "path=none"];
            let ended = without(&scratch, redirect, &missing, "");
            let code = if is_piped { 0 } else { 1 };
            assert_eq!(ended.code, Some(code), "{redirect} {level} {ended:?}");
            let ended = without(&scratch, redirect, &["--log", level, "mcp"], CLIENT);
            assert_eq!(ended.code, Some(0), "{redirect} {level} {ended:?}");
            assert!(
                is_piped || ended.out.contains("hello"),
                "{redirect} {level} {ended:?}"
            );
        }
        // A mistake keeps its exit code.
        for args in [
            &["call", "none"][..],
            &["nonsense"],
            &["--dir", "/none", "tools"],
        ] {
            let ended = without(&scratch, redirect, args, "");
            let code = if is_piped { 0 } else { 2 };
            assert_eq!(ended.code, Some(code), "{redirect} {args:?} {ended:?}");
        }
    }
}

/// A result that cannot be written is a failure, not a crash; a reader that stops early
/// is neither.
#[test]
fn a_stdout_that_cannot_be_written_is_a_failure() {
    let scratch = Scratch::new();
    scratch.file("a.txt", "hello\n");
    for args in [
        &["call", "read", "path=a.txt"][..],
        &["tools"],
        &["--help"],
        &["--version"],
        &["help", "call"],
        &["config", "schema"],
        &["completions", "bash"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = scratch
            .command(args)
            .stdout(full)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
            .wait_with_output()
            .unwrap();
        let ended = Ended::from(output);
        assert_eq!(ended.code, Some(1), "{args:?} {ended:?}");
        assert!(
            ended.err.contains("cannot write to stdout"),
            "{args:?} {ended:?}"
        );
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = scratch
            .command(args)
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
            .wait_with_output()
            .unwrap();
        let ended = Ended::from(output);
        assert_eq!(
            (ended.code, ended.err.as_str()),
            (Some(0), ""),
            "{args:?} {ended:?}"
        );
    }
}

/// Returns a pipe that is full.
fn full_pipe() -> (std::io::PipeReader, std::io::PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}

#[test]
fn a_server_answers_although_nothing_reads_its_warnings() {
    let scratch = Scratch::new();
    let rules: String = (0..1_500)
        .map(|number| format!("  - {{ deny: no_such_tool_{number} }}\n"))
        .collect();
    scratch.file("haft.yaml", format!("sandbox: off\npolicy:\n{rules}"));
    let (_reader, writer) = full_pipe();
    let mut child = scratch
        .command(&["mcp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(writer)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(CLIENT.as_bytes()).unwrap();
    let stdout = child.stdout.take().unwrap();
    let (sender, answers) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    // Without a reader, the old code never answered.
    let answer = answers.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(answer.contains("serverInfo"), "{answer}");
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn only_the_first_warnings_are_printed() {
    let scratch = Scratch::new();
    let name = "x".repeat(3_000);
    let rules: String = (0..300)
        .map(|number| format!("  - {{ deny: no_such_tool_{number}{name} }}\n"))
        .collect();
    scratch.file("haft.yaml", format!("policy:\n{rules}"));
    let ended = Ended::from(scratch.command(&["tools"]).output().unwrap());
    let lines = ended.err.lines().count();
    assert!((40..=60).contains(&lines), "{lines}");
    assert!(ended.err.contains("and 250 more warnings"), "{}", ended.err);
    assert!(ended.err.len() < 150_000, "{}", ended.err.len());
}

#[test]
fn a_message_to_a_console_that_nothing_reads_is_an_error() {
    let scratch = Scratch::new();
    scratch.user("tools:\n  channels:\n    screen: {kind: console}\n");
    let (_reader, writer) = full_pipe();
    let arguments = r#"{"chanId": "screen", "chatId": 42, "content": "hi"}"#;
    let output = scratch
        .command(&["--toolset", "workspace", "call", "message", arguments])
        .stderr(writer)
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(
        out.contains("cannot write to the console: nothing reads standard error"),
        "{out}"
    );
}
