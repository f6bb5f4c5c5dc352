//! Supervisors whose program was killed. Each ends what it watches over and then itself,
//! which takes a moment.

use super::hidden::SUPERVISE;
use super::tree;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long it is until they are looked at again.
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until what a killed program of ours had started has ended, but no longer than
/// `limit`. Whether it has.
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

/// Whether it is a supervisor, and its parent is not the program that started it.
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

/// The file that a process runs, where we may know.
fn program(pid: u32) -> Option<PathBuf> {
    rustix::fs::readlink(Path::new(&format!("/proc/{pid}/exe")), Vec::new())
        .ok()
        .map(|link| PathBuf::from(link.to_string_lossy().into_owned()))
}
