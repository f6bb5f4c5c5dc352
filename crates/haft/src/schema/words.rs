//! Converting a command between a line for a shell and a list of words, if the tool expects
//! the other form.

use serde_json::Value;

/// Returns the words of a line that is a JSON list. `[ "a" ]` with spaces is not: that is a
/// shell test.
pub(super) fn listed(line: &str) -> Option<Value> {
    let line = line.trim();
    if !line.starts_with("[\"") || crate::json::excess(line.as_bytes()).is_some() {
        return None;
    }
    let words: Vec<String> = serde_json::from_str(line).ok()?;
    Some(words.into())
}

/// The line that a list of words is. A list may also be several commands, one
/// after the other: only one with an option in it is surely none.
pub(super) fn line(words: &[Value]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(Value::as_str).collect::<Option<_>>()?;
    let (program, arguments) = words.split_first()?;
    let is_program = !program.is_empty() && !program.contains(char::is_whitespace);
    let has_option = arguments.iter().any(|word| word.starts_with('-'));
    let line = words.iter().map(|word| quoted(word)).collect::<Vec<_>>();
    (is_program && has_option).then(|| line.join(" "))
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
