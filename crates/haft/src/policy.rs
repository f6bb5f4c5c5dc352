//! May this call happen? One function for every route to an effect.

use crate::toolset::Paths;
use crate::{Access, Effect, Error, Resource};
use haft_ops::{FilePath, Scope};

/// What the policy says.
#[derive(Debug)]
#[non_exhaustive]
pub enum Decision {
    /// Go ahead. The paths were checked for what they are wanted for.
    Allow(Vec<(FilePath, Access)>),
    /// No, and why: the tool does not run.
    Deny(Error),
}

/// Decides about a call by what it would touch.
pub(crate) fn decide(
    scope: &Scope,
    paths: Paths,
    effect: Effect,
    resources: &[Resource],
) -> Decision {
    let mut allowed = Vec::new();
    for resource in resources {
        let Resource::Path(given, access) = resource else {
            continue;
        };
        // A tool that only looks cannot ask to write.
        if effect != Effect::Write && *access != Access::Read {
            return Decision::Deny(Error::Denied {
                reason: format!("a tool that does not write asked to change {given}"),
            });
        }
        match paths.resolve(scope, given, *access) {
            Ok(path) => allowed.push((path, *access)),
            Err(
                refused @ (haft_ops::Error::NotAllowed { .. } | haft_ops::Error::Protected { .. }),
            ) => {
                return Decision::Deny(refused.into());
            }
            // No path at all: for the tool to say.
            Err(_) => {}
        }
    }
    Decision::Allow(allowed)
}
