//! Several sets as one picture, with what undos have made again since.

use super::library::{ends, load, names, numbers, read_set, set_name};
use super::picture::Picture;
use super::record::{Header, Record};
use super::session::Session;
use super::state::{Inode, Time};
use std::io;

/// Files and folders that undos made again since a time, in this session or another one: pairs
/// of a new and an old inode.
fn aliases(session: &Session, since: Time) -> io::Result<Vec<(Inode, Inode)>> {
    let mut aliases = Vec::new();
    let store = session.store().folder();
    for name in names(store)? {
        let folder = store.join(name);
        for number in numbers(&folder).unwrap_or_default() {
            let path = folder.join(set_name(number));
            let is_undo =
                |(header, _): (Header, _)| !header.undoes.is_empty() && header.time >= since;
            // One that cannot be read must not stop undos of others.
            if let Ok(Some(ends)) = ends(&path)
                && is_undo(ends)
                && let Ok(Some(set)) = read_set(&path, number)
            {
                aliases.extend(set.records.iter().filter_map(|record| match record {
                    Record::Alias { old, new } => Some((*new, *old)),
                    _ => None,
                }));
            }
        }
    }
    Ok(aliases)
}

/// Combines sets, oldest first.
pub(super) fn combined(session: &Session, numbers: &[u64]) -> io::Result<Picture> {
    let mut sets = Vec::new();
    for number in numbers {
        sets.extend(load(session, *number)?);
    }
    let headers = sets.iter().filter_map(|set| set.header.as_ref());
    let first = headers.map(|header| header.time).min();
    let aliases = match first {
        Some(first) => aliases(session, first)?,
        None => Vec::new(),
    };
    Picture::new(&sets, &aliases)
}
