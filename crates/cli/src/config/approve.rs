//! `approve`: how to handle calls that need approval.

use super::sources::{Origin, Sources};
use super::{given_or, text, written};
use crate::exit::Failure;
use haft::Approve;

/// Returns the user's setting, which the project can make stricter.
pub(crate) fn load(
    sources: &Sources<'_>,
    warnings: &mut Vec<String>,
) -> Result<(Approve, String, Origin), Failure> {
    let (person, project) = sources.apart("approve")?;
    let person = given_or(person, "ask".into());
    let chosen = match project {
        Some(project) if strictness(text(&project)) > strictness(text(&person)) => project,
        Some(project) if strictness(text(&project)) < strictness(text(&person)) => {
            warnings.push(format!(
                "{}: approve {} is ignored: a project's file may only tighten",
                project.from,
                written(&project),
            ));
            person
        }
        _ => person,
    };
    let approve = match text(&chosen) {
        "auto" => Approve::Auto,
        "never" => Approve::Never,
        _ => Approve::Ask,
    };
    Ok((approve, written(&chosen).to_owned(), chosen.from))
}

fn strictness(name: &str) -> u8 {
    match name {
        "auto" => 0,
        "never" => 2,
        _ => 1,
    }
}

/// Returns the name used in the file and on the command line.
pub(crate) fn name(approve: Approve) -> &'static str {
    match approve {
        Approve::Ask => "ask",
        Approve::Auto => "auto",
        Approve::Never => "never",
    }
}
