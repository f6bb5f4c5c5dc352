//! Formats values as YAML.

use haft::ops::text::decode::is_deceptive;
use serde_json::Value;
use std::fmt::Write as _;

/// Formats a key and its value: lists of maps with one item per line, long texts as a
/// block.
pub(crate) fn entry(indent: &str, name: &str, value: &Value) -> String {
    match value {
        Value::Array(items) if items.iter().any(Value::is_object) => {
            let lines = items
                .iter()
                .map(|item| format!("{indent}  - {}\n", flow(item)));
            format!("{indent}{name}:\n{}", lines.collect::<String>())
        }
        Value::String(text) if is_block(text) => {
            let end = if text.ends_with('\n') { "" } else { "-" };
            let lines = text.lines().map(|line| match line {
                "" => "\n".to_owned(),
                line => format!("{indent}  {line}\n"),
            });
            format!("{indent}{name}: |{end}\n{}", lines.collect::<String>())
        }
        other => format!("{indent}{name}: {}\n", flow(other)),
    }
}

/// Whether a text can be a block of several lines without changing its meaning.
fn is_block(text: &str) -> bool {
    let is_plain = |c: char| c == '\n' || !(c.is_control() || is_odd(c));
    text.trim_end_matches('\n').contains('\n')
        && !text.starts_with([' ', '\n'])
        && !text.ends_with("\n\n")
        && text.chars().all(is_plain)
}

/// Formats a value on one line.
pub(crate) fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => {
            let entries: Vec<String> = map
                .iter()
                .map(|(name, value)| format!("{}: {}", scalar(name), flow(value)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
        other => other.to_string(),
    }
}

/// Words that YAML parsers do not read as text.
const WORDS: [&str; 10] = [
    "true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan",
];

/// Formats a text: plain if it cannot be mistaken for something else, quoted otherwise.
pub(crate) fn scalar(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " _-./".contains(c);
    if text.starts_with(|c: char| c.is_ascii_alphabetic())
        && !text.ends_with(' ')
        && text.chars().all(is_plain)
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
    {
        return text.to_owned();
    }
    let mut quoted = String::new();
    for c in Value::from(text).to_string().chars() {
        let _ = match (is_odd(c), u32::from(c)) {
            (true, code @ 0x1_0000..) => write!(quoted, "\\U{code:08x}"),
            (true, code) => write!(quoted, "\\u{code:04x}"),
            (false, _) => quoted.write_char(c),
        };
    }
    quoted
}

/// Characters that JSON allows in quotes but YAML does not, or that are invisible.
fn is_odd(c: char) -> bool {
    is_deceptive(c) || matches!(c, '\u{7f}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}
