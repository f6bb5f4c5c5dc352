//! Recording what a command changes, through seccomp user notification.
//!
//! ```text
//! haft ──order──▶ inner supervisor: installs a second filter, sends its listener to haft
//! haft: one thread ◀──"unlinkat(3, …)"── a process of the command, which waits
//!       keeps the file ──"go on"──▶
//! ```
//!
//! The handler runs in haft, not in the supervisor: haft sees the file system without the
//! sandbox's mounts, between which hard links are impossible, and if haft ends, the listener
//! closes and every call that would change a file fails, until the supervisor has ended the
//! tree. So nothing changes unrecorded.
//!
//! Arguments are read from the memory of a process that can change them at the same time.
//! This is undo, not a security boundary: the confinement does not depend on it.
//!
//! The same notifications let git change its configuration (`configs`, and
//! `git/config_gate.rs`). That does not depend on the arguments either: the file is read-only
//! for the command, and haft publishes what it has judged itself.

mod calls;
mod configs;
mod filter;
mod handler;
mod long;
mod raw;
mod resolve;
mod target;
mod underway;
mod waiting;

use super::handle;
use super::wire::Notified;
use crate::effects::{Incomplete, Recording};
use crate::git::ConfigGate;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Stack of a handler. It has no deep calls, and there is one for each command.
const STACK: usize = 256 << 10;

/// Starts the handler of a command. Returns the socket on which its supervisor must send
/// the listener and the calls to be notified, or `None` if there is nothing to handle.
pub(super) fn start(
    recording: &Recording,
    gate: Option<&Arc<ConfigGate>>,
) -> Option<(OwnedFd, Notified)> {
    let gate = gate.filter(|gate| !gate.is_empty()).map(Arc::clone);
    let notified = match (recording.is_on(), &gate) {
        (true, _) => Notified::Changes,
        (false, Some(_)) => Notified::GitConfigs,
        (false, None) => return None,
    };
    let begin = || {
        let (ours, theirs) = UnixStream::pair()?;
        let recording = recording.clone();
        std::thread::Builder::new()
            .name("haft-effects".to_owned())
            .stack_size(STACK)
            .spawn(move || run(&ours, &recording, gate.as_deref()))?;
        Ok::<_, io::Error>(theirs.into())
    };
    match begin() {
        Ok(theirs) => Some((theirs, notified)),
        Err(error) => {
            recording.unrecorded(Incomplete::Other(format!(
                "cannot start recording: {error}"
            )));
            None
        }
    }
}

fn run(socket: &UnixStream, recording: &Recording, gate: Option<&ConfigGate>) {
    match handle::receive(socket) {
        Ok(listener) => {
            let listener = raw::Listener::new(listener);
            recording.begin();
            handler::serve(&listener, recording, gate);
        }
        // Either the supervisor says why, or the command was never started.
        Err(_) => {
            let mut reason = String::new();
            let mut socket = socket;
            if socket.read_to_string(&mut reason).is_ok() && !reason.is_empty() {
                recording.unrecorded(Incomplete::Unsupported(reason));
            }
        }
    }
    recording.end();
}

/// Installs the filter for the calling supervisor and the command that it will start, and
/// sends the listener to haft. If the kernel refuses, the command runs unrecorded.
///
/// # Errors
/// haft is gone. The command must not run, because every change would fail.
pub(super) fn install(socket: OwnedFd, notified: Notified) -> io::Result<()> {
    match raw::install(&filter::program(notified)) {
        Ok(listener) => handle::send(&socket, &listener),
        Err(error) => {
            // The carrier byte without a descriptor, then the reason.
            let mut socket = UnixStream::from(socket);
            socket.write_all(b"h")?;
            socket.write_all(error.to_string().as_bytes())
        }
    }
}
