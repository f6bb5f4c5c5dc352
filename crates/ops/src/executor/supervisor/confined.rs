//! A supervisor that goes into a sandbox with its command.
//!
//! Two processes: the one that haft started stays outside, where no command can
//! signal it, and holds what must be undone at the end; its child goes in, runs
//! the command and watches over it. Whatever cannot be put on, nothing is run.

use super::super::sandbox::{self, Confinement, Entered, Stage, enter, split};
use super::super::wire::{Order, Report};
use super::super::{GRACE, Refusal};
use super::{sweep, watch_over};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How much longer than the tree's own grace the inner supervisor has, once haft
/// is gone, before it is killed from outside.
const PATIENCE: Duration = Duration::from_millis(200);

pub(super) fn go_in(
    order: &Order,
    input: Option<OwnedFd>,
    confinement: &Confinement,
    left: sandbox::Result<Entered>,
    line: UnixStream,
    null: &File,
) -> io::Result<()> {
    let Confinement { strength, plan } = confinement;
    let me = rustix::process::getpid();
    let entered = match left {
        Ok(entered) => entered,
        Err(error) => return refuse(line, &error),
    };
    match split() {
        Err(error) => refuse(line, &error),
        Ok(Some(inner)) => {
            // Only the command reads it: who writes to it has to notice its end.
            drop(input);
            let stood_by = stand_by(inner, &line, null);
            sweep::kill_children(me.as_raw_pid().unsigned_abs(), |_, _| {});
            // The group can be removed now that nobody is in it.
            drop(entered);
            stood_by
        }
        Ok(None) => match enter(plan, *strength, Stage::Inner) {
            Err(error) => refuse(line, &error),
            Ok(_) => watch_over(order, input, line, null),
        },
    }
}

/// Waits for the inner supervisor to end, and sees to it when haft is gone.
fn stand_by(inner: Pid, line: &UnixStream, null: &File) -> io::Result<()> {
    rustix::stdio::dup2_stdout(null)?;
    rustix::stdio::dup2_stderr(null)?;
    let handle = pidfd_open(inner, PidfdFlags::empty())?;
    let mut deadline: Option<Instant> = None;
    loop {
        // What haft says is for the inner one: here only its end is watched.
        let mut fds = vec![PollFd::new(&handle, PollFlags::IN)];
        if deadline.is_none() {
            fds.push(PollFd::new(line, PollFlags::empty()));
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

fn refuse(mut line: UnixStream, error: &sandbox::Error) -> io::Result<()> {
    let refusal = match error.is_passing() {
        true => Refusal::Busy,
        false => Refusal::Unconfined,
    };
    line.write_all(&Report::Failed(refusal, error.to_string()).to_bytes())
}
