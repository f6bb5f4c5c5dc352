//! Collecting the lines of one file and cutting long ones.

use super::{LineKind, ResultLine};
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};
use std::io;

/// Receives the lines of one file from the searcher.
pub(super) struct Lines<'a, F> {
    matcher: &'a RegexMatcher,
    /// Returns whether lines should be collected. Called at the first match only, because
    /// most files have none.
    should_collect: F,
    collecting: bool,
    max_matches: u64,
    max_line: usize,
    /// Number of context lines, and the line number of the last match shown.
    context: u64,
    last: u64,
    pub(super) lines: Vec<ResultLine>,
    pub(super) shown: u64,
    pub(super) matches: u64,
}

impl<'a, F: FnMut() -> bool> Lines<'a, F> {
    pub(super) fn new(
        matcher: &'a RegexMatcher,
        max_matches: u64,
        max_line: usize,
        context: usize,
        should_collect: F,
    ) -> Self {
        Self {
            matcher,
            should_collect,
            collecting: false,
            max_matches,
            max_line,
            context: context as u64,
            last: 0,
            lines: Vec::new(),
            shown: 0,
            matches: 0,
        }
    }

    fn decide(&mut self) {
        if self.matches == 0 && self.lines.is_empty() {
            self.collecting = (self.should_collect)();
        }
    }
}

impl<F: FnMut() -> bool> Sink for Lines<'_, F> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.decide();
        self.matches += 1;
        let number = found.line_number().unwrap_or(0);
        let is_shown = self.shown < self.max_matches;
        // A match beyond the limit may still be context of the last one shown.
        let is_near = self.shown > 0 && number <= self.last.saturating_add(self.context);
        if self.collecting && (is_shown || is_near) {
            let line = without_ending(found.bytes());
            let span = self.matcher.find(line)?;
            let (from, to) = span.map_or((0, 0), |span| (span.start(), span.end()));
            let (text, is_cut) = cut(line, from, to, self.max_line);
            let kind = if is_shown {
                LineKind::Match
            } else {
                LineKind::Context
            };
            self.lines.push(ResultLine {
                number,
                text,
                is_cut,
                kind,
            });
            if is_shown {
                self.shown += 1;
                self.last = number;
            }
        }
        Ok(true)
    }

    fn context(&mut self, _searcher: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        self.decide();
        let number = context.line_number().unwrap_or(0);
        let is_near =
            self.shown < self.max_matches || number <= self.last.saturating_add(self.context);
        if self.collecting && is_near {
            let (text, is_cut) = cut(without_ending(context.bytes()), 0, 0, self.max_line);
            self.lines.push(ResultLine {
                number,
                text,
                is_cut,
                kind: LineKind::Context,
            });
        }
        Ok(true)
    }
}

/// Keeps the first `matches` matching lines and their context.
pub(super) fn trim(lines: &mut Vec<ResultLine>, matches: u64, context: usize) {
    let mut left = matches;
    let mut last = 0;
    lines.retain_mut(|line| {
        if left > 0 {
            if line.kind == LineKind::Match {
                left -= 1;
                last = line.number;
            }
            return true;
        }
        // A match beyond the limit may still be context.
        line.kind = LineKind::Context;
        line.number <= last.saturating_add(context as u64)
    });
}

