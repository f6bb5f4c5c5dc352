//! What would be decided about a call, without making it.

use super::super::{Call, Runtime};
use super::{interrupted, shown, suggested};
use crate::policy::{self, Act, Decision, Place};
use crate::{Effect, Error, Judgement, Repair, Resource, Rule, Verdict};
use serde_json::Value;
use std::path::PathBuf;

/// What would be decided about a call, and why.
#[derive(Debug)]
#[non_exhaustive]
pub struct Explained {
    /// The arguments as they were repaired.
    pub arguments: Value,
    /// What was repaired.
    pub repairs: Vec<Repair>,
    /// What the tool can do at most.
    pub effect: Effect,
    /// Each path as it was given, and where it is or why it is out of reach.
    pub paths: Vec<(String, Result<PathBuf, String>)>,
    /// What the rules say. A path out of reach is refused before they are asked.
    pub judgement: Judgement,
    /// A rule that would allow such calls from now on.
    pub suggestion: Option<Rule>,
    /// What commands of the tool cannot read: each glob, and where it is written. Only
    /// for tools that run commands.
    pub hidden: Vec<(String, Place)>,
}

impl Explained {
    /// What is decided, before anybody is asked.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if self.paths.iter().any(|(_, real)| real.is_err()) {
            Verdict::Deny
        } else {
            self.judgement.verdict
        }
    }
}

impl Runtime {
    /// What would be decided about a call. Nothing runs and nobody is asked.
    ///
    /// # Errors
    /// When there is no such tool, or the arguments do not fit.
    pub fn explain(&self, call: &Call) -> Result<Explained, Error> {
        let session = &self.session;
        let entry = session
            .tools
            .entry(&call.tool)
            .ok_or_else(|| self.unknown_tool(&call.tool))?;
        let (arguments, repairs) = entry.checker.prepare(call.arguments.clone())?;
        let resources = session.touches(&entry, &arguments);
        let effect = entry.tool.effect();
        let mut checked = Vec::new();
        let mut paths = Vec::new();
        for resource in &shown(&resources) {
            let Resource::Path(given, _) = resource else {
                continue;
            };
            let one = std::slice::from_ref(resource);
            match policy::decide(&session.scope, session.paths, effect, one) {
                Decision::Allow(allowed) => {
                    let real = allowed.first().map(|(path, _)| path.real().to_owned());
                    paths.extend(real.map(|real| (given.clone(), Ok(real))));
                    checked.extend(allowed);
                }
                Decision::Deny(error) => paths.push((given.clone(), Err(error.to_string()))),
            }
        }
        let names = self.names(&resources, &checked);
        let act = Act {
            tool: &call.tool,
            effect,
            resources: &resources,
            work_dir: session.scope.work_dir(),
            bases: &session.bases,
            names: &names,
        };
        let policy = session.approval.policy();
        let mut judgement = policy.judge(&act);
        let waits = session.interrupt_on.contains(&call.tool);
        if waits && judgement.verdict != Verdict::Deny {
            judgement = interrupted(judgement);
        }
        Ok(Explained {
            hidden: match effect {
                Effect::Execute => session.hidden_from(&call.tool),
                _ => Vec::new(),
            },
            suggestion: match waits {
                true => None,
                false => policy.suggest(&act, &suggested()),
            },
            judgement,
            arguments,
            repairs,
            effect,
            paths,
        })
    }
}
