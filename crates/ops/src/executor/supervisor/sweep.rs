//! Ending a process tree. The supervisor is the parent of every orphan in it, so the
//! children of a killed process are killed in the next round, until none is left.
//!
//! Unrelated processes are never signalled. The pid of a child is not reused before the
//! supervisor has reaped it, which only this thread does; processes further down are
//! signalled through a pidfd that was checked.

use super::super::Exit;
use super::super::tree;
use super::super::wire::Left;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus};
use std::time::{Duration, Instant};

/// Number of rounds without a pause, because a tree that forks as fast as it can is only
/// caught by a loop that is as fast.
const FAST: u32 = 2_000;

/// Time after which the sweep gives up; the remaining processes cannot be killed.
const GIVE_UP: Duration = Duration::from_secs(20);

/// Sends TERM to the tree, kills the rest after `grace`, and reaps everything. Returns the
/// exit status of the command if it had not been read before.
pub(super) fn end(me: u32, command: Pid, grace: Duration) -> Option<Exit> {
    terminate(me, command);
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

/// Reaps all children except the command, and returns whether any is still running.
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

/// Reaps the command.
pub(super) fn reap(command: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let _ = rustix::process::waitid(WaitId::Pid(command), options);
}

/// Sends TERM to all processes, and CONT to wake those that are stopped.
fn terminate(me: u32, command: Pid) {
    // All at once if possible, because a tree that forks as fast as it can leaves little
    // time to enumerate it.
    let group = all_in_namespace(me).unwrap_or(command);
    // Not reaped yet, so its pid and process group id are still its own.
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

/// Returns the target that reaches every other process in a PID namespace with one signal.
/// Only its first process can do that; for the kernel this is process group 1.
fn all_in_namespace(me: u32) -> Option<Pid> {
    (me == 1).then_some(Pid::INIT)
}

fn kill(me: u32, command: Pid) -> Option<Exit> {
    // The kernel prevents forks into a group while it is killed, so this ends anything that
    // forks within the group at once.
    let group = all_in_namespace(me).unwrap_or(command);
    let _ = rustix::process::kill_process_group(group, Signal::KILL);
    let mut status = None;
    kill_children(me, |pid, ended| {
        if pid == command {
            status = exit_of(ended);
        }
    });
    status
}

/// Kills and reaps all children, including processes that become children thereby.
pub(super) fn kill_children(me: u32, mut seen: impl FnMut(Pid, WaitStatus)) {
    let begun = Instant::now();
    // 0 if the group is outside the namespace; then no process in here belongs to it.
    let own = tree::node(me).map(|node| node.group);
    for round in 0_u32.. {
        if reap_all(&mut seen) == Left::Nothing || begun.elapsed() > GIVE_UP {
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

/// Kills the process group of a child that was just killed. The kernel prevents forks into
/// a group while it is killed, so a tree that forks as fast as it can ends at once. A
/// killed child cannot change its group, and until it is reaped, which only this thread
/// does, the group id is not reused.
fn kill_group_of(child: u32, own: Option<u32>) {
    let Some(group) = tree::node(child).map(|node| node.group) else {
        return;
    };
    let pid = i32::try_from(group).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid.filter(|_| own.is_some_and(|own| own != group)) {
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    }
}

/// Reaps all children that have ended.
fn reap_all(seen: &mut impl FnMut(Pid, WaitStatus)) -> Left {
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