fn without_ending(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Returns at most `max` characters of a line around `from..to`, and whether it was cut.
///
/// Decodes only the part near the match, because a line may be megabytes long.
pub(super) fn cut(line: &[u8], from: usize, to: usize, max: usize) -> (String, bool) {
    if line.len() <= max {
        return (String::from_utf8_lossy(line).into_owned(), false);
    }
    // A character has at most four bytes, so this is more than needed.
    let reach = max.saturating_mul(4).saturating_add(8);
    let begin = boundary(line, from.saturating_sub(reach));
    let end = boundary(
        line,
        to.min(from.saturating_add(reach))
            .saturating_add(reach)
            .min(line.len()),
    );
    let decode = |from: usize, to: usize| {
        String::from_utf8_lossy(line.get(from..to).unwrap_or_default()).into_owned()
    };
    let before = decode(begin, from.min(end));
    let rest = decode(from.min(end), end);
    let (lead, whole) = (
        before.chars().count(),
        before.chars().count() + rest.chars().count(),
    );
    let span = rest.chars().count().min(
        String::from_utf8_lossy(line.get(from..to.min(end)).unwrap_or_default())
            .chars()
            .count(),
    );
    // From the start of the line if the match is there; otherwise from a quarter before it.
    let first = if begin == 0 && lead + span <= max {
        0
    } else {
        (lead.saturating_sub(max / 4)).min(whole.saturating_sub(max))
    };
    let mut text = String::new();
    let (late, early) = (
        begin > 0 || first > 0,
        end < line.len() || first + max < whole,
    );
    if late {
        text.push('…');
    }
    text.extend(before.chars().chain(rest.chars()).skip(first).take(max));
    if early {
        text.push('…');
    }
    (text, late || early)
}

/// Moves back to the start of a character.
fn boundary(line: &[u8], mut at: usize) -> usize {
    let lowest = at.saturating_sub(3);
    while at > lowest && line.get(at).is_some_and(|byte| byte & 0xC0 == 0x80) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(line: &str, word: &str, max: usize) -> String {
        let from = line.find(word).unwrap();
        cut(line.as_bytes(), from, from + word.len(), max).0
    }

    #[test]
    fn short_lines_stay() {
        assert_eq!(around("one two", "two", 20), "one two");
        assert_eq!(around("ééé x", "x", 5), "ééé x");
        assert_eq!(cut("…é".as_bytes(), 0, 3, 2), ("…é".to_owned(), false));
    }

    #[test]
    fn long_lines_are_cut_around_the_match() {
        let line = format!("{}needle{}", "a".repeat(1000), "b".repeat(1000));
        let text = around(&line, "needle", 40);
        assert_eq!(
            text,
            format!("…{}needle{}…", "a".repeat(10), "b".repeat(24))
        );
        let line = format!("needle{}", "b".repeat(1000));
        assert_eq!(around(&line, "needle", 10), "needlebbbb…");
        let line = format!("{}needle", "a".repeat(1000));
        assert_eq!(around(&line, "needle", 10), "…aaaaneedle");
        let line = format!("{}needle{}", "é".repeat(1000), "ü".repeat(1000));
        assert_eq!(around(&line, "needle", 12), "…éééneedleüüü…");
        assert_eq!(
            cut(&b"x".repeat(100), 0, 100, 10),
            (format!("{}…", "x".repeat(10)), true)
        );
    }

    #[test]
    fn no_character_is_split() {
        let line = "日本語".repeat(500);
        for from in [0, 3, 300, 1500, 4497] {
            for max in [1, 2, 7, 50] {
                let (text, _) = cut(line.as_bytes(), from, from + 3, max);
                assert!(!text.contains('\u{FFFD}'), "{from} {max} {text}");
                assert_eq!(
                    text.chars().filter(|c| *c != '…').count(),
                    max,
                    "{from} {max}"
                );
            }
        }
        let broken: Vec<u8> = [0xFF, 0x80].repeat(1000);
        assert!(cut(&broken, 500, 501, 10).0.chars().count() <= 12);
    }

    #[test]
    fn trimming_keeps_the_context_of_what_stays() {
        let line = |number, kind| ResultLine {
            number,
            text: String::new(),
            is_cut: false,
            kind,
        };
        let all = || {
            vec![
                line(1, LineKind::Context),
                line(2, LineKind::Match),
                line(3, LineKind::Context),
                line(4, LineKind::Context),
                line(5, LineKind::Match),
                line(6, LineKind::Context),
            ]
        };
        let numbers = |matches| {
            let mut lines = all();
            trim(&mut lines, matches, 1);
            lines.iter().map(|line| line.number).collect::<Vec<_>>()
        };
        assert_eq!(numbers(1), [1, 2, 3]);
        assert_eq!(numbers(2), [1, 2, 3, 4, 5, 6]);
        assert_eq!(numbers(9), [1, 2, 3, 4, 5, 6]);
    }
}
