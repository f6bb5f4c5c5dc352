//! Namespaces that a throwaway process makes for haft: it sends their descriptors through a
//! socket on its standard input, prints what became of it, and ends.

use super::probe::Helper;
use super::{Error, Level, Result};
use crate::executor::handle;
use rustix::io::Errno;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Maximum time for making something, which takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum length of what the process prints.
const MAX_SAID: u64 = 64 << 10;

/// Names in errors.
pub(super) struct Names {
    /// What the machine lacks if it cannot be made.
    pub(super) mechanism: &'static str,
    /// The step that fails.
    pub(super) step: &'static str,
}

impl Names {
    pub(super) fn lacks(&self, reason: impl Into<String>) -> Error {
        Error::NotEnforced {
            mechanism: self.mechanism,
            reason: reason.into(),
        }
    }

    pub(super) fn failed(&self, source: impl Into<std::io::Error>) -> Error {
        Error::Step {
            step: self.step,
            path: None,
            source: source.into(),
        }
    }
}

/// Checks that tests have not switched namespaces off.
pub(super) fn is_possible(helper: &Helper, names: &Names) -> Result<()> {
    match helper.ceiling {
        Some(Level::Full) => Ok(()),
        _ => Err(names.lacks("switched off for a test")),
    }
}

/// Starts the process with these arguments and input. Returns the descriptors that it has sent
/// and the rest of the line that it has printed.
pub(super) fn make(
    helper: &Helper,
    arguments: impl IntoIterator<Item = String>,
    input: &[u8],
    names: &Names,
) -> Result<(Vec<OwnedFd>, String)> {
    let failed = |source: std::io::Error| names.failed(source);
    let (mut ours, theirs) = UnixStream::pair().map_err(failed)?;
    ours.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    #[expect(
        clippy::disallowed_methods,
        reason = "our own binary, which makes namespaces in a process of its own"
    )]
    let mut child = Command::new(&helper.program)
        .args(&helper.args)
        .args(arguments)
        .env_clear()
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let sent = ours
        .write_all(input)
        .and_then(|()| ours.shutdown(std::net::Shutdown::Write));
    let mut received = Vec::new();
    while let Ok(next) = handle::receive(&ours) {
        received.push(next);
    }
    let mut said = String::new();
    if let Some(output) = child.stdout.take() {
        let _ = output.take(MAX_SAID).read_to_string(&mut said);
    }
    let _ = child.wait();
    match said.trim_end().split_once(' ') {
        Some(("yes", rest)) => Ok((received, rest.to_owned())),
        Some(("no", reason)) => Err(names.lacks(reason)),
        Some(("busy", reason)) => Err(Error::Busy {
            reason: reason.to_owned(),
        }),
        // It was killed.
        _ => Err(sent.map_or_else(failed, |()| names.failed(Errno::AGAIN))),
    }
}
