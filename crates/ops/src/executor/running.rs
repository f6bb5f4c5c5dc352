//! Commands that run in the background.

use super::disk::Log;
use super::listeners::{self, Listener};
use super::survivors::SurvivorRegistry;
use super::{Finished, Stream};
use crate::Result;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{mpsc, watch};

/// A command in the background. Dropping it ends the command.
#[derive(Debug)]
pub struct Running {
    pub(super) pid: u32,
    /// Process id of its supervisor, if it runs on this machine.
    pub(super) supervisor: Option<u32>,
    pub(super) output: Option<Arc<Log>>,
    pub(super) error: Option<Arc<Log>>,
    pub(super) pulse: watch::Receiver<Pulse>,
    pub(super) finished: watch::Receiver<Option<Arc<Result<Finished>>>>,
    pub(super) registry: SurvivorRegistry,
    pub(super) stop: mpsc::UnboundedSender<Duration>,
}

/// A program to exchange messages with. Dropping it ends the program.
#[derive(Debug)]
pub struct Conversation {
    /// Its standard input. Dropping it signals end of file.
    pub input: Sender,
    /// Its standard output.
    pub output: Receiver,
    /// The running program.
    pub running: Running,
}

/// Amount and time of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulse {
    /// Number of bytes on both streams.
    pub bytes: u64,
    /// Time of the last output; the start time if there was none.
    pub at: Instant,
}

impl Running {
    /// Returns the process id of the command.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns who listens on a TCP port, as the command sees the network. `None` if it
    /// runs on another machine. Reads the process table, so it may block.
    pub(crate) fn listener(&self) -> Option<impl Fn(u16) -> Listener + Send + 'static> {
        let supervisor = self.supervisor?;
        Some(move |port| listeners::listener(supervisor, port))
    }

    /// Returns the log of a stream, which can be read while it grows. `None` if it was not
    /// requested or could not be created.
    #[must_use]
    pub fn log(&self, stream: Stream) -> Option<Arc<Log>> {
        match stream {
            Stream::Output => self.output.clone(),
            Stream::Error => self.error.clone(),
        }
    }

    /// Whether processes it started are still running after its own has ended.
    #[must_use]
    pub fn has_survivors(&self) -> bool {
        !self.registry.is_empty()
    }

    /// Returns how it ended, or `None` if it is still running.
    #[must_use]
    pub fn finished(&self) -> Option<Arc<Result<Finished>>> {
        self.finished.borrow().clone()
    }

    /// Returns a receiver for the amount of output, which wakes on new output.
    #[must_use]
    pub fn pulse(&self) -> watch::Receiver<Pulse> {
        self.pulse.clone()
    }

    /// Returns a receiver for its end, which wakes when it ends.
    #[must_use]
    pub fn end(&self) -> watch::Receiver<Option<Arc<Result<Finished>>>> {
        self.finished.clone()
    }

    /// Sends TERM to the whole tree, and KILL after `grace`. Returns once it has ended or
    /// cannot be ended. If the command had ended before, this ends the processes it left
    /// behind.
    pub async fn kill(&self, grace: Duration) {
        // If the channel is closed, it has ended.
        if self.stop.send(grace).is_ok() {
            let _ = self.end().wait_for(Option::is_some).await;
        }
        self.registry.shutdown().cancel();
        self.registry.wait_gone().await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.registry.shutdown().cancel();
    }
}

/// Returns the number of bytes in a pipe that have not been read. Works at the writing end,
/// too, and after the reader has closed it.
///
/// # Errors
/// If the system does not support it.
pub fn unread(pipe: impl std::os::fd::AsFd) -> std::io::Result<u64> {
    Ok(rustix::io::ioctl_fionread(pipe)?)
}
