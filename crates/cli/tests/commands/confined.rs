//! The seam for a confinement: a function that is called in the process that is
//! about to become the command. The supervisor here is this test program, with
//! a confinement that can be seen.

use crate::stage::Stage;
use haft_ops::Error;
use haft_ops::executor::{Ended, Exit, Local, Refusal, supervise};
use std::time::Duration;

const HELPER: &str = "confined::helper_that_is_a_supervisor";

fn confine(plan: &[u8]) -> Result<(), String> {
    if plan != b"private" {
        return Err("no such plan".to_owned());
    }
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    Ok(())
}

/// Not a test of its own: what the others start as their supervisor. It knows by
/// the empty environment that one of them did.
#[test]
fn helper_that_is_a_supervisor() {
    if std::env::vars_os().next().is_none() {
        let _ = supervise(confine);
        // The rest of a test's life is of no use to anybody.
        std::process::abort();
    }
}

fn stage() -> Stage {
    let mut stage = Stage::new();
    let arguments = ["--exact", HELPER, "--nocapture", "--test-threads=1"];
    stage.local = Local::new(
        std::env::current_exe().unwrap(),
        arguments.map(Into::into).to_vec(),
    );
    stage
}

#[tokio::test]
async fn a_command_becomes_what_its_plan_allows() {
    let stage = stage();
    let mut launch = stage.bash("umask; ps -o args= -p $PPID; cat; exit 9");
    launch.confinement = Some(b"private".to_vec());
    let finished = stage.run(launch).await;
    assert_eq!(finished.status, Exit::Code(9));
    let text = crate::stage::text(&finished);
    assert!(text.contains("0077\n"), "{text}");
    assert!(text.contains(HELPER), "its parent is no supervisor: {text}");

    let plain = stage.run(stage.bash("umask")).await;
    assert!(!crate::stage::text(&plain).contains("0077"));
}

#[tokio::test]
async fn a_confined_tree_dies_like_any_other() {
    let stage = stage();
    let mut launch = stage.bash("trap '' TERM; setsid sleep 1000 & while :; do sleep 1; done");
    launch.confinement = Some(b"private".to_vec());
    launch.limit = Some(Duration::from_secs(1));
    let finished = stage.run(launch).await;
    assert_eq!(finished.ended, Ended::TimedOut);
    assert_eq!(finished.status, Exit::Signal(9));
    assert_eq!(crate::stage::marked(&stage.mark), Vec::<String>::new());
}

#[tokio::test]
async fn what_cannot_be_confined_or_found_does_not_run() {
    let stage = stage();
    for (plan, words, expected) in [
        (&b"other"[..], &["touch", "ran"][..], Refusal::Unconfined),
        (b"private", &["no-such-program"], Refusal::Missing),
        (b"private", &["/usr"], Refusal::NotExecutable),
    ] {
        let mut launch = stage.direct(words);
        launch.confinement = Some(plan.to_vec());
        let error = stage.try_run(launch).await.unwrap_err();
        let Error::CannotStart { refusal, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(refusal, expected, "{words:?}");
    }
    assert!(!stage.path("ran").exists());
}
