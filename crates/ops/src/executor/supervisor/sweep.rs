//! How a tree ends. The supervisor is the parent of every orphan in it, so what
//! is killed leaves its children to the next round, until there is nobody left.
//!
//! No stranger is ever signalled: the number of a child cannot be given away
//! before the supervisor has read how it ended, which happens in this thread
//! only; those further down are signalled by a handle that was compared.

use super::super::Exit;
use super::super::tree;
use super::super::wire::Left;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus};
use std::time::{Duration, Instant};

/// Rounds that follow each other at once: a tree that forks as fast as it can is
/// only caught by somebody as fast.
const FAST: u32 = 2_000;

/// When it is given up: what still lives cannot be killed by us at all.
const GIVE_UP: Duration = Duration::from_secs(20);

/// Asks the tree to end, kills what did not, and reads every end. Answers with
/// the end of the command, if it had not been read before.
pub(super) fn end(me: u32, command: Pid, grace: Duration) -> Option<Exit> {
    ask(me, command);
    let deadline = Instant::now() + grace;
    while clear(me, command) == Left::Some || alive(command) {
        let now = Instant::now();
        if now >= deadline {
            break;
        }
        std::thread::sleep(Duration::from_millis(2).min(deadline - now));
    }
    kill(me, command)
}

fn alive(command: Pid) -> bool {
    tree::node(number(command)).is_some_and(|node| node.alive())
}

/// Reads the ends of all children but the command, and tells whether any lives.
pub(super) fn clear(me: u32, command: Pid) -> Left {
    let mut left = Left::Nothing;
    for child in tree::children(me) {
        let Some(pid) = i32::try_from(child).ok().and_then(Pid::from_raw) else {
            continue;
        };
        if pid == command {
            continue;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        if let Ok(None) = rustix::process::waitid(WaitId::Pid(pid), options) {
            left = Left::Some;
        }
    }
    left
}

/// Reads the command's end.
pub(super) fn reap(command: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let _ = rustix::process::waitid(WaitId::Pid(command), options);
}

/// A word to everybody, and to those who are stopped a second one.
fn ask(me: u32, command: Pid) {
    // All at once where that can be: whoever forks as fast as it can leaves
    // little time for anybody to look around.
    let group = everybody(me).unwrap_or(command);
    // Not read yet, the command still owns its number and that of its group.
    let _ = rustix::process::kill_process_group(group, Signal::TERM);
    let _ = rustix::process::kill_process_group(group, Signal::CONT);
    if group != command {
        return;
    }
    let seen = tree::descendants(me);
    for node in seen.iter().filter(|node| node.group != number(command)) {
        tree::send(node, Signal::TERM);
        tree::send(node, Signal::CONT);
    }
}

/// Whom the first process of a PID namespace reaches with one signal: everybody
/// in it but itself. To the kernel that is the group of number one.
fn everybody(me: u32) -> Option<Pid> {
    (me == 1).then_some(Pid::INIT)
}

fn kill(me: u32, command: Pid) -> Option<Exit> {
    // The kernel lets nobody be born into a group while it is killed, so this
    // ends whatever forks within one at once.
    let group = everybody(me).unwrap_or(command);
    let _ = rustix::process::kill_process_group(group, Signal::KILL);
    let mut status = None;
    kill_children(me, |pid, ended| {
        if pid == command {
            status = exit_of(ended);
        }
    });
    status
}

/// Kills and reads every child, and those who become children by that.
pub(super) fn kill_children(me: u32, mut seen: impl FnMut(Pid, WaitStatus)) {
    let begun = Instant::now();
    // Zero where it is outside the namespace: then nobody in here is in it.
    let own = tree::node(me).map(|node| node.group);
    for round in 0_u32.. {
        if read_all(&mut seen) == Left::Nothing || begun.elapsed() > GIVE_UP {
            break;
        }
        for child in tree::children(me) {
            let Some(pid) = i32::try_from(child).ok().and_then(Pid::from_raw) else {
                continue;
            };
            if let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
                let _ = rustix::process::pidfd_send_signal(&handle, Signal::KILL);
                kill_group_of(child, own);
            }
        }
        if round > FAST {
            std::thread::sleep(Duration::from_millis(5));
        } else {
            std::thread::yield_now();
        }
    }
}

/// Kills whoever shares the group of a child that was just killed: nobody is born
/// into a group while it is killed, so what forks as fast as it can ends at once.
/// The child changes its group no more, and until its end is read, which is done
/// here only, the number of the group is nobody else's.
fn kill_group_of(child: u32, own: Option<u32>) {
    let Some(group) = tree::node(child).map(|node| node.group) else {
        return;
    };
    let pid = i32::try_from(group).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid.filter(|_| own.is_some_and(|own| own != group)) {
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    }
}

/// Reads every end there is to read.
fn read_all(seen: &mut impl FnMut(Pid, WaitStatus)) -> Left {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, ended))) => seen(pid, ended),
            Err(Errno::INTR) => {}
            Ok(None) => return Left::Some,
            Err(_) => return Left::Nothing,
        }
    }
}

fn exit_of(status: WaitStatus) -> Option<Exit> {
    let code = status.exit_status().map(Exit::Code);
    code.or_else(|| status.terminating_signal().map(Exit::Signal))
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_pid().unsigned_abs()
}
