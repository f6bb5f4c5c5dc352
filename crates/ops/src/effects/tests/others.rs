//! Undo of calls whose files others have changed since, or other calls at the same time.

use super::bed::Bed;
use crate::effects::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

fn last() -> Selection {
    Selection {
        calls: Calls::Last,
        paths: Vec::new(),
    }
}

fn all() -> Selection {
    Selection {
        calls: Calls::All,
        paths: Vec::new(),
    }
}

fn read(bed: &Bed, name: &str) -> String {
    fs::read_to_string(bed.path(name)).unwrap()
}

/// Replaces a file, as editors do.
fn replace(bed: &Bed, name: &str, text: &str) {
    let new = bed.path(".editor");
    fs::write(&new, text).unwrap();
    fs::rename(new, bed.path(name)).unwrap();
}

/// Writes a file in place.
fn overwrite(bed: &Bed, name: &str, text: &str) {
    fs::write(bed.path(name), text).unwrap();
}

type Edit = fn(&Bed, &str, &str);
const EDITS: [Edit; 2] = [replace, overwrite];

#[test]
fn a_moved_file_that_others_edited_is_moved_back() {
    for edit in EDITS {
        let bed = Bed::new();
        fs::write(bed.path("f"), "before").unwrap();
        fs::write(bed.path("lost"), "lost").unwrap();
        fs::write(bed.path("h"), "h").unwrap();
        let call = bed.call("call-1");
        call.rename("f", "g").unwrap();
        call.chmod("g", 0o700).unwrap();
        call.rename("h", "lost").unwrap();
        call.done();
        edit(&bed, "g", "by the user");
        fs::set_permissions(bed.path("g"), fs::Permissions::from_mode(0o700)).unwrap();
        edit(&bed, "lost", "also by the user");
        let after = bed.tree();
        let preview = bed.session.undo(&last(), UndoMode::DryRun).unwrap();
        assert_eq!(preview.edited, [bed.path("f"), bed.path("h")]);
        let undone = bed.undo().unwrap();
        assert_eq!(undone.edited, preview.edited);
        assert!(undone.aside.is_empty());
        assert_eq!(read(&bed, "f"), "by the user");
        assert_eq!(fs::metadata(bed.path("f")).unwrap().mode() & 0o777, 0o644);
        assert_eq!(read(&bed, "h"), "also by the user");
        assert_eq!(read(&bed, "lost"), "lost");
        assert!(!bed.path("g").exists());
        assert_eq!(bed.tree().len(), 3);
        bed.session.redo(UndoMode::Careful).unwrap();
        assert_eq!(bed.tree(), after);
        bed.undo().unwrap();
        assert_eq!(read(&bed, "f"), "by the user");
    }
}

#[test]
fn the_last_name_of_a_removed_file_that_others_edited_is_moved_back() {
    for edit in EDITS {
        let bed = Bed::new();
        fs::create_dir(bed.path("d")).unwrap();
        fs::write(bed.path("d/f"), "before").unwrap();
        fs::write(bed.path("d/e"), "e").unwrap();
        let call = bed.call("call-1");
        // As `cp -al d bak; rm -rf d` does it.
        call.mkdir("bak").unwrap();
        call.link("d/f", "bak/f").unwrap();
        call.link("d/e", "bak/e").unwrap();
        call.remove_all("d").unwrap();
        assert!(call.done().complete);
        edit(&bed, "bak/f", "by the user");
        bed.undo().unwrap();
        assert_eq!(read(&bed, "d/f"), "by the user");
        assert_eq!(read(&bed, "d/e"), "e");
        assert!(!bed.path("bak").exists());
    }
}

#[test]
fn a_file_that_a_call_only_linked_keeps_what_others_wrote() {
    let bed = Bed::new();
    fs::write(bed.path("f"), "before").unwrap();
    let call = bed.call("call-1");
    call.link("f", "g").unwrap();
    call.done();
    overwrite(&bed, "f", "by the user");
    bed.undo().unwrap();
    assert_eq!(read(&bed, "f"), "by the user");
    assert!(!bed.path("g").exists());
    // Also after a redo.
    overwrite(&bed, "f", "again by the user");
    bed.session.redo(UndoMode::Careful).unwrap();
    assert_eq!(read(&bed, "g"), "again by the user");
    let undone = bed.undo().unwrap();
    assert_eq!(undone.changes.len(), 1, "{:?}", undone.changes);
    assert!(!bed.path("g").exists());
    assert_eq!(read(&bed, "f"), "again by the user");
}

#[test]
fn a_mode_is_restored_though_others_wrote_the_file() {
    for edit in EDITS {
        let bed = Bed::new();
        fs::write(bed.path("f"), "before").unwrap();
        let call = bed.call("call-1");
        call.chmod("f", 0o755).unwrap();
        call.done();
        edit(&bed, "f", "by the user");
        fs::set_permissions(bed.path("f"), fs::Permissions::from_mode(0o755)).unwrap();
        bed.undo().unwrap();
        assert_eq!(read(&bed, "f"), "by the user");
        assert_eq!(fs::metadata(bed.path("f")).unwrap().mode() & 0o777, 0o644);
    }
}

