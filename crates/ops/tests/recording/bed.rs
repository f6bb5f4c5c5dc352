//! The folders of a case, and running recorded commands in them.

use crate::tree::{self, Tree};
use haft_ops::effects::{
    Bounds, Calls, Counts, End, Recorder, Recording, Selection, Session, Skip, Store, UndoMode,
};
use haft_ops::executor::sandbox::{
    Confinement, Controls, Counting, Execution, Helper, Level, Limits, Memory, Network, Plan,
    Request, probe,
};
use haft_ops::executor::{
    Executor, Finished, Input, Keep, Launch, Local, Program, Prompts, Streams,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

pub(crate) fn exe() -> PathBuf {
    std::env::current_exe().unwrap()
}

fn helper(ceiling: Option<Level>) -> Helper {
    Helper {
        program: exe(),
        args: vec!["--rehearse".into()],
        ceiling,
    }
}

pub(crate) fn rehearse(words: &[&str]) {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let helper = helper(Some(Level::Full));
    println!("{}", haft_ops::executor::sandbox::rehearse(&helper, &words));
}

pub(crate) struct Bed {
    pub(crate) base: PathBuf,
    pub(crate) local: Local,
    pub(crate) session: Session,
    confinement: Option<Confinement>,
    calls: AtomicU32,
}

impl Bed {
    /// `None` if this machine does not offer the level; without a level, no sandbox.
    pub(crate) fn new(level: Option<Level>) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("recording-{}-{count}", std::process::id());
        let folder = std::env::var_os("RECORDING_FOLDER");
        let base = folder.map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
        let base = base.join(name);
        for folder in ["work", "root", "out", "temp"] {
            std::fs::create_dir_all(base.join(folder)).unwrap();
        }
        Self::at(base, level)
    }

    pub(crate) fn at(base: PathBuf, level: Option<Level>) -> Option<Self> {
        let confinement = match level {
            Some(level) => Some(confinement(&base, level)?),
            None => None,
        };
        let session = session(&base);
        Some(Self {
            local: Local::new(exe(), vec!["--supervise".into()]),
            session,
            confinement,
            calls: AtomicU32::new(0),
            base,
        })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    pub(crate) fn tree(&self) -> Tree {
        tree(&self.base)
    }

    pub(crate) fn recorder(&self) -> Recorder {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        self.session.begin(&format!("call-{number}"), "bash")
    }

    pub(crate) fn launch(&self, program: Program, recording: Recording) -> Launch {
        let temp = match &self.confinement {
            Some(Confinement { strength, plan }) => plan.temp_seen(strength.level).to_owned(),
            None => self.path("temp"),
        };
        let environment = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin".into()),
            ("LC_ALL", "C".into()),
            ("SELF", exe().into_os_string()),
            ("BASE", self.base.clone().into_os_string()),
            ("TMPDIR", temp.into()),
        ];
        Launch {
            program,
            dir: self.path("work"),
            environment: environment
                .map(|(name, value): (&str, OsString)| (name.into(), value))
                .to_vec(),
            streams: Streams::Merged,
            limit: Some(Duration::from_secs(60)),
            keep: Keep {
                head: 1000,
                tail: 64 << 10,
                disk: None,
            },
            prompts: Prompts::Wait,
            input: Input::Nothing,
            confinement: self.confinement.clone(),
            network: None,
            layers: None,
            recording,
            config_gate: None,
        }
    }

    pub(crate) fn bash(&self, script: &str, recorder: &Recorder) -> Launch {
        let program = Program::Shell {
            shell: "/bin/bash".into(),
            arguments: vec!["-c".into()],
            script: script.to_owned(),
        };
        self.launch(program, Recording::Call(recorder.clone()))
    }

    /// Runs a script that must succeed, and returns its output and effects.
    #[track_caller]
    pub(crate) fn run(&self, script: &str) -> (String, Counts) {
        let recorder = self.recorder();
        let finished = block_on(async {
            let cancel = CancellationToken::new();
            let launch = self.bash(script, &recorder);
            self.local.run(launch, &|_, _| {}, &cancel).await.unwrap()
        });
        let output = text(&finished);
        let counts = recorder.finish(End::Done);
        assert_eq!(
            finished.status,
            haft_ops::executor::Exit::Code(0),
            "{script}\n{output}"
        );
        (output, counts)
    }

    /// Runs a script, undoes it, and compares. It must change something.
    #[track_caller]
    pub(crate) fn undone(&self, script: &str) -> Counts {
        let before = self.tree();
        let (output, counts) = self.run(script);
        assert!(counts.complete, "{script}: {:?}\n{output}", counts.why);
        let after = self.tree();
        assert_ne!(before, after, "{script} changed nothing\n{output}");
        assert!(counts.total() > 0, "{script}: {counts:?}");
        self.undo(&before, script);
        counts
    }

    #[track_caller]
    pub(crate) fn undo(&self, before: &Tree, what: &str) {
        let undone = self.session.undo(&last(), UndoMode::Careful);
        let undone = undone.unwrap_or_else(|error| panic!("{what}: {error}"));
        let differences = tree::differences(before, &self.tree());
        assert!(
            differences.is_empty(),
            "{what}\nnot restored: {differences:#?}\nundone: {undone:#?}"
        );
    }
}

pub(crate) fn last() -> Selection {
    Selection {
        calls: Calls::Last,
        paths: Vec::new(),
    }
}

pub(crate) fn session(base: &Path) -> Session {
    let bounds = Bounds {
        max_file: 1 << 30,
        max_session: 4 << 30,
        keep: Duration::from_secs(86400),
        skip: Skip::default(),
    };
    let store = Store::new(base.join("state"), bounds);
    store.session("session", &base.join("work"), &[base.join("root")])
}

pub(crate) fn tree(base: &Path) -> Tree {
    tree::read(&[&base.join("work"), &base.join("root")])
}

fn confinement(base: &Path, level: Level) -> Option<Confinement> {
    let found = probe(&helper(Some(level)));
    let strength = match found.strength() {
        Ok(strength) if strength.level == level => strength,
        _ => {
            println!("skipped: {level:?} is not available: {found:?}");
            return None;
        }
    };
    let plan = Plan::new(&Request {
        rules: haft_ops::scope::Mode::Workspace.rules(),
        work_dir: base.join("work"),
        roots: vec![base.join("root")],
        readable: Vec::new(),
        temp: base.join("temp"),
        protect: Vec::new(),
        repositories: Controls::default(),
        homes: Vec::new(),
        own: Vec::new(),
        denied: Vec::new(),
        sockets: Vec::new(),
        execution: Execution::Anywhere,
        network: Network::Off,
        limits: Limits {
            processes: 1000,
            counting: Counting::WhereFree,
            memory: Memory::Unlimited,
        },
    })
    .unwrap();
    Some(Confinement { strength, plan })
}

pub(crate) fn text(finished: &Finished) -> String {
    let Finished { output, .. } = finished;
    let bytes = [output.head.as_slice(), output.tail.as_slice()].concat();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// One runtime for all commands, because a supervisor may wait for the next command.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().unwrap()
    });
    runtime.block_on(future)
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.base);
    }
}
