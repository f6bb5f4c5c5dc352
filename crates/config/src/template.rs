//! The file that `haft init` writes: every key with its default, commented out. Active
//! defaults would override the user's own settings for no reason.

use super::keys::{Key, SECTION, keys};
use serde_json::Value;

/// Returns the text of a new `haft.yaml`.
pub fn template() -> String {
    let mut text = String::from(
        "## Settings of haft for this folder. Remove `# ` from a line to use it.\n\
         ## Flags and variables take precedence; `haft config show` shows the result.\n\
         ## A project's file can only tighten what the user's own settings allow.\n\n",
    );
    text.push_str(&format!("# {SECTION}:\n"));
    for key in keys() {
        let indent = if key.section.is_some() { "  " } else { "" };
        let default = match (&key.schema["default"], &key.schema["examples"][0]) {
            (Value::String(text), _) | (Value::Null, Value::String(text)) if !text.is_empty() => {
                text.clone()
            }
            (Value::Null, other) | (other, _) => other.to_string(),
        };
        let setting = format!("{indent}{}: {default}", key.name);
        text.push_str(&format!("# {setting:<26} # {}\n", about(&key)));
    }
    text
}

/// Describes a key at the end of a line.
fn about(key: &Key) -> String {
    let about = key.schema["description"].as_str().unwrap_or_default();
    let about = about.trim_end_matches('.');
    let mut chars = about.chars();
    match (chars.next(), chars.clone().next()) {
        // Not for an abbreviation.
        (Some(first), Some(second)) if !second.is_uppercase() => {
            format!("{}{}", first.to_lowercase(), chars.as_str())
        }
        _ => about.to_owned(),
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_fits_a_terminal_and_lists_every_key() {
        let text = template();
        for key in keys() {
            assert!(text.contains(&format!("{}: ", key.name)), "{}", key.name);
            let value = key.schema.get("default").or(key.schema.get("examples"));
            assert!(value.is_some(), "{}: no default and no example", key.name);
        }
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