#[test]
fn a_moved_file_that_a_later_call_edited_names_that_call() {
    let bed = Bed::new();
    fs::write(bed.path("f"), "before").unwrap();
    let before = bed.tree();
    let call = bed.call("call-1");
    call.rename("f", "g").unwrap();
    call.done();
    let call = bed.call("call-2");
    call.write("new", b"by call 2").unwrap();
    call.rename("new", "g").unwrap();
    call.done();
    let refused = bed.undo_calls(&["call-1"]).unwrap_err();
    let UndoError::LaterCalls { calls, .. } = refused else {
        panic!("{refused}")
    };
    assert_eq!(calls, ["call-2"]);
    bed.undo_calls(&["call-1", "call-2"]).unwrap();
    assert_eq!(bed.tree(), before);
}

#[test]
fn a_file_that_a_forced_redo_moved_aside_comes_back() {
    let bed = Bed::new();
    fs::write(bed.path("f"), "before").unwrap();
    let call = bed.call("call-1");
    call.remove("f").unwrap();
    call.done();
    bed.undo().unwrap();
    overwrite(&bed, "f", "by the user");
    let undone = bed.session.redo(UndoMode::Force).unwrap();
    assert_eq!(undone.aside[0].now, bed.path("f.before-undo"));
    assert!(!bed.path("f").exists());
    bed.undo().unwrap();
    assert_eq!(read(&bed, "f"), "by the user");
}

#[test]
fn calls_that_overlap_are_undone_together_in_any_order() {
    // The bits say which of the two calls begins, writes and ends first.
    for order in 0..8 {
        let bed = Bed::new();
        fs::write(bed.path("f"), "before").unwrap();
        fs::write(bed.path("g"), "before").unwrap();
        let before = bed.tree();
        let (one, two) = (bed.call("call-1"), bed.call("call-2"));
        let swapped = |bit: u32| order & (1 << bit) != 0;
        // Each has begun its set before it touches the common files.
        for call in if swapped(0) {
            [&two, &one]
        } else {
            [&one, &two]
        } {
            call.write(&format!("own-{:p}", call), b"own").unwrap();
        }
        for call in if swapped(1) {
            [&two, &one]
        } else {
            [&one, &two]
        } {
            let text = format!("by {call:p}");
            call.write("f", text.as_bytes()).unwrap();
            call.write("g.new", text.as_bytes()).unwrap();
            call.rename("g.new", "g").unwrap();
        }
        let (first, second) = if swapped(2) {
            (&two, &one)
        } else {
            (&one, &two)
        };
        first.done();
        second.write("f", b"at the end").unwrap();
        second.done();
        let after = bed.tree();
        // Of the one that ended first, the other one is named.
        let begun_last = if swapped(0) { "call-1" } else { "call-2" };
        let ended_last = if swapped(2) { "call-1" } else { "call-2" };
        match bed.session.undo(&last(), UndoMode::DryRun) {
            Ok(undone) => assert_eq!(undone.calls, [ended_last], "{order}"),
            Err(UndoError::LaterCalls { calls, .. }) => {
                assert_ne!(begun_last, ended_last, "{order}");
                assert_eq!(calls, [ended_last], "{order}");
            }
            Err(error) => panic!("{order}: {error}"),
        }
        bed.session.undo(&all(), UndoMode::Careful).unwrap();
        assert_eq!(bed.tree(), before, "{order}");
        bed.session.redo(UndoMode::Careful).unwrap();
        assert_eq!(bed.tree(), after, "{order}");
    }
}

#[test]
fn by_force_a_folder_is_moved_aside_once() {
    let bed = Bed::new();
    fs::create_dir(bed.path("d")).unwrap();
    fs::write(bed.path("d/f"), "before").unwrap();
    let call = bed.call("call-1");
    call.remove_all("d").unwrap();
    call.done();
    fs::create_dir(bed.path("d")).unwrap();
    fs::write(bed.path("d/f"), "by the user").unwrap();
    fs::write(bed.path("d/other"), "by the user").unwrap();
    let undone = bed.session.undo(&last(), UndoMode::Force).unwrap();
    let aside: Vec<_> = undone.aside.iter().map(|aside| &aside.now).collect();
    assert_eq!(aside, [&bed.path("d.before-undo")]);
    assert_eq!(read(&bed, "d/f"), "before");
    assert_eq!(read(&bed, "d.before-undo/f"), "by the user");
    assert_eq!(read(&bed, "d.before-undo/other"), "by the user");
}

