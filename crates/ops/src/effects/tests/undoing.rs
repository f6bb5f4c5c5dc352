//! Undo and redo.

use super::bed::{Bed, bounds, tree};
use super::steps;
use crate::effects::*;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

fn selection(calls: Calls, paths: &[PathBuf]) -> Selection {
    Selection {
        calls,
        paths: paths.to_vec(),
    }
}

fn last() -> Selection {
    selection(Calls::Last, &[])
}

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
    let preview = bed.session.undo(&last(), UndoMode::DryRun).unwrap();
    assert_eq!(preview.changes.len(), 23);
    assert_eq!(bed.tree(), after);
    let undone = bed.undo().unwrap();
    assert_eq!(undone.calls, ["call-1"]);
    let paths = |undone: &Undone| -> Vec<PathBuf> {
        let changes = undone.changes.iter();
        changes.map(|change| change.path.clone()).collect()
    };
    assert_eq!(paths(&undone), paths(&preview));
    assert!(
        undone
            .changes
            .iter()
            .all(|change| change.kind == ChangeKind::Created)
    );
    assert_eq!(bed.tree(), before);
    assert!(matches!(bed.undo(), Err(UndoError::Nothing)));
    for _ in 0..3 {
        bed.session.redo(UndoMode::Careful).unwrap();
        assert_eq!(bed.tree(), after);
        let again = bed.session.redo(UndoMode::Careful);
        assert!(matches!(again, Err(UndoError::Nothing)));
        bed.undo().unwrap();
        assert_eq!(bed.tree(), before);
    }
    let tools: Vec<_> = bed
        .session
        .summaries()
        .unwrap()
        .into_iter()
        .map(|set| (set.tool, set.call_id))
        .take(3)
        .collect();
    let expected = [("bash", "call-1"), ("undo", "undo-1"), ("redo", "redo-1")];
    let expected = expected.map(|(tool, id)| (tool.to_owned(), id.to_owned()));
    assert_eq!(tools, expected);
}

/// A file that has taken the place of another must go home, even if both look the same.
#[test]
fn a_file_whose_place_an_equal_one_took_comes_back() {
    for is_killed in [false, true] {
        let bed = Bed::new();
        fs::write(bed.path("a"), "same").unwrap();
        fs::write(bed.path("b"), "other").unwrap();
        for link in ["l", "m", "n", "o"] {
            std::os::unix::fs::symlink("a", bed.path(link)).unwrap();
        }
        let before = bed.tree();
        let call = bed.call("call-1");
        call.copy("a", "b").unwrap();
        call.rename("b", "a").unwrap();
        call.rename("l", "m").unwrap();
        call.rename("o", "n").unwrap();
        if is_killed {
            drop(call);
        } else {
            call.done();
        }
        bed.undo().unwrap();
        assert_eq!(bed.tree(), before);
        bed.session.redo(UndoMode::Careful).unwrap();
        bed.undo().unwrap();
        assert_eq!(bed.tree(), before);
    }
}

/// A file that a call wrote and a later one removed is kept as it was last. If it looks as it
/// did first, its first content is put back all the same.
#[test]
fn a_rewritten_and_removed_file_gets_its_first_content() {
    let bed = Bed::new();
    fs::write(bed.path("a"), "one").unwrap();
    fs::write(bed.path("b"), "two").unwrap();
    let times = fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
    for name in ["a", "b"] {
        let file = fs::File::options().write(true).open(bed.path(name));
        file.unwrap().set_times(times).unwrap();
    }
    let before = bed.tree();
    let first = bed.call("call-1");
    first.rename("a", "c").unwrap();
    first.done();
    let second = bed.call("call-2");
    second.copy("b", "c").unwrap();
    second.done();
    let third = bed.call("call-3");
    third.remove("c").unwrap();
    third.done();
    let all = selection(Calls::All, &[]);
    bed.session.undo(&all, UndoMode::Careful).unwrap();
    assert_eq!(bed.tree(), before);
}

