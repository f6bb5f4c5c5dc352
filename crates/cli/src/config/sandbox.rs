//! Sandbox modes by name.

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
}
