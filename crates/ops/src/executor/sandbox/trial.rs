//! The trials behind the probe.

use super::{Enforcement, Helper, Processes};
use crate::executor::sandbox::{
    Counting, Level, Limits, Memory, Network, Plan, Role, Stage, Strength, cgroup, enter, files,
};
use crate::scope::{Reading, Writing};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A trial takes some milliseconds; a machine that needs longer than this is
/// not going to run commands either.
const PATIENCE: Duration = Duration::from_secs(10);

static FOUND: Mutex<Option<Enforcement>> = Mutex::new(None);
static GROUP: OnceLock<Result<(), String>> = OnceLock::new();

/// What this machine enforces. The trials run once in a process's life.
#[must_use]
pub fn probe(helper: &Helper) -> Enforcement {
    let mut known = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known.get_or_insert_with(|| try_all(helper)).clone();
    drop(known);
    match (found, helper.ceiling) {
        (_, None) => Enforcement::None {
            reason: "switched off for a test".to_owned(),
        },
        (Enforcement::Full { landlock }, Some(Level::Partial)) => Enforcement::Partial {
            landlock,
            lacks: "switched off for a test".to_owned(),
        },
        (found, Some(_)) => found,
    }
}

/// The same, forgetting what was found before: the machine may have changed.
#[must_use]
pub fn probe_anew(helper: &Helper) -> Enforcement {
    *FOUND.lock().unwrap_or_else(PoisonError::into_inner) = None;
    probe(helper)
}

fn try_all(helper: &Helper) -> Enforcement {
    let landlock = match ask(helper, &["landlock"]).and_then(|text| {
        text.parse::<u8>()
            .map_err(|_| format!("the trial answered {text:?}"))
    }) {
        Ok(version) if version >= files::OLDEST => version,
        Ok(version) => {
            return Enforcement::None {
                reason: format!(
                    "landlock v{version} is too old, v{} is needed (Linux 6.2)",
                    files::OLDEST
                ),
            };
        }
        Err(reason) => return Enforcement::None { reason },
    };
    let version = landlock.to_string();
    match ask(helper, &["full", &version]) {
        Ok(_) => Enforcement::Full { landlock },
        Err(lacks) => match ask(helper, &["partial", &version]) {
            Ok(_) => Enforcement::Partial { landlock, lacks },
            Err(reason) => Enforcement::None { reason },
        },
    }
}

/// Whether the processes of a command are limited.
#[must_use]
pub fn processes(helper: &Helper, enforcement: &Enforcement, limits: Limits) -> Processes {
    let count = limits.processes;
    if matches!(enforcement, Enforcement::None { .. }) {
        return Processes::NotLimited {
            reason: "no sandbox".to_owned(),
        };
    }
    if !rustix::process::geteuid().is_root() {
        return Processes::Limited(count);
    }
    if limits.counting == Counting::WhereFree {
        return Processes::NotLimited {
            reason: "root's are counted on demand only, because it slows every command".to_owned(),
        };
    }
    match GROUP.get_or_init(|| ask(helper, &["group"]).map(drop)) {
        Ok(()) => Processes::Limited(count),
        Err(reason) => Processes::NotLimited {
            reason: format!("root is bound by a pids control group only: {reason}"),
        },
    }
}

/// Runs one trial in a process of its own.
fn ask(helper: &Helper, words: &[&str]) -> Result<String, String> {
    let child = start(helper, words).map_err(|error| format!("cannot start a trial: {error}"))?;
    let text = answer(child)?;
    match text.trim_end().split_once(' ') {
        Some(("yes", rest)) => Ok(rest.to_owned()),
        Some(("no", rest)) => Err(rest.to_owned()),
        _ => Err("a trial ended without an answer".to_owned()),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "our own binary, to try what it will do to itself when it runs a command"
)]
fn start(helper: &Helper, words: &[&str]) -> std::io::Result<Child> {
    Command::new(&helper.program)
        .args(&helper.args)
        .args(words)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

fn answer(mut child: Child) -> Result<String, String> {
    let until = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_micros(500)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err("a trial did not end".to_owned());
            }
        }
    }
    // One short line is in the pipe by now, and nobody else holds its end.
    let mut text = String::new();
    if let Some(mut out) = child.stdout.take() {
        use std::io::Read;
        let _ = out.by_ref().take(4096).read_to_string(&mut text);
    }
    Ok(text)
}

/// The trial itself, in the process that is thrown away. The words are those
/// that followed the helper's arguments; the line goes to standard output.
#[must_use]
pub fn rehearse(helper: &Helper, words: &[String]) -> String {
    match attempt(helper, words) {
        Ok(found) => format!("yes {found}"),
        Err(reason) => {
            // Whoever asks knows what it is about.
            let reason = reason.strip_prefix("sandbox: ").unwrap_or(&reason);
            format!("no {}", reason.replace('\n', " "))
        }
    }
}

fn attempt(helper: &Helper, words: &[String]) -> Result<String, String> {
    let mut words = words.iter().map(String::as_str);
    let what = words.next().unwrap_or_default();
    let landlock = words.next().and_then(|word| word.parse().ok());
    let landlock = landlock.unwrap_or_default();
    let put_on = |level, stage| {
        enter(&sample(), Strength { level, landlock }, stage).map_err(|error| error.to_string())
    };
    match what {
        "landlock" => files::version()
            .map(|version| version.to_string())
            .map_err(|error| error.to_string()),
        "group" => cgroup::Cage::enter(64).map(|_| "held".to_owned()),
        "partial" => put_on(Level::Partial, Stage::Inner).map(|_| "partial".to_owned()),
        "inner" => put_on(Level::Full, Stage::Inner).map(|_| "full".to_owned()),
        "full" => {
            let entered = put_on(Level::Full, Stage::Outer)?;
            if entered.role != Role::StartInner {
                return Err("the trial took a wrong turn".to_owned());
            }
            // The group is removed only when this is done.
            let said = ask(helper, &["inner", &landlock.to_string()]);
            drop(entered);
            said
        }
        _ => Err("unknown trial".to_owned()),
    }
}

/// A plan that needs nothing of the machine but what every machine has.
fn sample() -> Plan {
    let temp = ["/tmp", "/var/tmp", "/usr"]
        .into_iter()
        .map(Path::new)
        .find(|path| super::super::places::kind(path) == super::super::places::Kind::Folder)
        .map_or_else(|| PathBuf::from("/"), Path::to_owned);
    Plan {
        reading: Reading::NotSecret,
        writing: Writing::Nothing,
        roots: vec![PathBuf::from("/")],
        readable: Vec::new(),
        temp,
        protected: Vec::new(),
        watched: Vec::new(),
        hidden: Vec::new(),
        closed: Vec::new(),
        sockets: Vec::new(),
        network: Network::Off,
        limits: Limits {
            processes: 64,
            counting: Counting::WhereFree,
            memory: Memory::Unlimited,
        },
    }
}
