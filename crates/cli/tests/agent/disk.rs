//! A full disk, a read-only folder, a damaged database: a clear error, and nothing is run
//! or destroyed.

use crate::bed::{Bed, Ended, ran};
use haft_testing::model::{ModelReply, Turn};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

fn writes() -> Vec<Turn> {
    let write = ModelReply::calling("c1", "write", &json!({ "path": "a.txt", "content": "a" }));
    vec![write.into(), Turn::text("Done.")]
}

/// Checks that nothing was started and that the error says why.
fn not_begun(bed: &Bed, ended: &Ended, words: &str) {
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{ended:?}");
    assert!(
        ended
            .err
            .contains("cannot record the session, so it was not started"),
        "{ended:?}"
    );
    assert!(ended.err.contains(words), "{words}: {ended:?}");
    assert_eq!(bed.server.count(), 0);
    assert!(!bed.work("a.txt").exists());
}

#[test]
fn a_damaged_database_is_kept() {
    let bed = Bed::new(writes());
    bed.says(&["call", "ls", "path=."]);
    let whole = std::fs::read(bed.state("sessions.db")).unwrap();
    let mut scribbled = whole.clone();
    for byte in scribbled.iter_mut().skip(100).take(4000) {
        *byte ^= 0x55;
    }
    for (damaged, words) in [
        (
            b"this is no database, and long enough to be sure ".repeat(100),
            "is not a database",
        ),
        (whole[..whole.len() / 2].to_vec(), "damaged"),
        (scribbled, "damaged"),
    ] {
        std::fs::write(bed.state("sessions.db"), &damaged).unwrap();
        for args in [&["run", "Go"][..], &["run", "Go", "--json"]] {
            let ended = bed.haft(args);
            not_begun(&bed, &ended, words);
            assert!(ended.err.contains("move it away"), "{ended:?}");
        }
        let resumed = bed.haft(&["resume", "Go on"]);
        assert_eq!(resumed.code, Some(1), "{resumed:?}");
        assert!(
            std::fs::read(bed.state("sessions.db")).unwrap() == damaged,
            "{words}: it is as it was"
        );
        for log in ["sessions.db-wal", "sessions.db-shm"] {
            let _ = std::fs::remove_file(bed.state(log));
        }
    }
    // Following the hint helps.
    std::fs::rename(bed.state("sessions.db"), bed.state("kept.db")).unwrap();
    assert_eq!(bed.says(&["run", "Go"]), "Done.\n");
}

