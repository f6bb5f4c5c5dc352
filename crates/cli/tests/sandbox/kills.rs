//! When a command or haft ends, for any reason, everything the command started ends too,
//! however it tries to escape. What a command leaves in the background neither delays its
//! reply nor outlives haft.

use crate::bed::{Bed, beds, in_each};
use crate::left;
use crate::turn;
use rustix::process::Signal;
use serde_json::json;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Processes that survive a kill of the process group or of the parent, each stopped if
/// possible.
const TREE: &str = r#"
sleep 1001.UNIQUE &
setsid sleep 1002.UNIQUE &
nohup sleep 1003.UNIQUE >/dev/null 2>&1 &
(setsid bash -c 'sleep 1004.UNIQUE & sleep 1005.UNIQUE &' &)
python3 -c '
import os, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
for fd in range(3): os.close(fd)
time.sleep(1006)' &
bash -c "trap '' TERM INT HUP QUIT; while :; do sleep 1; done" &
setsid bash -c "trap '' TERM; sleep 1007.UNIQUE; sleep 1008.UNIQUE" &
bash -c 'kill -STOP $$; sleep 1009.UNIQUE' &
trap '' TERM
echo so far
until [ $(pgrep -c -f '^sleep 100.*UNIQUE') -ge 6 ]; do sleep 0.02; done
touch NAME
kill -STOP $PPID 2>/dev/null
bash -c 'kill -STOP $PPID; sleep 1010.UNIQUE'
wait
"#;

fn tree(bed: &Bed, name: &str) -> String {
    // Identified by the fraction of a second that it sleeps.
    let digits: String = bed.mark.chars().filter(char::is_ascii_digit).collect();
    let unique = format!("{}{digits}", name.len());
    TREE.replace("NAME", name).replace("UNIQUE", &unique)
}

/// Waits until all processes of the tree run.
#[track_caller]
fn grown(bed: &Bed, name: &str) {
    let name = format!("work/{name}");
    left::until("the tree stands", Duration::from_secs(20), || {
        bed.has(&name)
    });
}

/// Number of the bed's processes that sleep for a thousand seconds.
fn sleeping(bed: &Bed) -> usize {
    let all = left::alive(&bed.mark, &bed.path(""));
    let sleeps = |one: &&left::One| one.line.starts_with("sleep 1000 ");
    all.iter().filter(sleeps).count()
}

#[test]
fn timeout_and_cancellation_end_the_tree() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        let mut server = bed.serve();
        let begun = Instant::now();
        let answer = server.call(&json!({ "command": tree(bed, "limit"), "timeout": 2.5 }));
        let took = begun.elapsed();
        assert!(bed.has("work/limit"), "the tree was too slow: {answer:?}");
        assert!(took < Duration::from_secs(8), "{took:?}");
        assert!(answer.is_error, "{answer:?}");
        assert!(answer.text.starts_with("so far\n"), "{answer:?}");
        assert!(
            answer.has("\nCommand timed out after 2.5 seconds"),
            "{answer:?}"
        );
        bed.nothing_but(&server);

        let id = server.ask(&json!({ "command": tree(bed, "cancel") }));
        grown(bed, "cancel");
        server.cancel(id);
        bed.nothing_but(&server);
        // The session still works.
        assert_eq!(server.bash("echo next").text, "next\n");
        server.close();
        assert!(server.ended(Duration::from_secs(2)).success());
        bed.nothing_left();
    });
}

#[test]
fn the_end_of_a_server_ends_the_tree() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        for (name, signal) in [
            ("closed", None),
            ("term", Some(Signal::TERM)),
            ("int", Some(Signal::INT)),
            ("kill", Some(Signal::KILL)),
        ] {
            let mut server = bed.serve();
            server.ask(&json!({ "command": tree(bed, name) }));
            // A background process dies too.
            let idle = server.bash("sleep 1011 & echo hi");
            assert!(idle.text.starts_with("hi\n"), "{idle:?}");
            grown(bed, name);
            match signal {
                None => server.close(),
                Some(signal) => server.signal(signal),
            }
            server.ended(Duration::from_secs(2));
            bed.nothing_left();
        }
    });
}

#[test]
fn the_end_of_a_call_ends_the_tree() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        for (name, signal, code) in [
            ("term", Signal::TERM, Some(143)),
            ("int", Signal::INT, Some(130)),
            ("kill", Signal::KILL, None),
        ] {
            let command = format!("command={}", tree(bed, name));
            let mut haft = bed
                .haft(&["call", "bash", &command])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            grown(bed, name);
            rustix::process::kill_process(rustix::process::Pid::from_child(&haft), signal).unwrap();
            let begun = Instant::now();
            let status = haft.wait().unwrap();
            assert!(begun.elapsed() < Duration::from_secs(2), "{name}");
            assert_eq!(status.code(), code, "{name}");
            bed.nothing_left();
        }
    });
}

#[test]
fn background_processes_are_reported_and_end_with_haft() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        let begun = Instant::now();
        let answer = bed.bash("sleep 1000 & echo hi");
        assert!(begun.elapsed() < Duration::from_secs(4), "{answer:?}");
        assert!(!answer.is_error, "{answer:?}");
        assert!(answer.text.starts_with("hi\n"), "{answer:?}");
        assert!(
            answer.has("[still running in the background: sleep; "),
            "{answer:?}"
        );
        assert_eq!(
            answer.details["survivors"][0]["name"], "sleep",
            "{answer:?}"
        );
        bed.nothing_left();

        let mut server = bed.serve();
        let begun = Instant::now();
        let answer = server.bash("sleep 1000 & setsid sleep 1000 & echo hi");
        assert!(begun.elapsed() < Duration::from_secs(3), "{answer:?}");
        assert_eq!(answer.text.matches("sleep").count(), 2, "{answer:?}");
        // It keeps running until the session ends.
        assert_eq!(server.bash("echo later").text, "later\n");
        assert_eq!(sleeping(bed), 2, "{}", bed.name());
        server.close();
        server.ended(Duration::from_secs(2));
        bed.nothing_left();
    });
}

/// Checks the test itself: without haft, leftover processes are found.
#[test]
fn without_haft_the_tree_survives() {
    let _turn = turn::shared();
    for bed in beds() {
        let mut shell = bed
            .program("bash")
            .args(["-c", "setsid sleep 1000 & touch here; wait"])
            .spawn()
            .unwrap();
        grown(&bed, "here");
        shell.kill().unwrap();
        shell.wait().unwrap();
        left::until("it is there", Duration::from_secs(5), || {
            sleeping(&bed) == 1
        });
        let found = left::alive(&bed.mark, &bed.path(""));
        for one in found {
            let pid = rustix::process::Pid::from_raw(i32::try_from(one.pid).unwrap()).unwrap();
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        left::until("it is gone", Duration::from_secs(5), || {
            left::alive(&bed.mark, &bed.path("")).is_empty()
        });
    }
}