#[test]
fn by_force_a_link_in_the_place_of_a_folder_is_moved_aside() {
    let bed = Bed::new();
    fs::create_dir_all(bed.path("d/e")).unwrap();
    fs::write(bed.path("d/e/f"), "before").unwrap();
    let call = bed.call("call-1");
    call.write("d/e/f", b"after").unwrap();
    call.done();
    let outside = bed.work.parent().unwrap().join("outside");
    fs::create_dir_all(outside.join("e")).unwrap();
    fs::remove_dir_all(bed.path("d")).unwrap();
    std::os::unix::fs::symlink(&outside, bed.path("d")).unwrap();
    assert!(matches!(bed.undo(), Err(UndoError::Changed { .. })));
    let undone = bed.session.undo(&last(), UndoMode::Force).unwrap();
    assert_eq!(undone.aside[0].path, bed.path("d"));
    assert_eq!(undone.aside[0].now, bed.path("d.before-undo"));
    assert_eq!(fs::read_link(bed.path("d.before-undo")).unwrap(), outside);
    assert_eq!(read(&bed, "d/e/f"), "before");
    assert!(fs::read_dir(outside.join("e")).unwrap().next().is_none());
}

#[test]
fn after_the_rest_was_taken_back_what_was_not_kept_is_left_alone() {
    let bed = Bed::with(Bounds {
        skip: Skip::new(&["*.log"]).unwrap(),
        ..super::bed::bounds()
    });
    fs::create_dir(bed.path("d")).unwrap();
    for name in ["a", "d/b", "d/c.log"] {
        fs::write(bed.path(name), name).unwrap();
    }
    let call = bed.call("call-1");
    call.remove("a").unwrap();
    call.done();
    let call = bed.call("call-2");
    call.remove_all("d").unwrap();
    call.done();
    assert!(matches!(bed.undo(), Err(UndoError::NotKept { .. })));
    let rest = Selection {
        calls: Calls::Last,
        paths: vec![bed.path("d/b")],
    };
    bed.session.undo(&rest, UndoMode::Careful).unwrap();
    let states: Vec<_> = bed.session.summaries().unwrap();
    assert_eq!(states[1].state, SetState::Undone);
    // The next one is about the call before.
    overwrite(&bed, "d/b", "by the user");
    bed.undo().unwrap();
    assert_eq!(read(&bed, "a"), "a");
    assert_eq!(read(&bed, "d/b"), "by the user");
    assert!(matches!(bed.undo(), Err(UndoError::Nothing)));
}

#[test]
fn records_count_towards_the_limit() {
    let most = 64 << 10;
    let bed = Bed::with(Bounds {
        max_session: most,
        ..super::bed::bounds()
    });
    let size = || bed.store.size().unwrap().bytes;
    for round in 0..600 {
        let call = bed.call(&format!("call-{round}"));
        call.write(&format!("f{round}"), b"x").unwrap();
        assert!(call.done().complete);
        if round % 20 == 0 {
            assert!(size() <= most, "{round}: {}", size());
        }
    }
    bed.undo().unwrap();
    assert!(!bed.path("f599").exists());
    let refused = bed.session.undo(&all(), UndoMode::Careful).unwrap_err();
    assert!(matches!(refused, UndoError::NoLongerKept(_)), "{refused}");
    let call = bed.call("many");
    for number in 0..2000 {
        call.write(&format!("g{number}"), b"x").unwrap();
    }
    let counts = call.done();
    assert!(!counts.complete, "{counts:?}, {} bytes", size());
    assert!(counts.why.unwrap().contains("max_session"));
    assert!(size() <= most, "{}", size());
}

#[test]
fn a_damaged_set_is_named_and_the_others_are_shown() {
    let bed = Bed::new();
    for number in 1..4 {
        let call = bed.call(&format!("call-{number}"));
        call.write(&format!("f{number}"), b"x").unwrap();
        call.done();
    }
    let set = |number| bed.store.folder().join(format!("s-1/00000{number}.set"));
    let mut bytes = fs::read(set(2)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle - 20..middle].fill(0xff);
    fs::write(set(2), bytes).unwrap();
    // The start of another one.
    let mut bytes = fs::read(set(1)).unwrap();
    bytes[4] = 0xff;
    fs::write(set(1), bytes).unwrap();
    let session = bed.store.find("s-1").unwrap().unwrap();
    let sets = session.sets().unwrap();
    let ids: Vec<_> = sets
        .iter()
        .map(|set| set.summary.call_id.as_str())
        .collect();
    assert_eq!(ids, ["call-3"]);
    let unreadable = session.unreadable().unwrap();
    let paths: Vec<_> = unreadable.into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, [set(1), set(2)]);
    let one = Selection {
        calls: Calls::Ids(vec!["call-2".to_owned()]),
        paths: Vec::new(),
    };
    assert!(matches!(
        session.undo(&one, UndoMode::Careful),
        Err(UndoError::Io { .. })
    ));
    assert!(bed.path("f2").exists());
}
