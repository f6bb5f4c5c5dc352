//! Random operations, undone.

use super::bed::{Bed, Call};
use crate::effects::{Calls, Selection, UndoMode};
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Names for all operations. Few, so that operations meet each other.
const NAMES: [&str; 12] = [
    "a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a", "f", "f/a", "f/d", "f/d/e",
];

#[derive(Debug, Clone)]
pub(super) enum Operation {
    Write(usize, u8),
    Append(usize, u8),
    Open(usize),
    Copy(usize, usize),
    Remove(usize),
    Rmdir(usize),
    RemoveAll(usize),
    Mkdir(usize),
    Symlink(usize, usize),
    Fifo(usize),
    Link(usize, usize),
    Rename(usize, usize),
    Exchange(usize, usize),
    Chmod(usize, u32),
    Attribute(usize, u8),
}

pub(super) fn operation() -> impl Strategy<Value = Operation> {
    let name = || 0..NAMES.len();
    prop_oneof![
        4 => (name(), any::<u8>()).prop_map(|(name, byte)| Operation::Write(name, byte)),
        2 => (name(), any::<u8>()).prop_map(|(name, byte)| Operation::Append(name, byte)),
        1 => name().prop_map(Operation::Open),
        3 => (name(), name()).prop_map(|(from, to)| Operation::Copy(from, to)),
        3 => name().prop_map(Operation::Remove),
        1 => name().prop_map(Operation::Rmdir),
        2 => name().prop_map(Operation::RemoveAll),
        3 => name().prop_map(Operation::Mkdir),
        1 => (name(), name()).prop_map(|(target, name)| Operation::Symlink(target, name)),
        1 => name().prop_map(Operation::Fifo),
        2 => (name(), name()).prop_map(|(from, name)| Operation::Link(from, name)),
        6 => (name(), name()).prop_map(|(from, to)| Operation::Rename(from, to)),
        2 => (name(), name()).prop_map(|(one, other)| Operation::Exchange(one, other)),
        2 => (name(), 0_u32..4).prop_map(|(name, mode)| Operation::Chmod(name, mode)),
        1 => (name(), any::<u8>()).prop_map(|(name, byte)| Operation::Attribute(name, byte)),
    ]
}

/// Runs an operation; most of them fail for some trees, which is part of the test.
pub(super) fn run(call: &Call, bed: &Bed, operation: &Operation) {
    let is_special = |name: usize| {
        fs::symlink_metadata(bed.path(NAMES[name]))
            .is_ok_and(|meta| !meta.is_file() && !meta.is_dir())
    };
    // Opening a FIFO would wait; writing through a link goes to another path.
    let done = match operation {
        Operation::Write(name, _)
        | Operation::Append(name, _)
        | Operation::Open(name)
        | Operation::Copy(name, _)
        | Operation::Copy(_, name)
            if is_special(*name) =>
        {
            return;
        }
        Operation::Write(name, byte) => call.write(NAMES[*name], &vec![*byte; (*byte % 7).into()]),
        Operation::Append(name, byte) => call.append(NAMES[*name], &[*byte]),
        Operation::Open(name) => call.open(NAMES[*name]),
        Operation::Copy(from, to) => call.copy(NAMES[*from], NAMES[*to]),
        Operation::Remove(name) => call.remove(NAMES[*name]),
        Operation::Rmdir(name) => call.rmdir(NAMES[*name]),
        Operation::RemoveAll(name) => call.remove_all(NAMES[*name]),
        Operation::Mkdir(name) => call.mkdir(NAMES[*name]),
        Operation::Symlink(target, name) => call.symlink(NAMES[*target], NAMES[*name]),
        Operation::Fifo(name) => call.fifo(NAMES[*name]),
        Operation::Link(from, name) => call.link(NAMES[*from], NAMES[*name]),
        Operation::Rename(from, to) => call.rename(NAMES[*from], NAMES[*to]),
        Operation::Exchange(one, other) => call.exchange(NAMES[*one], NAMES[*other]),
        Operation::Chmod(name, mode) => {
            call.chmod(NAMES[*name], [0o700, 0o755, 0o711, 0o4750][*mode as usize])
        }
        Operation::Attribute(name, byte) => call.set_attribute(NAMES[*name], &[*byte]),
    };
    drop(done);
}

