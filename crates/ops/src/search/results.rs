//! Data shared by all threads of a search, and the first matches in path order.
//!
//! Threads finish files in any order. `FirstMatches` keeps the first matches up to the limit.
//! Once it is full, its last path is the cutoff: matches in files after it are only
//! counted.

use super::Filter;
use super::lines::trim;
use super::tree::Stop;
use super::{Collect, FileMatches, Progress, ResultLine, Searched, Skipped};
use crate::scope::filter::LeftOut;
use grep_regex::RegexMatcher;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

/// A counter that several threads add to.
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

/// All counters of a search.
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

/// The state of one search.
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
    first: Mutex<FirstMatches>,
    /// Files at or after this path are not shown.
    cut: RwLock<Option<Vec<u8>>>,
}

#[derive(Debug, Default)]
struct FirstMatches {
    files: BTreeMap<Vec<u8>, FileResult>,
    /// Number of matching lines in `files`.
    shown: u64,
}

/// Matches of one file.
#[derive(Debug)]
pub(super) struct FileResult {
    pub(super) lines: Vec<ResultLine>,
    /// Number of matching lines in `lines`.
    pub(super) shown: u64,
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
            first: Mutex::default(),
            cut: RwLock::new(cut),
        }
    }

    /// Whether lines of the file at `below` may still be shown.
    pub(super) fn may_show(&self, below: &[u8]) -> bool {
        let cut = self.cut.read().unwrap_or_else(PoisonError::into_inner);
        self.collect == Collect::Lines && cut.as_deref().is_none_or(|cut| below < cut)
    }

    /// Records the matches of a file, and keeps its lines if they may be shown.
    pub(super) fn post(&self, below: &[u8], found: FileResult) {
        self.tally.matches.add(found.matches);
        if self.collect == Collect::Lines && found.shown == 0 {
            return;
        }
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.shown += found.shown;
        first.files.insert(below.to_vec(), found);
        if self.collect == Collect::Counts {
            return;
        }
        while let Some(last) = first.files.last_entry() {
            let shown = last.get().shown;
            if first.shown - shown < self.max_matches {
                break;
            }
            first.files.pop_last();
            first.shown -= shown;
        }
        if first.shown >= self.max_matches
            && let Some((last, _)) = first.files.last_key_value()
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

    /// Returns the results so far.
    pub(super) fn searched(&self) -> Searched {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let mut shown = 0;
        let mut files = Vec::new();
        for (below, mut found) in std::mem::take(&mut first.files) {
            if self.collect == Collect::Lines {
                let left = self.max_matches - shown;
                trim(&mut found.lines, left, self.context);
                shown += found.shown.min(left);
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
                excluded: LeftOut {
                    denied: tally.denied.get(),
                    asks: tally.asks.get(),
                },
                links: tally.links.get(),
            },
            stopped: self.stop.why(),
        }
    }
}
