//! The first entries in order, independent of thread timing.

use super::{Entry, Globbed, Progress, Skipped};
use crate::backend::Kind;
use crate::scope::filter::LeftOut;
use crate::search::Count;
use crate::search::tree::{Stop, WalkEntry, path};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};

/// Data shared by all threads of a walk.
#[derive(Debug)]
pub(super) struct FirstEntries {
    max: usize,
    pub(super) stop: Stop,
    pub(super) unreadable: Count,
    pub(super) hidden: Count,
    pub(super) denied: Count,
    pub(super) asks: Count,
    pub(super) special: Count,
    visited: Count,
    total: Count,
    /// The largest entry on top, so that it is the first to be dropped.
    first: Mutex<BinaryHeap<SortedEntry>>,
}

/// An entry as the line that shows it; entries are ordered by these lines.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SortedEntry {
    line: Vec<u8>,
    kind: Kind,
}

impl Ord for SortedEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.line.cmp(&other.line)
    }
}

impl PartialOrd for SortedEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Results of one thread in one folder.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) visited: u64,
    total: u64,
    entries: Vec<SortedEntry>,
    line: Vec<u8>,
    /// Lines at or after this one cannot be among the first entries.
    cut: Option<Vec<u8>>,
}

impl Batch {
    pub(super) fn add(&mut self, entry: &WalkEntry<'_>, kind: Kind, first: &FirstEntries) {
        self.total += 1;
        self.line.clear();
        self.line.extend_from_slice(entry.below);
        if kind == Kind::Directory {
            self.line.push(b'/');
        }
        if self.cut.as_ref().is_some_and(|cut| self.line >= *cut) {
            return;
        }
        self.entries.push(SortedEntry {
            line: self.line.clone(),
            kind,
        });
        // Bounds the memory for a folder with very many entries.
        if self.entries.len() > first.max.saturating_mul(2).max(1024) {
            first.take(self);
        }
    }
}

impl FirstEntries {
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

    /// Merges a batch, and sets its cutoff.
    pub(super) fn take(&self, batch: &mut Batch) {
        self.visited.add(std::mem::take(&mut batch.visited));
        self.total.add(std::mem::take(&mut batch.total));
        if batch.entries.is_empty() {
            return;
        }
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in batch.entries.drain(..) {
            if first.len() < self.max {
                first.push(entry);
            } else if let Some(mut last) = first.peek_mut()
                && entry < *last
            {
                *last = entry;
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

    /// Returns the results so far.
    pub(super) fn globbed(&self) -> Globbed {
        let first = std::mem::take(&mut *self.first.lock().unwrap_or_else(PoisonError::into_inner));
        let entries = first.into_sorted_vec().into_iter().map(|entry| {
            let line = entry.line.strip_suffix(b"/").unwrap_or(&entry.line);
            Entry {
                below: path(line).to_owned(),
                kind: entry.kind,
            }
        });
        Globbed {
            entries: entries.collect(),
            total: self.total.get(),
            visited: self.visited.get(),
            skipped: Skipped {
                unreadable: self.unreadable.get(),
                hidden: self.hidden.get(),
                excluded: LeftOut {
                    denied: self.denied.get(),
                    asks: self.asks.get(),
                },
                special: self.special.get(),
            },
            stopped: self.stop.why(),
        }
    }
}
