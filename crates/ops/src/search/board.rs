//! What all threads of a search share, and the first matches in path order.
//!
//! Threads finish files in any order. The board keeps the first ones up to the
//! limit; as soon as it is full, the last path on it is the cut, and files
//! behind the cut are only counted.

use super::Filter;
use super::lines::trim;
use super::tree::Stop;
use super::{Collect, FileMatches, Line, Progress, Searched, Skipped};
use crate::scope::closing::LeftOut;
use grep_regex::RegexMatcher;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

/// A number that threads add to.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts of everything that is told.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) searched: Count,
    pub(super) matches: Count,
    pub(super) binary: Count,
    pub(super) unreadable: Count,
    pub(super) too_long_lines: Count,
    pub(super) special: Count,
    pub(super) hidden: Count,
    pub(super) denied: Count,
    pub(super) asks: Count,
    pub(super) links: Count,
}

/// One search.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) matcher: RegexMatcher,
    pub(super) glob: Option<Filter>,
    pub(super) collect: Collect,
    pub(super) context: usize,
    pub(super) max_matches: u64,
    pub(super) max_line: usize,
    pub(super) stop: Stop,
    pub(super) tally: Tally,
    board: Mutex<Board>,
    /// Files from here on cannot be shown.
    cut: RwLock<Option<Vec<u8>>>,
}

#[derive(Debug, Default)]
struct Board {
    files: BTreeMap<Vec<u8>, Found>,
    /// Matching lines on the board.
    held: u64,
}

/// What one file had.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) lines: Vec<Line>,
    /// Matching lines among `lines`.
    pub(super) held: u64,
    pub(super) matches: u64,
}

impl Job {
    pub(super) fn new(
        matcher: RegexMatcher,
        glob: Option<Filter>,
        collect: Collect,
        context: usize,
        max_matches: usize,
        max_line: usize,
    ) -> Self {
        let cut = (max_matches == 0 && collect == Collect::Lines).then(Vec::new);
        Self {
            matcher,
            glob,
            collect,
            context,
            max_matches: max_matches as u64,
            max_line,
            stop: Stop::default(),
            tally: Tally::default(),
            board: Mutex::default(),
            cut: RwLock::new(cut),
        }
    }

    /// Whether lines of the file at `below` may still be shown.
    pub(super) fn may_show(&self, below: &[u8]) -> bool {
        let cut = self.cut.read().unwrap_or_else(PoisonError::into_inner);
        self.collect == Collect::Lines && cut.as_deref().is_none_or(|cut| below < cut)
    }

    /// Takes what a file had, when it may be shown.
    pub(super) fn post(&self, below: &[u8], found: Found) {
        self.tally.matches.add(found.matches);
        if self.collect == Collect::Lines && found.held == 0 {
            return;
        }
        let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        board.held += found.held;
        board.files.insert(below.to_vec(), found);
        if self.collect == Collect::Counts {
            return;
        }
        while let Some(last) = board.files.last_entry() {
            let held = last.get().held;
            if board.held - held < self.max_matches {
                break;
            }
            board.files.pop_last();
            board.held -= held;
        }
        if board.held >= self.max_matches
            && let Some((last, _)) = board.files.last_key_value()
        {
            let mut cut = self.cut.write().unwrap_or_else(PoisonError::into_inner);
            if cut.as_ref() != Some(last) {
                *cut = Some(last.clone());
            }
        }
    }

    pub(super) fn progress(&self) -> Progress {
        Progress {
            files: self.tally.searched.get(),
            matches: self.tally.matches.get(),
        }
    }

    /// The answer, as it is now.
    pub(super) fn searched(&self) -> Searched {
        let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        let mut shown = 0;
        let mut files = Vec::new();
        for (below, mut found) in std::mem::take(&mut board.files) {
            if self.collect == Collect::Lines {
                let left = self.max_matches - shown;
                trim(&mut found.lines, left, self.context);
                shown += found.held.min(left);
            }
            let below = super::tree::path(&below).to_owned();
            files.push(FileMatches {
                below,
                lines: found.lines,
                matches: found.matches,
            });
        }
        let tally = &self.tally;
        Searched {
            files,
            shown,
            total: tally.matches.get(),
            searched: tally.searched.get(),
            skipped: Skipped {
                binary: tally.binary.get(),
                unreadable: tally.unreadable.get(),
                too_long_lines: tally.too_long_lines.get(),
                special: tally.special.get(),
                hidden: tally.hidden.get(),
                closed: LeftOut {
                    denied: tally.denied.get(),
                    asks: tally.asks.get(),
                },
                links: tally.links.get(),
            },
            stopped: self.stop.why(),
        }
    }
}
