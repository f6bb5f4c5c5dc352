//! JSON as other languages write it: names and strings in single quotes or none,
//! a comma too many, `True` and `None`, line breaks inside strings. Each of
//! these says one thing; anything else is left as it is, and is no JSON then.

use std::iter::Peekable;
use std::str::Chars;

#[derive(Default)]
pub(super) struct Mended {
    pub(super) text: String,
    /// What was not JSON.
    pub(super) found: Vec<&'static str>,
}

impl Mended {
    fn found(&mut self, what: &'static str) {
        if !self.found.contains(&what) {
            self.found.push(what);
        }
    }

    /// A string, after its opening quote.
    fn string(&mut self, quote: char, chars: &mut Peekable<Chars<'_>>) {
        self.text.push('"');
        while let Some(c) = chars.next() {
            match c {
                _ if c == quote => {
                    self.text.push('"');
                    return;
                }
                '\\' if chars.peek() == Some(&'\'') && quote == '\'' => {
                    chars.next();
                    self.text.push('\'');
                }
                '\\' => {
                    self.text.push(c);
                    self.text.extend(chars.next());
                }
                '"' => self.text.push_str("\\\""),
                '\n' | '\r' | '\t' => {
                    self.found("line breaks or tabs in strings");
                    self.text.push_str(match c {
                        '\n' => "\\n",
                        '\r' => "\\r",
                        _ => "\\t",
                    });
                }
                _ => self.text.push(c),
            }
        }
        // It has no end: neither has the JSON.
    }

    /// A word that is not in quotes.
    fn word(&mut self, word: &str, is_name: bool) {
        let literal = match word {
            "True" => "true",
            "False" => "false",
            "None" => "null",
            other => other,
        };
        if is_name {
            self.found("names without quotes");
            self.text.push_str(&format!("\"{word}\""));
        } else {
            if literal != word {
                self.found("True, False or None");
            }
            self.text.push_str(literal);
        }
    }
}

pub(super) fn mended(text: &str) -> Mended {
    let mut mended = Mended::default();
    let mut chars = text.chars().peekable();
    // The last one that was no space.
    let mut last = ' ';
    while let Some(c) = chars.next() {
        match c {
            '"' => mended.string(c, &mut chars),
            '\'' => {
                mended.found("single quotes");
                mended.string(c, &mut chars);
            }
            ',' if matches!(after_space(&chars), Some('}' | ']'))
                && !matches!(last, ',' | '[' | '{' | ' ') =>
            {
                mended.found("a comma too many");
            }
            '0'..='9' => {
                // With its exponent, which is no word.
                mended.text.push(c);
                while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || ".+-".contains(*c)) {
                    mended.text.push(c);
                }
            }
            _ if c.is_alphabetic() || c == '_' => {
                let mut word = String::from(c);
                while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
                    word.push(c);
                }
                let is_name = matches!(last, '{' | ',') && after_space(&chars) == Some(':');
                mended.word(&word, is_name);
            }
            _ => mended.text.push(c),
        }
        if !c.is_whitespace() {
            last = c;
        }
    }
    mended
}

fn after_space(chars: &Peekable<Chars<'_>>) -> Option<char> {
    chars.clone().find(|c| !c.is_whitespace())
}
