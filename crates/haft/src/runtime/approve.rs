//! Asking a person before a call, where a rule says so.

#[cfg(test)]
mod tests;

use super::{Call, Runtime};
use crate::event::EventKind;
use crate::policy::{self, Act, Decision, Part, Place};
use crate::{Access, By, Effect, Error, Judgement, Policy, Repair, Resource, Rule, Verdict};
use async_trait::async_trait;
use futures::FutureExt;
use haft_ops::FilePath;
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

/// What becomes of a call that a rule asks about. A rule that denies holds
/// whatever this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Approve {
    /// A person is asked; with nobody there it is refused.
    #[default]
    Ask,
    /// Yes to all of them.
    Auto,
    /// No to all of them.
    Never,
}

/// What a person is asked.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Question {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// The arguments as they were repaired: with these it will run.
    pub arguments: Value,
    /// What the call will touch, as the arguments name it.
    pub resources: Vec<Resource>,
    /// What is said about each of them, and which rules ask.
    pub judgement: Judgement,
    /// A rule that would allow such calls from now on.
    pub suggestion: Option<Rule>,
}

/// What they say.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// Yes, this once.
    Approve,
    /// Yes, with these arguments instead: an object, whose fields go over those of the
    /// call. They are checked and judged as those were.
    ApproveWith {
        /// The fields that are others.
        arguments: Value,
    },
    /// Yes, and to all calls of this session that the suggested rule allows.
    Always,
    /// Nobody can say now: the call is not made, and may be answered later.
    Later,
    /// No.
    Reject {
        /// Why, if they say.
        reason: Option<String>,
    },
}

/// Somebody who can be asked. Asked about one call at a time; the future is
/// dropped when nobody wants to know any more. Nothing here waits for a limited
/// time: one whose person may have left must say no after a while.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Asks about one call.
    async fn ask(&self, question: &Question) -> Answer;
}

/// What a session knows about approval.
#[derive(Default)]
pub(super) struct Approval {
    pub(super) policy: Policy,
    pub(super) approve: Approve,
    pub(super) approver: Option<Arc<dyn Approver>>,
    pub(super) asked_first: Vec<(String, Effect)>,
    /// Held by the call that a person is being asked about.
    one: tokio::sync::Mutex<()>,
}

impl Approval {
    pub(super) fn ready(mut self) -> Self {
        for (reason, effect) in self.asked_first.drain(..) {
            self.policy.ask_first(reason, effect);
        }
        self
    }
}

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
    /// Judges a call by the rules: `None` to go on, a question for a person, or
    /// the error of a refusal.
    pub(super) fn judge(
        &self,
        call: &Call,
        arguments: &Value,
        effect: Effect,
        resources: &[Resource],
        paths: &[(FilePath, Access)],
    ) -> Result<Option<Question>, Error> {
        let approval = &self.session.approval;
        if approval.policy.is_empty() {
            return Ok(None);
        }
        let names = self.names(resources, paths);
        let act = Act {
            tool: &call.tool,
            effect,
            resources,
            work_dir: self.session.scope.work_dir(),
            bases: &self.session.bases,
            names: &names,
        };
        let judgement = approval.policy.judge(&act);
        match judgement.verdict {
            Verdict::Allow => return Ok(None),
            Verdict::Ask => {}
            Verdict::Deny => return Err(denied(&call.tool, &judgement)),
        }
        if approval.approve == Approve::Auto {
            return Ok(None);
        }
        let suggestion = approval.policy.suggest(&act, &suggested());
        match (approval.approve, &approval.approver) {
            (Approve::Auto, _) => Ok(None),
            (Approve::Never, _) => {
                let why = "and the session says no to all of that (--approve never)";
                Err(not_approved(
                    &call.tool,
                    &judgement,
                    suggestion.as_ref(),
                    why,
                ))
            }
            (Approve::Ask, None) => {
                let why = "and nobody is there to be asked";
                Err(not_approved(
                    &call.tool,
                    &judgement,
                    suggestion.as_ref(),
                    why,
                ))
            }
            (Approve::Ask, Some(_)) => Ok(Some(Question {
                call_id: call.id.clone(),
                tool: call.tool.clone(),
                arguments: arguments.clone(),
                resources: resources.to_vec(),
                judgement,
                suggestion,
            })),
        }
    }

    /// Asks, when it is this call's turn. Anything but a yes is an error.
    pub(super) async fn ask(&self, call: &Call, question: Question) -> Result<(), Error> {
        let approval = &self.session.approval;
        let asking = async {
            let Some(approver) = &approval.approver else {
                return Err(Error::Cancelled);
            };
            let _one = approval.one.lock().await;
            self.emit(|| EventKind::ApprovalNeeded {
                call_id: call.id.clone(),
                tool: call.tool.clone(),
                arguments: question.arguments.clone(),
            });
            let answer = AssertUnwindSafe(approver.ask(&question))
                .catch_unwind()
                .await;
            let reason = match answer {
                Ok(Answer::Approve | Answer::ApproveWith { .. } | Answer::Always) => return Ok(()),
                Ok(Answer::Later) => Some("nobody could say yet".to_owned()),
                Ok(Answer::Reject { reason }) => reason,
                // A check that cannot run means no.
                Err(_) => Some("the question could not be asked".to_owned()),
            };
            let reason = reason.filter(|reason| !reason.is_empty());
            let why = match reason {
                Some(reason) => format!("and the answer was no: {reason}"),
                None => "and the answer was no".to_owned(),
            };
            Err(Error::Refused(Box::new(Error::NotApproved {
                reason: reason_of(&call.tool, &question.judgement, &why),
                remedy:
                    "Do not try it again in other words; go on without it, or ask what is wanted."
                        .to_owned(),
            })))
        };
        tokio::select! {
            biased;
            () = call.cancel.cancelled() => Err(Error::Cancelled),
            answered = asking => answered,
        }
    }

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
        for resource in &resources {
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
        let policy = &session.approval.policy;
        Ok(Explained {
            judgement: policy.judge(&act),
            suggestion: policy.suggest(&act, &suggested()),
            arguments,
            repairs,
            effect,
            paths,
        })
    }

    /// The names of the paths of a call: as the dialect means them, and as they
    /// really are.
    fn names(
        &self,
        resources: &[Resource],
        paths: &[(FilePath, Access)],
    ) -> Vec<(String, PathBuf)> {
        let session = &self.session;
        let meant = resources.iter().filter_map(|resource| match resource {
            Resource::Path(given, _) => {
                let meant = session.paths.meant(&session.scope, given);
                Some((given.clone(), session.scope.work_dir().join(meant)))
            }
            _ => None,
        });
        let real = paths
            .iter()
            .map(|(path, _)| (path.given().to_owned(), path.real().to_owned()));
        meant.chain(real).collect()
    }
}

