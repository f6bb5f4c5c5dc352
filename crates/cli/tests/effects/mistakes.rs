//! Odd names and mistakes: everything is named, and nothing is changed by accident.

use crate::bed::{Bed, change};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

#[test]
fn odd_names_are_printed_safely_and_accepted_as_printed() {
    let bed = Bed::new();
    let name = OsStr::from_bytes(b"bad\xff\nname\x1b[31m");
    let path = bed.work("").join(name);
    std::fs::write(&path, "odd\n").unwrap();
    bed.bash("rm bad*");
    let printed = r"bad\xff\nname\x1b[31m";
    for command in [
        &["changes"][..],
        &["changes", "--stat"],
        &["undo", "--dry-run"],
    ] {
        let out = bed.says(command);
        assert!(out.contains(printed) && !out.contains('\x1b'), "{out:?}");
    }
    let set = &bed.changes(&[])[0];
    assert_eq!(set["changes"][0]["path"], "bad\u{fffd}\nname\x1b[31m");
    bed.says(&["undo", printed]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "odd\n");
}

#[test]
fn undoing_twice_says_so() {
    let bed = Bed::new();
    bed.put("a.txt", "a\n");
    bed.bash("rm a.txt");
    let id = bed.changes(&[])[0]["call_id"].as_str().unwrap().to_owned();
    bed.says(&["undo", &id]);
    let again = bed.haft(&["undo", &id]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.err.contains("already undone"), "{again:?}");
    let redone = bed.says(&["redo"]);
    assert_eq!(redone, format!("redid {id}: 1 file\n"));
    assert_eq!(bed.read("a.txt"), None);
}

#[test]
fn a_path_is_taken_back_call_by_call() {
    let bed = Bed::new();
    bed.put("a.txt", "0\n");
    bed.put("b.txt", "0\n");
    bed.bash("echo 1 > a.txt");
    bed.bash("echo 2 > a.txt; echo 2 > b.txt");
    bed.says(&["undo", "a.txt"]);
    assert_eq!(bed.read("a.txt").unwrap(), "1\n");
    bed.says(&["undo", "a.txt"]);
    assert_eq!(bed.read("a.txt").unwrap(), "0\n");
    let nothing = bed.haft(&["undo", "a.txt"]);
    assert_eq!(nothing.code, Some(1), "{nothing:?}");
    assert!(nothing.err.contains("a.txt"), "{nothing:?}");
    assert_eq!(bed.read("b.txt").unwrap(), "2\n");
}

#[test]
fn several_paths_are_taken_back_to_before_the_last_call_of_each() {
    let bed = Bed::new();
    bed.put("a.txt", "0\n");
    bed.put("b.txt", "0\n");
    bed.bash("echo 1 > a.txt; echo 1 > b.txt");
    bed.bash("echo 2 > b.txt");
    bed.says(&["undo", "a.txt", "b.txt"]);
    let read = |name| bed.read(name).unwrap();
    assert_eq!((read("a.txt"), read("b.txt")), ("0\n".into(), "1\n".into()));
}

#[test]
fn unknown_words_are_errors() {
    let bed = Bed::new();
    bed.put("own.txt", "own\n");
    bed.bash("echo a > a.txt");
    for (words, code, said) in [
        (
            &["undo", "call-99"][..],
            2,
            "no call or changed file: call-99",
        ),
        (
            &["undo", "own.txt"],
            1,
            "no call whose changes stand has changed own.txt",
        ),
        (&["undo", "--session", "nosuch"], 2, "nosuch"),
        (&["changes", "call-99"], 2, "call-99"),
        (&["redo"], 1, "nothing to redo"),
    ] {
        let ended = bed.haft(words);
        assert_eq!(ended.code, Some(code), "{words:?}: {ended:?}");
        assert!(ended.err.contains(said), "{words:?}: {ended:?}");
    }
    assert_eq!(bed.read("a.txt").unwrap(), "a\n");
}

