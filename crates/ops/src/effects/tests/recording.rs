//! Tests of recording calls, and of its limits.

use super::bed::{Bed, bounds};
use crate::effects::*;
use std::fs;
use std::path::PathBuf;

fn kinds(set: &ChangeSet, bed: &Bed) -> Vec<String> {
    let below = |path: &PathBuf| path.strip_prefix(&bed.work).unwrap().display().to_string();
    set.changes
        .iter()
        .map(|change| {
            let kind = match &change.kind {
                ChangeKind::Created => "created".to_owned(),
                ChangeKind::Modified => "modified".to_owned(),
                ChangeKind::Deleted => "deleted".to_owned(),
                ChangeKind::Renamed { from } => format!("renamed from {}", below(from)),
                ChangeKind::Attributes => "attributes".to_owned(),
            };
            format!("{} {kind}", below(&change.path))
        })
        .collect()
}

#[test]
fn every_kind_of_change_is_counted_and_listed() {
    let bed = Bed::new();
    fs::create_dir_all(bed.path("d/e")).unwrap();
    for name in ["gone", "edited", "moved", "mode", "d/e/in", "same"] {
        fs::write(bed.path(name), name).unwrap();
    }
    let call = bed.call("call-1");
    call.write("new", b"1").unwrap();
    call.remove("gone").unwrap();
    call.append("edited", b"!").unwrap();
    call.rename("moved", "elsewhere").unwrap();
    call.chmod("mode", 0o600).unwrap();
    call.open("same").unwrap();
    call.rename("d", "f").unwrap();
    call.append("f/e/in", b"!").unwrap();
    call.mkdir("f/g").unwrap();
    assert!(call.mkdir("f/e").is_err());
    let now = call.recorder.counts_now();
    let counts = call.done();
    assert_eq!(now, counts);
    assert_eq!(
        (
            counts.created,
            counts.modified,
            counts.deleted,
            counts.renamed,
            counts.attributes
        ),
        (2, 2, 1, 2, 1)
    );
    assert!(counts.complete, "{counts:?}");
    let sets = bed.session.sets().unwrap();
    assert_eq!(sets.len(), 1);
    assert_eq!(
        kinds(&sets[0], &bed),
        [
            "edited modified",
            "elsewhere renamed from moved",
            "f renamed from d",
            "f/e/in modified",
            "f/g created",
            "gone deleted",
            "mode attributes",
            "new created"
        ]
    );
    assert_eq!(sets[0].summary.counts, counts);
    assert_eq!(sets[0].summary.state, SetState::Done);
}

