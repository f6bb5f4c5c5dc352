//! Output of commands: their colours are kept, and everything else that they tell a terminal
//! is left out.

use crate::styled_text::{Colour, Line, Style};

/// Reader of the lines of one output.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ansi {
    style: Style,
}

impl Ansi {
    /// Converts a line, whose own style has priority over `base`.
    pub(crate) fn line(&mut self, text: &str, base: Style) -> Line {
        let mut line = Line::verbatim("", Style::PLAIN);
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('\x1b') {
            line.push(before, self.over(base));
            rest = self.sequence(after);
        }
        line.push(rest, self.over(base));
        line
    }

    /// The current style over another one. A colour is readable without being dimmed.
    fn over(&self, base: Style) -> Style {
        match self.style.has_colour() {
            true => self.style,
            false => base.and(self.style),
        }
    }

    /// Handles a sequence after its escape, and returns the text behind it.
    fn sequence<'a>(&mut self, after: &'a str) -> &'a str {
        let mut letters = after.chars();
        match letters.next() {
            Some('[') => {
                let body = letters.as_str();
                let Some(end) = body.find(|c: char| matches!(c, '\x40'..='\x7e')) else {
                    return "";
                };
                let (codes, rest) = body.split_at(end);
                if rest.starts_with('m') {
                    self.set(codes);
                }
                rest.get(1..).unwrap_or_default()
            }
            // A text for the terminal, up to its end.
            Some(']' | 'P' | 'X' | '^' | '_') => {
                let body = letters.as_str();
                match body.find(['\x07', '\x1b']) {
                    Some(end) => {
                        let rest = body.get(end..).unwrap_or_default();
                        let rest = rest.trim_start_matches('\x07');
                        rest.strip_prefix("\x1b\\").unwrap_or(rest)
                    }
                    None => "",
                }
            }
            Some('(' | ')' | '#' | '%' | ' ') => {
                letters.next();
                letters.as_str()
            }
            _ => letters.as_str(),
        }
    }

    /// Handles the codes of a style.
    fn set(&mut self, codes: &str) {
        let mut numbers = codes
            .split([';', ':'])
            .map(|code| code.parse::<u8>().unwrap_or(0));
        while let Some(code) = numbers.next() {
            match code {
                0 => self.style = Style::PLAIN,
                1 => self.style = self.style.and(Style::BOLD),
                2 => self.style = self.style.and(Style::DIM),
                3 => self.style = self.style.and(Style::ITALIC),
                4 => self.style = self.style.and(Style::UNDERLINED),
                9 => self.style = self.style.and(Style::STRUCK),
                22..=29 => self.style = self.style.without_attributes(),
                30..=37 => self.colour(Colour::Ansi(code - 30)),
                90..=97 => self.colour(Colour::Ansi(code - 82)),
                39 => self.style = self.style.without_colour(),
                38 | 48 => {
                    let colour = match numbers.next() {
                        Some(5) => numbers.next().map(Colour::Indexed),
                        Some(2) => {
                            let mut next = || numbers.next().unwrap_or(0);
                            Some(Colour::Rgb(next(), next(), next()))
                        }
                        _ => None,
                    };
                    if let (38, Some(colour)) = (code, colour) {
                        self.colour(colour);
                    }
                }
                // Backgrounds are left out: they may hide the text.
                _ => {}
            }
        }
    }

    fn colour(&mut self, colour: Colour) {
        self.style = self.style.and(Style::of(colour));
    }
}

#[cfg(test)]
mod tests {
    use super::Ansi;
    use crate::styled_text::{Palette, Style, Styling};
    use proptest::prelude::*;

    fn shown(text: &str) -> String {
        let line = Ansi::default().line(text, Style::PLAIN);
        line.render(Styling::Ansi(Palette::TERMINAL))
    }

    #[test]
    fn colours_stay_and_the_rest_goes() {
        assert_eq!(
            shown("a \x1b[1;31mred\x1b[0m b"),
            "a \x1b[1;31mred\x1b[0m b"
        );
        assert_eq!(shown("\x1b[32mok\x1b[39m."), "\x1b[32mok\x1b[0m.");
        assert_eq!(shown("\x1b[48;5;1m\x1b[38;2;1;2;3mx\x1b[m"), "x");
        assert_eq!(shown("\x1b[2J\x1b[1;1Hx\x1b[K\x1b(By"), "xy");
        assert_eq!(shown("\x1b]0;title\x07x\x1b]8;;u\x1b\\y"), "xy");
        assert_eq!(shown("cut\x1b[3"), "cut");
        let mut ansi = Ansi::default();
        let _ = ansi.line("\x1b[31mone", Style::DIM);
        let next = ansi.line("two", Style::DIM);
        assert_eq!(
            next.render(Styling::Ansi(Palette::TERMINAL)),
            "\x1b[31mtwo\x1b[0m"
        );
    }

    proptest! {
        #[test]
        fn no_control_character_gets_through(text in "[\\x00-\\x7f\\u{80}-\\u{a0}\\u{202e}é]{0,40}") {
            let line = Ansi::default().line(&text, Style::PLAIN);
            let plain = line.render(Styling::Plain);
            let is_bad = |c: char| c.is_control() && c != '\t';
            prop_assert!(!plain.contains(is_bad), "{plain:?}");
            prop_assert!(!plain.contains('\u{202e}'), "{plain:?}");
        }
    }
}
