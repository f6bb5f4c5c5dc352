//! The input of a plugin: writes lines and tracks how much has been read.

use std::io::ErrorKind;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::unix::pipe::Sender;

/// The input of a plugin.
pub(super) struct Pipe {
    /// `None` once it is closed.
    sender: Mutex<Option<Arc<Sender>>>,
    /// Bytes written so far.
    written: Mutex<u64>,
}

/// Position in the input where a line ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct End(u64);

impl Pipe {
    pub(super) fn new(sender: Sender) -> Self {
        Self {
            sender: Mutex::new(Some(Arc::new(sender))),
            written: Mutex::new(0),
        }
    }

    /// Closes the input after the line that is being written.
    pub(super) fn close(&self) {
        let mut sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        *sender = None;
    }

    fn sender(&self) -> Option<Arc<Sender>> {
        let sender = self.sender.lock();
        sender.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns where the next line will end.
    pub(super) fn end_of(&self, line: &str) -> End {
        End(*self.written.lock().unwrap_or_else(PoisonError::into_inner) + line.len() as u64)
    }

    /// Writes a line. If that fails, the plugin has not read the line, because it is only
    /// complete with its end.
    pub(super) async fn write(&self, line: &str) -> Option<()> {
        let sender = self.sender()?;
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            sender.writable().await.ok()?;
            // Counted before a reader can ask how much was read.
            let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
            match sender.try_write(rest) {
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

    /// Whether the program has read its input up to this position. A program that has
    /// exited may have left a call unread; then it has done nothing for it.
    pub(super) fn has_read(&self, end: End) -> bool {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let left = self
            .sender()
            .and_then(|sender| haft_ops::executor::unread(&*sender).ok());
        written.saturating_sub(left.unwrap_or(0)) >= end.0
    }
}