#[test]
fn what_others_changed_is_refused_and_moved_aside_by_force() {
    let bed = Bed::new();
    fs::write(bed.path("a"), "before").unwrap();
    fs::write(bed.path("gone"), "gone").unwrap();
    fs::write(bed.path("kept"), "kept").unwrap();
    let call = bed.call("call-1");
    call.write("a", b"by the call").unwrap();
    call.write("kept", b"by the call").unwrap();
    call.write("new", b"new").unwrap();
    call.remove("gone").unwrap();
    call.done();
    fs::write(bed.path("a"), "by the user").unwrap();
    fs::write(bed.path("gone"), "again").unwrap();
    fs::remove_file(bed.path("new")).unwrap();
    let present = bed.tree();
    let refused = bed.undo().unwrap_err();
    let UndoError::Changed { paths } = refused else {
        panic!("{refused}")
    };
    let found: Vec<_> = paths
        .iter()
        .map(|changed| (changed.path.clone(), changed.what.as_str()))
        .collect();
    // The new file is gone already, so nothing is left to do for it.
    assert_eq!(
        found,
        [
            (bed.path("a"), "changed since"),
            (bed.path("gone"), "created since")
        ]
    );
    assert_eq!(bed.tree(), present);
    let undone = bed.session.undo(&last(), UndoMode::Force).unwrap();
    assert_eq!(
        undone.aside,
        [
            Aside {
                path: bed.path("a"),
                now: bed.path("a.before-undo")
            },
            Aside {
                path: bed.path("gone"),
                now: bed.path("gone.before-undo")
            }
        ]
    );
    let read = |name: &str| fs::read_to_string(bed.path(name)).unwrap();
    assert_eq!(read("a"), "before");
    assert_eq!(read("kept"), "kept");
    assert_eq!(read("gone"), "gone");
    assert_eq!(read("a.before-undo"), "by the user");
    assert_eq!(read("gone.before-undo"), "again");
    bed.session.redo(UndoMode::Careful).unwrap();
    assert_eq!(bed.tree(), present);
}

#[test]
fn the_same_content_again_is_not_a_change() {
    let bed = Bed::new();
    fs::write(bed.path("a"), "before").unwrap();
    let call = bed.call("call-1");
    call.write("a", b"after").unwrap();
    call.done();
    // As an editor, or git, would do it.
    fs::write(bed.path("b"), "after").unwrap();
    fs::rename(bed.path("b"), bed.path("a")).unwrap();
    bed.undo().unwrap();
    assert_eq!(fs::read(bed.path("a")).unwrap(), b"before");
}

#[test]
fn a_file_that_got_the_same_content_gets_its_old_time_back() {
    let bed = Bed::new();
    let names = ["touched", "rewritten", "replaced"];
    for name in names {
        fs::write(bed.path(name), "same").unwrap();
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        let file = fs::File::options()
            .write(true)
            .open(bed.path(name))
            .unwrap();
        file.set_modified(old).unwrap();
    }
    let before = bed.tree();
    let call = bed.call("call-1");
    call.open("touched").unwrap();
    let file = fs::File::options()
        .write(true)
        .open(bed.path("touched"))
        .unwrap();
    file.set_modified(std::time::SystemTime::now()).unwrap();
    call.write("rewritten", b"same").unwrap();
    call.write("temporary", b"same").unwrap();
    call.rename("temporary", "replaced").unwrap();
    let counts = call.done();
    assert_eq!(
        (counts.attributes, counts.complete),
        (3, true),
        "{counts:?}"
    );
    bed.undo().unwrap();
    assert_eq!(bed.tree(), before);
    bed.session.redo(UndoMode::Careful).unwrap();
    bed.undo().unwrap();
    assert_eq!(bed.tree(), before);
}

#[test]
fn a_changed_file_whose_time_was_set_back_is_restored() {
    let bed = Bed::new();
    fs::write(bed.path("a"), "before").unwrap();
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    let set_time = || {
        let file = fs::File::options().write(true).open(bed.path("a")).unwrap();
        file.set_modified(old).unwrap();
    };
    set_time();
    let before = bed.tree();
    let call = bed.call("call-1");
    call.write("a", b"behind").unwrap();
    set_time();
    assert_eq!(call.done().modified, 1);
    let after = bed.tree();
    bed.undo().unwrap();
    assert_eq!(bed.tree(), before);
    bed.session.redo(UndoMode::Careful).unwrap();
    assert_eq!(bed.tree(), after);
}

