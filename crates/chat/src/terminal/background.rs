//! The answer of a terminal that was asked for the colour of its background.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

const COLOUR: &str = "\x1b]11;";

/// Whether the kind of the terminal has arrived, which it tells last.
pub(super) fn is_complete(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    split_kind(&text).is_some()
}

/// Splits `\x1b[?…c` from a text: what stands before and after it.
fn split_kind(text: &str) -> Option<(&str, &str)> {
    let (before, rest) = text.split_once("\x1b[?")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    Some((before, rest.get(end..)?.strip_prefix('c')?))
}

/// Returns whether the background is light, and everything beside the answer.
pub(super) fn parse(answer: &[u8]) -> (Option<bool>, String) {
    let text = String::from_utf8_lossy(answer).into_owned();
    let text = match split_kind(&text) {
        Some((before, after)) => format!("{before}{after}"),
        None => text,
    };
    let Some((before, rest)) = text.split_once(COLOUR) else {
        return (None, typed(&text));
    };
    let end = rest.find(['\x07', '\x1b']).unwrap_or(rest.len());
    let (colour, after) = rest.split_at(end);
    let after = after.trim_start_matches(['\x07', '\x1b']);
    let after = after.strip_prefix('\\').unwrap_or(after);
    (is_light(colour), typed(&format!("{before}{after}")))
}

/// Keys that produce text; others, such as arrows, are dropped.
fn typed(text: &str) -> String {
    let text = text.split('\x1b').next().unwrap_or_default();
    let letters = text.chars().filter(|c| !c.is_control() || *c == '\r');
    letters.collect()
}

/// Reads `rgb:RRRR/GGGG/BBBB`, with one to four digits each.
fn is_light(colour: &str) -> Option<bool> {
    let parts = colour
        .trim()
        .strip_prefix("rgb")?
        .trim_start_matches(['a', ':']);
    let mut parts = parts.split('/').map(|digits| {
        let value = u32::from_str_radix(digits, 16).ok()?;
        let most = 16_u32
            .checked_pow(u32::try_from(digits.len()).ok()?)?
            .checked_sub(1)?;
        Some(f64::from(value) / f64::from(most.max(1)))
    });
    let mut next = || parts.next().flatten();
    let (red, green, blue) = (next()?, next()?, next()?);
    Some(0.299 * red + 0.587 * green + 0.114 * blue > 0.5)
}

/// Drops an answer that arrives late, as keys: Alt-], its letters, and Alt-\ or Ctrl-G.
#[derive(Debug, Default)]
pub(crate) struct LateAnswer {
    letters: Option<usize>,
}

/// An answer has fewer letters.
const MAX_LETTERS: usize = 40;

impl LateAnswer {
    /// Whether this event belongs to a late answer.
    pub(crate) fn takes(&mut self, event: &Event) -> bool {
        let Event::Key(KeyEvent {
            code, modifiers, ..
        }) = event
        else {
            return false;
        };
        let alt = modifiers.contains(KeyModifiers::ALT);
        match self.letters {
            None if alt && *code == KeyCode::Char(']') => {
                self.letters = Some(0);
                true
            }
            None => false,
            Some(count) => {
                let is_answer = match code {
                    KeyCode::Char('1' | ';') => true,
                    KeyCode::Char(c) => c.is_ascii_hexdigit() || "rgb:/".contains(*c),
                    _ => false,
                };
                let ends = (alt && *code == KeyCode::Char('\\'))
                    || (modifiers.contains(KeyModifiers::CONTROL) && *code == KeyCode::Char('g'));
                self.letters = (is_answer && count < MAX_LETTERS && !ends).then_some(count + 1);
                is_answer || ends
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_background_and_what_was_typed_are_told_apart() {
        let dark = b"ab\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\c\x1b[?62;4c";
        assert!(is_complete(dark));
        assert_eq!(parse(dark), (Some(false), "abc".to_owned()));
        let light = b"\x1b]11;rgb:ff/ff/f0\x07\x1b[?6c";
        assert_eq!(parse(light), (Some(true), String::new()));
        assert_eq!(parse(b"\x1b[?6cls\r"), (None, "ls\r".to_owned()));
        assert!(!is_complete(b"\x1b]11;rgb:ff/ff/ff\x07"));
        assert!(!is_complete(b"\x1b[?6"));
        // Anything may come back.
        assert_eq!(parse(b"\x1b]11;rgb:zz/ff\x07\x1b[A").0, None);
        assert_eq!(parse(b"\xff\x1b[?c").0, None);
    }

    #[test]
    fn a_late_answer_is_no_input() {
        let mut late = LateAnswer::default();
        let key = |code, modifiers| Event::Key(KeyEvent::new(code, modifiers));
        assert!(late.takes(&key(KeyCode::Char(']'), KeyModifiers::ALT)));
        for letter in "11;rgb:ffff/ffff/ffff".chars() {
            assert!(
                late.takes(&key(KeyCode::Char(letter), KeyModifiers::NONE)),
                "{letter}"
            );
        }
        assert!(late.takes(&key(KeyCode::Char('\\'), KeyModifiers::ALT)));
        assert!(!late.takes(&key(KeyCode::Char('1'), KeyModifiers::NONE)));
    }
}
