//! A work folder, a home beside it, and a server in them.

use haft_testing::http::Client;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, ChildStdout, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub(crate) struct Bed {
    base: haft_testing::bed::Bed,
}

impl Bed {
    pub(crate) fn new() -> Self {
        Self {
            base: haft_testing::bed::Bed::new(
                env!("CARGO_BIN_EXE_haft"),
                env!("CARGO_TARGET_TMPDIR"),
            ),
        }
    }

    /// Recorded sessions.
    pub(crate) fn recorded(&self) -> Vec<Value> {
        let text = self.says(&["sessions", "list", "--all", "--json"]);
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    }

    /// Starts a server on a free port. Commands run without a sandbox or approval.
    pub(crate) fn serve(&self, args: &[&str]) -> Server {
        let all = [&["mcp", "--http", "0"], args].concat();
        Server::start(self.command(&all))
    }
}

impl std::ops::Deref for Bed {
    type Target = haft_testing::bed::Bed;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
}

/// Flags that let commands run on any machine.
pub(crate) const FREE: [&str; 4] = ["--sandbox", "off", "--approve", "auto"];

pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) announcement: Value,
    pub(crate) client: Client,
    stdout: BufReader<ChildStdout>,
    stderr: ChildStderr,
}

/// Exit code and output of a server.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) took: Duration,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Server {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = child.stderr.take().unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let announcement: Value = serde_json::from_str(&line).unwrap();
        let url = announcement["url"].as_str().unwrap();
        let address = url
            .strip_prefix("http://")
            .and_then(|url| url.strip_suffix("/mcp"))
            .unwrap();
        let mut address: std::net::SocketAddr = address.parse().unwrap();
        if address.ip().is_unspecified() {
            address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        Self {
            client: Client::new(address, announcement["token"].as_str()),
            child,
            announcement,
            stdout,
            stderr,
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Ends the server with a signal.
    pub(crate) fn end(mut self, signal: Signal) -> Ended {
        let begun = Instant::now();
        self.signal(signal);
        let code = self.child.wait().unwrap();
        let took = begun.elapsed();
        let (mut out, mut err) = (String::new(), String::new());
        self.stdout.read_to_string(&mut out).unwrap();
        self.stderr.read_to_string(&mut err).unwrap();
        Ended {
            code: code.code(),
            took,
            out,
            err,
        }
    }

    /// Its resident memory, in KiB.
    pub(crate) fn memory(&self) -> u64 {
        let status = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A unique number of seconds to sleep, which identifies a process.
pub(crate) fn mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}.{next}", 100_000 + std::process::id())
}

/// Number of processes that run `sleep` with this mark.
pub(crate) fn running(mark: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let expected = format!("sleep\0{mark}\0").into_bytes();
    lines.filter(|line| *line == expected).count()
}

/// Waits until this many run.
pub(crate) fn until_running(mark: &str, expected: usize, limit: Duration) {
    let begun = Instant::now();
    while running(mark) != expected {
        let now = running(mark);
        assert!(
            begun.elapsed() < limit,
            "{now} of {expected} run after {limit:?}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}
