//! Standard error for messages that must not stop a call if nothing reads them.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, Write};
use std::time::Duration;

/// A pipe that is ready accepts at least this many bytes without blocking.
const PIPE_BUF: usize = 4096;

/// Writes to stderr, waiting at most `patience` for a slow reader.
///
/// # Errors
/// [`ErrorKind::WouldBlock`] if nothing reads; the text is then not written, or only its
/// beginning.
pub(crate) fn write_all(text: &[u8], patience: Duration) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    for part in text.chunks(PIPE_BUF) {
        let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
        let mut ready = [PollFd::new(&stderr, PollFlags::OUT)];
        if poll(&mut ready, Some(&patience)) == Ok(0) {
            return Err(io::Error::new(
                ErrorKind::WouldBlock,
                "nothing reads standard error",
            ));
        }
        stderr.write_all(part)?;
    }
    Ok(())
}

/// Standard error as a writer that gives up after a second.
pub(crate) struct PatientStderr;

impl Write for PatientStderr {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        // Not `WouldBlock`, which callers would retry.
        write_all(text, Duration::from_secs(1))
            .map_err(|error| io::Error::other(error.to_string()))?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
