//! A command that goes on beside whoever started it.

use super::disk::Log;
use super::job::Held;
use super::listeners::{self, Listener};
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
    /// The supervisor of its tree, where that is on this machine.
    pub(super) supervisor: Option<u32>,
    pub(super) output: Option<Arc<Log>>,
    pub(super) error: Option<Arc<Log>>,
    pub(super) pulse: watch::Receiver<Pulse>,
    pub(super) finished: watch::Receiver<Option<Arc<Result<Finished>>>>,
    pub(super) held: Held,
    pub(super) stop: mpsc::UnboundedSender<Duration>,
}

/// A program that is spoken to. Dropping it ends the program.
#[derive(Debug)]
pub struct Conversation {
    /// What it reads. To drop it is the end of its input.
    pub input: Sender,
    /// What it writes.
    pub output: Receiver,
    /// The program itself.
    pub running: Running,
}

/// How much a command has said, and when it last did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulse {
    /// Bytes of both streams.
    pub bytes: u64,
    /// When the last of them came; when it began, if none did.
    pub at: Instant,
}

impl Running {
    /// The number of the command's own process.
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

    /// Its output on the disk, which can be read while it grows. Nothing if none
    /// was asked for, or it could not be made.
    #[must_use]
    pub fn log(&self, stream: Stream) -> Option<Arc<Log>> {
        match stream {
            Stream::Output => self.output.clone(),
            Stream::Error => self.error.clone(),
        }
    }

    /// Whether something of it still runs after its own process has ended.
    #[must_use]
    pub fn has_survivors(&self) -> bool {
        !self.held.is_empty()
    }

    /// How it ended, once it has.
    #[must_use]
    pub fn finished(&self) -> Option<Arc<Result<Finished>>> {
        self.finished.borrow().clone()
    }

    /// What it has said so far; a receiver that wakes when there is more.
    #[must_use]
    pub fn pulse(&self) -> watch::Receiver<Pulse> {
        self.pulse.clone()
    }

    /// Its end; a receiver that wakes when it comes.
    #[must_use]
    pub fn end(&self) -> watch::Receiver<Option<Arc<Result<Finished>>>> {
        self.finished.clone()
    }

    /// Asks its whole tree to end, and kills it after `grace`. Returns when it is
    /// gone, or cannot be ended. What it left behind, if it had ended before, is
    /// ended too.
    pub async fn kill(&self, grace: Duration) {
        // Nobody there to be asked: it has ended.
        if self.stop.send(grace).is_ok() {
            let _ = self.end().wait_for(Option::is_some).await;
        }
        self.held.over().cancel();
        self.held.gone().await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.held.over().cancel();
    }
}

/// How many bytes lie in a pipe that nobody has taken out, which can be asked at its
/// writing end and after its reader has ended.
///
/// # Errors
/// Where the system cannot say.
pub fn unread(pipe: impl std::os::fd::AsFd) -> std::io::Result<u64> {
    Ok(rustix::io::ioctl_fionread(pipe)?)
}
