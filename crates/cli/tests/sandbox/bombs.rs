//! Commands that exhaust the machine: other calls still get replies, and nothing is left
//! afterwards.

use crate::bed::{beds, in_each};
use crate::turn;
use serde_json::json;
use std::time::{Duration, Instant};

const BOMB: &str = ":(){ :|:& };:";

#[test]
fn haft_replies_during_a_fork_bomb() {
    let _turn = turn::alone();
    // One after the other: each alone overloads the machine.
    for bed in beds() {
        let mut server = bed.serve();
        assert_eq!(server.bash("echo warm").text, "warm\n");
        for (script, seconds) in [
            (format!("{BOMB} wait; sleep 60"), 1.0),
            (BOMB.to_owned(), 1.0),
        ] {
            let begun = Instant::now();
            let bomb = server.ask(&json!({ "command": script, "timeout": seconds }));
            // A file can be read meanwhile.
            let next = server.ask(&json!({ "command": "echo next", "timeout": 30 }));
            let answer = server.answer(bomb);
            let took = begun.elapsed();
            assert!(
                took < Duration::from_secs(5),
                "{} {took:?}: {answer:?}",
                bed.name()
            );
            let begun = Instant::now();
            assert_eq!(server.answer(next).text, "next\n");
            assert_eq!(server.bash("echo after").text, "after\n");
            let took = begun.elapsed();
            assert!(took < Duration::from_secs(5), "{} {took:?}", bed.name());
        }
        assert!(server.lives());
        // The background one runs until the session ends.
        server.close();
        server.ended(Duration::from_secs(3));
        bed.nothing_left();
    }
}

#[test]
fn the_command_is_killed_first_when_memory_runs_out() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        let answer = bed.bash(
            "cat /proc/self/oom_score_adj; ulimit -c; \
             python3 -c 'b = bytearray(1 << 28); b[::4096] = b[::4096]; print(len(b))'",
        );
        assert_eq!(answer.text, "1000\n0\n268435456\n", "{}", bed.name());
        // It cannot be undone.
        let answer = bed.bash("echo 0 > /proc/self/oom_score_adj; cat /proc/self/oom_score_adj");
        assert!(answer.has("\n1000\n"), "{answer:?}");
        let count = bed.bash("ulimit -u; ulimit -Hu 100000 && echo raised");
        assert!(!count.has("raised"), "{count:?}");
    });
}
