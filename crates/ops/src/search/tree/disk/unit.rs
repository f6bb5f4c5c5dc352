//! Units of work: folders to list and files to open.

use super::super::Rules;
use rustix::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder whose entries are still to be opened.
pub(super) struct Folder {
    pub(super) below: Vec<u8>,
    /// `None` if too many folders are open; then it is reopened by its path.
    pub(super) handle: Option<OwnedFd>,
    pub(super) handles: Arc<AtomicUsize>,
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.handle.is_some() {
            self.handles.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Names of files in one folder, in a single buffer.
#[derive(Default)]
pub(super) struct Files {
    pub(super) names: Vec<u8>,
    pub(super) ends: Vec<usize>,
}

impl Files {
    pub(super) fn push(&mut self, name: &[u8]) {
        self.names.extend_from_slice(name);
        self.ends.push(self.names.len());
    }

    pub(super) fn name(&self, index: usize) -> &[u8] {
        let from = index
            .checked_sub(1)
            .and_then(|before| self.ends.get(before))
            .copied()
            .unwrap_or(0);
        let to = self.ends.get(index).copied().unwrap_or(from);
        self.names.get(from..to).unwrap_or_default()
    }
}

/// Work that one thread does at once, or shares in parts.
pub(super) enum Unit {
    /// Lists a folder; the start of the walk has no parent.
    Folder {
        parent: Option<Arc<Folder>>,
        below: Vec<u8>,
        name_at: usize,
        rules: Rules,
    },
    /// Opens files of a folder.
    Files {
        folder: Arc<Folder>,
        files: Arc<Files>,
        from: usize,
        to: usize,
    },
}
