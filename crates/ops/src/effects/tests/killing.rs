//! Undo that is killed or fails half-way.

use super::bed::{Bed, Call};
use super::random::{Operation, fill, operation, run};
use super::steps::{self, Trouble};
use crate::effects::{SetState, UndoError};
use proptest::prelude::*;
use std::fs;

/// Changes of every kind, with folders that change places.
fn change(call: &Call) {
    call.rename("d", "g").unwrap();
    call.rename("f", "d").unwrap();
    call.mkdir("f").unwrap();
    call.write("f/new", b"new").unwrap();
    call.append("g/a", b"more").unwrap();
    call.append("a", b"of two names").unwrap();
    call.remove_all("g/e").unwrap();
    call.exchange("c", "d/a").unwrap();
    call.chmod("g", 0o700).unwrap();
    call.write("h", b"h").unwrap();
    call.rename("h", "g/a").unwrap();
    call.symlink("none", "i").unwrap();
}

#[test]
fn an_undo_that_is_killed_at_any_step_is_completed() {
    let steps = {
        let bed = Bed::new();
        fill(&bed);
        let call = bed.call("call-1");
        change(&call);
        call.done();
        steps::count(|| drop(bed.undo().unwrap()))
    };
    assert!(steps > 20, "{steps}");
    for at in 0..steps {
        let bed = Bed::new();
        fill(&bed);
        let before = bed.tree();
        let call = bed.call("call-1");
        change(&call);
        call.done();
        let after = bed.tree();
        let killed = steps::with(at, Trouble::Kill, || bed.undo());
        assert!(killed.is_none(), "step {at}");
        // Another process opens the store.
        let sessions = bed.store.sessions(Some(&bed.work)).unwrap();
        assert_eq!(sessions.len(), 1);
        assert_eq!(bed.tree(), before, "step {at}");
        let states: Vec<_> = bed.session.summaries().unwrap();
        assert_eq!(states[0].state, SetState::Undone);
        bed.session.redo(crate::effects::UndoMode::Careful).unwrap();
        assert_eq!(bed.tree(), after, "redo after step {at}");
    }
}

#[test]
fn an_undo_that_fails_at_any_step_is_taken_back() {
    for at in 0..200 {
        let bed = Bed::new();
        fill(&bed);
        let before = bed.tree();
        let call = bed.call("call-1");
        change(&call);
        call.done();
        let after = bed.tree();
        match steps::with(at, Trouble::Fail, || bed.undo()).unwrap() {
            Ok(_) => {
                assert!(at > 20);
                return;
            }
            Err(UndoError::Io { source, .. }) => {
                assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
            }
            Err(error) => panic!("step {at}: {error}"),
        }
        assert_eq!(bed.tree(), after, "step {at}");
        bed.undo().unwrap();
        assert_eq!(bed.tree(), before, "step {at}");
    }
    panic!("the undo never ended");
}

proptest! {
    #![proptest_config(super::random::cases(300))]

    #[test]
    fn any_undo_that_is_killed_is_completed(
        operations in prop::collection::vec(operation(), 1..14),
        at in 0_u32..40,
        again in 0_u32..40,
    ) {
        let bed = Bed::new();
        fill(&bed);
        let before = bed.tree();
        let call = bed.call("call-1");
        for operation in &operations {
            run(&call, &bed, operation);
        }
        if call.done().total() > 0 {
            let _ = steps::with(at, Trouble::Kill, || bed.undo());
            // Completing it is killed too.
            let _ = steps::with(again, Trouble::Kill, || bed.session.summaries());
            bed.session.summaries().unwrap();
            prop_assert_eq!(bed.tree(), before);
        }
    }
}

#[test]
fn names_that_wait_are_gone_in_the_end() {
    let bed = Bed::new();
    fill(&bed);
    let call = bed.call("call-1");
    for operation in [Operation::Exchange(3, 8), Operation::Exchange(0, 3)] {
        run(&call, &bed, &operation);
    }
    call.done();
    bed.undo().unwrap();
    let left = fs::read_dir(&bed.work).unwrap();
    let names = left.map(|entry| entry.unwrap().file_name());
    assert!(
        names
            .into_iter()
            .all(|name| !name.to_string_lossy().starts_with(".haft"))
    );
}
