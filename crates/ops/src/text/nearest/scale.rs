//! Scoring regions of a file against the text to find.

use std::cell::Cell;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};

use super::differ::Edges;
use super::fold::similarity;
use super::pairs::{LONG_LINE, contained, excerpt};
use super::search::{Pair, Rows, Wanted, Window};

/// Maximum number of pairs of unequal lines to compare letter by letter.
const MAX_COMPARISONS: usize = 8_000;

/// Minimum similarity of two lines that correspond to each other.
const ALIKE: f32 = 0.4;

/// Returns the first unless the second is more similar.
pub(super) fn better(first: Option<Window>, second: Option<Window>) -> Option<Window> {
    match (first, second) {
        (Some(first), Some(second)) if second.similarity > first.similarity + 0.001 => Some(second),
        (None, second) => second,
        (first, _) => first,
    }
}

/// Scores regions against the text to find.
pub(super) struct Scale<'a> {
    rows: &'a Rows<'a>,
    wanted: &'a Wanted<'a>,
    /// Number of comparisons left.
    left: Cell<usize>,
}

impl<'a> Scale<'a> {
    pub(super) fn new(rows: &'a Rows<'a>, wanted: &'a Wanted<'a>) -> Self {
        Self {
            rows,
            wanted,
            left: Cell::new(MAX_COMPARISONS),
        }
    }

    pub(super) fn best_of(&self, mut places: Vec<isize>) -> Option<Window> {
        // Large texts are ranked by the number of equal lines first.
        if self.wanted.len() > 100 {
            places.sort_by_key(|place| std::cmp::Reverse(self.same(*place)));
            places.truncate(3);
        }
        let mut best = None;
        let mut others = Vec::new();
        for place in &places {
            let window = self.straight(*place);
            others.extend(window.as_ref().map(|window| (*place, window.similarity)));
            best = better(best, window);
        }
        if self.wanted.len() > 1 && best.as_ref().is_none_or(|best| best.similarity < 0.95) {
            // Aligning thousands of lines is the only expensive step.
            let tries = if self.wanted.len() > 1_000 { 1 } else { 3 };
            for place in places.iter().take(tries) {
                best = better(best, self.shifted(*place));
            }
        }
        best.map(|best| Window { others, ..best })
    }

    fn row(&self, place: isize, wanted: usize) -> Option<usize> {
        place
            .checked_add_unsigned(wanted)?
            .try_into()
            .ok()
            .filter(|row| *row < self.rows.lines.len())
    }

    fn same(&self, place: isize) -> usize {
        let keys = self.wanted.keys.iter().enumerate();
        keys.filter(|(index, key)| {
            self.row(place, *index).and_then(|row| self.rows.key(row)) == Some(**key)
        })
        .count()
    }

    /// Compares line by line from a position.
    pub(super) fn straight(&self, place: isize) -> Option<Window> {
        let pairs = (0..self.wanted.len()).map(|wanted| match self.row(place, wanted) {
            Some(found) => Pair::Both { wanted, found },
            None => Pair::Missing {
                wanted,
                at: if place < 0 { 0 } else { self.rows.lines.len() },
            },
        });
        self.weigh(pairs.collect())
    }

    /// Aligns lines, allowing missing and additional ones.
    fn shifted(&self, place: isize) -> Option<Window> {
        let count = self.wanted.len();
        let slack = (count / 4 + 2).min(50);
        let start = place.saturating_sub_unsigned(slack).max(0).cast_unsigned();
        let end = place
            .saturating_add_unsigned(count + slack)
            .max(0)
            .cast_unsigned()
            .min(self.rows.lines.len());
        let found = self.rows.keys.get(start..end)?;
        let deadline = Instant::now() + Duration::from_millis(100);
        let operations = capture_diff_slices_deadline(
            Algorithm::Myers,
            &self.wanted.keys,
            found,
            Some(deadline),
        );
        let mut pairs = Vec::new();
        for operation in operations {
            let (tag, wanted, found) = operation.as_tag_tuple();
            let found = found.start + start..found.end + start;
            match tag {
                DiffTag::Equal => {
                    pairs.extend(
                        wanted
                            .zip(found)
                            .map(|(wanted, found)| Pair::Both { wanted, found }),
                    );
                }
                _ => self.block(&mut pairs, wanted, found),
            }
        }
        let paired = |pair: &Pair| matches!(pair, Pair::Both { .. });
        let (first, last) = (
            pairs.iter().position(paired)?,
            pairs.iter().rposition(paired)?,
        );
        let within = |index: usize| (first..=last).contains(&index);
        let pairs = pairs.into_iter().enumerate();
        let pairs =
            pairs.filter(|(index, pair)| within(*index) || !matches!(pair, Pair::Extra { .. }));
        self.weigh(pairs.map(|(_, pair)| pair).collect())
    }

