//! A minimal supervisor, and the folders that the cases use.

use haft_ops::executor::sandbox::{
    Counting, Enforcement, Execution, Helper, Level, Limits, Memory, Network, Plan, Request, Role,
    Stage, Strength, enter, probe, repositories, split,
};
use haft_ops::scope::Mode;
use rustix::fs::{Gid, Uid};
use rustix::process::WaitOptions;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub(crate) const CANARY: &str = "canary-7f3a";

/// The user that runs the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Root,
    Nobody,
}

impl Who {
    pub(crate) fn all() -> Vec<Self> {
        if rustix::process::geteuid().is_root() {
            vec![Self::Root, Self::Nobody]
        } else {
            println!("skipped as root: started as an ordinary user");
            vec![Self::Nobody]
        }
    }

    fn prefix(self) -> Vec<String> {
        if self == Self::Nobody && rustix::process::geteuid().is_root() {
            [
                "setpriv",
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
            ]
            .map(str::to_owned)
            .to_vec()
        } else {
            Vec::new()
        }
    }
}

fn exe() -> PathBuf {
    std::env::current_exe().unwrap()
}

pub(crate) fn helper(ceiling: Option<Level>) -> Helper {
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

/// `--supervise split|restart outer|inner full|partial VERSION COMMAND…`, the plan on stdin.
pub(crate) fn supervise(words: &[&str]) {
    let [way, stage, level, version, command @ ..] = words else {
        panic!("{words:?}");
    };
    let strength = Strength {
        level: if *level == "full" {
            Level::Full
        } else {
            Level::Partial
        },
        landlock: version.parse().unwrap(),
    };
    let here = if *stage == "outer" {
        Stage::Outer
    } else {
        Stage::Inner
    };
    let plan = Plan::read(&mut std::io::stdin().lock()).unwrap();
    let entered = match enter(&plan, strength, here, &[]) {
        Ok(entered) => entered,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(125);
        }
    };
    let mut child = match entered.role {
        Role::StartInner if *way == "split" => match split().unwrap() {
            Some(child) => {
                let (_, status) = rustix::process::waitpid(Some(child), WaitOptions::empty())
                    .unwrap()
                    .unwrap();
                drop(entered);
                std::process::exit(status.exit_status().unwrap_or(255));
            }
            None => {
                if let Err(error) = enter(&plan, strength, Stage::Inner, &[]) {
                    eprintln!("{error}");
                    std::process::exit(125);
                }
                command_of(command)
            }
        },
        Role::StartInner => {
            let mut child = Command::new("/proc/self/exe")
                .args(["--supervise", way, "inner", level, version])
                .args(command)
                .stdin(Stdio::piped())
                .spawn()
                .unwrap();
            let mut pipe = child.stdin.take().unwrap();
            pipe.write_all(&plan.to_bytes()).unwrap();
            child
        }
        Role::RunCommand => command_of(command),
    };
    let status = child.wait().unwrap();
    std::process::exit(status.code().unwrap_or(128 + status.signal().unwrap_or(0)));
}

fn command_of(words: &[&str]) -> Child {
    match Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .spawn()
    {
        Ok(child) => child,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(126);
        }
    }
}

/// The folders of one case: `work`, `out` beside it, a home, and a private temp.
pub(crate) struct Bed {
    pub(crate) base: PathBuf,
    pub(crate) who: Who,
    /// Way to create the second supervisor.
    pub(crate) way: &'static str,
    pub(crate) strength: Strength,
    pub(crate) mode: Mode,
    pub(crate) network: Network,
    pub(crate) limits: Limits,
    pub(crate) protect: Vec<PathBuf>,
    pub(crate) denied: Vec<PathBuf>,
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) sockets: Vec<PathBuf>,
    pub(crate) execution: Execution,
}

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) text: String,
}

impl Bed {
    /// Among the build artifacts, because a temp folder would be a different case.
    pub(crate) fn new(who: Who, level: Level) -> Option<Self> {
        Self::at(Path::new(env!("CARGO_TARGET_TMPDIR")), who, level)
    }

    pub(crate) fn at(place: &Path, who: Who, level: Level) -> Option<Self> {
        let found = probe(&helper(Some(level)));
        let strength = match found.strength() {
            Ok(strength) if strength.level == level => strength,
            _ => {
                println!("skipped: {level:?} is not available: {found:?}");
                return None;
            }
        };
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let base = place.join(format!("box-{}-{count}", std::process::id()));
        for folder in [
            "work/src",
            "out",
            "home/.ssh",
            "home/.config/gcloud",
            "temp",
            "own/outputs",
        ] {
            std::fs::create_dir_all(base.join(folder)).unwrap();
        }
        for file in [
            "out/canary.txt",
            "home/.ssh/id",
            "home/.netrc",
            "own/database",
        ] {
            std::fs::write(base.join(file), CANARY).unwrap();
        }
        std::fs::write(base.join("home/plain"), "plain\n").unwrap();
        std::fs::write(base.join("own/outputs/1.txt"), "kept output\n").unwrap();
        let bed = Self {
            base,
            who,
            way: "split",
            strength,
            mode: Mode::Workspace,
            network: Network::Off,
            limits: Limits {
                processes: 200,
                counting: Counting::WhereFree,
                memory: Memory::Unlimited,
            },
            protect: Vec::new(),
            denied: Vec::new(),
            roots: Vec::new(),
            sockets: Vec::new(),
            execution: Execution::Anywhere,
        };
        bed.give();
        Some(bed)
    }

