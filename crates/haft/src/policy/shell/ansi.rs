//! Parsing `$'…'`, in which a backslash starts an escape.

use super::cursor::Reader;
use super::word::{Item, UNQUOTED};
use super::{Dialect, Stop};

impl Reader<'_> {
    /// Parses the text after `$'`.
    pub(super) fn ansi(&mut self, items: &mut Vec<Item>) -> Result<(), Stop> {
        if self.dialect == Dialect::Posix {
            return Err("$'…' in text for sh");
        }
        // A NUL ends the value, not the text.
        let mut ended = false;
        loop {
            let item = match self.next_raw().ok_or(UNQUOTED)? {
                '\'' => return Ok(()),
                '\\' => self.escape()?,
                c => Some(self.quoted(c)),
            };
            match item {
                None => ended = true,
                Some(Item::Quoted('\0')) => ended = true,
                Some(item) if !ended => items.push(item),
                Some(_) => {}
            }
        }
    }

    /// Parses an escape, after its backslash. `None` for a NUL.
    fn escape(&mut self) -> Result<Option<Item>, Stop> {
        let c = self.next_raw().ok_or(UNQUOTED)?;
        let code = match c {
            'n' => 10,
            't' => 9,
            'r' => 13,
            'a' => 7,
            'b' => 8,
            'e' | 'E' => 27,
            'f' => 12,
            'v' => 11,
            '\\' | '\'' | '"' | '?' => u32::from(c),
            '0'..='7' => {
                self.at -= 1;
                self.digits(8, 3).unwrap_or(0) & 0xff
            }
            // Versions of bash differ in where `\x{70}` ends.
            'x' if self.raw() == Some('{') => return Err("\\x{ in $'…'"),
            'x' => return Ok(self.coded(2)),
            'u' => return Ok(self.coded(4)),
            'U' => return Ok(self.coded(8)),
            'c' => {
                let c = self.next_raw().ok_or(UNQUOTED)?;
                if !c.is_ascii_alphabetic() {
                    return Err("a control character in $'…'");
                }
                u32::from(c) & 0x1f
            }
            // Any other character keeps its backslash: such a word matches no rule.
            _ => return Ok(Some(Item::Hole { splits: false })),
        };
        Ok(known(code))
    }

    /// Parses the hexadecimal code of a character.
    fn coded(&mut self, most: usize) -> Option<Item> {
        match self.digits(16, most) {
            Some(code) => known(code),
            None => Some(Item::Hole { splits: false }),
        }
    }

    fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let mut value = None;
        for _ in 0..most {
            let Some(digit) = self.raw().and_then(|c| c.to_digit(radix)) else {
                break;
            };
            self.bump();
            value = Some(
                value
                    .unwrap_or(0u32)
                    .saturating_mul(radix)
                    .saturating_add(digit),
            );
        }
        value
    }
}

/// Returns the character with this code; bytes beyond ASCII depend on their neighbours.
fn known(code: u32) -> Option<Item> {
    match char::from_u32(code) {
        _ if code == 0 => None,
        Some(c) if c.is_ascii() => Some(Item::Quoted(c)),
        _ => Some(Item::Hole { splits: false }),
    }
}
