//! `haft demo`.

use crate::scratch::Scratch;
use std::time::{Duration, Instant};

#[test]
fn the_tour_is_real_quick_and_leaves_nothing() {
    let scratch = Scratch::new();
    let temp = scratch.work("temp");
    std::fs::create_dir(&temp).unwrap();
    let begun = Instant::now();
    let ended = scratch.haft_with(&[("TMPDIR", temp.to_str().unwrap())], &["demo"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
    for words in [
        "expected: hello, Ada",
        "4 spaces wanted, 1 tab found",
        "edit greet.sh · +1 −1",
        "still running in the background: sleep",
        "[this may have been refused by the sandbox",
        "Allow write to change this file?",
        "haft.yaml:2 { ask: write, path: CHANGELOG.md }",
        "write CHANGELOG.md · new, 3 lines",
        "The check passes.",
        "export ANTHROPIC_API_KEY=",
    ] {
        assert!(ended.out.contains(words), "{words}: {}", ended.out);
    }
    assert!(
        ended
            .out
            .lines()
            // A note of a tool is one line, which a terminal wraps.
            .all(|line| line.chars().count() <= 80 || line.starts_with("  [")),
        "{}",
        ended.out
    );
    assert_eq!(std::fs::read_dir(&temp).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(scratch.home("")).unwrap().count(), 0);
}

/// Runs the demo on a terminal, and answers its question with this.
fn answered(answer: &str) -> (Option<i32>, String) {
    use std::io::{Read, Write};
    let ours = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR).unwrap();
    rustix::pty::grantpt(&ours).unwrap();
    rustix::pty::unlockpt(&ours).unwrap();
    let name = rustix::pty::ptsname(&ours, Vec::new()).unwrap();
    let theirs = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let scratch = Scratch::new();
    let mut command = std::process::Command::new("setsid");
    command
        .args(["--ctty", "--wait", env!("CARGO_BIN_EXE_haft"), "demo"])
        .env_clear()
        .env("HOME", scratch.home(""))
        .env("PATH", "/usr/bin:/bin")
        .env("TERM", "dumb")
        .stdin(theirs.try_clone().unwrap())
        .stdout(theirs.try_clone().unwrap())
        .stderr(theirs);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut ours = std::fs::File::from(ours);
    let (mut shown, mut is_asked, mut piece) = (Vec::new(), false, [0; 4096]);
    // A terminal returns an error when the last writer is gone.
    while let Ok(count @ 1..) = ours.read(&mut piece) {
        shown.extend_from_slice(&piece[..count]);
        if !is_asked && String::from_utf8_lossy(&shown).contains("then Enter ›") {
            is_asked = true;
            ours.write_all(answer.as_bytes()).unwrap();
        }
    }
    let code = child.wait().unwrap().code();
    (code, String::from_utf8_lossy(&shown).into_owned())
}

#[test]
fn the_tour_hears_no_and_does_not_claim_otherwise() {
    let (code, shown) = answered("what?\nno\n");
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(shown.matches("then Enter ›").count(), 2, "{shown}");
    assert!(shown.contains("the user said no"), "{shown}");
    assert!(shown.contains("as you said no"), "{shown}");
    assert!(!shown.contains("Noted in"), "{shown}");
    assert!(
        shown.lines().all(|line| line.chars().count() <= 80),
        "{shown}"
    );
}

#[test]
fn the_tour_can_be_left_at_its_question() {
    let begun = Instant::now();
    let (code, shown) = answered("\u{3}");
    assert!(matches!(code, Some(130) | None), "{code:?} {shown}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{shown}");
    assert!(!shown.contains("Next:"), "{shown}");
}

#[test]
fn the_tour_does_not_mind_a_reader_that_leaves() {
    let scratch = Scratch::new();
    let mut command = scratch.command(&["demo"]);
    command.stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    assert_eq!(ended.status.code(), Some(0));
}
