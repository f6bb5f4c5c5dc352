//! Undo after others have changed something: files, the configuration, the record itself.

use crate::bed::Bed;
use haft_testing::model::{ModelReply, Turn};
use serde_json::json;

#[test]
fn a_moved_file_that_the_user_edited_is_moved_back_and_named() {
    let bed = Bed::new();
    bed.put("f.txt", "before\n");
    bed.bash("mv f.txt g.txt");
    let id = bed.changes(&[])[0]["call_id"].as_str().unwrap().to_owned();
    bed.put("g.txt", "by the user\n");
    let said = bed.says(&["undo"]);
    assert!(said.contains(&format!("undid {id}: 1 file\n")), "{said}");
    assert!(said.contains("kept: f.txt"), "{said}");
    assert_eq!(bed.read("f.txt").unwrap(), "by the user\n");
    assert_eq!(bed.read("g.txt"), None);
}

#[test]
fn a_broken_configuration_does_not_stand_in_the_way() {
    let bed = Bed::new();
    bed.put("f.txt", "before\n");
    bed.bash("rm f.txt");
    bed.put("haft.yaml", "tools: [\n");
    assert_eq!(bed.haft(&["tools"]).code, Some(2));
    let shown = bed.haft(&["changes", "--stat"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.out.contains("f.txt"), "{shown:?}");
    let undone = bed.haft(&["undo"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert!(undone.err.contains("haft.yaml is ignored"), "{undone:?}");
    assert_eq!(bed.read("f.txt").unwrap(), "before\n");
    assert_eq!(bed.haft(&["redo"]).code, Some(0));
}

#[test]
fn a_set_that_cannot_be_read_is_named() {
    let line = |text: &str| json!({ "command": text });
    let script: Vec<Turn> = vec![
        ModelReply::calling("b1", "bash", &line("echo 1 > one")).into(),
        ModelReply::calling("b2", "bash", &line("echo 2 > two")).into(),
        Turn::text("Done."),
    ];
    let bed = Bed::with_model(script, "");
    let ended = bed.haft(&["run", "Go", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let session = bed.changes(&[])[0]["session"].as_str().unwrap().to_owned();
    let set = bed.state(&format!("haft/effects/{session}/000002.set"));
    let set = match set.exists() {
        true => set,
        false => bed.state(&format!("effects/{session}/000002.set")),
    };
    std::fs::write(&set, "no set").unwrap();
    let shown = bed.haft(&["changes", "--stat"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(
        shown.out.contains("b1") && !shown.out.contains("b2"),
        "{shown:?}"
    );
    assert!(shown.err.contains("000002.set"), "{shown:?}");
}

#[test]
fn a_fork_without_a_call_copies_the_files_as_they_are() {
    let line = json!({ "command": "echo 1 > one" });
    let script: Vec<Turn> = vec![
        ModelReply::calling("b1", "bash", &line).into(),
        Turn::text("Done."),
    ];
    let bed = Bed::with_model(script, "");
    let ended = bed.haft(&["run", "Go", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let session = bed.changes(&[])[0]["session"].as_str().unwrap().to_owned();
    let folder = bed.path("copy");
    let into = folder.to_str().unwrap();
    bed.says(&["sessions", "fork", &session, "--files", into]);
    assert_eq!(std::fs::read(folder.join("one")).unwrap(), b"1\n");
    // Not into the work folder, and nothing is left there.
    let inside = bed.work("a/copy");
    let refused = bed.haft(&[
        "sessions",
        "fork",
        &session,
        "--files",
        inside.to_str().unwrap(),
    ]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(!bed.work("a").exists());
}

#[test]
fn changes_that_the_user_undid_cannot_be_kept() {
    let script = |end: &str| -> Vec<Turn> {
        let line = json!({ "command": "rm victim.txt" });
        vec![
            ModelReply::calling("b1", "bash", &line).into(),
            Turn::text(end),
            Turn::text(end),
        ]
    };
    let bed = Bed::with_model(script("Done."), "policy:\n  - { review: bash }\n");
    bed.put("victim.txt", "alive\n");
    let waits = bed.haft(&["run", "Go", "--json"]);
    assert_eq!(waits.code, Some(3), "{waits:?}");
    bed.says(&["undo"]);
    assert_eq!(bed.read("victim.txt").unwrap(), "alive\n");
    let kept = bed.haft(&["resume", "--answer", "b1=keep"]);
    assert_eq!(kept.code, Some(1), "{kept:?}");
    assert!(kept.err.contains("its changes were undone"), "{kept:?}");
    let reverted = bed.haft(&["resume", "--answer", "b1=revert"]);
    assert_eq!(reverted.code, Some(0), "{reverted:?}");
    let sent = bed
        .server
        .as_ref()
        .unwrap()
        .received()
        .last()
        .unwrap()
        .json()
        .to_string();
    assert!(sent.contains("the user undid the changes"), "{sent}");
    assert_eq!(bed.read("victim.txt").unwrap(), "alive\n");
}

#[test]
fn after_the_rest_was_taken_back_undo_goes_on_with_the_call_before() {
    let bed = Bed::new();
    bed.user("effects: { max_file: 1KiB }\n");
    bed.put("first.txt", "first\n");
    bed.put("large.bin", vec![7; 4096]);
    bed.put("small.txt", "small\n");
    bed.bash("rm first.txt");
    bed.bash("rm large.bin small.txt");
    assert_eq!(bed.haft(&["undo"]).code, Some(1));
    bed.says(&["undo", "small.txt"]);
    bed.says(&["undo"]);
    assert_eq!(bed.read("first.txt").unwrap(), "first\n");
}
