//! Limits of the record are reported, and only the user can disable it.

use crate::bed::{Bed, change};
use haft_testing::model::{ModelReply, Turn};
use serde_json::json;

#[test]
fn a_file_over_the_limit_is_named_and_the_rest_can_be_undone() {
    let bed = Bed::new();
    bed.user("effects: { max_file: 1KiB }\n");
    bed.put("large.bin", vec![7; 4096]);
    bed.put("small.txt", "small\n");
    let reply = bed.bash("echo x >> large.bin; rm small.txt");
    assert_eq!(reply["details"]["effects"]["complete"], false, "{reply}");
    let set = &bed.changes(&[])[0];
    assert_eq!(set["complete"], false);
    assert!(set["why"].as_str().unwrap().contains("large.bin"), "{set}");
    assert_eq!(change(set, "large.bin")["kept"], false);
    let ended = bed.haft(&["undo"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("large.bin"), "{ended:?}");
    assert!(!bed.work("small.txt").exists());
    bed.says(&["undo", "small.txt"]);
    assert_eq!(bed.read("small.txt").unwrap(), "small\n");
}

#[test]
fn files_that_match_skip_are_not_kept() {
    let bed = Bed::new();
    bed.user("effects: { skip: [\"*.log\"] }\n");
    bed.put("a.log", "log\n");
    bed.put("a.txt", "text\n");
    bed.bash("rm a.log a.txt");
    let set = &bed.changes(&[])[0];
    assert_eq!(change(set, "a.log")["kept"], false, "{set}");
    assert_eq!(change(set, "a.txt")["kept"], true, "{set}");
}

#[test]
fn a_session_that_is_no_longer_kept_as_a_whole_is_not_undone_in_part() {
    let line = json!({ "command": "head -c 200000 /dev/urandom > f" });
    let calls = ["one", "two", "three"].map(|id| ModelReply::calling(id, "bash", &line).into());
    let script: Vec<Turn> = calls.into_iter().chain([Turn::text("Done.")]).collect();
    let bed = Bed::with_model(script, "effects: { max_session: 300KiB }\n");
    bed.put("f", vec![7; 200_000]);
    let done = bed.haft(&["run", "Go", "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let last = std::fs::read(bed.work("f")).unwrap();
    let refused = bed.haft(&["undo", "--session"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("no longer kept"), "{refused:?}");
    assert!(std::fs::read(bed.work("f")).unwrap() == last);
    bed.says(&["undo"]);
    assert!(std::fs::read(bed.work("f")).unwrap() != last);
}

#[test]
fn only_the_user_can_switch_recording_off() {
    let bed = Bed::new();
    bed.put("haft.yaml", "effects: { record: false, max_session: 0 }\n");
    let reply = bed.bash("echo a > a");
    assert_eq!(reply["details"]["effects"]["created"], 1, "{reply}");
    let ended = bed.haft(&["changes", "--stat"]);
    assert!(ended.err.contains("effects"), "a warning: {ended:?}");

    let bed = Bed::new();
    bed.user("effects: { record: false }\n");
    let reply = bed.bash("echo a > a");
    assert_eq!(reply["details"].get("effects"), None, "{reply}");
    assert_eq!(bed.haft(&["undo"]).code, Some(1));
    assert_eq!(bed.read("a").unwrap(), "a\n");
}

#[test]
fn bad_settings_are_errors() {
    for (text, problem) in [
        ("effects: { max_file: 12 stones }", "a size, such as 64MiB"),
        ("effects: { skip: [\"a[\"] }", "effects.skip"),
        ("effects: { keep_days: 0 }", "from 1 to"),
        ("effects: { sizes: 1 }", "sizes"),
    ] {
        let bed = Bed::new();
        bed.user(text);
        let ended = bed.haft(&["changes"]);
        assert_eq!(ended.code, Some(2), "{text}: {ended:?}");
        assert!(ended.err.contains(problem), "{text}: {ended:?}");
    }
}

#[test]
fn without_the_sandbox_commands_are_not_recorded_and_that_is_said() {
    let bed = Bed::new();
    bed.put("a.txt", "a");
    let line = json!({ "command": "rm a.txt" });
    let reply = bed.call_with(&["--sandbox", "off"], "bash", &line);
    assert_eq!(reply["is_error"], false, "{reply}");
    assert_eq!(reply["details"]["effects"]["complete"], false, "{reply}");
    let why = reply["details"]["effects"]["why"].as_str().unwrap();
    assert!(why.contains("sandbox"), "{reply}");
    // File tools need no sandbox.
    let file = json!({ "path": "b.txt", "content": "b" });
    let reply = bed.call_with(&["--sandbox", "off"], "write", &file);
    assert_eq!(reply["details"]["effects"]["created"], 1, "{reply}");
    assert_eq!(reply["details"]["effects"]["complete"], true, "{reply}");
}
