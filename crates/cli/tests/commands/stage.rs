//! An executor, commands for it, and the mark that identifies its processes.

use haft_ops::effects::Recording;
use haft_ops::executor::sandbox::{
    Confinement, Controls, Counting, Execution, Helper, Level, Limits, Memory, Network, Plan,
    Request, probe,
};
use haft_ops::executor::{
    Disk, Executor, Finished, Input, Keep, Launch, Local, Program, Prompts, Streams, When,
};
use haft_ops::{Error, Result};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The variable that marks every process of a stage.
const MARK: &str = "HAFT_TEST_MARK";

static NEXT: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Stage {
    pub(crate) folder: TempDir,
    pub(crate) local: Local,
    pub(crate) mark: String,
    level: Option<Level>,
}

/// Without a sandbox, and with each kind of it.
pub(crate) const LEVELS: [Option<Level>; 3] = [None, Some(Level::Full), Some(Level::Partial)];

pub(crate) fn local() -> Local {
    Local::new(
        PathBuf::from(env!("CARGO_BIN_EXE_haft")),
        vec!["__supervise".into()],
    )
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::at(None)
    }

    pub(crate) fn at(level: Option<Level>) -> Self {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            folder: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
            local: local(),
            mark: format!("{}-{next}", std::process::id()),
            level,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A bash script, with merged streams and a timeout of a minute.
    pub(crate) fn bash(&self, script: &str) -> Launch {
        self.launch(Program::Shell {
            shell: "/bin/bash".into(),
            arguments: vec!["-c".into()],
            script: script.to_owned(),
        })
    }

    pub(crate) fn direct(&self, words: &[&str]) -> Launch {
        self.launch(Program::Direct(words.iter().map(OsString::from).collect()))
    }

    fn launch(&self, program: Program) -> Launch {
        Launch {
            program,
            dir: self.folder.path().to_owned(),
            environment: environment(&self.mark),
            streams: Streams::Merged,
            limit: Some(Duration::from_secs(60)),
            keep: Keep {
                head: 1000,
                tail: 64 << 10,
                disk: Some(Disk {
                    output: self.path("spill/out"),
                    error: self.path("spill/err"),
                    max: 1 << 30,
                    when: When::Overflow,
                }),
            },
            prompts: Prompts::End,
            input: Input::Nothing,
            confinement: self.level.map(|level| self.confinement(level)),
            network: None,
            layers: None,
            recording: Recording::Off,
            config_gate: None,
        }
    }

    /// Returns the confinement of a command at this level, as far as the machine supports
    /// it, in the default mode.
    pub(crate) fn confinement(&self, level: Level) -> Confinement {
        self.confinement_in(level, self.folder.path())
    }

    pub(crate) fn confinement_in(&self, level: Level, work_dir: &Path) -> Confinement {
        let found = probe(&Helper {
            program: PathBuf::from(env!("CARGO_BIN_EXE_haft")),
            args: vec!["__rehearse".into()],
            ceiling: Some(level),
        });
        let temp = self.path("temp");
        std::fs::create_dir_all(&temp).unwrap();
        let plan = Plan::new(&Request {
            rules: haft_ops::scope::Mode::Workspace.rules(),
            work_dir: work_dir.to_owned(),
            roots: Vec::new(),
            readable: Vec::new(),
            temp,
            protect: Vec::new(),
            repositories: Controls::default(),
            homes: Vec::new(),
            own: Vec::new(),
            denied: Vec::new(),
            sockets: Vec::new(),
            execution: Execution::Anywhere,
            network: Network::Off,
            limits: Limits {
                processes: 500,
                counting: Counting::WhereFree,
                memory: Memory::Unlimited,
            },
        })
        .unwrap();
        Confinement {
            strength: found.strength().unwrap(),
            plan,
        }
    }

    pub(crate) async fn run(&self, launch: Launch) -> Finished {
        self.try_run(launch).await.unwrap()
    }

    pub(crate) async fn try_run(&self, launch: Launch) -> Result<Finished, Error> {
        let cancel = CancellationToken::new();
        self.local.run(launch, &|_, _| {}, &cancel).await
    }

    /// Waits for the last marked process to end, and fails after `limit`.
    pub(crate) async fn gone(&self, limit: Duration) {
        let begun = Instant::now();
        loop {
            let left = marked(&self.mark);
            if left.is_empty() {
                return;
            }
            assert!(begun.elapsed() < limit, "still alive: {left:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
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

pub(crate) fn environment(mark: &str) -> Vec<(OsString, OsString)> {
    vec![
        ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
        (MARK.into(), mark.into()),
    ]
}

/// Running processes with the mark, with their command lines.
pub(crate) fn marked(mark: &str) -> Vec<String> {
    let expected = format!("{MARK}={mark}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name();
        if !name.as_bytes().first().is_some_and(u8::is_ascii_digit) {
            continue;
        }
        let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
        let environment = read("environ");
        if environment
            .split(|&byte| byte == 0)
            .any(|part| part == expected.as_bytes())
        {
            found.push(format!(
                "{} {}",
                name.to_string_lossy(),
                String::from_utf8_lossy(&read("cmdline")).replace('\0', " ")
            ));
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

pub(crate) fn size(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}