#[test]
fn a_folder_that_others_removed_is_made_again_by_force() {
    let bed = Bed::new();
    fs::create_dir_all(bed.path("d/e")).unwrap();
    fs::write(bed.path("d/e/a"), "before").unwrap();
    let call = bed.call("call-1");
    call.write("d/e/a", b"after").unwrap();
    call.done();
    fs::remove_dir_all(bed.path("d")).unwrap();
    assert!(matches!(bed.undo(), Err(UndoError::Changed { .. })));
    bed.session.undo(&last(), UndoMode::Force).unwrap();
    assert_eq!(fs::read(bed.path("d/e/a")).unwrap(), b"before");
}

#[test]
fn a_change_by_others_that_keeps_size_and_time_is_noticed() {
    let bed = Bed::new();
    fs::write(bed.path("a"), "before").unwrap();
    let call = bed.call("call-1");
    call.write("a", b"by the call").unwrap();
    call.done();
    let time = fs::metadata(bed.path("a")).unwrap().modified().unwrap();
    let file = fs::File::options().write(true).open(bed.path("a")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"by the user", 0).unwrap();
    file.set_modified(time).unwrap();
    let refused = bed.undo().unwrap_err();
    assert!(matches!(refused, UndoError::Changed { .. }), "{refused}");
    assert_eq!(fs::read(bed.path("a")).unwrap(), b"by the user");
}

#[test]
fn calls_of_several_sessions_are_undone_one_after_another() {
    let bed = Bed::new();
    fs::create_dir(bed.path("d")).unwrap();
    fs::write(bed.path("d/a"), "before").unwrap();
    fs::write(bed.path("f"), "before").unwrap();
    let before = bed.tree();
    let call = bed.call("call-1");
    call.rename("d", "e").unwrap();
    call.rename("f", "g").unwrap();
    call.done();
    let later = bed.store.session("s-2", &bed.work, &[]);
    let recorder = later.begin("call-2", "bash");
    for (path, touch) in [
        ("e/a", Touch::Remove),
        ("e", Touch::Remove),
        ("g", Touch::Content),
    ] {
        recorder.before(&bed.path(path), touch);
    }
    fs::remove_dir_all(bed.path("e")).unwrap();
    fs::write(bed.path("g"), "after").unwrap();
    assert!(recorder.finish(crate::effects::End::Done).complete);
    later.undo(&last(), UndoMode::Careful).unwrap();
    bed.undo().unwrap();
    assert_eq!(bed.tree(), before);
}

#[test]
fn a_folder_that_others_moved_away_is_not_made_again() {
    let bed = Bed::new();
    fs::create_dir(bed.path("d")).unwrap();
    fs::write(bed.path("d/a"), "before").unwrap();
    let call = bed.call("call-1");
    call.remove("d/a").unwrap();
    call.done();
    fs::rename(bed.path("d"), bed.path("elsewhere")).unwrap();
    let before = bed.tree();
    let refused = bed.undo().unwrap_err();
    assert!(matches!(refused, UndoError::Changed { .. }), "{refused}");
    assert_eq!(bed.tree(), before);
    bed.session.undo(&last(), UndoMode::Force).unwrap();
    assert_eq!(fs::read(bed.path("d/a")).unwrap(), b"before");
}

#[test]
fn folders_stay_as_long_as_others_have_something_in_them() {
    let bed = Bed::new();
    let call = bed.call("call-1");
    call.mkdir("d").unwrap();
    call.mkdir("d/e").unwrap();
    call.write("d/e/a", b"a").unwrap();
    call.write("d/b", b"b").unwrap();
    call.done();
    fs::write(bed.path("d/e/mine"), "mine").unwrap();
    let undone = bed.undo().unwrap();
    assert_eq!(undone.left, [bed.path("d/e"), bed.path("d")]);
    assert_eq!(fs::read(bed.path("d/e/mine")).unwrap(), b"mine");
    assert_eq!(bed.tree().len(), 3);
    // A folder in the place of something that was there is a conflict.
    fs::write(bed.path("f"), "file").unwrap();
    let call = bed.call("call-2");
    call.remove("f").unwrap();
    call.mkdir("f").unwrap();
    call.done();
    fs::write(bed.path("f/mine"), "mine").unwrap();
    let refused = bed.undo().unwrap_err();
    assert!(refused.to_string().contains("f/mine"), "{refused}");
    let undone = bed.session.undo(&last(), UndoMode::Force).unwrap();
    assert_eq!(undone.aside[0].now, bed.path("f.before-undo"));
    assert_eq!(fs::read(bed.path("f")).unwrap(), b"file");
    assert_eq!(fs::read(bed.path("f.before-undo/mine")).unwrap(), b"mine");
}

