//! What one call changed, and what it has seen.

use crate::host::Refused;
use bashkit::Result;
use haft::guest::Seen;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// How many paths one call may change.
pub(super) const MOST: usize = 10_000;

/// A path as the call has it.
pub(super) enum Node {
    /// A folder that the call made.
    Dir,
    /// A file that it read or wrote.
    File {
        bytes: Arc<[u8]>,
        /// The version that the session had; none if it had no such file.
        was: Option<String>,
        is_changed: bool,
        modified: SystemTime,
    },
    /// Nothing any more.
    Gone {
        /// The version that the session had, if it was a file of the session.
        was: Option<String>,
    },
}

/// Everything.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) nodes: BTreeMap<PathBuf, Node>,
    pub(super) seen: HashMap<PathBuf, std::result::Result<Seen, Refused>>,
    pub(super) images: BTreeSet<PathBuf>,
    taken: u64,
}

impl Changes {
    /// Makes room for so many bytes at a path, instead of those that are there.
    pub(super) fn take_room(&mut self, path: &Path, bytes: usize, room: u64) -> Result<()> {
        let before = match self.nodes.get(path) {
            Some(Node::File { bytes, .. }) => bytes.len(),
            _ => 0,
        };
        let taken = (self.taken + bytes as u64).saturating_sub(before as u64);
        if taken > room {
            let problem = format!("too large: one call may use {} MiB of files", room >> 20);
            return Err(io::Error::other(problem).into());
        }
        self.taken = taken;
        Ok(())
    }

    /// Whether one more path may be changed.
    pub(super) fn count(&self, path: &Path) -> Result<()> {
        if self.nodes.len() >= MOST && !self.nodes.contains_key(path) {
            let problem = format!("limit: one call may use {MOST} files");
            return Err(io::Error::other(problem).into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_so_many_files_and_so_much_room() {
        let mut changes = Changes::default();
        for number in 0..MOST {
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
        // What takes the place of something needs its own room alone.
        changes.take_room(path, 10, 10).unwrap();
    }
}
