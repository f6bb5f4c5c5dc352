//! A command that takes all it can of the machine: others still get an answer,
//! and afterwards nothing of it is there.

use crate::bed::{beds, in_each};
use crate::turn;
use serde_json::json;
use std::time::{Duration, Instant};

const BOMB: &str = ":(){ :|:& };:";

#[test]
fn a_fork_bomb_leaves_haft_answering() {
    let _turn = turn::alone();
    // One after the other: each alone is more than the machine has to give.
    for bed in beds() {
        let mut server = bed.serve();
        assert_eq!(server.bash("echo warm").text, "warm\n");
        for (script, seconds) in [
            (format!("{BOMB} wait; sleep 60"), 1.0),
            (BOMB.to_owned(), 1.0),
        ] {
            let begun = Instant::now();
            let bomb = server.ask(&json!({ "command": script, "timeout": seconds }));
            // While it goes off, a file can be read.
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
        // The one in the background goes on until the session ends.
        server.close();
        server.ended(Duration::from_secs(3));
        bed.nothing_left();
    }
}

#[test]
fn a_command_is_the_first_to_go_when_memory_runs_out() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        let answer = bed.bash(
            "cat /proc/self/oom_score_adj; ulimit -c; \
             python3 -c 'b = bytearray(1 << 28); b[::4096] = b[::4096]; print(len(b))'",
        );
        assert_eq!(answer.text, "1000\n0\n268435456\n", "{}", bed.name());
        // It cannot be taken back.
        let answer = bed.bash("echo 0 > /proc/self/oom_score_adj; cat /proc/self/oom_score_adj");
        assert!(answer.has("\n1000\n"), "{answer:?}");
        let count = bed.bash("ulimit -u; ulimit -Hu 100000 && echo raised");
        assert!(!count.has("raised"), "{count:?}");
    });
}