#[test]
fn later_calls_are_named_and_undone_together() {
    let bed = Bed::new();
    fs::create_dir(bed.path("d")).unwrap();
    fs::write(bed.path("d/a"), "one").unwrap();
    fs::write(bed.path("b"), "one").unwrap();
    let before = bed.tree();
    for (id, name, text) in [
        ("call-1", "d/a", "two, longer"),
        ("call-2", "b", "two"),
        ("call-3", "d/a", "three"),
    ] {
        let call = bed.call(id);
        call.write(name, text.as_bytes()).unwrap();
        call.done();
    }
    let call = bed.call("call-4");
    call.rename("d", "e").unwrap();
    call.done();
    let refused = bed.undo_calls(&["call-1"]).unwrap_err();
    let UndoError::LaterCalls { calls, paths } = refused else {
        panic!("{refused}")
    };
    assert_eq!(calls, ["call-3", "call-4"]);
    assert_eq!(paths, [bed.path("d/a")]);
    bed.undo_calls(&["call-4"]).unwrap();
    let refused = bed.undo_calls(&["call-1"]).unwrap_err();
    let UndoError::LaterCalls { calls, .. } = refused else {
        panic!("{refused}")
    };
    assert_eq!(calls, ["call-3"]);
    let unknown = bed.undo_calls(&["call-9"]).unwrap_err();
    assert!(matches!(unknown, UndoError::UnknownCall(_)));
    // Those of one turn, which are not neighbours.
    let undone = bed.undo_calls(&["call-1", "call-3"]).unwrap();
    assert_eq!(undone.calls, ["call-3", "call-1"]);
    assert_eq!(fs::read(bed.path("d/a")).unwrap(), b"one");
    assert_eq!(fs::read(bed.path("b")).unwrap(), b"two");
    let states: Vec<_> = bed.session.summaries().unwrap();
    let states: Vec<_> = states.iter().map(|set| set.state).take(4).collect();
    let (undone, done) = (SetState::Undone, SetState::Done);
    assert_eq!(states, [undone, done, undone, undone]);
    let since = selection(Calls::Since("call-1".to_owned()), &[]);
    bed.session.undo(&since, UndoMode::Careful).unwrap();
    assert_eq!(bed.tree(), before);
}

#[test]
fn a_file_that_was_moved_and_then_edited_comes_back_step_by_step() {
    let bed = Bed::new();
    fs::write(bed.path("a"), "one").unwrap();
    let before = bed.tree();
    let call = bed.call("call-1");
    call.rename("a", "b").unwrap();
    call.done();
    let call = bed.call("call-2");
    call.write("b", b"two").unwrap();
    call.done();
    bed.undo().unwrap();
    assert_eq!(fs::read(bed.path("b")).unwrap(), b"one");
    bed.undo().unwrap();
    assert_eq!(bed.tree(), before);
}

#[test]
fn only_some_paths_are_undone() {
    let bed = Bed::new();
    fs::create_dir_all(bed.path("d/e")).unwrap();
    fs::write(bed.path("d/e/a"), "a").unwrap();
    fs::write(bed.path("d/b"), "b").unwrap();
    fs::write(bed.path("c"), "c").unwrap();
    let before = bed.tree();
    let call = bed.call("call-1");
    call.remove_all("d").unwrap();
    call.rename("c", "moved").unwrap();
    call.done();
    let none = selection(Calls::Last, &[bed.path("other")]);
    let none = bed.session.undo(&none, UndoMode::Careful);
    assert!(matches!(none, Err(UndoError::Nothing)));
    let one = selection(Calls::Last, &[bed.path("d/e/a")]);
    bed.session.undo(&one, UndoMode::Careful).unwrap();
    assert_eq!(fs::read(bed.path("d/e/a")).unwrap(), b"a");
    assert!(!bed.path("d/b").exists());
    let moved = selection(Calls::Last, &[bed.path("moved")]);
    bed.session.undo(&moved, UndoMode::Careful).unwrap();
    assert_eq!(fs::read(bed.path("c")).unwrap(), b"c");
    assert!(!bed.path("moved").exists());
    assert_eq!(bed.session.summaries().unwrap()[0].state, SetState::Done);
    bed.undo().unwrap();
    assert_eq!(bed.tree(), before);
}

