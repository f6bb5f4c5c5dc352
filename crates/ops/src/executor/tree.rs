//! The process tree, as `/proc` reports it.

use super::Survivor;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A process in the table of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) pid: u32,
    pub(super) parent: u32,
    pub(super) group: u32,
    pub(super) session: u32,
    pub(super) state: u8,
    /// CPU time used, in ticks.
    pub(super) ticks: u64,
    /// Start time in ticks; together with the pid it identifies a process uniquely.
    pub(super) begun: u64,
    pub(super) name: String,
}

impl Node {
    /// Whether the process is running, not a zombie.
    pub(super) fn alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x')
    }
}

impl From<Node> for Survivor {
    fn from(node: Node) -> Self {
        Self {
            pid: node.pid,
            name: node.name,
        }
    }
}

/// Maximum number of processes in a list.
const MAX: usize = 65_536;

/// Returns the data of a process, if it exists.
pub(super) fn node(pid: u32) -> Option<Node> {
    let stat = contents(format!("/proc/{pid}/stat"))?;
    let open = stat.iter().position(|&byte| byte == b'(')?;
    // A name may contain parentheses, so the last one ends it.
    let close = stat.iter().rposition(|&byte| byte == b')')?;
    let name = String::from_utf8_lossy(stat.get(open + 1..close)?).into_owned();
    let rest = String::from_utf8_lossy(stat.get(close + 1..)?);
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Node {
        pid,
        name,
        state: *fields.first()?.as_bytes().first()?,
        parent: u32::try_from(number(1)?).ok()?,
        group: u32::try_from(number(2)?).ok()?,
        session: u32::try_from(number(3)?).ok()?,
        ticks: number(11)? + number(12)?,
        begun: number(19)?,
    })
}

/// Returns the children of all threads of a process; empty if it does not exist.
pub(super) fn children(pid: u32) -> Vec<u32> {
    if has_lists() {
        // If a thread ended meanwhile, its children moved to another thread: retry.
        for _ in 0..3 {
            let threads = numbers(Path::new(&format!("/proc/{pid}/task")));
            let lists: Option<Vec<Vec<u8>>> = threads
                .iter()
                .map(|thread| contents(format!("/proc/{pid}/task/{thread}/children")))
                .collect();
            if let Some(lists) = lists {
                return lists
                    .iter()
                    .flat_map(|list| list.split(u8::is_ascii_whitespace))
                    .filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok())
                    .collect();
            }
        }
    }
    // Expensive: if a thousand processes end meanwhile, this makes a million checks.
    numbers(Path::new("/proc"))
        .into_iter()
        .filter(|&other| node(other).is_some_and(|node| node.parent == pid))
        .collect()
}

/// Whether the kernel lists children, which is a build option.
fn has_lists() -> bool {
    static LISTS: OnceLock<bool> = OnceLock::new();
    *LISTS.get_or_init(|| contents("/proc/thread-self/children".to_owned()).is_some())
}

/// Returns all processes.
pub(super) fn processes() -> Vec<u32> {
    numbers(Path::new("/proc"))
}

/// Returns the arguments of a process, each followed by a NUL byte.
pub(super) fn command_line(pid: u32) -> Option<Vec<u8>> {
    contents(format!("/proc/{pid}/cmdline"))
}

/// Returns all running processes below this one, parents first.
pub(super) fn descendants(pid: u32) -> Vec<Node> {
    let mut open = std::collections::VecDeque::from([pid]);
    let mut found: Vec<Node> = Vec::new();
    while let Some(next) = open.pop_front() {
        for child in children(next) {
            let Some(node) = node(child) else { continue };
            if found.len() >= MAX {
                return found;
            }
            if node.alive() {
                found.push(node);
                open.push_back(child);
            }
        }
    }
    found
}

/// Signals a process if it is still the one that was seen. The pidfd refers to the process
/// that had the pid when it was opened; if that is the same process, the pid was not
/// reused.
#[cfg(target_os = "linux")]
pub(super) fn send(seen: &Node, signal: rustix::process::Signal) {
    use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};
    let pid = i32::try_from(seen.pid).ok().and_then(Pid::from_raw);
    let handle = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    if let Some(handle) = handle
        && node(seen.pid).is_some_and(|now| now.begun == seen.begun)
    {
        let _ = pidfd_send_signal(&handle, signal);
    }
}

/// Kills one process.
pub(super) fn kill(pid: u32) {
    #[cfg(target_os = "linux")]
    if let Some(node) = node(pid) {
        send(&node, rustix::process::Signal::KILL);
    }
}

