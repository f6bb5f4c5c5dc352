//! Finding the lines of a file that are most similar to the text to find.
//!
//! Lines that are equal apart from whitespace, case and typography are anchors: the rarest
//! of them vote for the start of the text. If there are none, lines that share many letter
//! pairs are used instead. Only the few best positions are then compared line by line.

use std::collections::HashMap;

use super::fold::key;
use super::pairs::{LANES, Pairs};
use super::scale::{Scale, better};
use crate::text::lines;

/// Maximum number of lines to compare, of a file and of the text to find.
const MAX_ROWS: usize = 1_000_000;
const MAX_WANTED: usize = 5_000;

/// Maximum number of positions to compare completely.
const MAX_PLACES: usize = 12;

/// Maximum number of occurrences per anchor, of anchors, and of votes.
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

    /// Returns a line without its line ending.
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

/// The lines of the text to find.
pub(super) struct Wanted<'a> {
    pub(super) lines: Vec<&'a str>,
    pub(super) keys: Vec<u64>,
    /// Whether the last line has a newline, so that it must end where the file's line ends.
    pub(super) finished: bool,
    /// Whether the lines end with CRLF.
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

/// Correspondence of a line to find and a line in the file; indices start at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pair {
    /// The two lines correspond.
    Both { wanted: usize, found: usize },
    /// The file lacks this line, which would be before line `at`.
    Missing { wanted: usize, at: usize },
    /// The file has this additional line.
    Extra { found: usize },
}

/// A region, and how its lines correspond to the text to find.
pub(super) struct Window {
    pub(super) pairs: Vec<Pair>,
    pub(super) similarity: f32,
    /// Other positions that were compared, and their similarity.
    pub(super) others: Vec<(isize, f32)>,
}

/// Difference in similarity below which two regions are about as much alike.
const CLOSE: f32 = 0.03;

/// Returns another region that is about as similar as the window, which has the lines
/// `own`: its first line, counted from 0, and the one after its last.
pub(super) fn other(
    window: &Window,
    own: std::ops::Range<usize>,
    count: usize,
) -> Option<(usize, usize)> {
    let outside = |place: &isize| {
        let end = place.saturating_add_unsigned(count);
        end <= own.start.cast_signed() || *place >= own.end.cast_signed()
    };
    let close = window.similarity - CLOSE;
    let place = window
        .others
        .iter()
        .filter(|(place, similarity)| *similarity >= close && outside(place))
        .map(|(place, _)| *place)
        .min()?;
    let first = place.max(0).cast_unsigned();
    Some((
        first,
        place.saturating_add_unsigned(count).max(0).cast_unsigned(),
    ))
}

/// Finds the region that is most similar to the text.
pub(super) fn window(rows: &Rows<'_>, wanted: &Wanted<'_>) -> Option<Window> {
    let scale = Scale::new(rows, wanted);
    let mut best = scale.best_of(anchored(rows, wanted));
    if best.as_ref().is_none_or(|best| best.similarity < 0.7) {
        let other = scale.best_of(resembling(rows, wanted));
        best = better(best, other);
    }
    best
}

/// Returns the similarity of the best region that has no line in common with `own`, an
/// index range of lines.
pub(super) fn best_outside(
    rows: &Rows<'_>,
    wanted: &Wanted<'_>,
    own: std::ops::Range<usize>,
) -> Option<f32> {
    let scale = Scale::new(rows, wanted);
    let outside = |place: &isize| {
        let end = place.saturating_add_unsigned(wanted.len());
        end <= own.start.cast_signed() || *place >= own.end.cast_signed()
    };
    let mut places = anchored(rows, wanted);
    places.extend(resembling(rows, wanted));
    places.retain(outside);
    let scores = places.into_iter().filter_map(|place| scale.straight(place));
    scores
        .map(|window| window.similarity)
        .max_by(f32::total_cmp)
}

/// Returns positions where the text may start, by the votes of loosely equal lines. May be
/// before the first line of the file.
fn anchored(rows: &Rows<'_>, wanted: &Wanted<'_>) -> Vec<isize> {
    #[derive(Default)]
    struct Anchor {
        wanted: Vec<usize>,
        found: Vec<usize>,
        count: usize,
    }
    let mut anchors: HashMap<u64, Anchor> = HashMap::new();
    // Most lines are not anchors, and a small table tells without hashing.
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

/// Returns positions where the text may start, by the lines that share most letter pairs
/// with its longest lines.
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