#[test]
fn times_modes_and_inodes_are_those_of_before() {
    let bed = Bed::new();
    fs::create_dir_all(bed.path("d/e")).unwrap();
    fs::write(bed.path("d/e/a"), "a").unwrap();
    fs::set_permissions(bed.path("d/e/a"), fs::Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(bed.path("d/e"), fs::Permissions::from_mode(0o500)).unwrap();
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123);
    for name in ["d/e/a", "d/e", "d"] {
        fs::File::open(bed.path(name))
            .unwrap()
            .set_modified(old)
            .unwrap();
    }
    let facts = |name: &str| {
        let meta = fs::symlink_metadata(bed.path(name)).unwrap();
        (meta.mode(), meta.mtime(), meta.mtime_nsec(), meta.uid())
    };
    let inode = fs::metadata(bed.path("d/e/a")).unwrap().ino();
    let before: Vec<_> = ["d/e/a", "d/e", "d"].map(facts).to_vec();
    let call = bed.call("call-1");
    call.chmod("d/e", 0o700).unwrap();
    call.chmod("d/e/a", 0o600).unwrap();
    call.remove_all("d/e").unwrap();
    call.write("d/new", b"new").unwrap();
    assert!(call.done().complete);
    bed.undo().unwrap();
    assert_eq!(["d/e/a", "d/e", "d"].map(facts).to_vec(), before);
    assert_eq!(fs::metadata(bed.path("d/e/a")).unwrap().ino(), inode);
    if rustix::process::geteuid().is_root() {
        let call = bed.call("call-2");
        call.recorder.before(&bed.path("d"), Touch::Attributes);
        std::os::unix::fs::chown(bed.path("d"), Some(1234), Some(1234)).unwrap();
        assert_eq!(call.done().attributes, 1);
        bed.undo().unwrap();
        assert_eq!(facts("d").3, before[2].3);
    }
}

#[test]
fn a_file_that_was_not_lost_after_all_has_one_name() {
    let bed = Bed::new();
    fs::write(bed.path("a"), "a").unwrap();
    fs::create_dir(bed.path("d")).unwrap();
    let call = bed.call("call-1");
    assert!(call.rename("d", "a").is_err());
    call.rename("a", "b").unwrap();
    call.done();
    assert_eq!(fs::metadata(bed.path("b")).unwrap().nlink(), 1);
    bed.undo().unwrap();
    assert_eq!(fs::metadata(bed.path("a")).unwrap().nlink(), 1);
}

#[test]
fn odd_names_and_sparse_files() {
    let bed = Bed::new();
    let names = [
        OsStr::from_bytes(b"not \xff utf-8"),
        OsStr::new("two\nlines"),
        OsStr::new(" "),
        OsStr::from_bytes(&[b'n'; 255]),
    ];
    for name in names {
        fs::write(bed.work.join(name), name.as_bytes()).unwrap();
    }
    let sparse = fs::File::create(bed.path("sparse")).unwrap();
    sparse.set_len(10 << 30).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"data", 5 << 30).unwrap();
    drop(sparse);
    let call = bed.call("call-1");
    for name in names {
        call.recorder.before(&bed.work.join(name), Touch::Remove);
        fs::remove_file(bed.work.join(name)).unwrap();
    }
    call.write("sparse", b"short").unwrap();
    let counts = call.done();
    assert!(counts.complete, "{counts:?}");
    bed.undo().unwrap();
    for name in names {
        assert_eq!(fs::read(bed.work.join(name)).unwrap(), name.as_bytes());
    }
    let sparse = fs::File::open(bed.path("sparse")).unwrap();
    let meta = sparse.metadata().unwrap();
    assert_eq!(meta.len(), 10 << 30);
    assert!(meta.blocks() < 1000, "{}", meta.blocks());
    let mut data = [0; 4];
    std::os::unix::fs::FileExt::read_exact_at(&sparse, &mut data, 5 << 30).unwrap();
    assert_eq!(&data, b"data");
    // By force, the longest name still gets another.
    let call = bed.call("call-2");
    let long = bed.work.join(names[3]);
    call.recorder.before(&long, Touch::Content);
    fs::write(&long, "call").unwrap();
    call.done();
    fs::write(&long, "user").unwrap();
    let undone = bed.session.undo(&last(), UndoMode::Force).unwrap();
    assert_eq!(fs::read(&undone.aside[0].now).unwrap(), b"user");
    assert_eq!(fs::read(&long).unwrap(), [b'n'; 255]);
}

