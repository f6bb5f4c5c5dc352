//! Where lines for a plugin go, and how far it has read.

use std::io::ErrorKind;
use std::sync::{Mutex, PoisonError};
use tokio::net::unix::pipe::Sender;

/// The input of a plugin.
pub(super) struct Pipe {
    sender: Sender,
    /// How many bytes went in so far.
    written: Mutex<u64>,
}

/// Where in the input a line ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct End(u64);

impl Pipe {
    pub(super) fn new(sender: Sender) -> Self {
        Self {
            sender,
            written: Mutex::new(0),
        }
    }

    /// Where a line will end that is written next.
    pub(super) fn end_of(&self, line: &str) -> End {
        End(*self.written.lock().unwrap_or_else(PoisonError::into_inner) + line.len() as u64)
    }

    /// Writes a line. What could not be written was read by nobody, as a line is only
    /// whole with its end.
    pub(super) async fn write(&self, line: &str) -> Option<()> {
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            self.sender.writable().await.ok()?;
            // Counted before anybody can ask how much of it was read.
            let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
            match self.sender.try_write(rest) {
                Ok(taken) => {
                    *written += taken as u64;
                    rest = rest.get(taken..).unwrap_or_default();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
        Some(())
    }

    /// Whether the program has taken a whole line out of its input. One that has ended
    /// may have left it there, and then it did nothing of what the line asks.
    pub(super) fn has_read(&self, end: End) -> bool {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let left = haft_ops::executor::unread(&self.sender).unwrap_or(0);
        written.saturating_sub(left) >= end.0
    }
}
