//! Settings that decide what calls may do: `sandbox` and `approve`. A project can make them
//! stricter.

use super::setting::OneOf;
use super::sources::{Given, Sources};
use super::{Notes, joined};
use crate::failure::Failure;
use haft::ops::scope::FileRules;
use haft::{Approve, Mode};

/// Reason why a looser value in a project's file is ignored.
pub(crate) const ONLY_TIGHTEN: &str = "a project's file may only tighten";

/// Returns the sandbox rules, and the name of the mode that they come from.
pub(crate) fn sandbox(
    sources: &Sources,
    notes: &mut Notes,
) -> Result<(FileRules, String), Failure> {
    let name = |given: &Given<'_, OneOf<_>>| given.text().to_owned();
    let (rules, name, from) = match sources.apart(|file| &file.sandbox)? {
        (Some(person), Some(project)) => {
            let (own, theirs) = (rules(&person.value.0), rules(&project.value.0));
            let both = own.tightened(theirs);
            if both == own && project.value.0 != person.value.0 {
                notes.warn(project.ignored(ONLY_TIGHTEN));
                (own, name(&person), vec![person.from])
            } else if both == theirs {
                (both, name(&project), vec![project.from])
            } else {
                // Combining two different modes can give rules that match neither of them.
                let name = format!("{} and {}", person.text(), project.text());
                (both, name, vec![person.from, project.from])
            }
        }
        (person, project) => {
            let given = person.or(project);
            let given = given.ok_or_else(|| Failure::failed("sandbox has no default"))?;
            (rules(&given.value.0), name(&given), vec![given.from])
        }
    };
    notes.show_value("sandbox", name.clone().into(), joined(&from));
    Ok((rules, name))
}

/// Returns the rules of a mode.
fn rules(name: &str) -> FileRules {
    match name {
        "strict" => Mode::Strict,
        "read-only" => Mode::ReadOnly,
        "off" => Mode::Off,
        _ => Mode::Workspace,
    }
    .rules()
}

/// Returns how to handle calls that need approval.
pub(crate) fn approve(sources: &Sources, notes: &mut Notes) -> Result<Approve, Failure> {
    let approve = sources.stricter(
        "approve",
        |file| &file.approve,
        |name| match name.0.as_str() {
            "auto" => 0.0,
            "never" => 2.0,
            _ => 1.0,
        },
        notes,
        Some(ONLY_TIGHTEN),
    )?;
    Ok(match approve.as_ref().map(|name| name.0.as_str()) {
        Some("auto") => Approve::Auto,
        Some("never") => Approve::Never,
        _ => Approve::Ask,
    })
}

/// Returns the name used in the file and on the command line.
pub fn approve_name(approve: Approve) -> &'static str {
    match approve {
        Approve::Ask => "ask",
        Approve::Auto => "auto",
        Approve::Never => "never",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MODES;

    #[test]
    fn every_mode_has_its_rules() {
        for (at, name) in MODES.iter().enumerate() {
            for other in MODES.iter().skip(at + 1) {
                assert_ne!(rules(name), rules(other), "{name} {other}");
            }
        }
    }
}