#[test]
fn a_tree_that_is_deeper_than_a_path_may_be_long() {
    use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};
    let bed = Bed::new();
    let name = "n".repeat(200);
    let mut path = bed.work.clone();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut open = vec![openat(rustix::fs::CWD, &path, flags, Mode::empty()).unwrap()];
    for _ in 0..30 {
        let folder = open.last().unwrap();
        mkdirat(folder, name.as_str(), Mode::RWXU).unwrap();
        let inner = openat(folder, name.as_str(), flags, Mode::empty()).unwrap();
        open.push(inner);
        path.push(&name);
    }
    assert!(path.as_os_str().len() > 4096);
    let create = OFlags::WRONLY | OFlags::CREATE;
    let file = openat(open.last().unwrap(), "a", create, Mode::RUSR).unwrap();
    rustix::io::write(&file, b"deep").unwrap();
    let call = bed.call("call-1");
    call.recorder.before(&path.join("a"), Touch::Remove);
    unlinkat(open.last().unwrap(), "a", AtFlags::empty()).unwrap();
    call.recorder.before(&path, Touch::Remove);
    unlinkat(&open[29], name.as_str(), AtFlags::REMOVEDIR).unwrap();
    let counts = call.done();
    assert_eq!((counts.deleted, counts.complete), (2, true), "{counts:?}");
    bed.undo().unwrap();
    let inner = openat(&open[29], name.as_str(), flags, Mode::empty()).unwrap();
    let file = openat(&inner, "a", OFlags::RDONLY, Mode::empty()).unwrap();
    let mut text = [0; 4];
    rustix::io::read(&file, &mut text).unwrap();
    assert_eq!(&text, b"deep");
}

#[test]
fn a_full_store_makes_the_set_incomplete_and_the_call_goes_on() {
    let bed = Bed::new();
    fs::write(bed.path("a"), "a").unwrap();
    fs::write(bed.path("b"), "b").unwrap();
    fs::write(bed.path("c"), "c").unwrap();
    let call = bed.call("call-1");
    call.write("a", b"changed").unwrap();
    steps::set_full(true);
    call.write("b", b"changed").unwrap();
    steps::set_full(false);
    call.write("c", b"changed").unwrap();
    let counts = call.done();
    assert!(!counts.complete);
    assert!(counts.why.unwrap().contains("No space left"));
    // The rest is undone.
    bed.undo().unwrap();
    let read = |name: &str| fs::read_to_string(bed.path(name)).unwrap();
    assert_eq!(
        (read("a"), read("b"), read("c")),
        ("a".into(), "changed".into(), "c".into())
    );
}

#[test]
fn a_folder_that_leaves_the_work_folder_is_kept_as_a_whole() {
    let bed = Bed::new();
    fs::create_dir_all(bed.path("d/e")).unwrap();
    fs::write(bed.path("d/e/a"), "a").unwrap();
    let before = bed.tree();
    let call = bed.call("call-1");
    call.rename("d", "../outside").unwrap();
    let counts = call.done();
    assert_eq!((counts.deleted, counts.complete), (3, true));
    let outside = bed.work.parent().unwrap().join("outside/e/a");
    fs::write(&outside, "changed there").unwrap();
    bed.undo().unwrap();
    assert_eq!(bed.tree(), before);
    assert_eq!(fs::read(outside).unwrap(), b"changed there");
}

#[test]
fn the_work_folder_itself_may_be_renamed() {
    let bed = Bed::new();
    fs::write(bed.path("a"), "a").unwrap();
    let before = bed.tree();
    let call = bed.call("call-1");
    call.rename("", "../renamed").unwrap();
    assert!(call.done().complete);
    assert!(!bed.work.exists());
    bed.undo().unwrap();
    assert_eq!(bed.tree(), before);
}