#[test]
fn something_else_is_in_the_place_of_the_database() {
    let bed = Bed::new(writes());
    std::fs::create_dir_all(bed.state("sessions.db")).unwrap();
    not_begun(&bed, &bed.haft(&["run", "Go"]), "sessions.db");
    let bed = Bed::new(writes());
    std::fs::create_dir_all(bed.home(".local/state")).unwrap();
    std::fs::write(bed.home(".local/state/haft"), "a file").unwrap();
    let ended = bed.haft(&["run", "Go"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{ended:?}");
    let words = "haft for sessions, trust and outputs: it is not a folder";
    assert!(ended.err.contains(words), "{ended:?}");
    assert_eq!(bed.server.count(), 0);
}

#[test]
fn a_folder_that_cannot_be_written() {
    let bed = Bed::new(writes());
    std::fs::create_dir_all(bed.state("")).unwrap();
    if rustix::process::geteuid().is_root() {
        // Root ignores permissions, but not a read-only mount.
        let script = "mount --bind \"$STATE\" \"$STATE\" && mount -o remount,bind,ro \"$STATE\" || exit 99\nexec \"$@\"";
        let ended = inside(&bed, script);
        if skipped(&ended) {
            return;
        }
        not_begun(&bed, &ended, "sessions.db");
    } else {
        let read_only = std::fs::Permissions::from_mode(0o500);
        std::fs::set_permissions(bed.state(""), read_only).unwrap();
        not_begun(&bed, &bed.haft(&["run", "Go"]), "sessions.db");
    }
}

/// `haft run` with a separate file system for its state.
fn inside(bed: &Bed, script: &str) -> Ended {
    let inner = bed.command(&["run", "Go", "--json"]);
    let mut outer = Command::new("unshare");
    outer
        .args(["-m", "sh", "-c", script, "sh"])
        .arg(inner.get_program())
        .args(inner.get_args());
    outer
        .current_dir(bed.work(""))
        .env_clear()
        .env("STATE", bed.state(""));
    outer.envs(
        inner
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    Ended::from(outer.stdin(std::process::Stdio::null()).output().unwrap())
}

fn skipped(ended: &Ended) -> bool {
    let cannot = ended.code == Some(99) || ended.err.contains("unshare failed");
    if cannot {
        println!("skipped: no disk can be mounted here: {}", ended.err);
    }
    cannot
}

#[test]
fn a_full_disk() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: a small disk takes root to make");
        return;
    }
    let bed = Bed::new(writes());
    std::fs::create_dir_all(bed.state("")).unwrap();
    let script = "mount -t tmpfs -o size=16k small \"$STATE\" && { dd if=/dev/zero of=\"$STATE/filler\" 2>/dev/null; true; } || exit 99\nexec \"$@\"";
    let ended = inside(&bed, script);
    if skipped(&ended) {
        return;
    }
    not_begun(&bed, &ended, "no space left");
}

/// The disk fills up while the model works: calls that cannot be recorded do not start,
/// and calls that started are recorded completely.
#[test]
fn a_disk_that_fills_up() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: a small disk takes root to make");
        return;
    }
    for room in [200, 300, 400, 600, 900] {
        let endless = |_: &serde_json::Value, number: usize| -> Turn {
            let words = "many words ".repeat(800);
            ModelReply::text(words)
                .call(format!("c{number}"), "bash", &json!({ "command": format!("echo {number} >> log; seq {number} {}", number + 500) }))
                .call(format!("d{number}"), "read", &json!({ "path": "log" }))
                .into()
        };
        let bed = Bed::new(endless).and("max_turns: 500\n");
        std::fs::create_dir_all(bed.state("")).unwrap();
        let script =
            format!("mount -t tmpfs -o size={room}k small \"$STATE\" || exit 99\nexec \"$@\"");
        let ended = inside(&bed, &script);
        if skipped(&ended) {
            return;
        }
        assert_eq!(ended.code, Some(1), "{room}: {ended:?}");
        assert!(
            ended.err.contains("no space left") && ended.err.contains("free some space"),
            "{}",
            ended.err
        );
        if ended.out.is_empty() {
            // No space to start.
            assert_eq!(bed.server.count(), 0, "{ended:?}");
            continue;
        }
        let ran = ran(ended);
        assert_eq!(ran.reason(), "failed");
        assert!(
            ran.error().contains("cannot record the session"),
            "{}",
            ran.error()
        );
        // No command ran twice, and none without a recorded start. A command can be
        // missing from the log only if it was cancelled: the run ends as soon as the other
        // call's result cannot be recorded, perhaps before this command got to its `echo`.
        let log = bed.read("log");
        let numbers: Vec<_> = log.lines().collect();
        let expected: Vec<_> = (0..numbers.len())
            .map(|number| number.to_string())
            .collect();
        assert_eq!(numbers, expected);
        let of_bash = |kind: &str| -> Vec<_> {
            let mut events = ran.of(kind);
            events.retain(|event| event["tool"] == "bash");
            events
        };
        let started = of_bash("tool_start").len();
        let last = of_bash("tool_end").pop();
        let cancelled = last.is_some_and(|end| end["details"]["ended"] == "cancelled");
        let unlogged = started - numbers.len();
        assert!(
            unlogged == 0 || (unlogged == 1 && cancelled),
            "{room}: {started} commands began, {} ran; the last ended {last:?}",
            numbers.len()
        );
    }
}
