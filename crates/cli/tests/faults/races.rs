//! Two processes never undo each other's changes, and a racing link is never followed
//! outside.

use crate::{Yard, read, text};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn edits_of_many_processes_are_all_there() {
    let yard = Yard::new();
    let lines: String = (0..24).map(|line| format!("line {line}: old\n")).collect();
    std::fs::write(yard.work().join("shared.txt"), lines).unwrap();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let yard = &yard;
            scope.spawn(move || {
                for line in (worker..24).step_by(4) {
                    let reply = yard.call(
                        "edit",
                        &json!({ "path": "shared.txt", "old_text": format!("line {line}: old"), "new_text": format!("line {line}: new") }),
                    );
                    assert_eq!(reply["is_error"], false, "{reply}");
                }
            });
        }
    });
    let expected: String = (0..24).map(|line| format!("line {line}: new\n")).collect();
    assert_eq!(
        String::from_utf8(read(yard.work().join("shared.txt"))).unwrap(),
        expected
    );
    assert_eq!(yard.litter(), Vec::<String>::new());
}

/// A name alternates between a folder and a link to the outside. A call never touches
/// anything outside.
#[test]
fn a_folder_that_turns_into_a_link_leads_nowhere() {
    let yard = Yard::new();
    let (work, out) = (yard.work(), yard.out());
    std::fs::create_dir(work.join("real")).unwrap();
    std::fs::write(work.join("real/canary.txt"), "inside").unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (door, spare) = (work.join("door"), work.join("spare"));
            while !stop.load(Ordering::Relaxed) {
                for target in [&out, &work.join("real")] {
                    let _ = std::fs::remove_file(&spare);
                    std::os::unix::fs::symlink(target, &spare).unwrap();
                    std::fs::rename(&spare, &door).unwrap();
                }
            }
        });
        for _ in 0..40 {
            let strict = yard.command(&["call", "--json", "--sandbox", "strict", "read", "-"]);
            let output = yard.call_in(strict, &json!({ "path": "door/canary.txt" }));
            let reply: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert!(
                text(&reply) == "inside" || reply["is_error"] == true,
                "{reply}"
            );
            assert!(
                !String::from_utf8_lossy(&output.stdout).contains("canary\""),
                "{reply}"
            );
            yard.call(
                "write",
                &json!({ "path": "door/canary.txt", "content": "inside" }),
            );
            yard.call(
                "write",
                &json!({ "path": "door/new.txt", "content": "inside" }),
            );
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(read(out.join("canary.txt")), b"canary");
    assert!(!out.join("new.txt").exists());
}

/// An editor saves during an edit: its change is kept.
#[test]
fn a_change_by_another_program_is_kept() {
    let yard = Yard::new();
    let path = yard.work().join("f.txt");
    std::fs::write(&path, "one\ntwo\n").unwrap();
    assert!(text(&yard.call("read", &json!({ "path": "f.txt" }))).contains("two"));
    std::fs::write(&path, "zero\none\ntwo\nthree\n").unwrap();
    let reply = yard.call(
        "edit",
        &json!({ "path": "f.txt", "old_text": "two", "new_text": "2" }),
    );
    assert_eq!(reply["is_error"], false, "{reply}");
    assert_eq!(read(&path), b"zero\none\n2\nthree\n");
}
