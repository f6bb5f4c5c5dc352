//! Files with several names: a set may change one under a name and another set, or the same,
//! under another.

use super::picture::{After, Picture};
use super::record::Record;
use super::state::{Inode, State};
use std::collections::HashMap;

/// Last known states of such files, with the hash of their content.
pub(super) type Last = HashMap<Inode, (State, Option<[u8; 32]>)>;

impl Picture {
    /// Notes the states in which a set left files with several names: a later set may have
    /// changed such a file under another name.
    pub(super) fn note_last(&self, records: &[Record], last: &mut Last) {
        for record in records {
            let (state, hash) = match record {
                Record::After {
                    after: Some(state),
                    hash,
                    ..
                } => (state, *hash),
                Record::LinkedAfter { after, .. } => (after, None),
                _ => continue,
            };
            let inode = self.canonical(state.inode);
            if !state.is_dir() && (state.links > 1 || last.contains_key(&inode)) {
                let state = State {
                    inode,
                    ..state.clone()
                };
                last.insert(inode, (state, hash));
            }
        }
    }

    /// Gives every name of such a file its last state.
    pub(super) fn apply_last(&mut self, last: &Last) {
        for entry in &mut self.entries {
            match (&mut entry.after, &entry.before) {
                (Some(after), _) => {
                    let inode = after.state.as_ref().map(|state| state.inode);
                    if let Some((state, hash)) = inode.and_then(|inode| last.get(&inode)) {
                        after.state = Some(state.clone());
                        after.hash = *hash;
                    }
                }
                // The set that touched this name did not change the file, but another did.
                (None, Some(before)) => {
                    if let Some((state, hash)) = last.get(&before.inode)
                        && !(before.same_content(state) && before.same_access(state))
                    {
                        entry.after = Some(After {
                            content: !before.same_content(state),
                            state: Some(state.clone()),
                            hash: *hash,
                        });
                    }
                }
                (None, None) => {}
            }
        }
    }
}
