//! Names of sub-agents.

/// The sub-agent that is always there.
pub const GENERAL_PURPOSE: &str = "general_purpose";

/// The longest name that providers take.
const LONGEST: usize = 64;

/// The name of a sub-agent's tool: other characters than letters, digits and `_`
/// become `_`, and so does nothing before a digit.
#[must_use]
pub fn tool_name(name: &str) -> String {
    let name = name.trim();
    let begins_with_digit = name.starts_with(|c: char| c.is_ascii_digit());
    let first = begins_with_digit.then_some('_');
    let rest = name.chars().map(|c| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' => c,
        _ => '_',
    });
    let name: String = first.into_iter().chain(rest).take(LONGEST).collect();
    match name.is_empty() {
        true => "agent".to_owned(),
        false => name,
    }
}

/// A sub-agent as a model may call it.
pub(super) fn asked_for(given: &str) -> String {
    match given.trim().to_ascii_lowercase().as_str() {
        "" | "general" | "generalpurpose" => GENERAL_PURPOSE.to_owned(),
        _ => tool_name(given),
    }
}

/// An id for a session: letters and digits that nobody takes for others.
pub(super) fn fresh_id() -> String {
    const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let letter = |_| fastrand::choice(LETTERS).map_or('0', |byte| char::from(*byte));
    (0..12).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_names_of_tools() {
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
        assert_eq!(asked_for("general-purpose"), GENERAL_PURPOSE);
        assert_eq!(asked_for("General"), GENERAL_PURPOSE);
    }
}