#[test]
fn links_in_the_way_are_never_followed() {
    let bed = Bed::new();
    fs::create_dir(bed.path("d")).unwrap();
    fs::write(bed.path("d/a"), "a").unwrap();
    let outside = bed.work.parent().unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a"), "outside").unwrap();
    let call = bed.call("call-1");
    call.write("d/a", b"changed").unwrap();
    call.done();
    fs::rename(bed.path("d"), bed.path("e")).unwrap();
    std::os::unix::fs::symlink(&outside, bed.path("d")).unwrap();
    assert!(matches!(bed.undo(), Err(UndoError::Changed { .. })));
    bed.session.undo(&last(), UndoMode::Force).unwrap();
    assert_eq!(fs::read(bed.path("d/a")).unwrap(), b"a");
    assert!(bed.path("d.before-undo").is_symlink());
    assert_eq!(fs::read(outside.join("a")).unwrap(), b"outside");
    assert_eq!(tree(&outside).len(), 1);
}

#[test]
fn the_tree_after_a_call_can_be_copied() {
    let bed = Bed::new();
    fs::create_dir_all(bed.path("d/e")).unwrap();
    fs::write(bed.path("d/e/a"), "a").unwrap();
    fs::write(bed.path("b"), "b").unwrap();
    fs::write(bed.path("untouched"), "untouched").unwrap();
    let call = bed.call("call-1");
    call.write("b", b"after one").unwrap();
    call.done();
    let wanted = bed.tree();
    let call = bed.call("call-2");
    call.rename("d", "f").unwrap();
    call.write("f/e/new", b"new").unwrap();
    call.remove("f/e/a").unwrap();
    call.write("b", b"after two").unwrap();
    call.done();
    let call = bed.call("call-3");
    call.remove_all("f").unwrap();
    call.done();
    let now = bed.tree();
    let into = bed.work.parent().unwrap().join("copy");
    let made = bed.session.tree_at("call-1", &into).unwrap();
    assert_eq!(tree(&into), wanted);
    assert_eq!(made.entries, 5);
    assert_eq!(bed.tree(), now);
    assert!(bed.session.tree_at("call-1", &into).is_err());
    assert!(bed.session.tree_at("none", &into).is_err());
    let latest = bed.work.parent().unwrap().join("latest");
    bed.session.tree_at("call-3", &latest).unwrap();
    assert_eq!(tree(&latest), now);
    // The call before one that was undone, and that one itself.
    bed.undo().unwrap();
    let after = bed.tree();
    let second = bed.work.parent().unwrap().join("second");
    bed.session.tree_at("call-2", &second).unwrap();
    assert_eq!(tree(&second), after);
    let third = bed.work.parent().unwrap().join("third");
    bed.session.tree_at("call-3", &third).unwrap();
    assert_eq!(tree(&third), now);
}

#[test]
fn old_sessions_are_cleaned_and_running_ones_stay() {
    let bed = Bed::with(Bounds {
        keep: std::time::Duration::ZERO,
        ..bounds()
    });
    fs::write(bed.path("a"), "a").unwrap();
    let call = bed.call("call-1");
    call.write("a", b"b").unwrap();
    let other = bed.store.session("s-2", &bed.work, &[]);
    let recorder = other.begin("call-1", "bash");
    recorder.before(&bed.path("new"), Touch::Content);
    fs::write(bed.path("new"), "new").unwrap();
    recorder.finish(End::Done);
    assert_eq!(bed.store.sessions(None).unwrap().len(), 2);
    assert_eq!(bed.store.size().unwrap().sets, 2);
    let removed = bed.store.clean(&Clean::Expired).unwrap();
    assert_eq!((removed.sessions, removed.sets), (1, 1));
    call.done();
    assert_eq!(
        bed.store
            .find("s-1")
            .unwrap()
            .unwrap()
            .sets()
            .unwrap()
            .len(),
        1
    );
    bed.store.clean(&Clean::Session("s-1".to_owned())).unwrap();
    assert!(bed.store.sessions(None).unwrap().is_empty());
    assert!(bed.store.find("s-1").unwrap().is_none());
    // A live session goes on after that.
    let call = bed.call("call-2");
    call.write("a", b"c").unwrap();
    call.done();
    bed.undo().unwrap();
    assert_eq!(fs::read(bed.path("a")).unwrap(), b"b");
}