/// How many characters of what a call touches are repeated in a refusal: the
/// caller knows the rest.
const MOST: usize = 200;

/// A rule that is only proposed stands nowhere yet.
fn suggested() -> Place {
    Place {
        file: "(suggested)".to_owned(),
        line: 0,
    }
}

fn denied(tool: &str, judgement: &Judgement) -> Error {
    Error::Denied {
        reason: reason_of(tool, judgement, ""),
    }
}

fn not_approved(tool: &str, judgement: &Judgement, suggestion: Option<&Rule>, why: &str) -> Error {
    let rule = suggestion
        .map(|rule| format!(", or the rule {rule} first in the policy of their own settings"))
        .unwrap_or_default();
    Error::NotApproved {
        reason: reason_of(tool, judgement, why),
        remedy: format!("A person can allow it: --approve auto{rule}."),
    }
}

/// One line: who asks or denies, about what, and what came of it.
fn reason_of(tool: &str, judgement: &Judgement, why: &str) -> String {
    let mut decisive = judgement.decisive();
    let mut reason = match decisive.next() {
        Some(part) => said(tool, part),
        None => tool.to_owned(),
    };
    match decisive.count() {
        0 => {}
        1 => reason.push_str(", and about one more thing in the call"),
        more => reason.push_str(&format!(", and about {more} more things in the call")),
    }
    if !why.is_empty() {
        reason.push_str(", ");
        reason.push_str(why);
    }
    // What a model wrote must not look like lines of ours.
    if reason.contains(char::is_control) {
        reason = reason.chars().flat_map(escaped).collect();
    }
    reason
}

fn escaped(c: char) -> Vec<char> {
    if c.is_control() {
        c.escape_default().collect()
    } else {
        vec![c]
    }
}

fn said(tool: &str, part: &Part) -> String {
    let about = format!("{tool}, {}", part.subject);
    let about = match about.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", haft_ops::text::decode::prefix(&about, end)),
        None => about,
    };
    match (&part.by, part.verdict) {
        (By::Rule(rule, place), Verdict::Deny) => format!("{place} denies it ({rule}): {about}"),
        (By::Rule(rule, place), _) => format!("{place} asks first ({rule}): {about}"),
        (By::NotAnalysed(place), _) => {
            format!("{place} is about commands, and this one cannot be compared with it: {about}")
        }
        (By::Session(reason), _) => format!("{reason}: {about}"),
        (By::Nobody, _) => about,
    }
}