/// Kills everything below a supervisor that does not do so itself.
pub(super) fn kill_below(supervisor: u32) {
    #[cfg(target_os = "linux")]
    for _ in 0..20 {
        let below = descendants(supervisor);
        if below.is_empty() {
            return;
        }
        for node in below {
            send(&node, rustix::process::Signal::KILL);
        }
    }
}

/// Kills all processes of a session whose leader is dead. After a supervisor was killed,
/// its session is the only way to find them.
pub(super) fn kill_session(leader: u32) {
    #[cfg(target_os = "linux")]
    for _ in 0..20 {
        let members: Vec<Node> = numbers(Path::new("/proc"))
            .into_iter()
            .filter_map(node)
            .filter(|node| node.session == leader && node.pid != leader && node.alive())
            .collect();
        if members.is_empty() {
            return;
        }
        for member in members {
            send(&member, rustix::process::Signal::KILL);
        }
    }
}

/// Whether a process waits for user input: it reads from a terminal or a named pipe, or
/// waits until its input is readable. An unnamed pipe leads to another process.
pub(super) fn reads_from_person(pid: u32) -> bool {
    // read; then poll, select, pselect, ppoll, epoll.
    let (read, waits): (&str, &[&str]) = match std::env::consts::ARCH {
        "x86_64" => ("0", &["7", "23", "270", "271", "232", "281"]),
        "aarch64" | "riscv64" => ("63", &["72", "73", "22"]),
        _ => return false,
    };
    let Some(call) = contents(format!("/proc/{pid}/syscall")) else {
        return false;
    };
    let call = String::from_utf8_lossy(&call).into_owned();
    let mut words = call.split_ascii_whitespace();
    let number = words.next().unwrap_or_default();
    if number == read {
        let first = words.next().unwrap_or_default();
        return u64::from_str_radix(first.trim_start_matches("0x"), 16)
            .is_ok_and(|fd| leads_to_person(pid, fd));
    }
    waits.contains(&number) && leads_to_person(pid, 0)
}

/// Whether a user could type into a descriptor of a process. Its path is not evidence,
/// because paths differ inside a sandbox.
fn leads_to_person(pid: u32, fd: u64) -> bool {
    let fd = format!("/proc/{pid}/fd/{fd}");
    let Ok(stat) = rustix::fs::stat(&fd) else {
        return false;
    };
    let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
    if kind.is_fifo() {
        let name = rustix::fs::readlink(&fd, Vec::new());
        return name.is_ok_and(|name| name.to_bytes().starts_with(b"/"));
    }
    // Consoles, and the program side of pseudo terminals.
    kind.is_char_device() && matches!(rustix::fs::major(stat.st_rdev), 4 | 5 | 136..=143)
}

/// Returns the target of a link in the `/proc` folder of a process.
pub(super) fn link(pid: u32, name: &str) -> Option<PathBuf> {
    let target = rustix::fs::readlink(format!("/proc/{pid}/{name}"), Vec::new()).ok()?;
    Some(PathBuf::from(OsStr::from_bytes(target.to_bytes())))
}

/// Returns the inodes of the sockets that a process has open.
pub(super) fn sockets(pid: u32) -> impl Iterator<Item = u64> {
    let descriptors = numbers(Path::new(&format!("/proc/{pid}/fd")));
    descriptors.into_iter().filter_map(move |descriptor| {
        let target = link(pid, &format!("fd/{descriptor}"))?;
        let inode = target.to_str()?.strip_prefix("socket:[")?;
        inode.strip_suffix(']')?.parse().ok()
    })
}

/// Returns a table of the network that a process uses, such as `tcp`.
pub(super) fn network_table(pid: u32, name: &str) -> Option<String> {
    let table = contents(format!("/proc/{pid}/net/{name}"))?;
    Some(String::from_utf8_lossy(&table).into_owned())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the process table is not a user's file"
)]
fn contents(path: String) -> Option<Vec<u8>> {
    std::fs::read(path).ok()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the process table is not a user's folder"
)]
fn numbers(folder: &Path) -> Vec<u32> {
    std::fs::read_dir(folder).map_or_else(
        |_| Vec::new(),
        |entries| {
            entries
                .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
                .take(MAX)
                .collect()
        },
    )
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_itself_and_its_children() {
        let me = std::process::id();
        assert!(node(me).unwrap().alive());
        assert_eq!(node(u32::MAX), None);
        #[expect(clippy::disallowed_methods, reason = "a child process to inspect")]
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let seen = descendants(me);
        child.kill().unwrap();
        child.wait().unwrap();
        let seen = seen.iter().find(|node| node.pid == child.id()).unwrap();
        assert_eq!(seen.parent, me);
        assert!(!descendants(me).iter().any(|node| node.pid == child.id()));
        assert_eq!(children(child.id()), Vec::<u32>::new());
    }
}
