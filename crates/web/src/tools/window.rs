//! Which part of a page a reply holds.

use haft::truncate::Hit;

/// A part of a text, in bytes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The limit that ended it, if one did.
    pub(super) hit: Option<Hit>,
}

/// The most that a part may hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) bytes: usize,
    pub(super) lines: usize,
}

/// The part of a text from `offset` on, as much of it as there is room for. What the text
/// is about ends at `main`: whoever begins before that gets no more than that.
///
/// A part ends before a heading if there is one near its end, else between blocks or
/// lines, and never within a character.
pub(super) fn window(text: &str, main: usize, offset: usize, room: Room) -> Option<Window> {
    let start = text.floor_char_boundary(offset);
    if start >= text.len() && !text.is_empty() {
        return None;
    }
    let until = if start < main { main } else { text.len() };
    let part = text.get(start..until)?;
    // Blank lines at the end are not shown, so they do not count.
    let shown = part.trim_end().len();
    let breaks = part.match_indices('\n').map(|(at, _)| at + 1);
    let lines_end = breaks.take(room.lines).nth(room.lines.saturating_sub(1));
    let (most, hit) = match lines_end.filter(|end| *end < shown) {
        Some(end) if end <= room.bytes => (end, Hit::Lines),
        _ if part.len() > room.bytes => (room.bytes, Hit::Bytes),
        _ => {
            return Some(Window {
                start,
                end: until,
                hit: None,
            });
        }
    };
    let most = part.floor_char_boundary(most);
    let room = part.get(..most)?;
    let after = |mark: &str, least: usize, kept: usize| {
        let at = room.rfind(mark)? + kept;
        (at >= least).then_some(at)
    };
    let length = after("\n#", most / 5 * 3, 1)
        .or_else(|| after("\n\n", most / 2, 2))
        .or_else(|| after("\n", 1, 1))
        .unwrap_or(most);
    Some(Window {
        start,
        end: start + length,
        hit: Some(hit),
    })
}

#[cfg(test)]
mod tests {
    use super::{Hit, Room, window};
    use proptest::prelude::*;

    fn bytes(bytes: usize) -> Room {
        let lines = usize::MAX;
        Room { bytes, lines }
    }

    #[test]
    fn a_part_has_no_more_lines_than_there_is_room_for() {
        let text = "1\n2\n3\n4\n5\n";
        let part = |offset, lines| {
            let room = Room { bytes: 100, lines };
            let window = window(text, text.len(), offset, room).expect("a part");
            (
                text.get(window.start..window.end).unwrap_or("?"),
                window.hit,
            )
        };
        assert_eq!(part(0, 2), ("1\n2\n", Some(Hit::Lines)));
        assert_eq!(part(4, 2), ("3\n4\n", Some(Hit::Lines)));
        assert_eq!(part(8, 2), ("5\n", None));
        assert_eq!(part(0, 5), (text, None));
        let narrow = window(text, text.len(), 0, Room { bytes: 3, lines: 4 });
        assert_eq!(narrow.expect("a part").hit, Some(Hit::Bytes));
    }

    #[test]
    fn a_part_ends_where_something_ends() {
        let text = "# A\n\none two\n\nthree\n\n# B\n\nfour\nfive six";
        let part = |offset, most| {
            let window = window(text, text.len(), offset, bytes(most)).expect("a part");
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
    fn the_frame_is_read_by_whoever_asks_for_it() {
        let text = "main\n\nrest";
        let part = |offset| {
            let window = window(text, 6, offset, bytes(100)).expect("a part");
            text.get(window.start..window.end)
                .expect("whole characters")
        };
        assert_eq!((part(0), part(6)), ("main\n\n", "rest"));
    }

    proptest! {
        /// Following the offsets gives the text without gap or overlap.
        #[test]
        fn nothing_is_lost(text in "(# )?([a-zü\n ]|\n\n){0,80}", main in 0usize..80, most in 4usize..40, lines in 1usize..9) {
            let main = text.floor_char_boundary(main.min(text.len()));
            let (mut all, mut offset) = (String::new(), 0);
            while let Some(part) = window(&text, main, offset, Room { bytes: most, lines }) {
                prop_assert!(part.start == offset && part.end - part.start <= most);
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
