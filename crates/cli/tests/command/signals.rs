//! Signals: a call that is interrupted ends soon, with the code that scripts
//! expect.

use crate::scratch::Scratch;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A read that takes hours: the line asked for is at the end of a file that is
/// mostly a hole.
fn endless(scratch: &Scratch) -> Child {
    scratch.file("large.txt", "text\n".repeat(4000));
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(scratch.work("large.txt"))
        .unwrap();
    file.set_len(1 << 40).unwrap();
    scratch
        .command(&["call", "read", "path=large.txt", "offset=1000000000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the process has a handler for SIGINT.
fn listening(child: &Child) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))
            .unwrap();
        // The last one that is registered: SIGHUP.
        if u64::from_str_radix(caught.trim(), 16).unwrap() & 1 != 0 {
            return;
        }
        assert!(Instant::now() < deadline, "it does not listen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn a_signal_cancels_the_call() {
    let scratch = Scratch::new();
    for (sent, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let child = endless(&scratch);
        listening(&child);
        std::thread::sleep(Duration::from_millis(50));
        let begun = Instant::now();
        signal(&child, sent);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "{:?}",
            begun.elapsed()
        );
    }
}

#[test]
fn waiting_for_stdin_can_be_interrupted() {
    let scratch = Scratch::new();
    let mut child = scratch
        .command(&["call", "read", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // Held until the end: waiting for a child closes its stdin.
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{").unwrap();
    listening(&child);
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(stdin);
}

#[test]
fn a_file_size_limit_is_an_error_not_death() {
    let scratch = Scratch::new();
    let script = r#"ulimit -f 8; exec "$0" call write - < input.json"#;
    let content = "x".repeat(200_000);
    scratch.file(
        "input.json",
        format!(r#"{{"path": "a.txt", "content": "{content}"}}"#),
    );
    let output = std::process::Command::new("/bin/bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_haft")])
        .current_dir(scratch.work(""))
        .env("HOME", scratch.home(""))
        .output()
        .unwrap();
    assert_eq!(output.status.signal(), None, "{output:?}");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!scratch.work("a.txt").exists());
}

#[test]
fn few_files_at_a_time_are_an_error_not_a_panic() {
    let scratch = Scratch::new();
    scratch.file("a.txt", "text");
    let script = r#"ulimit -n "$1"; shift; exec "$0" "$@""#;
    // With less, the command cannot even be loaded.
    for limit in 5..=24 {
        for args in [&["call", "read", "path=a.txt"][..], &["mcp"], &["demo"]] {
            let output = std::process::Command::new("/bin/sh")
                .args(["-c", script, env!("CARGO_BIN_EXE_haft")])
                .arg(limit.to_string())
                .args(args)
                .current_dir(scratch.work(""))
                .env("HOME", scratch.home(""))
                .stdin(Stdio::null())
                .output()
                .unwrap();
            assert!(
                matches!(output.status.code(), Some(0..=2)),
                "{limit} {args:?} {output:?}"
            );
            let printed = String::from_utf8_lossy(&output.stderr);
            assert!(!printed.contains("panic"), "{limit} {args:?} {printed}");
            if limit == 8 {
                assert!(printed.starts_with("error: "), "{args:?} {printed}");
            }
        }
    }
}
