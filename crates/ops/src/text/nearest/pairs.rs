//! Pairs of adjacent letters: a cheap measure of the similarity of two texts.

use super::fold::loose;

/// Maximum length of a line to score in one piece.
pub(super) const LONG_LINE: usize = 4_096;

/// Number of texts that [`Pairs`] scores at once: 16-bit counters in one integer.
pub(super) const LANES: usize = 4;

/// The letter pairs of a few texts, so that one pass over a file scores its lines for all
/// of them.
pub(super) struct Pairs {
    table: Vec<u64>,
    counts: [u16; LANES],
    segment: usize,
}

impl Pairs {
    pub(super) fn of(probes: &[&str]) -> Self {
        let mut table = vec![0u64; 1 << 12];
        let mut counts = [0u16; LANES];
        let mut longest = 0;
        for ((lane, count), probe) in counts.iter_mut().enumerate().zip(probes) {
            let bytes = probe.as_bytes();
            let bytes = bytes.get(..LONG_LINE / 4).unwrap_or(bytes);
            longest = longest.max(bytes.len());
            let bit = 1u64 << (16 * lane);
            walk(bytes, |slot| {
                if let Some(lanes) = table.get_mut(slot).filter(|lanes| **lanes & bit == 0) {
                    *lanes |= bit;
                    *count += 1;
                }
            });
        }
        Self {
            table,
            counts,
            segment: (3 * longest).clamp(256, LONG_LINE),
        }
    }

    /// Calls back with the text's index, the score and the offset of each part of a line.
    pub(super) fn scores(&self, line: &str, mut tell: impl FnMut(usize, f32, usize)) {
        for (part, bytes) in line.as_bytes().chunks(self.segment).enumerate() {
            let (mut sums, mut length) = (0u64, 0u32);
            walk(bytes, |slot| {
                sums += self.table.get(slot).copied().unwrap_or_default();
                length += 1;
            });
            if sums == 0 {
                continue;
            }
            for (lane, count) in self
                .counts
                .iter()
                .enumerate()
                .filter(|(_, count)| **count > 0)
            {
                let count = f32::from(*count);
                let hits = f32::from((sums >> (16 * lane)) as u16).min(count);
                // Half for how much of the text is there, half for how little else is.
                let score = 0.5 * hits / count + hits / (count + length as f32);
                tell(lane, score, part * self.segment);
            }
        }
    }
}

/// Calls back with a table index for every pair of adjacent letters.
fn walk(bytes: &[u8], mut tell: impl FnMut(usize)) {
    let mut before = None;
    for byte in bytes {
        if byte.is_ascii_whitespace() {
            continue;
        }
        let byte = usize::from(byte.to_ascii_lowercase());
        if let Some(before) = before.replace(byte) {
            tell((before * 67 + byte) & 0xfff);
        }
    }
}

/// Returns the part of a very long line that is most similar to the text to find, and the
/// index of its first character.
pub(super) fn excerpt<'a>(wanted: &str, found: &'a str) -> (&'a str, usize) {
    if found.len() <= LONG_LINE || wanted.len() > LONG_LINE / 2 {
        return (found, 0);
    }
    let table = Pairs::of(&[wanted]);
    let mut best = (0.0, 0);
    table.scores(found, |_, score, at| {
        if score > best.0 {
            best = (score, at);
        }
    });
    // Wide enough for a text that crosses the boundary between two parts.
    let start = found.floor_char_boundary(best.1.saturating_sub(wanted.len()));
    let end = found.ceil_char_boundary(best.1 + table.segment + wanted.len());
    let shift = found
        .get(..start)
        .map_or(0, |before| before.chars().count());
    (found.get(start..end).unwrap_or(found), shift)
}

/// Returns how much of a text is contained in a line; the text may start or end within the
/// line.
pub(super) fn contained(wanted: &str, found: &str) -> f32 {
    let squashed = |text: &str| loose(text).map(|(_, c)| c).collect::<String>();
    let (wanted, found) = (squashed(wanted), squashed(found));
    if wanted.is_empty() {
        return 0.0;
    }
    if found.contains(&wanted) {
        return 0.96;
    }
    let mut best: f32 = 0.0;
    Pairs::of(&[&wanted]).scores(&found, |_, score, _| best = best.max(score));
    // A line with all the letters in a different order is not the same line.
    0.85 * best
}
