//! `haft undo` and `haft redo`.

use crate::bed::{Bed, change};
use serde_json::json;

/// A tree with files, folders, links and modes.
fn planted() -> Bed {
    let bed = Bed::new();
    for (path, content) in [
        ("src/main.rs", "fn main() {}\n"),
        ("src/deep/a/b.txt", "b\n"),
        ("notes.txt", "notes\n"),
    ] {
        bed.put(path, content);
    }
    let bash = |line: &str| {
        let mut command = std::process::Command::new("bash");
        let done = command
            .args(["-c", line])
            .current_dir(bed.work(""))
            .status();
        assert!(done.unwrap().success());
    };
    bash("chmod 751 src/deep; chmod 600 notes.txt; ln -s main.rs src/link; mkdir empty");
    bed
}

#[test]
fn rm_rf_is_undone_and_redone() {
    let bed = planted();
    let before = bed.tree();
    bed.bash("rm -rf src empty notes.txt");
    assert!(bed.tree().is_empty());
    let said = bed.says(&["undo"]);
    assert!(
        said.starts_with("undid ") && said.contains("files"),
        "{said}"
    );
    assert_eq!(bed.tree(), before);
    let sets = bed.changes(&[]);
    let tools: Vec<_> = sets
        .iter()
        .map(|set| set["tool"].as_str().unwrap())
        .collect();
    assert_eq!(tools, ["bash", "undo"]);
    assert_eq!(sets[0]["state"], "undone");
    assert_eq!(sets[0]["session"], sets[1]["session"]);
    let again = bed.haft(&["undo"]);
    assert_eq!(again.code, Some(1), "nothing is left: {again:?}");
    assert!(again.err.contains("nothing to undo"), "{again:?}");
    bed.says(&["redo"]);
    assert!(bed.tree().is_empty());
    assert_eq!(bed.haft(&["redo"]).code, Some(1));
    bed.says(&["undo"]);
    assert_eq!(bed.tree(), before);
}

#[test]
fn the_last_call_is_undone_first_whatever_session_it_is_from() {
    let bed = Bed::new();
    let empty = bed.tree();
    bed.call("write", &json!({ "path": "a.txt", "content": "1" }));
    let one = bed.tree();
    bed.bash("echo 2 > a.txt; mkdir d; echo x > d/x");
    let two = bed.tree();
    bed.call("write", &json!({ "path": "d/x", "content": "y" }));
    bed.says(&["undo"]);
    assert_eq!(bed.tree(), two);
    bed.says(&["undo"]);
    assert_eq!(bed.tree(), one);
    bed.says(&["undo"]);
    assert_eq!(bed.tree(), empty);
    assert_eq!(bed.haft(&["undo"]).code, Some(1));
}

#[test]
fn a_dry_run_only_says_what_it_would_do() {
    let bed = planted();
    bed.bash("rm notes.txt; echo n > new.txt");
    let changed = bed.tree();
    let said = bed.says(&["undo", "--dry-run"]);
    assert!(
        said.contains("restore  notes.txt") && said.contains("remove   new.txt"),
        "{said}"
    );
    assert_eq!(bed.tree(), changed);
    assert_eq!(bed.changes(&[]).len(), 1);
}

#[test]
fn what_changed_since_is_named_and_nothing_is_touched() {
    let bed = planted();
    let before = bed.tree();
    bed.bash("echo changed > notes.txt; rm src/main.rs");
    bed.put("notes.txt", "by the user\n");
    let left = bed.tree();
    let ended = bed.haft(&["undo"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("notes.txt"), "{ended:?}");
    assert!(!ended.err.contains("main.rs"), "{ended:?}");
    assert_eq!(bed.tree(), left);
    // A forced undo keeps the user's version and says where.
    let forced = bed.says(&["undo", "--force"]);
    let now = forced
        .lines()
        .find_map(|line| line.strip_prefix("moved aside: notes.txt, now "))
        .unwrap_or_else(|| panic!("{forced}"));
    assert_eq!(
        std::fs::read_to_string(bed.work(now)).unwrap(),
        "by the user\n"
    );
    assert_eq!(bed.tree()["src/main.rs"], before["src/main.rs"]);
    assert_eq!(bed.tree()["notes.txt"], before["notes.txt"]);
}

#[test]
fn only_some_paths_are_undone() {
    let bed = planted();
    let before = bed.tree();
    bed.bash("rm notes.txt src/main.rs");
    bed.says(&["undo", "notes.txt"]);
    let now = bed.tree();
    assert_eq!(now["notes.txt"], before["notes.txt"]);
    assert!(!now.contains_key("src/main.rs"));
}

#[test]
fn a_call_is_undone_by_its_id_unless_later_calls_need_it() {
    let bed = Bed::new();
    bed.put("a.txt", "a\n");
    bed.put("b.txt", "b\n");
    bed.bash("echo 1 > a.txt");
    let first = bed.changes(&[])[0]["call_id"].as_str().unwrap().to_owned();
    bed.bash("echo 2 > b.txt");
    bed.says(&["undo", &first]);
    assert_eq!(bed.read("a.txt").unwrap(), "a\n");
    assert_eq!(bed.read("b.txt").unwrap(), "2\n");
}

#[test]
fn what_others_created_in_a_folder_stays() {
    let bed = Bed::new();
    bed.bash("mkdir made && echo x > made/x");
    bed.put("made/own.txt", "mine\n");
    let ended = bed.haft(&["undo"]);
    assert_eq!(bed.read("made/own.txt").unwrap(), "mine\n", "{ended:?}");
    if ended.code == Some(0) {
        assert!(!bed.work("made/x").exists(), "{ended:?}");
    }
}

#[test]
fn a_call_that_timed_out_is_interrupted_and_can_be_undone() {
    let bed = planted();
    let before = bed.tree();
    let reply = bed.call(
        "bash",
        &json!({ "command": "rm notes.txt; echo x > new; sleep 60", "timeout": 1 }),
    );
    assert_eq!(reply["is_error"], true, "{reply}");
    let sets = bed.changes(&[]);
    assert_eq!(sets[0]["state"], "interrupted", "{sets:?}");
    assert_eq!(change(&sets[0], "notes.txt")["kind"], "deleted");
    bed.says(&["undo"]);
    assert_eq!(bed.tree(), before);
}
