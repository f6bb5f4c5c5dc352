//! An executor for a host, commands for it, and the mark that identifies its processes: the
//! host is this machine.

use crate::host::{Host, Shell};
use haft_ops::effects::Recording;
use haft_ops::executor::{
    Disk, Executor, Finished, Input, Keep, Launch, Local, Program, Prompts, Ssh, Streams, Target,
    When,
};
use haft_ops::{Error, Result};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const MARK: &str = "HAFT_TEST_MARK";

static NEXT: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Stage {
    pub(crate) folder: TempDir,
    pub(crate) ssh: Ssh,
    pub(crate) host: Host,
    pub(crate) mark: String,
}

pub(crate) fn local() -> Arc<Local> {
    Arc::new(Local::new(
        PathBuf::from(env!("CARGO_BIN_EXE_haft")),
        vec!["__supervise".into()],
    ))
}

pub(crate) fn target(keys: &Path, port: u16) -> Target {
    Target {
        host: "127.0.0.1".to_owned(),
        port: Some(port),
        options: Host::options(keys),
        environment: vec![
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("HOME".into(), keys.into()),
            ("PERSON_SECRET".into(), "leak".into()),
        ],
        folder: keys.join("pipes"),
    }
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(Shell::Own)
    }

    pub(crate) fn with(shell: Shell) -> Self {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let host = Host::new(shell);
        Self {
            folder: tempfile::tempdir().unwrap(),
            ssh: Ssh::new(local(), target(host.keys.path(), host.port)).unwrap(),
            host,
            mark: format!("{}-{next}", std::process::id()),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn bash(&self, script: &str) -> Launch {
        bash(script, self.folder.path(), &self.mark)
    }

    pub(crate) fn direct<W: Into<OsString> + Clone>(&self, words: &[W]) -> Launch {
        let words = words.iter().cloned().map(Into::into).collect();
        launch(Program::Direct(words), self.folder.path(), &self.mark)
    }

    pub(crate) async fn run(&self, launch: Launch) -> Finished {
        self.try_run(launch).await.unwrap()
    }

    pub(crate) async fn try_run(&self, launch: Launch) -> Result<Finished, Error> {
        let cancel = CancellationToken::new();
        self.ssh.run(launch, &|_, _| {}, &cancel).await
    }

    /// Waits for the last marked process to end, and fails after `limit`.
    pub(crate) async fn gone(&self, limit: Duration) {
        gone(&self.mark, limit).await;
    }

    /// Waits until a file exists: a command creates it as a signal.
    pub(crate) async fn wait_for(&self, name: &str) -> String {
        let begun = Instant::now();
        loop {
            match std::fs::read_to_string(self.path(name)) {
                Ok(text) if text.ends_with('\n') => return text,
                _ => assert!(begun.elapsed() < Duration::from_secs(20), "no {name}"),
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

pub(crate) async fn gone(mark: &str, limit: Duration) {
    let begun = Instant::now();
    loop {
        let left = marked(mark);
        if left.is_empty() {
            return;
        }
        assert!(begun.elapsed() < limit, "still alive: {left:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A bash script, with merged streams and a timeout of a minute.
pub(crate) fn bash(script: &str, dir: &Path, mark: &str) -> Launch {
    let program = Program::Shell {
        shell: "/bin/bash".into(),
        arguments: vec!["-c".into()],
        script: script.to_owned(),
    };
    launch(program, dir, mark)
}

fn launch(program: Program, dir: &Path, mark: &str) -> Launch {
    Launch {
        program,
        dir: dir.to_owned(),
        environment: vec![
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            (MARK.into(), mark.into()),
        ],
        streams: Streams::Merged,
        limit: Some(Duration::from_secs(60)),
        keep: Keep {
            head: 1000,
            tail: 64 << 10,
            disk: Some(Disk {
                output: dir.join("spill/out"),
                error: dir.join("spill/err"),
                max: 1 << 30,
                when: When::Overflow,
            }),
        },
        prompts: Prompts::End,
        input: Input::Nothing,
        confinement: None,
        network: None,
        layers: None,
        recording: Recording::Off,
        config_gate: None,
    }
}

/// Running processes with the mark, with their command lines.
pub(crate) fn marked(mark: &str) -> Vec<String> {
    let expected = format!("{MARK}={mark}");
    processes(|environment| {
        environment
            .split(|&byte| byte == 0)
            .any(|part| part == expected.as_bytes())
    })
}

/// Processes whose environment matches.
pub(crate) fn processes(expected: impl Fn(&[u8]) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name();
        if !name.as_bytes().first().is_some_and(u8::is_ascii_digit) {
            continue;
        }
        let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
        if expected(&read("environ")) {
            let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
            found.push(format!("{} {line}", name.to_string_lossy()));
        }
    }
    found
}

/// The captured output, as text.
pub(crate) fn text(finished: &Finished) -> String {
    let output = &finished.output;
    assert_eq!(output.missing(), 0);
    String::from_utf8_lossy(&[output.head.as_slice(), &output.tail].concat()).into_owned()
}
