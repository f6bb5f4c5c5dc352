//! `haft trust` with a user at a terminal.

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

/// `haft trust` after it has asked its question. Input typed before that is not an answer.
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
    /// Returns exit code and output.
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
    bed.write("work/tools/evil.md", "d");
    bed
}

#[test]
fn only_an_answer_to_the_question_counts() {
    for no in [&b"n\n"[..], b"\n", b"yep\n", b"\x04"] {
        let bed = project();
        let (code, reply) = asked(&bed).answer(no);
        assert_eq!(code, Some(1), "{no:?}: {reply}");
        assert!(
            reply.contains("Not trusted; nothing changed"),
            "{no:?}: {reply}"
        );
        assert_eq!(bed.haft(&["call", "evil"]).code, Some(2), "{no:?}");
    }
    let bed = project();
    let (code, reply) = asked(&bed).answer(b"Y\n");
    assert_eq!(code, Some(0), "{reply}");
    assert_eq!(bed.done(&["call", "evil"]).out, "first\n");
}

#[test]
fn changes_after_the_question_are_not_trusted() {
    let bed = project();
    let asked = asked(&bed);
    bed.program("work/tools/evil", "#!/bin/bash\necho SWAPPED\n");
    let (code, reply) = asked.answer(b"y\n");
    assert_eq!(code, Some(0), "{reply}");
    let ran = bed.haft(&["call", "evil"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("evil (program, changed)"), "{ran:?}");
    bed.program("work/tools/evil", "#!/bin/bash\necho first\n");
    assert_eq!(bed.done(&["call", "evil"]).out, "first\n");
}
