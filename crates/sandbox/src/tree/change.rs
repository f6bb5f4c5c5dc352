//! Files that a call has changed or read.

use crate::host::Refused;
use bashkit::Result;
use haft::guest::FileInfo;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Maximum number of paths that a call may use.
pub(super) const MAX_PATHS: usize = 10_000;

/// State of a path during a call.
pub(super) enum Node {
    /// A folder that the call created.
    Dir,
    /// A file that the call read or wrote.
    File {
        bytes: Arc<[u8]>,
        /// The session's version; `None` if the session has no such file.
        was: Option<String>,
        is_changed: bool,
        modified: SystemTime,
    },
    /// A file that the call removed.
    Gone {
        /// The session's version, if the session has the file.
        was: Option<String>,
    },
}

/// All changes of a call.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) nodes: BTreeMap<PathBuf, Node>,
    pub(super) seen: HashMap<PathBuf, std::result::Result<FileInfo, Refused>>,
    pub(super) images: BTreeSet<PathBuf>,
    used_bytes: u64,
}

impl Changes {
    /// Reserves room for this many bytes at a path, replacing its current content.
    pub(super) fn take_room(&mut self, path: &Path, bytes: usize, room: u64) -> Result<()> {
        let before = match self.nodes.get(path) {
            Some(Node::File { bytes, .. }) => bytes.len(),
            _ => 0,
        };
        let used_bytes = (self.used_bytes + bytes as u64).saturating_sub(before as u64);
        if used_bytes > room {
            let problem = format!("too large: one call may use {} MiB of files", room >> 20);
            return Err(io::Error::other(problem).into());
        }
        self.used_bytes = used_bytes;
        Ok(())
    }

    /// Fails if the call already uses the maximum number of paths.
    pub(super) fn count(&self, path: &Path) -> Result<()> {
        if self.nodes.len() >= MAX_PATHS && !self.nodes.contains_key(path) {
            let problem = format!("limit: one call may use {MAX_PATHS} files");
            return Err(io::Error::other(problem).into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_call_are_limited_in_number_and_size() {
        let mut changes = Changes::default();
        for number in 0..MAX_PATHS {
            let path = PathBuf::from(format!("/{number}"));
            changes.count(&path).unwrap();
            changes.nodes.insert(path, Node::Dir);
        }
        assert!(changes.count(Path::new("/one more")).is_err());
        assert!(changes.count(Path::new("/1")).is_ok());

        let path = Path::new("/f");
        changes.take_room(path, 10, 10).unwrap();
        assert!(changes.take_room(Path::new("/g"), 1, 10).is_err());
        changes.nodes.insert(
            path.to_owned(),
            Node::File {
                bytes: Arc::from(&[0; 10][..]),
                was: None,
                is_changed: true,
                modified: SystemTime::UNIX_EPOCH,
            },
        );
        // A replacement only needs room for itself.
        changes.take_room(path, 10, 10).unwrap();
    }
}
