//! Supervisors whose haft was killed. Each ends its command's tree and then exits, which
//! takes a moment.

use super::hidden::SUPERVISE;
use super::tree;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Interval between checks.
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until everything that a killed haft had started has ended, at most `limit`.
/// Returns whether it has.
pub async fn orphans_ended(limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    while tree::processes().into_iter().any(is_orphan) {
        if Instant::now() >= deadline {
            return false;
        }
        tokio::time::sleep(PAUSE).await;
    }
    true
}

/// Whether a process is a supervisor whose parent is no longer the program that started it.
fn is_orphan(pid: u32) -> bool {
    let Some(line) = tree::command_line(pid) else {
        return false;
    };
    let second = line.split(|&byte| byte == 0).nth(1);
    if second != Some(SUPERVISE.as_bytes()) {
        return false;
    }
    let Some(node) = tree::node(pid).filter(tree::Node::alive) else {
        return false;
    };
    let own = program(pid);
    own.is_some() && program(node.parent) != own
}

/// Returns the executable of a process, if it may be read.
fn program(pid: u32) -> Option<PathBuf> {
    rustix::fs::readlink(Path::new(&format!("/proc/{pid}/exe")), Vec::new())
        .ok()
        .map(|link| PathBuf::from(link.to_string_lossy().into_owned()))
}