    /// Pairs the lines of two blocks that have no equal lines: the most similar ones, in
    /// order.
    fn block(
        &self,
        pairs: &mut Vec<Pair>,
        wanted: std::ops::Range<usize>,
        found: std::ops::Range<usize>,
    ) {
        let width = found.len() + 1;
        let small = wanted.len() * found.len() <= 900;
        // `table[w][f]` is the best score for the lines from w and f on.
        let mut table = vec![0f32; if small { (wanted.len() + 1) * width } else { 0 }];
        let mut alike = vec![0f32; table.len()];
        if small {
            for w in (0..wanted.len()).rev() {
                for f in (0..found.len()).rev() {
                    let score = self.line(wanted.start + w, found.start + f);
                    let get =
                        |w: usize, f: usize| table.get(w * width + f).copied().unwrap_or_default();
                    let both = if score > ALIKE {
                        score + get(w + 1, f + 1)
                    } else {
                        0.0
                    };
                    let value = both.max(get(w + 1, f)).max(get(w, f + 1));
                    if let Some(cell) = table.get_mut(w * width + f) {
                        *cell = value;
                    }
                    if let Some(cell) = alike.get_mut(w * width + f) {
                        *cell = if both >= value { score } else { 0.0 };
                    }
                }
            }
        }
        let (mut w, mut f) = (0, 0);
        while w < wanted.len() || f < found.len() {
            let at = |table: &[f32], w: usize, f: usize| {
                table.get(w * width + f).copied().unwrap_or_default()
            };
            let together =
                w < wanted.len() && f < found.len() && (!small || at(&alike, w, f) > ALIKE);
            let skip_wanted = f == found.len() || at(&table, w + 1, f) >= at(&table, w, f + 1);
            if together {
                pairs.push(Pair::Both {
                    wanted: wanted.start + w,
                    found: found.start + f,
                });
                (w, f) = (w + 1, f + 1);
            } else if w < wanted.len() && skip_wanted {
                pairs.push(Pair::Missing {
                    wanted: wanted.start + w,
                    at: found.start + f,
                });
                w += 1;
            } else {
                pairs.push(Pair::Extra {
                    found: found.start + f,
                });
                f += 1;
            }
        }
    }

    /// Returns the similarity of the pairs, where long lines have more weight than short
    /// ones.
    fn weigh(&self, pairs: Vec<Pair>) -> Option<Window> {
        let weight = |line: &str| 1.0 + line.trim().len().min(200) as f32;
        // An additional line is a smaller difference than a missing one.
        let extra = |found: usize| weight(self.rows.line(found)) / 4.0;
        let (mut sum, mut total) = (0.0, 0.0);
        for pair in &pairs {
            match *pair {
                Pair::Both { wanted, found } => {
                    let weight = weight(self.wanted.line(wanted));
                    let alike = self.line(wanted, found);
                    total += weight;
                    // Two lines with no similarity count as one missing and one additional
                    // line, however they are paired.
                    if alike < ALIKE {
                        total += extra(found);
                    } else {
                        sum += weight * alike;
                    }
                }
                Pair::Missing { wanted, .. } => total += weight(self.wanted.line(wanted)),
                Pair::Extra { found } => total += extra(found),
            }
        }
        (total > 0.0).then(|| Window {
            pairs,
            similarity: sum / total,
            others: Vec::new(),
        })
    }

    fn line(&self, wanted_index: usize, found_index: usize) -> f32 {
        let edges = self.wanted.edges(wanted_index);
        let (wanted, found) = (self.wanted.line(wanted_index), self.rows.line(found_index));
        if edges.fit(wanted, found) {
            return 1.0;
        }
        if self.rows.key(found_index) == self.wanted.keys.get(wanted_index).copied() {
            return 0.97;
        }
        let left = self.left.get();
        if left == 0 {
            return 0.3;
        }
        self.left.set(left - 1);
        let found = if edges == Edges::Both {
            excerpt(wanted, found).0
        } else {
            found
        };
        let plain = similarity(wanted, found);
        if edges == Edges::None || found.len() > 4 * LONG_LINE || wanted.len() > LONG_LINE {
            return plain;
        }
        plain.max(contained(wanted, found))
    }
}
