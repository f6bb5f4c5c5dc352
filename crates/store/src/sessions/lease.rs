//! Who may add to a session: one living process at a time.
//!
//! A process is its number, the moment it started and the boot that was in: a number
//! alone is soon somebody else's.

use std::sync::OnceLock;

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) pid: u32,
    /// In ticks since the boot.
    pub(super) start: i64,
    pub(super) boot: String,
}

impl Owner {
    /// This process.
    pub(super) fn ourselves() -> Self {
        let pid = std::process::id();
        // Not remembered: after a fork it would be the parent's.
        Self {
            pid,
            start: start_of(pid).unwrap_or(0),
            boot: boot().to_owned(),
        }
    }

    /// Whether it is still running.
    pub(super) fn is_alive(&self) -> bool {
        if self.boot != boot() {
            return false;
        }
        match start_of(self.pid) {
            Some(start) => start == self.start,
            // Where processes are hidden from each other, it may well be there.
            None => is_there(self.pid),
        }
    }
}

/// A word that is another after every start of the machine.
fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        read("/proc/sys/kernel/random/boot_id")
            .unwrap_or_default()
            .trim()
            .to_owned()
    })
}

/// When a process started; -1 if it has ended and nobody has asked how. Nothing if the
/// system does not say.
fn start_of(pid: u32) -> Option<i64> {
    let stat = read(&format!("/proc/{pid}/stat"))?;
    // Its name is in brackets and may have spaces and brackets in it.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return Some(-1);
    }
    fields.nth(18)?.parse().ok()
}

/// Whether there is a process of this number.
fn is_there(pid: u32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

fn read(path: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "what the kernel says of processes is no file of anybody's"
    )]
    std::fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_lives_until_it_ends() {
        let ourselves = Owner::ourselves();
        assert!(ourselves.start > 0 && ourselves.is_alive());
        for other in [
            Owner {
                start: ourselves.start - 1,
                ..ourselves.clone()
            },
            Owner {
                boot: "another".to_owned(),
                ..ourselves.clone()
            },
            Owner {
                pid: u32::MAX,
                ..ourselves
            },
        ] {
            assert!(!other.is_alive(), "{other:?}");
        }
    }
}
