//! Shortening foreign text for a message, so that the message stays readable and cheap to
//! build, however long the text is.

use std::fmt::{self, Display, Write};

/// Maximum number of names of a list in a message.
pub const FEW: usize = 20;
/// Maximum number of characters of a name in a message.
pub const NAME: usize = 100;

/// Returns the first `most` characters of a value's text, followed by `…` if there is more.
/// Formatting stops there, so a long value costs no more than a short one.
pub fn brief(value: impl Display, most: usize) -> String {
    let mut out = Brief {
        text: String::new(),
        left: most,
        is_cut: false,
    };
    // The only error is the one that stops it.
    let _ = write!(out, "{value}");
    if out.is_cut {
        out.text.push('…');
    }
    out.text
}

struct Brief {
    text: String,
    left: usize,
    is_cut: bool,
}

impl Write for Brief {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if self.left == 0 {
                self.is_cut = true;
                return Err(fmt::Error);
            }
            self.text.push(c);
            self.left -= 1;
        }
        Ok(())
    }
}

/// Joins names with commas: the first `most`, and the number of others. Each name is
/// shortened as well.
pub fn few<T: AsRef<str>>(names: &[T], most: usize) -> String {
    let shown = names.iter().take(most);
    let mut shown: Vec<String> = shown.map(|name| brief(name.as_ref(), NAME)).collect();
    let more = names.len().saturating_sub(most);
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_text_is_unchanged_and_long_text_is_cut() {
        assert_eq!(brief("añb", 3), "añb");
        assert_eq!(brief("añbc", 3), "añb…");
        assert_eq!(brief("", 0), "");
        assert_eq!(brief(12_345, 2), "12…");
    }

    #[test]
    fn formatting_stops_at_the_cut() {
        struct Endless;
        impl Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                loop {
                    f.write_str("again ")?;
                }
            }
        }
        assert_eq!(brief(Endless, 8), "again ag…");
    }

    #[test]
    fn a_list_shows_the_first_names_and_counts_the_others() {
        assert_eq!(few(&["a", "b"], 2), "a, b");
        assert_eq!(few(&["a", "b", "c", "d"], 2), "a, b, and 2 more");
        assert_eq!(few::<&str>(&[], 2), "");
        assert!(few(&["x".repeat(1_000_000)], 2).len() < 400);
    }
}
