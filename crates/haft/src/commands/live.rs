//! What a running command says, on its way to whoever watches.

use haft_ops::text::decode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often there is an update, at most.
pub(crate) const PACE: Duration = Duration::from_millis(100);

/// The most that one update holds: a flood is shown by its end.
const MOST: usize = 4 << 10;

/// What came since the last update.
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
        let end = bytes.len().saturating_sub(MOST);
        fresh.bytes.extend(bytes.get(end..).unwrap_or_default());
        let over = fresh.bytes.len().saturating_sub(MOST);
        fresh.bytes.drain(..over);
        fresh.skipped += (end + over) as u64;
    }

    /// What is new, as text; nothing when there is nothing. A character that has
    /// not come whole waits.
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
    fn each_byte_is_shown_once_and_a_flood_by_its_end() {
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
        assert_eq!(text.matches('x').count(), MOST);
    }
}
