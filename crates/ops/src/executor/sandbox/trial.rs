//! Trials that the probe runs.

use super::{Enforcement, Helper, Processes};
use crate::executor::sandbox::{
    Counting, Error, Level, Limits, Memory, Network, Plan, Role, Stage, Strength, busy, cgroup,
    enter, landlock_rules, layers, network,
};
use crate::scope::{Reading, Writing};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Timeout. A trial takes milliseconds; a machine that needs longer cannot run commands
/// either.
const PATIENCE: Duration = Duration::from_secs(10);

static FOUND: Mutex<Option<Enforcement>> = Mutex::new(None);
static GROUP: OnceLock<Result<(), String>> = OnceLock::new();

/// Failure of a trial.
#[derive(Debug, PartialEq, Eq)]
enum Trouble {
    /// The machine lacks something.
    Lacks(String),
    /// The machine is out of resources, which says nothing about what it supports.
    Busy(String),
}

impl Trouble {
    fn reason(self) -> String {
        match self {
            Self::Lacks(reason) | Self::Busy(reason) => reason,
        }
    }
}

/// Returns what this machine enforces, or nothing if it cannot be determined now.
#[must_use]
pub fn probe(helper: &Helper) -> Enforcement {
    probe_now(helper).unwrap_or_else(|reason| Enforcement::None { reason })
}

/// Returns what this machine enforces. The trials run once per process.
///
/// # Errors
/// The machine is out of resources. That result is not cached.
pub fn probe_now(helper: &Helper) -> Result<Enforcement, String> {
    let mut known = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let found = match &*known {
        Some(found) => found.clone(),
        None => known.insert(try_all(helper)?).clone(),
    };
    drop(known);
    Ok(match (found, helper.ceiling) {
        (_, None) => Enforcement::None {
            reason: "switched off for a test".to_owned(),
        },
        (Enforcement::Full { landlock }, Some(Level::Partial)) => Enforcement::Partial {
            landlock,
            lacks: "switched off for a test".to_owned(),
        },
        (found, Some(_)) => found,
    })
}

/// Like [`probe_now`], but ignores the cached result: the machine may have changed.
///
/// # Errors
/// Same as [`probe_now`].
pub fn probe_anew(helper: &Helper) -> Result<Enforcement, String> {
    *FOUND.lock().unwrap_or_else(PoisonError::into_inner) = None;
    probe_now(helper)
}

fn try_all(helper: &Helper) -> Result<Enforcement, String> {
    let busy = |reason: String| Err(format!("the sandbox cannot be tested right now: {reason}"));
    let landlock = match ask(helper, &["landlock"]).and_then(|text| {
        text.parse::<u8>()
            .map_err(|_| Trouble::Lacks(format!("the trial answered {text:?}")))
    }) {
        Ok(version) if version >= landlock_rules::OLDEST => version,
        Ok(version) => {
            return Ok(Enforcement::None {
                reason: format!(
                    "landlock v{version} is too old, v{} is needed (Linux 6.2)",
                    landlock_rules::OLDEST
                ),
            });
        }
        Err(Trouble::Lacks(reason)) => return Ok(Enforcement::None { reason }),
        Err(Trouble::Busy(reason)) => return busy(reason),
    };
    let version = landlock.to_string();
    let lacks = match ask(helper, &["full", &version]) {
        Ok(_) => return Ok(Enforcement::Full { landlock }),
        Err(Trouble::Lacks(lacks)) => lacks,
        Err(Trouble::Busy(reason)) => return busy(reason),
    };
    match ask(helper, &["partial", &version]) {
        Ok(_) => Ok(Enforcement::Partial { landlock, lacks }),
        Err(Trouble::Lacks(reason)) => Ok(Enforcement::None { reason }),
        Err(Trouble::Busy(reason)) => busy(reason),
    }
}

/// Returns whether the processes of a command are limited.
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
            reason: "for root only on demand, because it slows every command".to_owned(),
        };
    }
    let held = match GROUP.get() {
        Some(held) => held.clone(),
        None => match ask(helper, &["group"]) {
            Err(Trouble::Busy(reason)) => Err(reason),
            said => {
                let said = said.map(drop).map_err(Trouble::reason);
                GROUP.get_or_init(|| said).clone()
            }
        },
    };
    match held {
        Ok(()) => Processes::Limited(count),
        Err(reason) => Processes::NotLimited {
            reason: format!("root can only be limited by a pids control group: {reason}"),
        },
    }
}

/// Runs one trial in its own process, and retries while the machine is out of resources.
fn ask(helper: &Helper, words: &[&str]) -> Result<String, Trouble> {
    busy::again(
        || ask_once(helper, words),
        |trouble| matches!(trouble, Trouble::Busy(_)),
    )
}

