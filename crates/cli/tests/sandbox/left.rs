//! Finds leftover processes: those with a mark in their environment, or that run the binary
//! of a bed.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum time that a process may outlive its end.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// Extra time for a busy machine, where a killed process may take longer to disappear. The
/// grace above is haft's.
const SLACK: Duration = Duration::from_secs(1);

/// Minimum number of checks: on a slow machine each check takes long.
const LOOKS: u32 = 100;

/// Waits for the last process to end. A server may stay, with the helper that it keeps
/// ready for its next command: below a helper with a command there is a process.
#[track_caller]
pub(crate) fn nothing(mark: &str, folder: &Path, server: Option<u32>) {
    let begun = Instant::now();
    for look in 1.. {
        let mut found = alive(mark, folder);
        if let Some(server) = server {
            let own = children(server);
            let is_ready = |one: &One| {
                own.contains(&one.pid)
                    && one.line.contains("__supervise")
                    && children(one.pid).is_empty()
            };
            found.retain(|one| one.pid != server && !is_ready(one));
        }
        if found.is_empty() {
            return;
        }
        let late = begun.elapsed() >= GRACE + SLACK && look >= LOOKS;
        assert!(!late, "still alive: {found:#?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[derive(Debug)]

pub(crate) struct One {
    pub(crate) pid: u32,
    pub(crate) line: String,
}

/// Processes that have the mark or were started from the folder, zombies included: haft
/// must reap them.
pub(crate) fn alive(mark: &str, folder: &Path) -> Vec<One> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let place = entry.path();
        let holds = |file: &str, needle: &[u8]| {
            std::fs::read(place.join(file))
                .is_ok_and(|bytes| bytes.windows(needle.len()).any(|part| part == needle))
        };
        let ours = holds("environ", mark.as_bytes())
            || std::fs::read_link(place.join("exe")).is_ok_and(|exe| exe.starts_with(folder))
            || holds("cmdline", folder.as_os_str().as_bytes());
        if ours {
            let line = std::fs::read(place.join("cmdline")).unwrap_or_default();
            let stat = std::fs::read_to_string(place.join("stat")).unwrap_or_default();
            // The state and the parent follow the name, which may contain anything.
            let state = stat.rsplit(')').next().unwrap_or_default();
            let state: Vec<&str> = state.split_whitespace().take(2).collect();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let line = format!("{line}[{}]", state.join(" of "));
            found.push(One { pid, line });
        }
    }
    found
}

/// The children of a process.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|text| {
            let pids: Vec<u32> = text.split_whitespace().flat_map(str::parse).collect();
            pids
        })
        .collect()
}

/// Waits for a condition, and fails after a timeout.
#[track_caller]
pub(crate) fn until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < limit, "in {limit:?} not: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
