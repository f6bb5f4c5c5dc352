//! Sandbox modes by name, and what comes of two of them.

use haft::Mode;
use haft::ops::scope::FileRules;

/// The rules of a mode.
pub(crate) fn rules(name: &str) -> FileRules {
    match name {
        "strict" => Mode::Strict,
        "read-only" => Mode::ReadOnly,
        "off" => Mode::Off,
        _ => Mode::Workspace,
    }
    .rules()
}

/// The name of what two modes make together. Only one pair makes something that
/// is no mode itself.
pub(crate) fn together(first: &str, second: &str) -> String {
    let both = rules(first).tightened(rules(second));
    if both == rules(first) {
        first.to_owned()
    } else if both == rules(second) {
        second.to_owned()
    } else {
        format!("{first} and {second}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::keys::MODES;

    #[test]
    fn every_mode_has_its_rules() {
        for (at, name) in MODES.iter().enumerate() {
            for other in MODES.iter().skip(at + 1) {
                assert_ne!(rules(name), rules(other), "{name} {other}");
            }
        }
    }

    #[test]
    fn the_stricter_one_names_both() {
        assert_eq!(together("workspace", "off"), "workspace");
        assert_eq!(together("off", "strict"), "strict");
        assert_eq!(together("strict", "read-only"), "strict and read-only");
    }
}
