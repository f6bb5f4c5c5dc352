//! Deleting asks, and takes the outputs with it.

use crate::bed::Bed;

#[test]
fn nobody_there_is_no_yes() {
    let bed = Bed::new();
    drop(bed.agent("k3f9x2m4p7qz"));
    let ended = bed.haft(&["sessions", "delete", "k3f9x2m4p7qz"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.err.contains("--yes"), "{ended:?}");
    // One that is not known: none is deleted.
    let ended = bed.haft(&[
        "sessions",
        "delete",
        "k3f9x2m4p7qz",
        "nothing-there",
        "--yes",
    ]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_eq!(bed.listed().len(), 1);
    let said = bed.says(&[
        "sessions",
        "delete",
        "k3f9x2m4p7qz",
        "child-k3f9x2m4p7qz",
        "--yes",
    ]);
    assert_eq!(said, "deleted k3f9x2m4p7qz\ndeleted child-k3f9x2m4p7qz\n");
    assert!(bed.listed().is_empty());
}

/// Whatever a record says, only outputs of haft's own are removed.
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
