//! A supervisor that enters a sandbox with its command.
//!
//! There are two processes. The one that haft started stays outside, where the command
//! cannot signal it, and cleans up at the end. Its child enters the sandbox, runs the
//! command and supervises it. If any part of the confinement fails, the command is not run.

use super::super::sandbox::{self, Confinement, Entered, Stage, enter, split};
use super::super::wire::{Notified, Order, Report};
use super::super::{GRACE, Refusal, notify};
use super::{sweep, watch_over};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Additional time for the inner supervisor after haft is gone, before it is killed from
/// outside.
const PATIENCE: Duration = Duration::from_millis(200);

/// Descriptors that came with the order.
pub(super) struct Handles {
    /// Standard input of the command.
    pub(super) input: Option<OwnedFd>,
    /// Socket for the listener of a filter, and the calls that the filter notifies.
    pub(super) listens: Option<(OwnedFd, Notified)>,
}

pub(super) fn enter_sandbox(
    order: &Order,
    handles: Handles,
    confinement: &Confinement,
    left: sandbox::Result<Entered>,
    socket: UnixStream,
    null: &File,
) -> io::Result<()> {
    let Confinement { strength, plan } = confinement;
    let me = rustix::process::getpid();
    let entered = match left {
        Ok(entered) => entered,
        Err(error) => return refuse(socket, &error),
    };
    match split() {
        Err(error) => refuse(socket, &error),
        Ok(Some(inner)) => {
            // Only the command reads the input. If a copy stayed open here, the writer would
            // not notice its end. The same is true of the socket.
            drop(handles);
            let stood_by = stand_by(inner, &socket, null);
            sweep::kill_children(me.as_raw_pid().unsigned_abs(), |_, _| {});
            // The cgroup can be removed now that it is empty.
            drop(entered);
            stood_by
        }
        Ok(None) => match enter(plan, *strength, Stage::Inner, &entered.layers) {
            Err(error) => refuse(socket, &error),
            Ok(_) => {
                if let Some((socket, calls)) = handles.listens {
                    notify::install(socket, calls)?;
                }
                watch_over(order, handles.input, socket, null)
            }
        },
    }
}

/// Waits for the inner supervisor to end, and kills it if haft is gone.
fn stand_by(inner: Pid, socket: &UnixStream, null: &File) -> io::Result<()> {
    rustix::stdio::dup2_stdout(null)?;
    rustix::stdio::dup2_stderr(null)?;
    let handle = pidfd_open(inner, PidfdFlags::empty())?;
    let mut deadline: Option<Instant> = None;
    loop {
        // Messages from haft are for the inner supervisor; this one only checks whether the
        // socket closes.
        let mut fds = vec![PollFd::new(&handle, PollFlags::IN)];
        if deadline.is_none() {
            fds.push(PollFd::new(socket, PollFlags::empty()));
        }
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, left.as_ref()) {
            Ok(0) => pidfd_send_signal(&handle, Signal::KILL)?,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let came = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        if came(0) {
            return Ok(());
        }
        if came(1) {
            deadline = Some(Instant::now() + GRACE + PATIENCE);
        }
    }
}

fn refuse(mut socket: UnixStream, error: &sandbox::Error) -> io::Result<()> {
    let refusal = match error.is_passing() {
        true => Refusal::Busy,
        false => Refusal::Unconfined,
    };
    socket.write_all(&Report::Failed(refusal, error.to_string()).to_bytes())
}
