//! The output of a running command, on its way to listeners.

use haft_ops::text::decode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Minimum interval between updates.
pub(crate) const PACE: Duration = Duration::from_millis(100);

/// Maximum size of one update, in bytes. Of more output, the end is shown.
const MAX_BYTES: usize = 4 << 10;

/// Output since the last update.
#[derive(Debug, Default)]
pub(crate) struct Live {
    fresh: Mutex<Fresh>,
}

#[derive(Debug, Default)]
struct Fresh {
    bytes: Vec<u8>,
    skipped: u64,
}

impl Live {
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut fresh = self.lock();
        let end = bytes.len().saturating_sub(MAX_BYTES);
        fresh.bytes.extend(bytes.get(end..).unwrap_or_default());
        let over = fresh.bytes.len().saturating_sub(MAX_BYTES);
        fresh.bytes.drain(..over);
        fresh.skipped += (end + over) as u64;
    }

    /// Returns the new output as text, if there is any. An incomplete character waits for
    /// the rest.
    pub(crate) fn take(&self) -> Option<String> {
        let mut fresh = self.lock();
        let whole = fresh.bytes.len() - decode::unfinished(&fresh.bytes);
        let bytes: Vec<u8> = fresh.bytes.drain(..whole).collect();
        let skipped = std::mem::take(&mut fresh.skipped);
        drop(fresh);
        if bytes.is_empty() {
            return None;
        }
        let text = decode::lossy(&bytes);
        Some(if skipped > 0 {
            format!("[{skipped} bytes not shown]\n{text}")
        } else {
            text.into_owned()
        })
    }

    fn lock(&self) -> MutexGuard<'_, Fresh> {
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_shown_once_and_only_the_end_of_a_flood() {
        let live = Live::default();
        assert_eq!(live.take(), None);
        live.push("a€".as_bytes());
        live.push(&[0xe2, 0x82]);
        assert_eq!(live.take().as_deref(), Some("a€"));
        live.push(&[0xac]);
        assert_eq!(live.take().as_deref(), Some("€"));
        for _ in 0..10 {
            live.push(&[b'x'; 3000]);
        }
        let text = live.take().unwrap();
        assert!(text.starts_with("[25904 bytes not shown]\nxxx"), "{text}");
        assert_eq!(text.matches('x').count(), MAX_BYTES);
    }
}
