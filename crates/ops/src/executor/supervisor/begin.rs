//! How a command begins: found and started.

use super::super::Refusal;
use super::super::wire::Order;
use rustix::fs::{Access, FileType};
use rustix::process::Pid;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where programs are when the command's environment does not say.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

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
        .envs(order.environment.iter().map(|(name, value)| (name, value)));
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
