//! However haft ends, no server and nothing that it started outlives it.

use crate::bed::{Bed, within};
use serde_json::json;
use std::time::Duration;

/// A server with a child that hides from a group's end, and one that ignores TERM.
const CLINGS: &str = r#"
import subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
here = os.path.dirname(sys.argv[0])
subprocess.Popen(["setsid", "sh", "-c", "trap '' TERM; exec sleep 1000", here + "/child"], stdin=subprocess.DEVNULL)
subprocess.Popen(["python3", "-c", "import os, time, signal\nsignal.signal(15, signal.SIG_IGN)\nos.fork() and os._exit(0)\nos.setsid()\ntime.sleep(1000)", here + "/daemon"])
serve([tool("t")], echo)
"#;

#[test]
fn a_kill_of_haft_leaves_nothing() {
    let bed = Bed::serving(&[("clings", CLINGS)]);
    let mut session = bed.session(&[]);
    session.reply_text("clings_t", &json!({}));
    let pid = rustix::process::Pid::from_raw(i32::try_from(session.pid()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    session.wait();
    let mut left = Vec::new();
    let gone = within(Duration::from_secs(1), || {
        left = crate::bed::alive(&bed.path(""));
        left.is_empty()
    });
    assert!(gone, "{left:#?}");
}

#[test]
fn every_command_ends_what_it_started() {
    let bed = Bed::serving(&[("clings", CLINGS)]);
    for args in [
        &["tools"][..],
        &["mcp", "list"],
        &["mcp", "test", "clings"],
        &["call", "clings_t"],
        &["doctor"],
    ] {
        bed.done(args);
        bed.nobody_left();
    }
}
