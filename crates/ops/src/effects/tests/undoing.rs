//! Undo and redo.

use super::bed::Bed;
use crate::effects::*;
use std::fs;

#[test]
fn a_removed_tree_comes_back_and_goes_again() {
    let bed = Bed::new();
    fs::create_dir_all(bed.path("d/e")).unwrap();
    for number in 0..20 {
        fs::write(bed.path(&format!("d/e/{number}")), [number; 3]).unwrap();
    }
    std::os::unix::fs::symlink("e/1", bed.path("d/link")).unwrap();
    let before = bed.tree();
    let call = bed.call("call-1");
    call.remove_all("d").unwrap();
    assert_eq!(call.done().deleted, 23);
    let after = bed.tree();
    let undone = bed.undo().unwrap();
    assert_eq!(undone.calls, ["call-1"]);
    assert_eq!(undone.changes.len(), 23);
    assert_eq!(bed.tree(), before);
    assert!(matches!(bed.undo(), Err(UndoError::Nothing)));
    for _ in 0..3 {
        bed.session.redo(UndoMode::Careful).unwrap();
        assert_eq!(bed.tree(), after);
        assert!(matches!(
            bed.session.redo(UndoMode::Careful),
            Err(UndoError::Nothing)
        ));
        bed.undo().unwrap();
        assert_eq!(bed.tree(), before);
    }
}