pub(super) fn fill(bed: &Bed) {
    for folder in ["d", "d/e", "f"] {
        fs::create_dir(bed.path(folder)).unwrap();
    }
    for file in ["a", "d/a", "d/e/a", "f/a"] {
        fs::write(bed.path(file), file).unwrap();
    }
    fs::hard_link(bed.path("a"), bed.path("d/b")).unwrap();
    for link in ["b", "c"] {
        std::os::unix::fs::symlink("a", bed.path(link)).unwrap();
    }
    fs::set_permissions(bed.path("f"), fs::Permissions::from_mode(0o750)).unwrap();
}

fn undone(bed: Bed, operations: &[Operation]) -> Result<(), TestCaseError> {
    let before = bed.tree();
    let call = bed.call("call-1");
    for operation in operations {
        run(&call, &bed, operation);
    }
    let counts = call.done();
    prop_assert!(counts.complete, "{:?}", counts);
    let after = bed.tree();
    let mut can_redo = counts.total() > 0;
    match bed.undo() {
        Ok(_) => {
            let sets = bed.session.summaries().unwrap();
            can_redo = sets.last().unwrap().counts.complete;
        }
        Err(crate::effects::UndoError::Nothing) => prop_assert_eq!(counts.total(), 0),
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    }
    prop_assert_eq!(&bed.tree(), &before);
    if can_redo {
        let redone = bed.session.redo(UndoMode::Careful);
        redone.map_err(|error| TestCaseError::fail(format!("redo: {error}")))?;
        prop_assert_eq!(&bed.tree(), &after, "redo");
        let again = bed.undo();
        again.map_err(|error| TestCaseError::fail(format!("undo again: {error}")))?;
        prop_assert_eq!(&bed.tree(), &before, "undo again");
    }
    Ok(())
}

pub(super) fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn what_a_killed_haft_recorded_is_undone_exactly(
        operations in prop::collection::vec(operation(), 1..14),
    ) {
        let bed = Bed::new();
        fill(&bed);
        let before = bed.tree();
        let call = bed.call("call-1");
        for operation in &operations {
            run(&call, &bed, operation);
        }
        // Without the states after the call.
        drop(call);
        match bed.undo() {
            Ok(_) | Err(crate::effects::UndoError::Nothing) => {}
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
        prop_assert_eq!(&bed.tree(), &before);
    }

    #[test]
    fn any_operations_are_undone_exactly(operations in prop::collection::vec(operation(), 1..14)) {
        let bed = Bed::new();
        fill(&bed);
        undone(bed, &operations)?;
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn also_with_the_store_on_another_file_system(
        operations in prop::collection::vec(operation(), 1..14),
    ) {
        if let Some(bed) = Bed::apart() {
            fill(&bed);
            // A copy cannot be another name of a file that the call did not touch.
            fs::remove_file(bed.path("d/b")).unwrap();
            let is_link = |operation: &&Operation| matches!(operation, Operation::Link(..));
            let operations: Vec<_> = operations.iter().filter(|op| !is_link(op)).cloned().collect();
            undone(bed, &operations)?;
        }
    }

    #[test]
    fn several_calls_are_undone_together_or_one_by_one(
        calls in prop::collection::vec(prop::collection::vec(operation(), 1..6), 2..5),
        together in any::<bool>(),
    ) {
        let bed = Bed::new();
        fill(&bed);
        let before = bed.tree();
        let mut trees = vec![before.clone()];
        for (number, operations) in calls.iter().enumerate() {
            let call = bed.call(&format!("call-{number}"));
            for operation in operations {
                run(&call, &bed, operation);
            }
            if call.done().total() > 0 {
                trees.push(bed.tree());
            }
        }
        let all = Selection { calls: Calls::All, paths: Vec::new() };
        if trees.len() > 1 && together {
            let undone = bed.session.undo(&all, UndoMode::Careful);
            undone.map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(&bed.tree(), &before);
            if !bed.session.summaries().unwrap().last().unwrap().counts.complete {
                return Ok(());
            }
            let redone = bed.session.redo(UndoMode::Careful);
            redone.map_err(|error| TestCaseError::fail(format!("redo: {error}")))?;
            prop_assert_eq!(&bed.tree(), trees.last().unwrap(), "redo");
        }
        trees.pop();
        while let Some(expected) = trees.pop() {
            let undone = bed.undo();
            undone.map_err(|error| TestCaseError::fail(format!("one by one: {error}")))?;
            prop_assert_eq!(&bed.tree(), &expected);
        }
        prop_assert_eq!(&bed.tree(), &before);
    }
}