#[test]
fn a_call_that_changed_nothing_leaves_nothing() {
    let bed = Bed::new();
    fs::write(bed.path("a"), "a").unwrap();
    fs::create_dir(bed.path("d")).unwrap();
    let call = bed.call("call-1");
    call.open("a").unwrap();
    call.write("b", b"b").unwrap();
    call.remove("b").unwrap();
    call.rename("d", "e").unwrap();
    call.rename("e", "d").unwrap();
    assert!(call.rmdir("none").is_err());
    assert_eq!(call.done().total(), 0);
    assert!(bed.session.sets().unwrap().is_empty());
    let left: Vec<_> = fs::read_dir(bed.store.folder().join("s-1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name != "session" && name != "objects")
        .collect();
    assert!(left.is_empty(), "{left:?}");
    // Not even a folder for a call that touched nothing.
    let other = bed.store.session("s-2", &bed.work, &[]);
    other.begin("call-1", "bash").finish(End::Done);
    assert!(!bed.store.folder().join("s-2").exists());
}

#[test]
fn what_is_not_kept_is_named_and_the_rest_is() {
    let mut bounds = bounds();
    bounds.max_file = 1000;
    bounds.skip = Skip::new(&["*.log"]).unwrap();
    let bed = Bed::with(bounds);
    fs::write(bed.path("large"), [b'x'; 5000]).unwrap();
    fs::write(bed.path("a.log"), "log").unwrap();
    fs::write(bed.path("small"), "small").unwrap();
    let call = bed.call("call-1");
    call.remove("large").unwrap();
    call.append("a.log", b"!").unwrap();
    call.remove("small").unwrap();
    let counts = call.done();
    assert!(!counts.complete);
    let why = counts.why.unwrap();
    assert!(why.contains("max_file") || why.contains("skip"), "{why}");
    let set = &bed.session.sets().unwrap()[0];
    let kept: Vec<bool> = set.changes.iter().map(|change| change.kept).collect();
    assert_eq!(kept, [false, false, true]);
    let refused = bed.undo().unwrap_err();
    let UndoError::NotKept { paths } = refused else {
        panic!("{refused}")
    };
    assert_eq!(paths, [bed.path("a.log"), bed.path("large")]);
    let what = Selection {
        calls: Calls::Last,
        paths: vec![bed.path("small")],
    };
    bed.session.undo(&what, UndoMode::Careful).unwrap();
    assert_eq!(fs::read(bed.path("small")).unwrap(), b"small");
    assert!(!bed.path("large").exists());
    // A large file that was only opened is not missing.
    fs::write(bed.path("large"), [b'x'; 5000]).unwrap();
    let call = bed.call("call-2");
    call.open("large").unwrap();
    assert!(call.done().complete);
}

#[test]
fn a_session_stays_below_its_limit_and_forgets_the_oldest() {
    let mut bounds = bounds();
    bounds.max_session = 600 << 10;
    let bed = Bed::with(bounds);
    for round in 0..40_u8 {
        fs::write(bed.path("a"), vec![round; 100 << 10]).unwrap();
        let call = bed.call(&format!("call-{round}"));
        call.write("a", b"short").unwrap();
        assert!(call.done().complete, "{round}");
        let used = bed.store.size().unwrap().bytes;
        assert!(used <= 600 << 10, "{round}: {used}");
    }
    let states: Vec<SetState> = bed
        .session
        .summaries()
        .unwrap()
        .iter()
        .map(|summary| summary.state)
        .collect();
    assert_eq!(states.len(), 40);
    assert_eq!(states[0], SetState::NoLongerKept);
    assert_eq!(states[39], SetState::Done);
    bed.undo().unwrap();
    assert_eq!(fs::read(bed.path("a")).unwrap(), vec![39; 100 << 10]);
    let refused = bed.undo_calls(&["call-0"]).unwrap_err();
    assert!(matches!(refused, UndoError::NoLongerKept(_)), "{refused}");
}

#[test]
fn a_call_goes_on_without_a_store() {
    let bed = Bed::new();
    fs::write(bed.store.folder(), "in the way").unwrap();
    let call = bed.call("call-1");
    call.write("a", b"1").unwrap();
    let counts = call.done();
    assert!(!counts.complete);
    assert!(counts.why.unwrap().contains("could not be recorded"));
}

#[test]
fn a_recorder_that_was_dropped_leaves_an_interrupted_set() {
    let bed = Bed::new();
    fs::write(bed.path("a"), "before").unwrap();
    let call = bed.call("call-1");
    call.write("a", b"after").unwrap();
    let running = bed.session.sets().unwrap();
    assert_eq!(running[0].summary.state, SetState::Running);
    assert_eq!(running[0].summary.counts.modified, 1);
    assert!(matches!(bed.undo(), Err(UndoError::Running(_))));
    drop(call);
    let sets = bed.session.sets().unwrap();
    assert_eq!(sets[0].summary.state, SetState::Interrupted);
    bed.undo().unwrap();
    assert_eq!(fs::read(bed.path("a")).unwrap(), b"before");
}

#[test]
fn both_versions_of_a_file_can_be_read() {
    let bed = Bed::new();
    let read = |set: usize, version: Version| {
        let sets = bed.session.sets().unwrap();
        let set = &sets[set];
        let reader = bed
            .session
            .content(&set.summary, &set.changes[0], version)
            .unwrap();
        reader.map(|mut reader| {
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            text
        })
    };
    fs::write(bed.path("a"), "one").unwrap();
    for (id, text) in [("call-1", "two, longer"), ("call-2", "three")] {
        let call = bed.call(id);
        call.write("a", text.as_bytes()).unwrap();
        call.done();
    }
    let call = bed.call("call-3");
    call.remove("a").unwrap();
    call.done();
    assert_eq!(read(0, Version::Before).as_deref(), Some("one"));
    assert_eq!(read(0, Version::After).as_deref(), Some("two, longer"));
    assert_eq!(read(1, Version::After).as_deref(), Some("three"));
    assert_eq!(read(2, Version::Before).as_deref(), Some("three"));
    assert_eq!(read(2, Version::After), None);
}

#[test]
fn many_threads_on_one_file_keep_the_first_version() {
    let bed = Bed::new();
    fs::write(bed.path("a"), vec![b'a'; 300 << 10]).unwrap();
    let call = bed.call("call-1");
    std::thread::scope(|scope| {
        for thread in 0..16_u8 {
            let call = &call;
            scope.spawn(move || {
                for round in 0..20_u8 {
                    match (thread + round) % 4 {
                        0 => drop(call.write("a", &[thread; 100])),
                        1 => drop(call.remove("a")),
                        2 => drop(call.rename("a", "b")),
                        _ => drop(call.rename("b", "a")),
                    }
                }
            });
        }
    });
    let counts = call.done();
    assert!(counts.complete, "{counts:?}");
    if counts.total() > 0 {
        bed.undo().unwrap();
    }
    assert_eq!(fs::read(bed.path("a")).unwrap(), vec![b'a'; 300 << 10]);
    assert!(!bed.path("b").exists());
}