fn ask_once(helper: &Helper, words: &[&str]) -> Result<String, Trouble> {
    let child = start(helper, words).map_err(|error| {
        let reason = format!("cannot start a trial: {error}");
        match busy::is_passing(&error) {
            true => Trouble::Busy(reason),
            false => Trouble::Lacks(reason),
        }
    })?;
    // A trial that was killed or timed out has no result.
    let text = answer(child).map_err(Trouble::Busy)?;
    match text.trim_end().split_once(' ') {
        Some(("yes", rest)) => Ok(rest.to_owned()),
        Some(("no", rest)) => Err(Trouble::Lacks(rest.to_owned())),
        Some(("busy", rest)) => Err(Trouble::Busy(rest.to_owned())),
        _ => Err(Trouble::Busy("a trial ended without a result".to_owned())),
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
                return Err("a trial timed out".to_owned());
            }
        }
    }
    // The one short line is already in the pipe, and no other process holds its end.
    let mut text = String::new();
    if let Some(mut out) = child.stdout.take() {
        use std::io::Read;
        let _ = out.by_ref().take(4096).read_to_string(&mut text);
    }
    Ok(text)
}

/// Runs a trial inside the throwaway process. `words` are the arguments after those of the
/// helper. Returns the line for standard output.
#[must_use]
pub fn rehearse(helper: &Helper, words: &[String]) -> String {
    let (word, reason) = match attempt(helper, words) {
        Ok(found) => return format!("yes {found}"),
        Err(Trouble::Lacks(reason)) => ("no", reason),
        Err(Trouble::Busy(reason)) => ("busy", reason),
    };
    // The caller adds its own prefix.
    let reason = reason.strip_prefix("sandbox: ").unwrap_or(&reason);
    format!("{word} {}", reason.replace('\n', " "))
}

fn attempt(helper: &Helper, words: &[String]) -> Result<String, Trouble> {
    let mut words = words.iter().map(String::as_str);
    let what = words.next().unwrap_or_default();
    let landlock = words.clone().next().and_then(|word| word.parse().ok());
    let landlock = landlock.unwrap_or_default();
    let troubled = |error: Error| match error.is_passing() {
        true => Trouble::Busy(error.to_string()),
        false => Trouble::Lacks(error.to_string()),
    };
    let put_on =
        |level, stage| enter(&sample(), Strength { level, landlock }, stage, &[]).map_err(troubled);
    match what {
        "landlock" => landlock_rules::version()
            .map(|version| version.to_string())
            .map_err(troubled),
        "group" => cgroup::ControlGroup::enter(64)
            .map(|_| "held".to_owned())
            .map_err(Trouble::Lacks),
        network::WORD => {
            network::create(words.filter_map(|word| word.parse().ok())).map_err(troubled)?;
            Ok("network".to_owned())
        }
        layers::WORD => layers::create().map_err(troubled),
        "partial" => put_on(Level::Partial, Stage::Inner).map(|_| "partial".to_owned()),
        "inner" => put_on(Level::Full, Stage::Inner).map(|_| "full".to_owned()),
        "full" => {
            let entered = put_on(Level::Full, Stage::Outer)?;
            if entered.role != Role::StartInner {
                return Err(Trouble::Lacks("unexpected role in the trial".to_owned()));
            }
            // The group is removed only after this.
            let said = ask(helper, &["inner", &landlock.to_string()]);
            drop(entered);
            said
        }
        _ => Err(Trouble::Lacks("unknown trial".to_owned())),
    }
}

/// Returns a plan that works on every machine.
fn sample() -> Plan {
    let temp = ["/tmp", "/var/tmp", "/usr"]
        .into_iter()
        .map(Path::new)
        .find(|path| {
            super::super::known_paths::kind(path) == super::super::known_paths::Kind::Folder
        })
        .map_or_else(|| PathBuf::from("/"), Path::to_owned);
    Plan {
        configs: Vec::new(),
        reading: Reading::NotSecret,
        writing: Writing::Nothing,
        roots: vec![PathBuf::from("/")],
        identities: crate::scope::identity_of(Path::new("/"))
            .into_iter()
            .collect(),
        readable: Vec::new(),
        own: Vec::new(),
        layers: Vec::new(),
        scaffolds: Vec::new(),
        inert: Vec::new(),
        temp,
        protected: Vec::new(),
        watched: Vec::new(),
        pinned: Vec::new(),
        hidden: Vec::new(),
        denied: Vec::new(),
        sockets: Vec::new(),
        network: Network::Off,
        limits: Limits {
            processes: 64,
            counting: Counting::WhereFree,
            memory: Memory::Unlimited,
        },
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "a program that stands for this one"
)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Creates a helper that reports a lack of resources for its first trials, and then
    /// full support.
    fn helper(folder: &Path, busy_for: u32) -> Helper {
        let program = folder.join("helper");
        let script = format!(
            "#!/bin/sh\ncd {} && echo x >> tries\n[ $(wc -l < tries) -le {busy_for} ] && {{ echo busy new namespaces: EAGAIN; exit; }}\necho yes 7\n",
            folder.display()
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Helper {
            program,
            args: Vec::new(),
            ceiling: Some(Level::Full),
        }
    }

    #[test]
    fn a_machine_without_room_lacks_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let found = try_all(&helper(folder.path(), 3));
        assert_eq!(found, Ok(Enforcement::Full { landlock: 7 }));
        let folder = tempfile::tempdir().unwrap();
        let never = try_all(&helper(folder.path(), 1_000)).unwrap_err();
        assert!(never.contains("new namespaces: EAGAIN"), "{never}");
    }
}
