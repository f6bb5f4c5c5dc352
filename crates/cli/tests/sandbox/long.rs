//! Many commands in one session leave nothing behind: no process, no open file, no file on
//! disk, no control group.

use crate::bed::{Bed, Level, Who, beds, in_each};
use crate::left;
use crate::turn;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Every path below a folder.
fn paths(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
            found.insert(entry.path());
        }
    }
    found
}

/// Control groups of commands without a process: those of other sessions on this machine
/// have one.
fn empty_groups() -> Vec<PathBuf> {
    paths(Path::new("/sys/fs/cgroup"))
        .into_iter()
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("haft-box-"))
        })
        .filter(|path| std::fs::read(path.join("cgroup.procs")).is_ok_and(|procs| procs.is_empty()))
        .collect()
}

fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .count()
}

#[test]
fn many_commands_leave_nothing_behind() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        let count = if (bed.who, bed.level) == (Who::Root, Level::Full) {
            500
        } else {
            60
        };
        let mut server = bed.serve();
        run(bed, &mut server, 5);
        left::until("it has no child", Duration::from_secs(6), || {
            left::children(server.pid()).is_empty()
        });
        let (open, files) = (server_descriptors(&server), paths(&bed.path("")));
        let temp = paths(Path::new("/tmp"));
        run(bed, &mut server, count);
        left::until("it has no child", Duration::from_secs(6), || {
            left::children(server.pid()).is_empty()
        });
        let now = paths(&bed.path(""));
        let new: Vec<_> = now.difference(&files).collect();
        assert!(new.is_empty(), "{}: {new:?}", bed.name());
        // Files it has open for a moment (a folder it lists, the record it writes) may be
        // counted on either side; a leak stays.
        left::until("it has no more files open", Duration::from_secs(6), || {
            server_descriptors(&server) <= open
        });
        let ours =
            |path: &&PathBuf| path.to_string_lossy().contains("haft") && !temp.contains(*path);
        let new: Vec<_> = paths(Path::new("/tmp"))
            .iter()
            .filter(ours)
            .cloned()
            .collect();
        assert!(
            new.is_empty()
                || new
                    .iter()
                    .all(|path| path.to_string_lossy().contains("haft-test-")),
            "{new:?}"
        );
        server.close();
        assert!(server.ended(Duration::from_secs(2)).success());
        bed.nothing_left();
    });
    left::until(
        "the control groups are gone",
        Duration::from_secs(5),
        || empty_groups().is_empty(),
    );
}

/// Root sees haft's open files; haft hides them from its own user.
fn server_descriptors(server: &crate::client::Server) -> Option<usize> {
    if rustix::process::geteuid().is_root() {
        Some(descriptors(server.pid()))
    } else {
        println!("skipped: open files of haft can be counted by root only");
        None
    }
}

fn run(bed: &Bed, server: &mut crate::client::Server, count: usize) {
    for at in (0..count).step_by(4) {
        let ids: Vec<u64> = (at..at + 4)
            .map(|at| server.ask(&json!({ "command": format!("echo {at}") })))
            .collect();
        for (id, at) in ids.into_iter().zip(at..) {
            assert_eq!(server.answer(id).text, format!("{at}\n"), "{}", bed.name());
        }
    }
}
