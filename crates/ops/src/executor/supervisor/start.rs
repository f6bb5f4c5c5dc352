//! Finding and starting the command.

use super::super::Refusal;
use super::super::lookup::{self, Found, SearchOrder};
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

/// Shells, which are looked up differently from other programs.
const SHELLS: [&str; 2] = ["bash", "sh"];

/// The reason why the command could not be started, as a fact and in words.
pub(super) type Failed = (Refusal, String);

/// Starts the command in its folder.
pub(super) fn spawn(order: &Order, input: Option<OwnedFd>) -> Result<Pid, Failed> {
    enter(&order.dir)?;
    let mut command = command(order)?;
    command.process_group(0);
    command.stdin(input.map_or_else(Stdio::null, Stdio::from));
    let begun = launched(&mut command);
    // Leaves the folder, because it may have to be removed or unmounted.
    let _ = std::env::set_current_dir("/");
    begun
}

fn launched(command: &mut Command) -> Result<Pid, Failed> {
    let child = busy::again(|| command.spawn(), busy::is_passing).map_err(|error| sort(&error))?;
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| (Refusal::Other, "no process id".to_owned()))
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

/// Finds a program by the command's own `PATH`. Skips relative folders, because they depend
/// on the working directory.
fn find(name: &OsStr, order: &Order) -> Result<PathBuf, Failed> {
    if name.is_empty() {
        return Err((Refusal::Missing, "the name of the program is empty".into()));
    }
    if name.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(name));
    }
    // The policy has checked the script, so the shell must never be a file that a command
    // created.
    let is_shell = SHELLS.iter().any(|shell| name == *shell);
    let (how, avoid) = match is_shell {
        true => (SearchOrder::System, writable(order)),
        false => (SearchOrder::Path, Vec::new()),
    };
    match lookup::find(name, order.variable("PATH"), &avoid, how) {
        Found::Program(found) => Ok(found),
        Found::NotExecutable => Err((Refusal::NotExecutable, "permission denied".to_owned())),
        Found::Nothing => Err((Refusal::Missing, "not found in PATH".to_owned())),
    }
}

/// Returns the folders that the command may write.
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
