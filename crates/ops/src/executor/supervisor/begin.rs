//! How a command begins: found and started.

use super::super::Refusal;
use super::super::lookup::{self, Found, Order as How};
use super::super::sandbox::busy;
use super::super::wire::Order;
use rustix::process::Pid;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Programs that run what they are given.
const SHELLS: [&str; 2] = ["bash", "sh"];

/// Why it did not begin, and in the system's words.
pub(super) type Failed = (Refusal, String);

/// Starts the command in its folder.
pub(super) fn spawn(order: &Order, input: Option<OwnedFd>) -> Result<Pid, Failed> {
    enter(&order.dir)?;
    let mut command = command(order)?;
    command.process_group(0);
    command.stdin(input.map_or_else(Stdio::null, Stdio::from));
    let begun = launched(&mut command);
    // Held no longer than needed: the folder may be removed or unmounted.
    let _ = std::env::set_current_dir("/");
    begun
}

fn launched(command: &mut Command) -> Result<Pid, Failed> {
    let child = busy::again(|| command.spawn(), busy::is_passing).map_err(|error| sort(&error))?;
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
        .envs(order.environment.iter().map(|(name, value)| (name, value)));
    Ok(command)
}

/// Where a program is, by the command's own `PATH`. What is relative in there would
/// depend on where the command happens to run.
fn find(name: &OsStr, order: &Order) -> Result<PathBuf, Failed> {
    if name.is_empty() {
        return Err((Refusal::Missing, "the name of the program is empty".into()));
    }
    if name.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(name));
    }
    // A shell runs what rules have judged: it is never one that a command made.
    let is_shell = SHELLS.iter().any(|shell| name == *shell);
    let (how, avoid) = match is_shell {
        true => (How::System, writable(order)),
        false => (How::Path, Vec::new()),
    };
    match lookup::find(name, order.variable("PATH"), &avoid, how) {
        Found::Program(found) => Ok(found),
        Found::NotExecutable => Err((Refusal::NotExecutable, "permission denied".to_owned())),
        Found::Nothing => Err((Refusal::Missing, "not found in PATH".to_owned())),
    }
}

/// The folders that the command may write.
fn writable(order: &Order) -> Vec<PathBuf> {
    match &order.confinement {
        Some(confinement) => confinement.plan.writable(),
        None => vec![order.dir.clone()],
    }
}

fn sort(error: &io::Error) -> Failed {
    use rustix::io::Errno;
    let refusal = match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NOTDIR) => Refusal::Missing,
        Some(Errno::ACCESS | Errno::NOEXEC | Errno::PERM | Errno::ISDIR) => Refusal::NotExecutable,
        Some(Errno::TOOBIG) => Refusal::TooLong,
        Some(Errno::TXTBSY) => Refusal::Written,
        Some(_) if busy::is_passing(error) => Refusal::Busy,
        _ => Refusal::Other,
    };
    (refusal, error.to_string())
}
