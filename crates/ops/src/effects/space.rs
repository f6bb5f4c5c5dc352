//! The space that a session uses.

use super::library;
use super::session::Session;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Bytes that a session uses, once they were counted.
#[derive(Debug, Default)]
pub(super) struct Space(Mutex<Option<u64>>);

impl Space {
    /// Counts bytes that are about to be kept. If that exceeds the limit, the oldest sets go.
    /// Returns `false` if the limit is reached even so.
    pub(super) fn reserve(&self, session: &Session, bytes: u64, most: u64) -> io::Result<bool> {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sum = match *used {
            Some(used) => used,
            None => library::usage(session.folder())?,
        };
        if sum.saturating_add(bytes) > most {
            sum = library::evict(session, most.saturating_sub(bytes))?;
        }
        let fits = sum.saturating_add(bytes) <= most;
        if fits {
            sum = sum.saturating_add(bytes);
        }
        *used = Some(sum);
        Ok(fits)
    }

    /// Counts bytes that were written.
    pub(super) fn add(&self, bytes: u64) {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *used = used.map(|used| used.saturating_add(bytes));
    }
}
