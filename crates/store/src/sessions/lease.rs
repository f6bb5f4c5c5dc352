//! Ownership of sessions: one running process at a time may write.
//!
//! A process is identified by its id, its start time and the boot id, because process ids
//! are reused.

use std::sync::OnceLock;

/// Identifies a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) pid: u32,
    /// Start time in clock ticks since the boot.
    pub(super) start: i64,
    pub(super) boot: String,
}

impl Owner {
    /// Returns the identity of this process.
    pub(super) fn this_process() -> Self {
        let pid = std::process::id();
        // Not cached: after a fork it would be the parent's.
        Self {
            pid,
            start: start_time(pid).unwrap_or(0),
            boot: boot_id().to_owned(),
        }
    }

    /// Whether the process is still running.
    pub(super) fn is_alive(&self) -> bool {
        if self.boot != boot_id() {
            return false;
        }
        match start_time(self.pid) {
            Some(start) => start == self.start,
            // If processes are hidden from each other, it may still exist.
            None => exists(self.pid),
        }
    }
}

/// Returns an id that changes with every boot.
fn boot_id() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        read("/proc/sys/kernel/random/boot_id")
            .unwrap_or_default()
            .trim()
            .to_owned()
    })
}

/// Returns the start time of a process; -1 for a zombie, and `None` if unknown.
fn start_time(pid: u32) -> Option<i64> {
    let stat = read(&format!("/proc/{pid}/stat"))?;
    // The name is in parentheses, and may contain spaces and parentheses.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return Some(-1);
    }
    fields.nth(18)?.parse().ok()
}

/// Whether a process with this id exists.
fn exists(pid: u32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

fn read(path: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "/proc describes processes and is not a user's file"
    )]
    std::fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_process_is_alive() {
        let this_process = Owner::this_process();
        assert!(this_process.start > 0 && this_process.is_alive());
        for other in [
            Owner {
                start: this_process.start - 1,
                ..this_process.clone()
            },
            Owner {
                boot: "another".to_owned(),
                ..this_process.clone()
            },
            Owner {
                pid: u32::MAX,
                ..this_process
            },
        ] {
            assert!(!other.is_alive(), "{other:?}");
        }
    }
}
