//! Selects the part of a page that fits in a reply.

use haft::truncate::Hit;

/// A byte range of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The limit that was reached, if any.
    pub(super) hit: Option<Hit>,
}

/// Limits of a part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) bytes: usize,
    pub(super) lines: usize,
}

/// Returns as much of a text from `offset` on as fits. A part that starts in the main content,
/// which ends at `main`, does not continue beyond it.
///
/// If there is a heading near the end, the part ends before it, otherwise between blocks or
/// lines, and never inside a character.
pub(super) fn window(text: &str, main: usize, offset: usize, limits: Limits) -> Option<Window> {
    let start = text.floor_char_boundary(offset);
    if start >= text.len() && !text.is_empty() {
        return None;
    }
    let until = if start < main { main } else { text.len() };
    let part = text.get(start..until)?;
    // Trailing blank lines are not shown, so they do not count.
    let shown = part.trim_end().len();
    let breaks = part.match_indices('\n').map(|(at, _)| at + 1);
    let lines_end = breaks
        .take(limits.lines)
        .nth(limits.lines.saturating_sub(1));
    let (max, hit) = match lines_end.filter(|end| *end < shown) {
        Some(end) if end <= limits.bytes => (end, Hit::Lines),
        _ if part.len() > limits.bytes => (limits.bytes, Hit::Bytes),
        _ => {
            return Some(Window {
                start,
                end: until,
                hit: None,
            });
        }
    };
    let max = part.floor_char_boundary(max);
    let fits = part.get(..max)?;
    let after = |mark: &str, least: usize, included: usize| {
        let at = fits.rfind(mark)? + included;
        (at >= least).then_some(at)
    };
    let length = after("\n#", max / 5 * 3, 1)
        .or_else(|| after("\n\n", max / 2, 2))
        .or_else(|| after("\n", 1, 1))
        .unwrap_or(max);
    Some(Window {
        start,
        end: start + length,
        hit: Some(hit),
    })
}

#[cfg(test)]
mod tests {
    use super::{Hit, Limits, window};
    use proptest::prelude::*;

    fn bytes(bytes: usize) -> Limits {
        let lines = usize::MAX;
        Limits { bytes, lines }
    }

    #[test]
    fn a_part_respects_the_line_limit() {
        let text = "1\n2\n3\n4\n5\n";
        let part = |offset, lines| {
            let limits = Limits { bytes: 100, lines };
            let window = window(text, text.len(), offset, limits).expect("a part");
            (
                text.get(window.start..window.end).unwrap_or("?"),
                window.hit,
            )
        };
        assert_eq!(part(0, 2), ("1\n2\n", Some(Hit::Lines)));
        assert_eq!(part(4, 2), ("3\n4\n", Some(Hit::Lines)));
        assert_eq!(part(8, 2), ("5\n", None));
        assert_eq!(part(0, 5), (text, None));
        let narrow = window(text, text.len(), 0, Limits { bytes: 3, lines: 4 });
        assert_eq!(narrow.expect("a part").hit, Some(Hit::Bytes));
    }

    #[test]
    fn a_part_ends_at_a_heading_block_or_line() {
        let text = "# A\n\none two\n\nthree\n\n# B\n\nfour\nfive six";
        let part = |offset, max| {
            let window = window(text, text.len(), offset, bytes(max)).expect("a part");
            text.get(window.start..window.end)
                .expect("whole characters")
        };
        assert_eq!(part(0, 30), "# A\n\none two\n\nthree\n\n");
        assert_eq!(part(21, 100), "# B\n\nfour\nfive six");
        assert_eq!(part(0, 16), "# A\n\none two\n\n");
        assert_eq!(part(26, 8), "four\n");
        assert_eq!(part(31, 3), "fiv");
        assert_eq!(window(text, text.len(), text.len(), bytes(5)), None);
    }

    #[test]
    fn text_around_the_main_part_needs_an_offset() {
        let text = "main\n\nrest";
        let part = |offset| {
            let window = window(text, 6, offset, bytes(100)).expect("a part");
            text.get(window.start..window.end)
                .expect("whole characters")
        };
        assert_eq!((part(0), part(6)), ("main\n\n", "rest"));
    }

    proptest! {
        /// Following the offsets yields the whole text without gaps or overlaps.
        #[test]
        fn nothing_is_lost(text in "(# )?([a-zü\n ]|\n\n){0,80}", main in 0usize..80, max in 4usize..40, lines in 1usize..9) {
            let main = text.floor_char_boundary(main.min(text.len()));
            let (mut all, mut offset) = (String::new(), 0);
            while let Some(part) = window(&text, main, offset, Limits { bytes: max, lines }) {
                prop_assert!(part.start == offset && part.end - part.start <= max);
                let shown = text.get(part.start..part.end).expect("whole characters");
                prop_assert!(shown.trim_end().split('\n').count() <= lines);
                all.push_str(text.get(part.start..part.end).expect("whole characters"));
                if part.end == text.len() {
                    break;
                }
                prop_assert!(part.end > offset);
                offset = part.end;
            }
            prop_assert_eq!(all, text);
        }
    }
}
