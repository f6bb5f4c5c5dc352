//! Signals: haft ends soon, with nothing left running and no text lost.

use crate::bed::{Bed, Ended, Ran, ran, results};
use haft_testing::model::{Ending, ModelReply, Turn};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::io::{BufRead, BufReader, Read};
use std::process::Child;
use std::time::{Duration, Instant};

/// A run that has printed a line with this text.
struct Watched {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    seen: String,
}

impl Watched {
    fn up_to(bed: &Bed, word: &str) -> Self {
        let mut child = bed.command(&["run", "Go", "--json"]).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut watched = Self {
            child,
            out,
            seen: String::new(),
        };
        loop {
            let mut line = String::new();
            assert_ne!(
                watched.out.read_line(&mut line).unwrap(),
                0,
                "{}",
                watched.seen
            );
            watched.seen.push_str(&line);
            if line.contains(word) {
                return watched;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end, and returns how long that took.
    fn end(mut self) -> (Ran, Duration) {
        let begun = Instant::now();
        self.out.read_to_string(&mut self.seen).unwrap();
        let output = self.child.wait_with_output().unwrap();
        let took = begun.elapsed();
        let mut ended = Ended::from(output);
        ended.out = self.seen;
        (ran(ended), took)
    }
}

/// Whether a process has this in its command line.
pub(crate) fn is_running(marker: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| {
        line.windows(marker.len())
            .any(|window| window == marker.as_bytes())
    })
}

/// Waits for processes to end, with a timeout.
pub(crate) fn ends_within(marker: &str, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    while is_running(marker) {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

#[test]
fn while_the_model_speaks() {
    let stalled = Turn::Cut {
        reply: ModelReply::text("I think that this is only the beginning of a long answer."),
        after: 700,
        ending: Ending::Stalled,
    };
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let bed = Bed::new(vec![stalled.clone(), Turn::text("Going on.")]);
        let watched = Watched::up_to(&bed, "I think");
        watched.signal(signal);
        let (ran, took) = watched.end();
        assert_eq!(
            (ran.code, ran.reason()),
            (Some(code), "interrupted"),
            "{ran:?}"
        );
        assert!(took < Duration::from_secs(2), "{took:?}");
        // Text that already arrived is kept.
        let messages = bed.messages();
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert_eq!(messages[1]["stop"], "interrupted");
        assert!(
            messages[1]["parts"][0]["text"]
                .as_str()
                .unwrap()
                .starts_with("I think"),
            "{messages:?}"
        );
        let resumed = bed.resume(&[&bed.newest(), "Go on then"]);
        assert_eq!(
            (resumed.code, resumed.reason()),
            (Some(0), "done"),
            "{resumed:?}"
        );
        assert!(
            bed.last_request()["messages"]
                .to_string()
                .contains("I think")
        );
    }
}

#[test]
fn interrupted_before_the_first_output() {
    let bed = Bed::new(vec![Turn::Silent, Turn::text("Here.")]);
    let watched = Watched::up_to(&bed, "turn_start");
    watched.signal(Signal::INT);
    let (ran, took) = watched.end();
    assert_eq!(
        (ran.code, ran.reason()),
        (Some(130), "interrupted"),
        "{ran:?}"
    );
    assert!(took < Duration::from_secs(2), "{took:?}");
    // The prompt still needs an answer.
    assert_eq!(bed.resume(&[]).code, Some(0));
}

#[test]
fn interrupted_while_waiting_to_retry() {
    let bed = Bed::new(vec![
        Turn::status(429, "later").header("retry-after", "60"),
        Turn::text("Here."),
    ]);
    let watched = Watched::up_to(&bed, "\"retry\"");
    watched.signal(Signal::INT);
    let (ran, took) = watched.end();
    assert_eq!(
        (ran.code, ran.reason()),
        (Some(130), "interrupted"),
        "{ran:?}"
    );
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn while_commands_run() {
    let marker = format!("haft-marker-{}", std::process::id());
    let sleeps = |stubborn: &str| json!({ "command": format!("{stubborn} sleep 300 & sleep 301; echo {marker}") });
    for stubborn in ["", "trap '' INT TERM HUP;"] {
        let says = ModelReply::calling("c1", "bash", &sleeps(stubborn))
            .call("c2", "bash", &sleeps(stubborn))
            .call("c3", "write", &json!({ "path": "a.txt", "content": "a" }));
        let bed = Bed::new(vec![says.into(), Turn::text("Going on.")]);
        let watched = Watched::up_to(&bed, "\"tool_end\"");
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is_running(&marker) {
            assert!(Instant::now() < deadline, "no command runs");
            std::thread::sleep(Duration::from_millis(5));
        }
        watched.signal(Signal::INT);
        let (ran, took) = watched.end();
        assert_eq!(
            (ran.code, ran.reason()),
            (Some(130), "interrupted"),
            "{ran:?}"
        );
        assert!(took < Duration::from_secs(3), "{took:?}");
        assert!(ends_within(&marker, Duration::from_secs(1)), "{stubborn}");
        assert_eq!(
            (ran.of("tool_start").len(), ran.of("tool_end").len()),
            (3, 3)
        );
        // Each call has a result, and the model gets it.
        let results = results(&bed.messages());
        let ids: Vec<_> = results.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["c1", "c2", "c3"]);
        let resumed = bed.resume(&[]);
        assert_eq!(
            (resumed.code, resumed.reason()),
            (Some(0), "done"),
            "{resumed:?}"
        );
    }
}

#[test]
fn twice() {
    let marker = format!("haft-twice-{}", std::process::id());
    let command = json!({ "command": format!("trap '' INT TERM; sleep 300; echo {marker}") });
    let bed = Bed::new(vec![
        ModelReply::calling("c1", "bash", &command).into(),
        Turn::text("Going on."),
    ]);
    let mut watched = Watched::up_to(&bed, "\"tool_start\"");
    watched.signal(Signal::INT);
    // Two signals of the same kind at the same time count as one.
    watched.signal(Signal::TERM);
    let begun = Instant::now();
    let status = watched.child.wait().unwrap();
    assert!(matches!(status.code(), Some(130 | 143)), "{status:?}");
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert!(ends_within(&marker, Duration::from_secs(3)));
    // The session can be resumed, however it ended.
    let resumed = bed.resume(&[]);
    assert_eq!(
        (resumed.code, resumed.reason()),
        (Some(0), "done"),
        "{resumed:?}"
    );
    assert_eq!(results(&bed.messages()).len(), 1);
}

/// If the reader goes away, the work still completes and no process hangs.
#[test]
fn a_reader_that_goes_away() {
    let says = ModelReply::calling(
        "c1",
        "bash",
        &json!({ "command": "sleep 0.3; echo x > done.txt" }),
    );
    let bed = Bed::new(vec![says.into(), Turn::text("Going on.")]);
    let Watched { mut child, out, .. } = Watched::up_to(&bed, "\"tool_start\"");
    drop(out);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(bed.read("done.txt"), "x\n");
    assert_eq!(bed.messages().len(), 4);
}
