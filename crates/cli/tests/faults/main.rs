//! A kill, a full disk, a race or a flood must not cause damage.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests make trouble themselves, and fail by panicking"
)]

mod bounds;
mod edges;
mod kills;
mod races;
mod server;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A work folder, a home beside it, and the command.
pub(crate) struct Yard {
    temp: TempDir,
}

impl Yard {
    pub(crate) fn new() -> Self {
        let temp = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for folder in ["work", "home", "out"] {
            std::fs::create_dir(temp.path().join(folder)).unwrap();
        }
        std::fs::write(temp.path().join("out/canary.txt"), "canary").unwrap();
        Self { temp }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.temp.path().join("work")
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.temp.path().join("out")
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_haft"));
        command
            .args(args)
            .current_dir(self.work())
            .env_clear()
            .env("HOME", self.temp.path().join("home"))
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// A program that starts the command, with the same home.
    pub(crate) fn around(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.work())
            .env("HOME", self.temp.path().join("home"))
            .stdout(Stdio::piped());
        command
    }

    /// Calls a tool with arguments on stdin, and returns its reply.
    pub(crate) fn call(&self, tool: &str, arguments: &serde_json::Value) -> serde_json::Value {
        let output = self.call_in(self.command(&["call", "--json", tool, "-"]), arguments);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    }

    pub(crate) fn call_in(&self, mut command: Command, arguments: &serde_json::Value) -> Output {
        use std::io::Write;
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(arguments.to_string().as_bytes())
            .unwrap();
        child.wait_with_output().unwrap()
    }

    /// Names of temporary files anywhere in the work folder.
    pub(crate) fn litter(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.work()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if entry.path().is_dir() {
                    open.push(entry.path());
                } else if name.starts_with(".haft-") {
                    found.push(name);
                }
            }
        }
        found
    }
}

pub(crate) fn text(reply: &serde_json::Value) -> &str {
    reply["content"][0]["text"].as_str().unwrap()
}

pub(crate) fn read(path: impl AsRef<Path>) -> Vec<u8> {
    std::fs::read(path).unwrap()
}
