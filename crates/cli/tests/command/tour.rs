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
        "write wants to run, and it is asked about",
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