#[test]
fn another_folder_has_nothing_to_undo() {
    let bed = Bed::new();
    bed.bash("echo a > a.txt");
    let other = bed.path("other");
    std::fs::create_dir(&other).unwrap();
    let mut command = bed.command(&["undo"]);
    let ended = command.current_dir(&other).output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    let folder = other.canonicalize().unwrap();
    assert!(said.contains(folder.to_str().unwrap()), "{said}");
    assert_eq!(bed.read("a.txt").unwrap(), "a\n");
}

#[test]
fn a_work_folder_that_was_moved_is_not_made_again() {
    let bed = Bed::new();
    bed.put("a.txt", "a\n");
    bed.bash("rm a.txt");
    let id = bed.changes(&[])[0]["call_id"].as_str().unwrap().to_owned();
    let undo = || {
        let mut command = bed.command(&["undo", &id]);
        command.current_dir(bed.home("")).output().unwrap()
    };
    std::fs::rename(bed.work(""), bed.path("moved")).unwrap();
    let ended = undo();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(said.contains("the work folder is gone"), "{said}");
    assert!(!bed.work("").exists());
    std::fs::rename(bed.path("moved"), bed.work("")).unwrap();
    assert_eq!(undo().status.code(), Some(0));
    assert_eq!(bed.read("a.txt").unwrap(), "a\n");
}

#[test]
fn a_call_that_was_not_recorded_is_named_and_the_one_before_is_left_alone() {
    let bed = Bed::new();
    bed.put("a.txt", "a\n");
    bed.put("b.txt", "b\n");
    bed.bash("rm a.txt");
    let first = bed.changes(&[])[0]["call_id"].as_str().unwrap().to_owned();
    let line = json!({ "command": "rm b.txt" });
    bed.call_with(&["--sandbox", "off"], "bash", &line);
    let stat = bed.says(&["changes", "--stat"]);
    assert!(stat.contains("nothing recorded"), "{stat}");
    let refused = bed.haft(&["undo"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("only in the sandbox"), "{refused:?}");
    assert_eq!(bed.read("a.txt"), None);
    bed.says(&["undo", &first]);
    assert_eq!(bed.read("a.txt").unwrap(), "a\n");
}

#[test]
fn of_two_undos_at_once_one_acts() {
    let bed = Bed::new();
    for number in 0..200 {
        bed.put(&format!("d/{number}.txt"), "x\n");
    }
    let before = bed.tree();
    bed.bash("rm -rf d");
    let id = bed.changes(&[])[0]["call_id"].as_str().unwrap().to_owned();
    let start = || bed.command(&["undo", &id]).spawn().unwrap();
    let both = [start(), start()].map(|child| child.wait_with_output().unwrap());
    let codes = both.each_ref().map(|output| output.status.code());
    assert!(
        codes.contains(&Some(0)) && codes.contains(&Some(1)),
        "{both:?}"
    );
    assert_eq!(bed.tree(), before);
}

#[test]
fn sessions_that_are_deleted_take_their_changes_along() {
    let bed = Bed::new();
    bed.put("a.txt", "a\n");
    bed.bash("rm a.txt");
    let session: Value = bed.changes(&[])[0]["session"].clone();
    bed.says(&["sessions", "delete", session.as_str().unwrap(), "--yes"]);
    let ended = bed.haft(&["changes", session.as_str().unwrap()]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_eq!(bed.haft(&["undo"]).code, Some(1));
}

#[test]
fn a_renamed_binary_file_is_only_renamed() {
    let bed = Bed::new();
    bed.put("a.bin", b"\x00\x01");
    bed.bash("mv a.bin b.bin");
    let shown = bed.says(&["changes"]);
    assert!(!shown.contains("binary"), "{shown}");
    let set = &bed.changes(&[])[0];
    assert_eq!(change(set, "b.bin")["from"], "a.bin");
}
