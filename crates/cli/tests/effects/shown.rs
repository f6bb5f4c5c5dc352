//! Counts in the reply, `haft changes`, `haft doctor` and `haft clean`.

use crate::bed::{Bed, change};
use serde_json::json;

#[test]
fn a_reply_counts_what_its_call_changed() {
    let bed = Bed::new();
    let wrote = bed.call("write", &json!({ "path": "a.txt", "content": "one\n" }));
    assert_eq!(
        wrote["details"]["effects"],
        json!({ "created": 1, "modified": 0, "deleted": 0, "renamed": 0, "attributes": 0, "complete": true })
    );
    let edited = bed.call(
        "edit",
        &json!({ "path": "a.txt", "old_text": "one", "new_text": "two" }),
    );
    assert_eq!(edited["details"]["effects"]["modified"], 1, "{edited}");
    let ran = bed.bash("mkdir d && echo x > d/x && mv a.txt b.txt && chmod 600 b.txt");
    let effects = &ran["details"]["effects"];
    assert_eq!(
        (
            &effects["created"],
            &effects["renamed"],
            &effects["complete"]
        ),
        (&2.into(), &1.into(), &true.into()),
        "{ran}"
    );
    // A call that changes nothing has none, and so has one that undoes its own work.
    for line in ["cat b.txt", "touch y && rm y"] {
        let ran = bed.bash(line);
        assert_eq!(ran["details"].get("effects"), None, "{line}: {ran}");
    }
}

#[test]
fn changes_are_one_object_per_call() {
    let bed = Bed::new();
    bed.put("old.txt", "old\n");
    bed.put("gone.txt", "gone\n");
    bed.bash("echo new > old.txt; rm gone.txt; mkdir d; ln -s old.txt link; chmod 755 old.txt");
    let sets = bed.changes(&[]);
    assert_eq!(sets.len(), 1, "{sets:?}");
    let set = &sets[0];
    assert_eq!(
        (&set["tool"], &set["state"], &set["complete"]),
        (&"bash".into(), &"done".into(), &true.into())
    );
    assert_eq!(set.get("why"), None);
    for key in ["session", "call_id", "time"] {
        assert!(
            set[key].as_str().is_some_and(|text| !text.is_empty()),
            "{key}"
        );
    }
    let modified = change(set, "old.txt");
    assert_eq!(modified["kind"], "modified");
    assert_eq!(
        modified["before"],
        json!({ "bytes": 4, "mode": "0644",
            "sha256": "01d09d19c2139a46aebfb577780d123d7396e97201bc7ead210a2ebff8239dee" })
    );
    assert_eq!(modified["after"]["mode"], "0755");
    assert_eq!(modified["kept"], true);
    let deleted = change(set, "gone.txt");
    assert_eq!(
        (&deleted["kind"], &deleted["after"]),
        (&"deleted".into(), &json!(null))
    );
    assert_eq!(change(set, "d")["type"], "dir");
    let link = change(set, "link");
    assert_eq!(
        (&link["kind"], &link["type"]),
        (&"created".into(), &"link".into())
    );
    // The id is that of the record, so other commands find it.
    let session = set["session"].as_str().unwrap();
    assert!(
        bed.says(&["sessions", "show", session])
            .contains("gone.txt")
    );
}

#[test]
fn a_diff_shows_deletions_first_and_no_bytes_of_binary_files() {
    let bed = Bed::new();
    bed.put("keep.txt", "one\ntwo\nthree\n");
    bed.put("lost.txt", "precious\n");
    bed.put("picture.bin", b"\x00\x01\x02");
    bed.bash(
        "sed -i s/two/2/ keep.txt; rm lost.txt; printf '\\0\\1' > picture.bin; echo n > new.txt",
    );
    let shown = bed.says(&["changes"]);
    let at = |text: &str| {
        shown
            .find(text)
            .unwrap_or_else(|| panic!("{text} in {shown}"))
    };
    assert!(
        at("deleted    lost.txt") < at("modified   keep.txt"),
        "{shown}"
    );
    assert!(
        at("modified   keep.txt") < at("created    new.txt"),
        "{shown}"
    );
    assert!(
        shown.contains("-two\n") && shown.contains("+2\n"),
        "{shown}"
    );
    assert!(shown.contains("-precious"), "{shown}");
    assert!(shown.contains("binary file, 3B → 2B"), "{shown}");
    assert!(!shown.contains('\0'));
    let stat = bed.says(&["changes", "--stat"]);
    assert!(
        stat.contains("keep.txt") && !stat.contains("+2\n"),
        "{stat}"
    );
    // Only some paths.
    let some = bed.says(&["changes", "lost.txt"]);
    assert!(
        some.contains("lost.txt") && !some.contains("keep.txt"),
        "{some}"
    );
    // By call, and by session.
    let set = &bed.changes(&[])[0];
    for word in ["call_id", "session"] {
        let again = bed.changes(&[set[word].as_str().unwrap()]);
        assert_eq!(again.len(), 1, "{word}");
    }
    let unknown = bed.haft(&["changes", "no-such-thing"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
}

#[test]
fn without_changes_there_is_nothing_to_show() {
    let bed = Bed::new();
    bed.bash("true");
    let ended = bed.haft(&["changes"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.err.contains("no changes"), "{ended:?}");
    assert_eq!(bed.says(&["changes", "--json"]), "");
    assert!(!bed.state("effects").exists(), "nothing was stored");
}

#[test]
fn doctor_shows_the_size_and_clean_removes_it() {
    let bed = Bed::new();
    bed.put("a.txt", "a");
    bed.bash("rm a.txt");
    let doctor = bed.says(&["doctor"]);
    assert!(doctor.contains("1 call in 1 session"), "{doctor}");
    let json: serde_json::Value = serde_json::from_str(&bed.says(&["doctor", "--json"])).unwrap();
    assert_eq!(json["effects"]["calls"], 1, "{json}");
    // Without a terminal it needs a flag, and says first what it would remove.
    let ended = bed.haft(&["clean"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("1 call in 1 session"), "{ended:?}");
    assert_eq!(bed.changes(&[]).len(), 1);
    assert!(bed.says(&["clean", "--yes"]).contains("removed"));
    assert_eq!(bed.changes(&[]).len(), 0);
    assert_eq!(bed.haft(&["undo"]).code, Some(1));
    assert_eq!(bed.says(&["clean", "--yes"]), "nothing is kept\n");
}
