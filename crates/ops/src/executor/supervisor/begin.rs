//! How a command begins: found, started, and perhaps confined first.

use super::super::wire::{Order, Stage};
use super::super::{Confine, Refusal};
use rustix::fs::{Access, FileType};
use rustix::process::Pid;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where programs are when the command's environment does not say.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Why it did not begin, and in the system's words.
pub(super) type Failed = (Refusal, String);

/// A command that runs.
pub(super) struct Begun {
    pub(super) pid: Pid,
    /// Where a process that is still to become the command says that it cannot.
    pub(super) told: Option<UnixStream>,
}

/// Starts the command in its folder.
pub(super) fn spawn(order: &Order) -> Result<Begun, Failed> {
    enter(&order.dir)?;
    let begun = if order.confinement.is_some() {
        by_another(order)
    } else {
        let mut command = command(order)?;
        command.process_group(0);
        launched(&mut command).map(|pid| Begun { pid, told: None })
    };
    // Held no longer than needed: the folder may be removed or unmounted.
    let _ = std::env::set_current_dir("/");
    begun
}

/// Confines this very process and becomes the command; returns if it cannot.
pub(super) fn become_command(order: &Order, confine: Confine) -> Failed {
    if let Err(failed) = enter(&order.dir) {
        return failed;
    }
    // Found first: the confinement may hide what it does not forbid to run.
    let mut command = match command(order) {
        Ok(command) => command,
        Err(failed) => return failed,
    };
    if let Some(plan) = &order.confinement
        && let Err(reason) = confine(plan)
    {
        return (Refusal::Unconfined, reason);
    }
    let error = command.exec();
    sort(&error)
}

/// Confinement is for good, so it needs a process that has nothing else to do.
fn by_another(order: &Order) -> Result<Begun, Failed> {
    let fault = |error: io::Error| (Refusal::NoSupervisor, error.to_string());
    let (mut told, theirs) = UnixStream::pair().map_err(fault)?;
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    #[expect(clippy::disallowed_methods, reason = "this is an executor")]
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0(name)
        .args(arguments)
        .env_clear()
        .stdin(OwnedFd::from(theirs))
        .process_group(0);
    let pid = launched(&mut command)?;
    // The command keeps the other end in `stdin`.
    drop(command);
    let mut order = order.clone();
    order.stage = Stage::Become;
    told.write_all(&order.to_bytes()).map_err(fault)?;
    Ok(Begun {
        pid,
        told: Some(told),
    })
}

fn launched(command: &mut Command) -> Result<Pid, Failed> {
    let child = command.spawn().map_err(|error| sort(&error))?;
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| (Refusal::Other, "no process number".to_owned()))
}

fn enter(dir: &Path) -> Result<(), Failed> {
    std::env::set_current_dir(dir).map_err(|error| (Refusal::NoDirectory, error.to_string()))
}

fn command(order: &Order) -> Result<Command, Failed> {
    let (name, arguments) = order
        .argv
        .split_first()
        .ok_or_else(|| (Refusal::Missing, "no program was named".to_owned()))?;
    #[expect(clippy::disallowed_methods, reason = "this is an executor")]
    let mut command = Command::new(find(name, order)?);
    command
        .arg0(name)
        .args(arguments)
        .env_clear()
        .envs(order.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null());
    Ok(command)
}

/// Where a program is, by the command's own `PATH`.
fn find(name: &OsStr, order: &Order) -> Result<PathBuf, Failed> {
    if name.is_empty() {
        return Err((Refusal::Missing, "the name of the program is empty".into()));
    }
    if name.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(name));
    }
    let path = order.variable("PATH").unwrap_or(OsStr::new(PATH));
    let mut refusal = (Refusal::Missing, "not found in PATH".to_owned());
    for folder in std::env::split_paths(path) {
        // An empty entry is the current folder.
        let found = Path::new(".").join(folder).join(name);
        let is_file = rustix::fs::stat(&found)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file());
        if is_file && rustix::fs::access(&found, Access::EXEC_OK).is_ok() {
            return Ok(found);
        }
        if is_file {
            refusal = (Refusal::NotExecutable, "permission denied".to_owned());
        }
    }
    Err(refusal)
}

fn sort(error: &io::Error) -> Failed {
    use rustix::io::Errno;
    let refusal = match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NOTDIR) => Refusal::Missing,
        Some(Errno::ACCESS | Errno::NOEXEC | Errno::PERM | Errno::ISDIR) => Refusal::NotExecutable,
        Some(Errno::TOOBIG) => Refusal::TooLong,
        _ => Refusal::Other,
    };
    (refusal, error.to_string())
}
