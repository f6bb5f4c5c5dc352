//! Deleting asks first, and removes outputs too.

use crate::bed::Bed;

#[test]
fn deleting_without_a_terminal_needs_yes() {
    let bed = Bed::new();
    drop(bed.agent("k3f9x2m4p7qz"));
    let ended = bed.haft(&["sessions", "delete", "k3f9x2m4p7qz"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.err.contains("--yes"), "{ended:?}");
    // An unknown id: nothing is deleted.
    let ended = bed.haft(&[
        "sessions",
        "delete",
        "k3f9x2m4p7qz",
        "nothing-there",
        "--yes",
    ]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_eq!(bed.listed().len(), 1);
    let printed = bed.says(&[
        "sessions",
        "delete",
        "k3f9x2m4p7qz",
        "child-k3f9x2m4p7qz",
        "--yes",
    ]);
    assert_eq!(
        printed,
        "deleted k3f9x2m4p7qz\ndeleted child-k3f9x2m4p7qz\n"
    );
    assert!(bed.listed().is_empty());
}

/// Only haft's own outputs are removed, whatever a record contains.
#[test]
fn nothing_else_is_removed() {
    let bed = Bed::new();
    let session = bed.agent("k3f9x2m4p7qz");
    let path = bed.work("mine.txt");
    std::fs::write(&path, "mine").unwrap();
    bed.says_its_output_is(&session, "o1", &path);
    drop(session);
    let ended = bed.haft(&["sessions", "output", "o1"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{ended:?}");
    bed.says(&["sessions", "delete", "k3f9x2m4p7qz", "--yes"]);
    assert_eq!(std::fs::read_to_string(path).unwrap(), "mine");
}
