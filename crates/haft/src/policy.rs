//! The policy: decides whether a call may run. One function for every way to an effect.
//! First the scope, which no approval can override, then the rules that users wrote.

mod danger;
mod exception;
mod judge;
mod line;
mod network;
mod network_host;
mod path_rules;
mod pattern;
mod rule;
mod shell;
mod suggest;
#[cfg(test)]
mod tests;
mod wrapper;
mod written;

pub use danger::Danger;
pub use exception::{OUTSIDE_WRITE, UNSANDBOXED};
pub use judge::{DecidedBy, JudgedPart, Judgement, PolicyInput, Subject};
pub(crate) use line::CommandLine;
pub(crate) use network::{Connection, command_line};
pub use network::{ConnectionJudgement, NETWORK, NetworkAccess, OpenHost, host_and_port};
pub use network_host::{HOST_GROUPS, HostGroup, NetworkHost};
pub(crate) use path_rules::PathRules;
pub(crate) use pattern::lexical;
pub use rule::{BadRule, Rule, RuleDraft, RuleLocation, Verdict};
pub use suggest::Suggestion;

use crate::toolset::Paths;
use crate::{Access, Effect, Error, Resource};
use haft_ops::{FilePath, Scope};

/// The decision of the scope.
#[derive(Debug)]
#[non_exhaustive]
pub enum Decision {
    /// Allowed. Each path was checked for the access it is needed for.
    Allow(Vec<(FilePath, Access)>),
    /// Refused, and why; the tool does not run.
    Deny(Error),
}

/// Checks the resources of a call against the scope.
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
        // A tool with a lesser effect must not ask to write.
        if effect != Effect::Write && *access != Access::Read {
            return Decision::Deny(Error::Denied {
                reason: no_write_effect(given),
            });
        }
        match paths.resolve(scope, given, *access) {
            Ok(path) => allowed.push((path, *access)),
            Err(
                refused @ (haft_ops::Error::NotAllowed { .. } | haft_ops::Error::Protected { .. }),
            ) => {
                return Decision::Deny(refused.into());
            }
            // Not a valid path at all: the tool reports that.
            Err(_) => {}
        }
    }
    Decision::Allow(allowed)
}

/// Returns the reason for refusing a change by a tool with a lesser effect.
pub(crate) fn no_write_effect(given: &str) -> String {
    format!("a tool without the effect \"write\" tried to change {given}")
}

/// The author of a file of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleOwner {
    /// The user.
    User,
    /// The project. Its rules can only make the policy stricter, because the strictest
    /// verdict of all files counts.
    Project,
}

/// The rules of one file, in order: the first one that applies decides.
#[derive(Debug, Clone)]
pub struct RuleFile {
    /// Author of the file.
    pub owner: RuleOwner,
    /// The rules, in order.
    pub rules: Vec<Rule>,
}

/// All rules. Of several files, and of several parts of a call, the strictest verdict
/// counts.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    files: Vec<RuleFile>,
    asked_first: Vec<(String, Effect)>,
    /// Hosts that are open without a rule.
    network: NetworkAccess,
}

impl Policy {
    /// Creates a policy from the rules of some files.
    #[must_use]
    pub fn new(files: Vec<RuleFile>) -> Self {
        Self {
            files,
            asked_first: Vec::new(),
            network: NetworkAccess::default(),
        }
    }

    /// Asks the user before every call with this effect, even if a rule allows it.
    pub fn ask_first(&mut self, reason: impl Into<String>, effect: Effect) {
        self.asked_first.push((reason.into(), effect));
    }

    /// Whether the policy has no rules and asks about no effect.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.asked_first.is_empty() && self.rules().next().is_none()
    }

    /// Returns all rules, file by file.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.files.iter().flat_map(|file| &file.rules)
    }

    /// Returns the rules of the files of one author.
    pub fn rules_of(&self, owner: RuleOwner) -> impl Iterator<Item = &Rule> {
        let files = self.files.iter().filter(move |file| file.owner == owner);
        files.flat_map(|file| &file.rules)
    }

    /// Returns the rules about tools that are not among these names.
    pub fn about_others<'a>(&'a self, tools: &'a [String]) -> impl Iterator<Item = &'a Rule> {
        self.rules()
            .filter(|rule| rule.tool() != "*" && !tools.iter().any(|name| name == rule.tool()))
    }

    /// Returns a copy with one more rule before all others of this owner.
    pub(crate) fn with_first(&self, rule: Rule, owner: RuleOwner) -> Self {
        let mut with = self.clone();
        match with.files.iter_mut().find(|file| file.owner == owner) {
            Some(file) => file.rules.insert(0, rule),
            None => with.files.push(RuleFile {
                owner,
                rules: vec![rule],
            }),
        }
        with
    }
}
