//! Finding the lines of a file that are most like the wanted ones.
//!
//! Lines that are the same but for whitespace, case and typography are anchors:
//! the rarest of them vote for where the wanted text would begin. Where there
//! are none, lines that share many pairs of letters stand in. Only the few best
//! places are then compared line by line.

use std::collections::HashMap;

use super::fold::key;
use super::pairs::{LANES, Pairs};
use super::scale::{Scale, better};
use crate::text::lines;

/// The most lines of a file and of a wanted text that are compared.
const MAX_ROWS: usize = 1_000_000;
const MAX_WANTED: usize = 5_000;

/// Places that are compared in full.
const MAX_PLACES: usize = 12;

/// Occurrences of one anchor that vote, anchors that vote, and all votes.
const MAX_OCCURRENCES: usize = 200;
const MAX_ANCHORS: usize = 64;
const MAX_VOTES: usize = 40_000;

/// The lines of a file.
pub(super) struct Rows<'a> {
    pub(super) lines: Vec<&'a str>,
    pub(super) keys: Vec<u64>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let lines: Vec<&str> = lines::split(text).take(MAX_ROWS).collect();
        let keys = lines.iter().map(|line| key(line)).collect();
        Self { lines, keys }
    }

    /// A line without its ending.
    pub(super) fn line(&self, index: usize) -> &'a str {
        let line = self.lines.get(index).copied().unwrap_or_default();
        line.strip_suffix('\r').unwrap_or(line)
    }

    pub(super) fn crlf(&self, index: usize) -> bool {
        self.lines
            .get(index)
            .is_some_and(|line| line.ends_with('\r'))
    }

    pub(super) fn key(&self, index: usize) -> Option<u64> {
        self.keys.get(index).copied()
    }
}

/// The lines of a wanted text.
pub(super) struct Wanted<'a> {
    pub(super) lines: Vec<&'a str>,
    pub(super) keys: Vec<u64>,
    /// Whether the last line has its newline and so must end where the file's does.
    pub(super) finished: bool,
    /// Whether the lines end in CRLF.
    pub(super) crlf: bool,
}

impl<'a> Wanted<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let lines = lines::split(text).take(MAX_WANTED);
        let lines: Vec<&str> = lines
            .map(|line| line.strip_suffix('\r').unwrap_or(line))
            .collect();
        let keys = lines.iter().map(|line| key(line)).collect();
        let count = lines.len();
        Self {
            lines,
            keys,
            finished: text.ends_with('\n') || count == MAX_WANTED,
            crlf: text.contains("\r\n"),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn line(&self, index: usize) -> &'a str {
        self.lines.get(index).copied().unwrap_or_default()
    }
}

/// How a wanted line and a found line belong together; indices from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pair {
    /// The one stands for the other.
    Both { wanted: usize, found: usize },
    /// Nothing stands for the wanted line, which would be before line `at`.
    Missing { wanted: usize, at: usize },
    /// The found line was not wanted.
    Extra { found: usize },
}

/// A region and how its lines belong to the wanted ones.
pub(super) struct Window {
    pub(super) pairs: Vec<Pair>,
    pub(super) similarity: f32,
}

/// The region that is most like the wanted text.
pub(super) fn window(rows: &Rows<'_>, wanted: &Wanted<'_>) -> Option<Window> {
    let scale = Scale::new(rows, wanted);
    let mut best = scale.best_of(anchored(rows, wanted));
    if best.as_ref().is_none_or(|best| best.similarity < 0.7) {
        let other = scale.best_of(resembling(rows, wanted));
        best = better(best, other);
    }
    best
}

/// Where the wanted text would begin, by votes of the lines that are loosely the
/// same. May be before the file's first line.
fn anchored(rows: &Rows<'_>, wanted: &Wanted<'_>) -> Vec<isize> {
    #[derive(Default)]
    struct Anchor {
        wanted: Vec<usize>,
        found: Vec<usize>,
        count: usize,
    }
    let mut anchors: HashMap<u64, Anchor> = HashMap::new();
    // Most lines of a file are no anchors: a small table says so without hashing.
    let mut maybe = vec![false; 1 << 16];
    let slot = |key: u64| usize::try_from(key & 0xffff).unwrap_or_default();
    for (index, key) in wanted.keys.iter().enumerate().filter(|(_, key)| **key != 0) {
        anchors.entry(*key).or_default().wanted.push(index);
        if let Some(maybe) = maybe.get_mut(slot(*key)) {
            *maybe = true;
        }
    }
    for (index, key) in rows.keys.iter().enumerate() {
        if *key == 0 || !maybe.get(slot(*key)).copied().unwrap_or_default() {
            continue;
        }
        if let Some(anchor) = anchors.get_mut(key) {
            anchor.count += 1;
            if anchor.found.len() < MAX_OCCURRENCES {
                anchor.found.push(index);
            }
        }
    }
    let mut anchors: Vec<Anchor> = anchors
        .into_values()
        .filter(|anchor| anchor.count > 0)
        .collect();
    anchors.sort_by_key(|anchor| {
        (
            anchor.count * anchor.wanted.len(),
            anchor.wanted.first().copied(),
        )
    });
    let mut votes: HashMap<isize, f32> = HashMap::new();
    let mut cast = 0;
    for anchor in anchors.iter().take(MAX_ANCHORS) {
        let weight = 1.0 / (anchor.count * anchor.wanted.len()) as f32;
        for wanted in anchor.wanted.iter().take(MAX_OCCURRENCES) {
            for found in &anchor.found {
                if cast == MAX_VOTES {
                    break;
                }
                cast += 1;
                *votes
                    .entry(found.cast_signed() - wanted.cast_signed())
                    .or_default() += weight;
            }
        }
    }
    let mut votes: Vec<(isize, f32)> = votes.into_iter().collect();
    votes.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    votes
        .into_iter()
        .take(MAX_PLACES)
        .map(|(place, _)| place)
        .collect()
}

/// Where the wanted text would begin, by the lines that share most pairs of
/// letters with its longest ones.
fn resembling(rows: &Rows<'_>, wanted: &Wanted<'_>) -> Vec<isize> {
    let mut longest: Vec<usize> = (0..wanted.len()).collect();
    longest.sort_by_key(|index| std::cmp::Reverse(wanted.line(*index).trim().len().min(400)));
    longest.truncate(LANES);
    let probes: Vec<&str> = longest.iter().map(|index| wanted.line(*index)).collect();
    let table = Pairs::of(&probes);
    let mut places: Vec<(f32, isize)> = Vec::new();
    let mut lowest = 0.3;
    for (row, line) in rows.lines.iter().enumerate() {
        table.scores(line, |lane, score, _| {
            let Some(index) = longest.get(lane).filter(|_| score > lowest) else {
                return;
            };
            let place = row.cast_signed() - index.cast_signed();
            match places.iter_mut().find(|(_, known)| *known == place) {
                Some((known, _)) => *known = known.max(score),
                None => places.push((score, place)),
            }
            if places.len() > MAX_PLACES {
                places.sort_by(|a, b| b.0.total_cmp(&a.0));
                places.truncate(MAX_PLACES);
                lowest = places.last().map_or(lowest, |(score, _)| *score);
            }
        });
    }
    places.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    places.into_iter().map(|(_, place)| place).collect()
}
