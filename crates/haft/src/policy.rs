//! May this call happen? One function for every route to an effect: first the
//! scope, which nobody can be asked about, then the rules that people wrote.

mod closing;
mod judge;
mod line;
mod pattern;
mod rule;
mod shell;
mod suggest;
#[cfg(test)]
mod tests;
mod wrapper;

pub(crate) use closing::PathRules;
pub use judge::{Act, By, Judgement, Part, Subject};
pub(crate) use pattern::lexical;
pub use rule::{BadRule, Draft, Place, Rule, Verdict};

use crate::toolset::Paths;
use crate::{Access, Effect, Error, Resource};
use haft_ops::{FilePath, Scope};

/// What the scope says.
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

/// Whose word a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The person's own.
    Person,
    /// The project's, which can only make things stricter: the strictest word of
    /// all files counts.
    Project,
}

/// The rules of one file, in order: the first one that is about a thing decides.
#[derive(Debug, Clone)]
pub struct RuleFile {
    /// Whose it is.
    pub whose: Whose,
    /// Its rules.
    pub rules: Vec<Rule>,
}

/// All rules. Over files, and over what a call touches, the strictest counts.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    files: Vec<RuleFile>,
    asked_first: Vec<(String, Effect)>,
}

impl Policy {
    /// The rules of some files.
    #[must_use]
    pub fn new(files: Vec<RuleFile>) -> Self {
        Self {
            files,
            asked_first: Vec::new(),
        }
    }

    /// A person is asked before every call of this effect, whatever rules allow.
    pub fn ask_first(&mut self, reason: impl Into<String>, effect: Effect) {
        self.asked_first.push((reason.into(), effect));
    }

    /// Whether it says nothing about any call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.asked_first.is_empty() && self.rules().next().is_none()
    }

    /// All rules, file by file.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.files.iter().flat_map(|file| &file.rules)
    }

    /// The rules about tools that are not among these names.
    pub fn about_others<'a>(&'a self, tools: &'a [String]) -> impl Iterator<Item = &'a Rule> {
        self.rules()
            .filter(|rule| rule.tool() != "*" && !tools.iter().any(|name| name == rule.tool()))
    }

    /// The same with one more rule, before all others of such a file.
    pub(crate) fn with_first(&self, rule: Rule, whose: Whose) -> Self {
        let mut with = self.clone();
        match with.files.iter_mut().find(|file| file.whose == whose) {
            Some(file) => file.rules.insert(0, rule),
            None => with.files.push(RuleFile {
                whose,
                rules: vec![rule],
            }),
        }
        with
    }
}
