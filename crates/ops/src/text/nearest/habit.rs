//! Typical mistakes of models when they copy a text.

use crate::text::lines;

/// A needle with one mistake undone, and the note about it.
pub(super) struct Habit {
    pub(super) text: String,
    pub(super) note: &'static str,
}

/// Returns the mistakes that the needle shows signs of.
pub(super) fn undo(haystack: &str, needle: &str) -> Vec<Habit> {
    let mut habits = Vec::new();
    if let Some(text) = unnumbered(needle) {
        let note = "the wanted text has line numbers in front, which are not part of the file";
        habits.push(Habit { text, note });
    }
    if let Some((text, note)) = unescaped(needle) {
        habits.push(Habit { text, note });
    }
    // The two below are rarer, so they are reported only if they are the whole problem.
    if needle.trim_end_matches('\n').contains('\n') {
        let text = needle.trim_end_matches('\n').replace('\n', "\\n");
        if haystack.contains(&text) {
            let note = "the wanted text has a line break where the file has \\n as two characters (backslash, n)";
            habits.push(Habit { text, note });
        }
    }
    if needle.contains('&') && needle.contains(';') {
        let text = [
            ("&lt;", "<"),
            ("&gt;", ">"),
            ("&quot;", "\""),
            ("&#39;", "'"),
            ("&amp;", "&"),
        ]
        .iter()
        .fold(needle.to_owned(), |text, (entity, plain)| {
            text.replace(entity, plain)
        });
        if text != needle && haystack.contains(&text) {
            let note = "the wanted text has HTML entities (&lt; &amp;) where the file has plain characters";
            habits.push(Habit { text, note });
        }
    }
    habits
}

/// Removes `12<tab>`, `12: `, `12:`, `12|`, `12→` from every line if the numbers increase
/// one by one.
fn unnumbered(needle: &str) -> Option<String> {
    let mut bodies = Vec::new();
    let mut expected: Option<u64> = None;
    for line in lines::split(needle) {
        let digits_at = line.trim_start_matches(' ');
        let body = digits_at.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = digits_at.strip_suffix(body)?.parse::<u64>().ok()?;
        if expected.is_some_and(|expected| expected != number) {
            return None;
        }
        expected = Some(number.wrapping_add(1));
        bodies.push(body);
    }
    let first = bodies.first()?;
    let separator = [": ", "| ", "\t", ":", "|", "\u{2192}"]
        .into_iter()
        .find(|separator| {
            let bare = separator.trim_end_matches(' ');
            first.starts_with(separator)
                && bodies
                    .iter()
                    .all(|body| body.starts_with(separator) || *body == bare)
        });
    let separator = separator.or_else(|| {
        [":", "|"]
            .into_iter()
            .find(|bare| bodies.iter().all(|b| b.starts_with(bare)))
    })?;
    let stripped = bodies
        .iter()
        .map(|body| body.strip_prefix(separator).unwrap_or_default());
    let mut text = stripped.collect::<Vec<_>>().join("\n");
    if needle.ends_with('\n') {
        text.push('\n');
    }
    Some(text)
}

/// Interprets `\n`, `\t`, `\"` as in a quoted string.
fn unescaped(needle: &str) -> Option<(String, &'static str)> {
    let mut text = String::with_capacity(needle.len());
    let (mut breaks, mut tabs, mut others) = (false, false, false);
    let mut chars = needle.chars().peekable();
    while let Some(c) = chars.next() {
        let next = if c == '\\' {
            chars.peek().copied()
        } else {
            None
        };
        let plain = match next {
            Some('n') => {
                breaks = true;
                '\n'
            }
            Some('t') => {
                tabs = true;
                '\t'
            }
            Some(quote @ ('"' | '\'' | '\\')) => {
                others = true;
                quote
            }
            _ => {
                text.push(c);
                continue;
            }
        };
        chars.next();
        text.push(plain);
    }
    let note = match (breaks, tabs, others) {
        (true, _, _) => {
            "the wanted text has \\n as two characters (backslash, n) where the file has a line break"
        }
        (_, true, _) => {
            "the wanted text has \\t as two characters (backslash, t) where the file has a tab"
        }
        (_, _, true) => {
            "the wanted text has a backslash before characters that have none in the file"
        }
        _ => return None,
    };
    Some((text, note))
}
