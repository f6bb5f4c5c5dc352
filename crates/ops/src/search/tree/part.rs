//! One part of a tree that several backends make up, reported as a part of the whole.

use super::disk::Opener;
use super::{LinkTarget, Next, SkipReason, Visitor, WalkEntry, enter_filtered};
use crate::backend::{Kind, Part};
use crate::{Backend, Error, FilePath, Result};
use std::os::unix::ffi::OsStrExt;

/// Returns the parts of the tree at `path` that exist.
pub(crate) async fn parts<'a>(backend: &'a dyn Backend, path: &FilePath) -> Result<Vec<Part<'a>>> {
    let parts = backend.parts(path);
    if parts.is_empty() {
        return Ok(vec![Part {
            backend,
            path: path.clone(),
            below: Default::default(),
            covered: Vec::new(),
        }]);
    }
    let mut there = Vec::new();
    for part in parts {
        match part.backend.stat(&part.path).await {
            Ok(stat) if stat.kind == Kind::Directory => there.push(part),
            // It is a folder only because of the mounts in it.
            Ok(_) | Err(Error::NotFound { .. } | Error::NotADirectory { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(there)
}

/// Converts paths of a part to paths of the whole tree.
#[derive(Debug, Clone)]
pub(crate) struct PathMapping {
    prefix: Vec<u8>,
    covered: Vec<Vec<u8>>,
}

impl PathMapping {
    pub(crate) fn of(part: &Part<'_>) -> Self {
        let covered = part.covered.iter();
        Self {
            prefix: part.below.as_os_str().as_bytes().to_owned(),
            covered: covered
                .map(|path| path.as_os_str().as_bytes().to_owned())
                .collect(),
        }
    }

    /// Converts a path of the part to a path of the whole tree.
    pub(crate) fn whole<'a>(&self, below: &'a [u8], room: &'a mut Vec<u8>) -> &'a [u8] {
        if self.prefix.is_empty() {
            return below;
        }
        room.clear();
        room.extend_from_slice(&self.prefix);
        if !below.is_empty() {
            room.push(b'/');
            room.extend_from_slice(below);
        }
        room
    }

    /// Reports the root of the part to the visitor of the whole tree. Returns whether the
    /// visitor would enter it: if a glob excludes a folder above it, the part is not walked
    /// either.
    pub(crate) fn announce(&self, start: &FilePath, visitor: &mut dyn Visitor) -> Next {
        let mut name_at = 0;
        for (slash, _) in self
            .prefix
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'/')
        {
            let folder = WalkEntry {
                below: self.prefix.get(..slash).unwrap_or_default(),
                name_at,
                kind: Kind::Directory,
                link_target: LinkTarget::Other,
            };
            if visitor.should_enter(&folder) == Next::Over {
                return Next::Over;
            }
            name_at = slash + 1;
        }
        if self.prefix.is_empty() {
            return Next::Into;
        }
        let entry = WalkEntry {
            below: &self.prefix,
            name_at,
            kind: Kind::Directory,
            link_target: LinkTarget::Other,
        };
        if let Some(exclusion) = start.exclusion() {
            visitor.skip(SkipReason::Filtered(exclusion.why));
            return enter_filtered(exclusion, &entry, visitor);
        }
        visitor.visit(&entry)
    }
}

/// Passes entries of one part on to a visitor of the whole tree.
pub(crate) struct MappedVisitor<V> {
    pub(crate) mapping: PathMapping,
    pub(crate) visitor: V,
    room: Vec<u8>,
}

impl<V> MappedVisitor<V> {
    pub(crate) fn new(mapping: &PathMapping, visitor: V) -> Self {
        Self {
            mapping: mapping.clone(),
            visitor,
            room: Vec::new(),
        }
    }
}

impl<V: Visitor> Visitor for MappedVisitor<V> {
    fn visit(&mut self, entry: &WalkEntry<'_>) -> Next {
        if self.mapping.covered.iter().any(|path| path == entry.below) {
            return Next::Over;
        }
        let below = self.mapping.whole(entry.below, &mut self.room);
        self.visitor.visit(&WalkEntry {
            below,
            name_at: entry.name_at + below.len() - entry.below.len(),
            ..*entry
        })
    }

    fn should_enter(&mut self, folder: &WalkEntry<'_>) -> Next {
        if self.mapping.covered.iter().any(|path| path == folder.below) {
            return Next::Over;
        }
        let below = self.mapping.whole(folder.below, &mut self.room);
        self.visitor.should_enter(&WalkEntry {
            below,
            name_at: folder.name_at + below.len() - folder.below.len(),
            ..*folder
        })
    }

    fn skip(&mut self, reason: SkipReason) {
        self.visitor.skip(reason);
    }

    fn needs_link_targets(&self) -> bool {
        self.visitor.needs_link_targets()
    }

    fn leave_folder(&mut self) {
        self.visitor.leave_folder();
    }
}

impl<V: Opener> Opener for MappedVisitor<V> {
    fn open(&mut self, below: &[u8], file: std::io::Result<std::fs::File>) {
        let below = self.mapping.whole(below, &mut self.room);
        self.visitor.open(below, file);
    }
}
