//! Names of sub-agents.

/// Name of the default sub-agent.
pub const GENERAL_PURPOSE: &str = "general_purpose";

/// Maximum length of a tool name that providers accept.
const MAX_LENGTH: usize = 64;

/// Returns the name of a sub-agent's tool. Characters other than letters, digits and `_` become
/// `_`, and a name that starts with a digit gets a leading `_`.
#[must_use]
pub fn tool_name(name: &str) -> String {
    let name = name.trim();
    let starts_with_digit = name.starts_with(|c: char| c.is_ascii_digit());
    let first = starts_with_digit.then_some('_');
    let rest = name.chars().map(|c| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' => c,
        _ => '_',
    });
    let name: String = first.into_iter().chain(rest).take(MAX_LENGTH).collect();
    match name.is_empty() {
        true => "agent".to_owned(),
        false => name,
    }
}

/// Returns the tool name for a `subagent_type` that a model gave.
pub(super) fn requested_tool(given: &str) -> String {
    match given.trim().to_ascii_lowercase().as_str() {
        "" | "general" | "generalpurpose" => GENERAL_PURPOSE.to_owned(),
        _ => tool_name(given),
    }
}

/// Creates a session id from letters and digits that are hard to confuse.
pub(super) fn fresh_id() -> String {
    const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let letter = |_| fastrand::choice(LETTERS).map_or('0', |byte| char::from(*byte));
    (0..12).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_names_are_derived_from_names() {
        for (name, tool) in [
            ("researcher", "researcher"),
            ("code-reviewer", "code_reviewer"),
            ("Web Search", "Web_Search"),
            ("2nd", "_2nd"),
            ("", "agent"),
            ("  ", "agent"),
            ("prüfer!\u{1b}[2J", "pr_fer___2J"),
        ] {
            assert_eq!(tool_name(name), tool);
        }
        assert_eq!(tool_name(&"x".repeat(200)).len(), 64);
        assert_eq!(requested_tool("general-purpose"), GENERAL_PURPOSE);
        assert_eq!(requested_tool("General"), GENERAL_PURPOSE);
    }
}
