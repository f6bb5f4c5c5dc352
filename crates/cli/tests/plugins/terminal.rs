//! `haft trust` with a person at a terminal.

use crate::bed::Bed;
use rustix::pty::OpenptFlags;
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const QUESTION: &[u8] = b"Trust it? [y/N] ";

struct Asked {
    child: Child,
    terminal: File,
}

/// `haft trust` when it has asked its question. What was typed before it did so is no
/// answer.
fn asked(bed: &Bed) -> Asked {
    let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    rustix::pty::grantpt(&ours).unwrap();
    rustix::pty::unlockpt(&ours).unwrap();
    let name = rustix::pty::ptsname(&ours, Vec::new()).unwrap();
    let name = name.to_str().unwrap();
    let mut options = File::options();
    let theirs = options.read(true).write(true).open(name).unwrap();
    let mut terminal = File::from(ours);
    terminal.write_all(b"y\n").unwrap();
    let child = bed
        .command(&["trust"])
        .env("TERM", "xterm")
        .stdin(theirs.try_clone().unwrap())
        .stdout(Stdio::piped())
        .stderr(theirs)
        .spawn()
        .unwrap();
    let mut shown = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(30);
    while !shown.ends_with(QUESTION) {
        let mut some = [0; 4096];
        let count = terminal.read(&mut some).unwrap();
        shown.extend_from_slice(&some[..count]);
        assert!(
            Instant::now() < deadline,
            "{}",
            String::from_utf8_lossy(&shown)
        );
    }
    Asked { child, terminal }
}

impl Asked {
    /// How it ends, and what it said.
    fn answer(mut self, text: &[u8]) -> (Option<i32>, String) {
        self.terminal.write_all(text).unwrap();
        let output = self.child.wait_with_output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    }
}

fn project() -> Bed {
    let bed = Bed::new();
    bed.program("work/tools/evil", "#!/bin/bash\necho first\n");
    bed.file("work/tools/evil.md", "d");
    bed
}

#[test]
fn only_a_yes_to_the_question_is_one() {
    for no in [&b"n\n"[..], b"\n", b"yep\n", b"\x04"] {
        let bed = project();
        let (code, said) = asked(&bed).answer(no);
        assert_eq!(code, Some(1), "{no:?}: {said}");
        assert!(said.contains("Nothing was changed"), "{no:?}: {said}");
        assert_eq!(bed.haft(&["call", "evil"]).code, Some(2), "{no:?}");
    }
    let bed = project();
    let (code, said) = asked(&bed).answer(b"Y\n");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(bed.done(&["call", "evil"]).out, "first\n");
}

#[test]
fn what_changes_between_the_question_and_the_yes_is_not_trusted() {
    let bed = project();
    let asked = asked(&bed);
    bed.program("work/tools/evil", "#!/bin/bash\necho SWAPPED\n");
    let (code, said) = asked.answer(b"y\n");
    assert_eq!(code, Some(0), "{said}");
    let ran = bed.haft(&["call", "evil"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("evil (program, changed)"), "{ran:?}");
    bed.program("work/tools/evil", "#!/bin/bash\necho first\n");
    assert_eq!(bed.done(&["call", "evil"]).out, "first\n");
}
