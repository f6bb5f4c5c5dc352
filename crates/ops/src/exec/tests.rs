//! Tests for moving files away.

#![expect(
    clippy::disallowed_methods,
    reason = "tests look at the disk themselves"
)]

use super::move_out::{move_out, move_out_by_copying};
use super::state::{State, state};
use crate::scope::shut::open_way;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

fn made(at: &Path) {
    fs::create_dir_all(at.join("sub/deep")).unwrap();
    fs::write(at.join("sub/run"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(at.join("sub/run"), fs::Permissions::from_mode(0o751)).unwrap();
    fs::write(at.join("sub/deep/shut"), "shut").unwrap();
    fs::set_permissions(at.join("sub/deep/shut"), fs::Permissions::from_mode(0o000)).unwrap();
    symlink("/etc/passwd", at.join("link")).unwrap();
    symlink("/etc", at.join("folder")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    for folder in ["sub/deep", "sub", ""] {
        fs::set_permissions(at.join(folder), fs::Permissions::from_mode(0o555)).unwrap();
    }
}

#[test]
fn a_whole_folder_is_copied_with_its_permissions_and_no_link_is_followed() {
    let temp = tempfile::tempdir().unwrap();
    let (from, out) = (temp.path().join("w/made"), temp.path().join("out"));
    made(&from);
    let to = move_out_by_copying(&from, &out).unwrap();
    assert_eq!(state(&from), State::Nothing);
    assert!(to.starts_with(&out) && to.ends_with("moved-1-made"));
    assert_eq!(
        fs::read_to_string(to.join("sub/run")).unwrap(),
        "#!/bin/sh\n"
    );
    assert_eq!(
        fs::metadata(to.join("sub/run")).unwrap().mode() & 0o7777,
        0o751
    );
    let shut = fs::metadata(to.join("sub/deep/shut")).unwrap();
    assert_eq!((shut.mode() & 0o7777, shut.len()), (0, 4));
    assert_eq!(fs::read_link(to.join("folder")).unwrap(), Path::new("/etc"));
    assert!(Path::new("/etc/passwd").exists());
    // A link and a file.
    symlink("/etc", &from).unwrap();
    let to = move_out_by_copying(&from, &out).unwrap();
    assert_eq!(fs::read_link(to).unwrap(), Path::new("/etc"));
    fs::write(&from, "text").unwrap();
    let to = move_out_by_copying(&from, &out).unwrap();
    assert_eq!(fs::read_to_string(to).unwrap(), "text");
    assert_eq!(state(&from), State::Nothing);
}

#[test]
fn what_is_too_deep_to_copy_stays_whole() {
    let temp = tempfile::tempdir().unwrap();
    let (from, out) = (temp.path().join("made"), temp.path().join("out"));
    let deep = from.join("d/".repeat(150));
    fs::create_dir_all(&deep).unwrap();
    let error = move_out_by_copying(&from, &out).unwrap_err();
    assert!(error.to_string().contains("too large"), "{error}");
    assert!(deep.exists());
    assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
}

#[test]
fn there_is_always_a_free_name() {
    let temp = tempfile::tempdir().unwrap();
    let (from, out) = (temp.path().join("d".repeat(255)), temp.path().join("out"));
    let roots = [temp.path().join("elsewhere")];
    for _ in 0..1_005 {
        fs::write(&from, "x").unwrap();
        move_out(&from, &out, &roots).unwrap();
    }
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1_005);
}

#[test]
fn a_folder_is_not_renamed_into_a_root() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let (from, out) = (root.join("made"), root.join("state/out"));
    let number = || fs::metadata(&from).unwrap().ino();
    fs::create_dir(&from).unwrap();
    let before = number();
    let to = move_out(&from, &out, std::slice::from_ref(&root)).unwrap();
    assert_ne!(fs::metadata(to).unwrap().ino(), before);
    fs::create_dir(&from).unwrap();
    let before = number();
    let to = move_out(&from, &out, &[root.join("other")]).unwrap();
    assert_eq!(fs::metadata(to).unwrap().ino(), before);
}

#[test]
fn the_way_is_shut_again() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let folder = root.join("shut");
    fs::create_dir_all(folder.join("in")).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o000)).unwrap();
    let mode = || fs::metadata(&folder).unwrap().mode() & 0o777;
    let opened = open_way(&folder.join("x"));
    assert_eq!((opened.len(), mode()), (1, 0o700));
    drop(opened);
    assert_eq!(mode(), 0);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
}
