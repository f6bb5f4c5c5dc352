//! JSON with the syntax of other languages: names and strings in single quotes or without
//! quotes, trailing commas, `True` and `None`, line breaks in strings. Each of these has
//! only one meaning. Anything else is left unchanged and fails to parse.

use std::iter::Peekable;
use std::str::Chars;

#[derive(Default)]
pub(super) struct Normalized {
    pub(super) text: String,
    /// The kinds of syntax that are not JSON.
    pub(super) found: Vec<&'static str>,
}

impl Normalized {
    fn found(&mut self, what: &'static str) {
        if !self.found.contains(&what) {
            self.found.push(what);
        }
    }

    /// Handles a string after its opening quote.
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
        // The string has no end, so the JSON is invalid too.
    }

    /// Handles a word without quotes.
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

pub(super) fn normalize(text: &str) -> Normalized {
    let mut normalized = Normalized::default();
    let mut chars = text.chars().peekable();
    // The last character that was not a space.
    let mut last = ' ';
    while let Some(c) = chars.next() {
        match c {
            '"' => normalized.string(c, &mut chars),
            '\'' => {
                normalized.found("single quotes");
                normalized.string(c, &mut chars);
            }
            ',' if matches!(after_space(&chars), Some('}' | ']'))
                && !matches!(last, ',' | '[' | '{' | ' ') =>
            {
                normalized.found("trailing commas");
            }
            '0'..='9' => {
                // Including an exponent, which is not a word.
                normalized.text.push(c);
                while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || ".+-".contains(*c)) {
                    normalized.text.push(c);
                }
            }
            _ if c.is_alphabetic() || c == '_' => {
                let mut word = String::from(c);
                while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
                    word.push(c);
                }
                let is_name = matches!(last, '{' | ',') && after_space(&chars) == Some(':');
                normalized.word(&word, is_name);
            }
            _ => normalized.text.push(c),
        }
        if !c.is_whitespace() {
            last = c;
        }
    }
    normalized
}

fn after_space(chars: &Peekable<Chars<'_>>) -> Option<char> {
    chars.clone().find(|c| !c.is_whitespace())
}
