//! The first entries in order, whatever the threads do.

use super::{Entry, Globbed, Progress, Skipped};
use crate::backend::Kind;
use crate::scope::closing::LeftOut;
use crate::search::Count;
use crate::search::tree::{Met, Stop, path};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};

/// What all threads of a walk share.
#[derive(Debug)]
pub(super) struct Keep {
    max: usize,
    pub(super) stop: Stop,
    pub(super) unreadable: Count,
    pub(super) hidden: Count,
    pub(super) denied: Count,
    pub(super) asks: Count,
    pub(super) special: Count,
    visited: Count,
    total: Count,
    /// The largest on top, so that it is the one that has to go.
    first: Mutex<BinaryHeap<Kept>>,
}

/// An entry by the line it is shown as: the order of lines is the order here.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kept {
    line: Vec<u8>,
    kind: Kind,
}

impl Ord for Kept {
    fn cmp(&self, other: &Self) -> Ordering {
        self.line.cmp(&other.line)
    }
}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What one thread found in one folder.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) visited: u64,
    total: u64,
    kept: Vec<Kept>,
    line: Vec<u8>,
    /// Lines from here on are behind enough others.
    cut: Option<Vec<u8>>,
}

impl Batch {
    pub(super) fn add(&mut self, met: &Met<'_>, kind: Kind, keep: &Keep) {
        self.total += 1;
        self.line.clear();
        self.line.extend_from_slice(met.below);
        if kind == Kind::Directory {
            self.line.push(b'/');
        }
        if self.cut.as_ref().is_some_and(|cut| self.line >= *cut) {
            return;
        }
        self.kept.push(Kept {
            line: self.line.clone(),
            kind,
        });
        // A folder with very many entries: what is kept of it stays bounded.
        if self.kept.len() > keep.max.saturating_mul(2).max(1024) {
            keep.take(self);
        }
    }
}

impl Keep {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            stop: Stop::default(),
            unreadable: Count::default(),
            hidden: Count::default(),
            denied: Count::default(),
            asks: Count::default(),
            special: Count::default(),
            visited: Count::default(),
            total: Count::default(),
            first: Mutex::default(),
        }
    }

    /// Takes a batch in, and tells it from where on nothing is wanted.
    pub(super) fn take(&self, batch: &mut Batch) {
        self.visited.add(std::mem::take(&mut batch.visited));
        self.total.add(std::mem::take(&mut batch.total));
        if batch.kept.is_empty() {
            return;
        }
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        for kept in batch.kept.drain(..) {
            if first.len() < self.max {
                first.push(kept);
            } else if let Some(mut last) = first.peek_mut()
                && kept < *last
            {
                *last = kept;
            }
        }
        if first.len() >= self.max {
            let cut = batch.cut.get_or_insert_default();
            cut.clear();
            cut.extend_from_slice(first.peek().map_or(b"", |last| &last.line));
        }
    }

    pub(super) fn progress(&self) -> Progress {
        Progress {
            files: self.visited.get(),
            matches: self.total.get(),
        }
    }

    /// The answer, as it is now.
    pub(super) fn globbed(&self) -> Globbed {
        let first = std::mem::take(&mut *self.first.lock().unwrap_or_else(PoisonError::into_inner));
        let entries = first.into_sorted_vec().into_iter().map(|kept| {
            let line = kept.line.strip_suffix(b"/").unwrap_or(&kept.line);
            Entry {
                below: path(line).to_owned(),
                kind: kept.kind,
            }
        });
        Globbed {
            entries: entries.collect(),
            total: self.total.get(),
            visited: self.visited.get(),
            skipped: Skipped {
                unreadable: self.unreadable.get(),
                hidden: self.hidden.get(),
                closed: LeftOut {
                    denied: self.denied.get(),
                    asks: self.asks.get(),
                },
                special: self.special.get(),
            },
            stopped: self.stop.why(),
        }
    }
}
