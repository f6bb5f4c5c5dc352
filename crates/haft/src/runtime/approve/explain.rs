//! Explaining what the policy would decide about a call, without making it.

use super::super::second_look::Asks;
use super::super::{Call, Runtime};
use super::{interrupted, shown, suggested};
use crate::policy::{self, Decision, PolicyInput, RuleLocation};
use crate::{Effect, Error, Judgement, Repair, Resource, Suggestion, Verdict};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

/// A refusal that is made before any rule is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// The refusal itself, such as `path not allowed: /etc/passwd`.
    pub what: String,
    /// The reason, and what the user can do about it.
    pub remedy: Option<String>,
}

impl From<&Error> for Refused {
    fn from(error: &Error) -> Self {
        use haft_ops::Error as E;
        let remedy = match error {
            Error::Refused(error) | Error::Detailed { error, .. } => return Self::from(&**error),
            Error::Operation(E::NotAllowed { remedy, .. }) => Some(remedy.clone()),
            Error::Operation(E::Protected { reason, .. }) => reason.clone(),
            Error::Failed { hint, .. } => hint.clone(),
            _ => None,
        };
        let what = error.to_string();
        Self { what, remedy }
    }
}

/// The decision about a call and the reasons for it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Explained {
    /// Arguments after repair.
    pub arguments: Value,
    /// Repairs that were made.
    pub repairs: Vec<Repair>,
    /// The most that the tool can do.
    pub effect: Effect,
    /// Each path as given, with its real path or why it is out of reach.
    pub paths: Vec<(String, Result<PathBuf, Refused>)>,
    /// Refusal by the tool itself, which no rule can change.
    pub refusal: Option<Refused>,
    /// Decision of the rules. A path that is out of reach is refused before they are
    /// checked.
    pub judgement: Judgement,
    /// Rules that would allow such calls from now on.
    pub suggestion: Option<Suggestion>,
    /// Paths that commands of the tool cannot read: each glob and the rule's location. Only
    /// for tools that run commands.
    pub hidden: Vec<(String, RuleLocation)>,
}

impl Explained {
    /// Returns the decision before asking the user.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if self.refusal.is_some() || self.paths.iter().any(|(_, real)| real.is_err()) {
            Verdict::Deny
        } else {
            self.judgement.verdict
        }
    }
}

impl Runtime {
    /// Explains what would be decided about a call. Nothing runs, and the user is not asked.
    ///
    /// # Errors
    /// When the tool does not exist, or the arguments are invalid.
    pub fn explain(&self, call: &Call) -> Result<Explained, Error> {
        let session = &self.session;
        let entry = session
            .tools
            .entry(&call.tool)
            .ok_or_else(|| self.unknown_tool(&call.tool))?;
        let (arguments, repairs) = entry.checker.prepare(call.arguments.clone())?;
        let arguments = Arc::new(arguments);
        let prepared = Arc::clone(&entry.tool).prepare(Arc::clone(&arguments))?;
        let resources = session.resources(&*prepared);
        let effect = entry.tool.effect();
        let mut checked = Vec::new();
        let mut paths = Vec::new();
        for resource in &shown(&resources) {
            let Resource::Path(given, _) = resource else {
                continue;
            };
            let one = std::slice::from_ref(resource);
            match policy::decide(&session.scope, session.shared.toolset.paths, effect, one) {
                Decision::Allow(allowed) => {
                    let real = allowed.first().map(|(path, _)| path.real().to_owned());
                    paths.extend(real.map(|real| (given.clone(), Ok(real))));
                    checked.extend(allowed);
                }
                Decision::Deny(error) => paths.push((given.clone(), Err(Refused::from(&error)))),
            }
        }
        let names = self.names(&resources, &checked);
        let act = PolicyInput {
            tool: &call.tool,
            effect,
            resources: &resources,
            work_dir: session.scope.work_dir(),
            bases: &session.shared.bases,
            names: &names,
        };
        let policy = session.approval.policy();
        let mut judgement = {
            let can_review = self.can_review(&entry, &checked);
            self.with_dangers(policy.judge(&act), Asks::User, can_review)
        };
        let waits = session.interrupt_on.contains(&call.tool);
        if waits && judgement.verdict != Verdict::Deny {
            judgement = interrupted(judgement);
        }
        if judgement.verdict == Verdict::Review {
            judgement.verdict = match effect.may_change() {
                false => Verdict::Allow,
                true if self.can_review(&entry, &checked) => Verdict::Review,
                // Unrecorded changes cannot be reverted.
                true => Verdict::Ask,
            };
        }
        let refusal = prepared.refusal(&self.offered());
        Ok(Explained {
            refusal: refusal.as_ref().map(Refused::from),
            hidden: match effect {
                Effect::Execute => session.hidden_from(&call.tool),
                _ => Vec::new(),
            },
            suggestion: match waits || judgement.verdict == Verdict::Allow {
                true => None,
                false => policy.suggest(&act, &suggested()),
            },
            judgement,
            arguments: Value::clone(&arguments),
            repairs,
            effect,
            paths,
        })
    }
}
