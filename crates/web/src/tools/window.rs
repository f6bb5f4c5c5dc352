//! Which part of a page a reply holds.

/// A part of a text, in bytes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whether the limit ended it.
    pub(super) is_cut: bool,
}

/// The part of a text from `offset` on, at most `most` bytes of it. What the text is
/// about ends at `main`: whoever begins before that gets no more than that.
///
/// A part ends before a heading if there is one near its end, else between blocks or
/// lines, and never within a character.
pub(super) fn window(text: &str, main: usize, offset: usize, most: usize) -> Option<Window> {
    let start = text.floor_char_boundary(offset);
    if start >= text.len() && !text.is_empty() {
        return None;
    }
    let until = if start < main { main } else { text.len() };
    let part = text.get(start..until)?;
    if part.len() <= most {
        return Some(Window {
            start,
            end: until,
            is_cut: false,
        });
    }
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
        is_cut: true,
    })
}

#[cfg(test)]
mod tests {
    use super::window;
    use proptest::prelude::*;

    #[test]
    fn a_part_ends_where_something_ends() {
        let text = "# A\n\none two\n\nthree\n\n# B\n\nfour\nfive six";
        let part = |offset, most| {
            let window = window(text, text.len(), offset, most).expect("a part");
            text.get(window.start..window.end)
                .expect("whole characters")
        };
        assert_eq!(part(0, 30), "# A\n\none two\n\nthree\n\n");
        assert_eq!(part(21, 100), "# B\n\nfour\nfive six");
        assert_eq!(part(0, 16), "# A\n\none two\n\n");
        assert_eq!(part(26, 8), "four\n");
        assert_eq!(part(31, 3), "fiv");
        assert_eq!(window(text, text.len(), text.len(), 5), None);
    }

    #[test]
    fn the_frame_is_read_by_whoever_asks_for_it() {
        let text = "main\n\nrest";
        let part = |offset| {
            let window = window(text, 6, offset, 100).expect("a part");
            text.get(window.start..window.end)
                .expect("whole characters")
        };
        assert_eq!((part(0), part(6)), ("main\n\n", "rest"));
    }

    proptest! {
        /// Following the offsets gives the text without gap or overlap.
        #[test]
        fn nothing_is_lost(text in "(# )?([a-zü\n ]|\n\n){0,80}", main in 0usize..80, most in 4usize..40) {
            let main = text.floor_char_boundary(main.min(text.len()));
            let (mut all, mut offset) = (String::new(), 0);
            while let Some(part) = window(&text, main, offset, most) {
                prop_assert!(part.start == offset && part.end - part.start <= most);
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
