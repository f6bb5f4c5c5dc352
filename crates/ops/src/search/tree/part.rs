//! One stretch of a tree that several backends make up, told of as a part of the
//! whole.

use super::disk::Opener;
use super::{Leads, Met, Next, Passed, Visitor, through};
use crate::backend::{Kind, Part};
use crate::{Backend, Error, FilePath, Result};
use std::os::unix::ffi::OsStrExt;

/// The stretches of the tree at `path`: what is not there is left out.
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
            // Only mounts make it a folder.
            Ok(_) | Err(Error::NotFound { .. } | Error::NotADirectory { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(there)
}

/// What is taken off and put before the paths of a stretch.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    prefix: Vec<u8>,
    covered: Vec<Vec<u8>>,
}

impl Frame {
    pub(crate) fn of(part: &Part<'_>) -> Self {
        let covered = part.covered.iter();
        Self {
            prefix: part.below.as_os_str().as_bytes().to_owned(),
            covered: covered
                .map(|path| path.as_os_str().as_bytes().to_owned())
                .collect(),
        }
    }

    /// A path of the stretch as a path of the whole.
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

    /// The stretch itself, as the whole meets it, and whether the whole would go on
    /// into it: what a glob rules out on the way there is not walked either.
    pub(crate) fn announce(&self, start: &FilePath, visitor: &mut dyn Visitor) -> Next {
        let mut name_at = 0;
        for (slash, _) in self
            .prefix
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'/')
        {
            let folder = Met {
                below: self.prefix.get(..slash).unwrap_or_default(),
                name_at,
                kind: Kind::Directory,
                leads: Leads::Elsewhere,
            };
            if visitor.enters(&folder) == Next::Over {
                return Next::Over;
            }
            name_at = slash + 1;
        }
        if self.prefix.is_empty() {
            return Next::Into;
        }
        let met = Met {
            below: &self.prefix,
            name_at,
            kind: Kind::Directory,
            leads: Leads::Elsewhere,
        };
        if let Some(closed) = start.closed() {
            visitor.pass(Passed::Closed(closed.why));
            return through(closed, &met, visitor);
        }
        visitor.meet(&met)
    }
}

/// A visitor of the whole, told of one stretch.
pub(crate) struct Framed<V> {
    pub(crate) frame: Frame,
    pub(crate) visitor: V,
    room: Vec<u8>,
}

impl<V> Framed<V> {
    pub(crate) fn new(frame: &Frame, visitor: V) -> Self {
        Self {
            frame: frame.clone(),
            visitor,
            room: Vec::new(),
        }
    }
}

impl<V: Visitor> Visitor for Framed<V> {
    fn meet(&mut self, met: &Met<'_>) -> Next {
        if self.frame.covered.iter().any(|path| path == met.below) {
            return Next::Over;
        }
        let below = self.frame.whole(met.below, &mut self.room);
        self.visitor.meet(&Met {
            below,
            name_at: met.name_at + below.len() - met.below.len(),
            ..*met
        })
    }

    fn enters(&mut self, folder: &Met<'_>) -> Next {
        if self.frame.covered.iter().any(|path| path == folder.below) {
            return Next::Over;
        }
        let below = self.frame.whole(folder.below, &mut self.room);
        self.visitor.enters(&Met {
            below,
            name_at: folder.name_at + below.len() - folder.below.len(),
            ..*folder
        })
    }

    fn pass(&mut self, passed: Passed) {
        self.visitor.pass(passed);
    }

    fn follows(&self) -> bool {
        self.visitor.follows()
    }

    fn left(&mut self) {
        self.visitor.left();
    }
}

impl<V: Opener> Opener for Framed<V> {
    fn open(&mut self, below: &[u8], file: std::io::Result<std::fs::File>) {
        let below = self.frame.whole(below, &mut self.room);
        self.visitor.open(below, file);
    }
}