    /// Gives everything below to the user that runs the command.
    pub(crate) fn give(&self) {
        if rustix::process::geteuid().is_root() {
            let id = if self.who == Who::Nobody { 65534 } else { 0 };
            give(&self.base, id);
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self.give();
    }

    pub(crate) fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }

    pub(crate) fn plan(&self) -> haft_ops::executor::sandbox::Result<Plan> {
        Plan::new(&Request {
            rules: self.mode.rules(),
            work_dir: self.path("work"),
            roots: self.roots.clone(),
            readable: vec![self.path("own/outputs")],
            temp: self.path("temp"),
            protect: self.protect.clone(),
            repositories: repositories(&self.path("work")),
            homes: vec![self.path("home")],
            own: vec![self.path("own")],
            denied: self.denied.clone(),
            sockets: self.sockets.clone(),
            execution: self.execution.clone(),
            network: self.network,
            limits: self.limits,
        })
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let level = match self.strength.level {
            Level::Full => "full",
            Level::Partial => "partial",
        };
        let mut line = self.who.prefix();
        line.push(exe().to_str().unwrap().to_owned());
        line.extend(
            [
                "--supervise",
                self.way,
                "outer",
                level,
                &self.strength.landlock.to_string(),
            ]
            .map(str::to_owned),
        );
        line.extend(words.iter().map(|word| (*word).to_owned()));
        let plan = self.plan().unwrap();
        let mut command = Command::new(&line[0]);
        command
            .args(&line[1..])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("TMPDIR", plan.temp_seen(self.strength.level))
            .env("BASE", &self.base)
            .env("SELF", exe())
            .stdin(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Ran {
        self.run_with(&self.plan().unwrap().to_bytes(), words)
    }

    pub(crate) fn run_with(&self, plan: &[u8], words: &[&str]) -> Ran {
        let mut child = self
            .command(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(plan).unwrap();
        let output = child.wait_with_output().unwrap();
        drop(pipe);
        Ran {
            code: output.status.code().unwrap_or(-1),
            text: format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            ),
        }
    }

    pub(crate) fn sh(&self, script: &str) -> Ran {
        self.run(&["bash", "-c", script])
    }

    /// Runs a script that must succeed.
    #[track_caller]
    pub(crate) fn yes(&self, script: &str) -> String {
        let ran = self.sh(script);
        assert_eq!(
            ran.code, 0,
            "{:?} {:?}: {script}\n{}",
            self.who, self.strength, ran.text
        );
        ran.text
    }

    /// Runs a script that must fail after its shell has started.
    #[track_caller]
    pub(crate) fn no(&self, script: &str) -> String {
        let ran = self.sh(&format!("echo started; {script}"));
        assert!(
            ran.code != 0 && ran.text.starts_with("started\n"),
            "{:?} {:?}: {script}\n{}",
            self.who,
            self.strength,
            ran.text
        );
        assert!(!ran.text.contains(CANARY), "{script}\n{}", ran.text);
        ran.text
    }

    /// Runs the script without a sandbox, as the same user.
    pub(crate) fn free(&self, script: &str) -> String {
        let mut line = self.who.prefix();
        line.extend(["bash", "-c", script].map(str::to_owned));
        let output = Command::new(&line[0])
            .args(&line[1..])
            .env("HOME", self.path("home"))
            .env("BASE", &self.base)
            .env("SELF", exe())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs an action of this binary inside the sandbox.
    pub(crate) fn act(&self, words: &[&str]) -> String {
        let exe = exe();
        let mut line = vec![exe.to_str().unwrap(), "--act"];
        line.extend(words);
        self.run(&line).text.trim_end().to_owned()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.base);
    }
}

fn give(path: &Path, id: u32) {
    let _ = rustix::fs::chownat(
        rustix::fs::CWD,
        path,
        Some(Uid::from_raw(id)),
        Some(Gid::from_raw(id)),
        rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
    );
    if path.is_dir() && !path.is_symlink() {
        for entry in std::fs::read_dir(path).unwrap().flatten() {
            give(&entry.path(), id);
        }
    }
}

pub(crate) fn found() -> Enforcement {
    probe(&helper(Some(Level::Full)))
}
