//! Asking the user before a call, if a rule says so.

#[cfg(test)]
mod answers;
mod explain;
mod lasting;
mod question;
#[cfg(test)]
mod tests;
mod wording;

pub use explain::{Explained, Refused};
pub(super) use lasting::about_saved_rules;
pub use question::{ApprovalAnswer, Question};
pub(super) use wording::{denied, not_approved, on_one_line, reason_of};

use super::exceptions::Requested;
use super::{Call, Filled, Form, MAX_REASON_CHARS, OuterCall, Runtime};
use crate::event::{EventKind, Listener};
use crate::policy::{JudgedPart, PolicyInput, RuleLocation};
use crate::registry::Entry;
use crate::{
    Access, Context, DecidedBy, Effect, Error, Judgement, Policy, Resource, Rule, RuleOwner,
    Subject, Verdict,
};
use async_trait::async_trait;
use futures::FutureExt;
use haft_ops::FilePath;
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// How to handle calls that need approval. Rules that deny a call always apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Approve {
    /// Ask the user; refuse the call if there is no user to ask.
    #[default]
    Ask,
    /// Approve all of them.
    Auto,
    /// Refuse all of them.
    Never,
}

/// Asks the user for approval, in whatever way the front end has. Only one call is asked
/// about at a time, and the future is dropped when the answer is no longer needed. There is
/// no time limit: an approver whose user may have left must reject after a while.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Asks about one call.
    async fn ask(&self, question: &Question) -> ApprovalAnswer;

    /// Shows a form to the user. An approver that cannot show forms declines.
    async fn fill(&self, form: &Form) -> Filled {
        let _ = form;
        Filled::Declined
    }
}

/// The user's own file of rules, which permanent answers are added to.
pub trait OwnRules: Send + Sync {
    /// Returns the file.
    fn file(&self) -> &Path;

    /// Adds rules before all others of the file.
    ///
    /// # Errors
    /// When the file cannot be changed, and why.
    fn add(&self, rules: &[Rule]) -> Result<(), String>;
}

/// The approval state of a session.
#[derive(Default)]
pub(crate) struct Approval {
    pub(super) policy: RwLock<Arc<Policy>>,
    /// The rules before the user allowed more during the session.
    pub(super) first: Arc<Policy>,
    pub(super) approve: Approve,
    pub(super) approver: Option<Arc<dyn Approver>>,
    /// File for permanent answers.
    pub(super) own_rules: Option<Arc<dyn OwnRules>>,
    pub(super) asked_first: Vec<(String, Effect)>,
    /// Locked while the user is asked about a call.
    pub(super) one: tokio::sync::Mutex<()>,
}

impl Approval {
    pub(super) fn ready(mut self) -> Self {
        let mut policy = (*self.policy()).clone();
        for (reason, effect) in self.asked_first.drain(..) {
            policy.ask_first(reason, effect);
        }
        self.first = Arc::new(policy.clone());
        self.put(policy);
        self
    }

    /// Returns a fresh copy for another session.
    pub(super) fn for_new_session(&self) -> Self {
        Self {
            policy: RwLock::new(Arc::clone(&self.first)),
            first: Arc::clone(&self.first),
            approve: self.approve,
            approver: self.approver.clone(),
            own_rules: self.own_rules.clone(),
            ..Self::default()
        }
    }

    pub(crate) fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn put(&self, policy: Policy) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    /// Returns the file for permanent answers.
    pub(in crate::runtime) fn rules_file(&self) -> Option<PathBuf> {
        Some(self.own_rules.as_ref()?.file().to_owned())
    }

    /// Adds rules for the rest of the session, before all others.
    fn allow(&self, rules: &[Rule]) {
        for rule in rules {
            self.put(self.policy().with_first(rule.clone(), RuleOwner::User));
        }
    }
}

/// Returns the resources to show to the user: a file that is both read and written is
/// listed once.
fn shown(resources: &[Resource]) -> Vec<Resource> {
    let is_written = |read: &String| {
        let written =
            |one: &Resource| matches!(one, Resource::Path(path, Access::Write) if path == read);
        resources.iter().any(written)
    };
    let is_shown = |resource: &&Resource| match resource {
        Resource::Path(path, Access::Read) => !is_written(path),
        _ => true,
    };
    resources.iter().filter(is_shown).cloned().collect()
}

/// Decision of the rules about a call that is not refused.
pub(super) enum Ruling {
    /// The call runs.
    Run,
    /// The user is asked first.
    Ask(Box<Question>),
    /// It runs, and the user decides about its changes.
    Review(Judgement),
}

/// The user's approval.
pub(super) enum Granted {
    /// Approved exactly as requested.
    AsRequested,
    /// As requested, and the rules were added to the user's own: what became of that.
    Always(Value),
    /// With changed arguments.
    With(Value),
}

impl Runtime {
    /// Applies the policy to a call.
    ///
    /// # Errors
    /// When it is refused.
    pub(super) fn judge(
        &self,
        call: &Call,
        arguments: &Value,
        entry: &Entry,
        resources: &[Resource],
        paths: &[(FilePath, Access)],
        requested: &Requested,
    ) -> Result<Ruling, Error> {
        let approval = &self.session.approval;
        let policy = approval.policy();
        let waits = self.session.interrupt_on.contains(&call.tool);
        let effect = entry.tool.effect();
        // Some commands are judged even without rules.
        let is_free = policy.is_empty() && effect != Effect::Execute;
        if is_free && !waits && call.answer.is_none() {
            return Ok(Ruling::Run);
        }
        let names = self.names(resources, paths);
        let act = PolicyInput {
            tool: &call.tool,
            effect,
            resources,
            work_dir: self.session.scope.work_dir(),
            bases: &self.session.shared.bases,
            names: &names,
        };
        // Without the sandbox nothing is recorded.
        let can_review = !requested.granted.is_unsandboxed() && self.can_review(entry, paths);
        let own = policy.judge(&act);
        let mut judgement = self.with_dangers(own, self.asks(call), can_review);
        let is_own_open = judgement.verdict == Verdict::Allow;
        judgement.parts.extend(requested.parts.iter().cloned());
        judgement.verdict = judgement.verdict.max(requested.verdict());
        if waits && judgement.verdict != Verdict::Deny {
            judgement = interrupted(judgement);
        }
        if judgement.verdict == Verdict::Review && call.answer.is_none() {
            if !effect.may_change() {
                return Ok(Ruling::Run);
            }
            if can_review {
                return Ok(Ruling::Review(judgement));
            }
        }
        let is_asked = match judgement.verdict {
            Verdict::Allow => false,
            Verdict::Review | Verdict::Ask => approval.approve != Approve::Auto || waits,
            Verdict::Deny => return Err(denied(&call.tool, &judgement)),
        };
        // An earlier no still counts, even if nothing would be asked now.
        if !is_asked && call.answer.is_none() {
            return Ok(Ruling::Run);
        }
        let has_begun = call.answer_within.is_some() && call.answer.is_none();
        if has_begun && approval.approve != Approve::Never {
            return Ok(Ruling::Run);
        }
        // No rule can override `interrupt_on`.
        let own = || policy.suggest(&act, &suggested());
        let is_requested_open = requested.verdict() == Verdict::Allow;
        let suggestion = match (waits, is_own_open, is_requested_open) {
            (true, ..) => None,
            (_, _, true) => own(),
            (_, true, false) => requested.suggestion.clone(),
            (_, false, false) => own()
                .zip(requested.suggestion.clone())
                .map(|(own, more)| own.and(more)),
        };
        let approver = self.approver_for(call.approver.as_ref());
        let why = match (approval.approve, approver, &call.answer) {
            (Approve::Never, ..) if is_asked => "and --approve never rejects such calls",
            (_, None, None) => "and no user can be asked here",
            _ => {
                return Ok(Ruling::Ask(Box::new(Question {
                    call_id: call.id.clone(),
                    tool: call.tool.clone(),
                    arguments: arguments.clone(),
                    resources: shown(resources),
                    judgement,
                    suggestion,
                    rules_file: approval.rules_file(),
                    confirm: None,
                    agent: self.session.agent.clone(),
                    review: None,
                })));
            }
        };
        let suggestion = suggestion.as_ref();
        Err(not_approved(&call.tool, &judgement, suggestion, waits, why))
    }

    /// Asks the user when it is this call's turn. Anything but an approval is an error.
    pub(super) async fn ask(&self, call: &Call, question: Question) -> Result<Granted, Error> {
        let Some(answer) = self.answer_to(call, &question).await else {
            return Err(Error::Cancelled);
        };
        let reason = match answer {
            ApprovalAnswer::Approve => return Ok(Granted::AsRequested),
            ApprovalAnswer::ApproveWith { arguments } => return Ok(Granted::With(arguments)),
            ApprovalAnswer::ForSession | ApprovalAnswer::Always => {
                return Ok(match self.remember(&answer, question.rules()).await {
                    Some(saved) => Granted::Always(saved),
                    None => Granted::AsRequested,
                });
            }
            ApprovalAnswer::Later => {
                return Err(Error::Waiting {
                    question: reason_of(&call.tool, &question.judgement, ""),
                });
            }
            ApprovalAnswer::Reject { reason } => reason,
        };
        // The user's words come first, because long lines are truncated at the end.
        let no = said_no(reason);
        let asked = reason_of(&call.tool, &question.judgement, "");
        Err(Error::Refused(Box::new(Error::NotApproved {
            reason: on_one_line(format!("{no} ({asked})")),
            remedy: "Do not retry it in another form; continue without it, or ask the user what they want."
                .to_owned(),
        })))
    }

    /// Returns the user's answer to a question about a call; `None` if the call is cancelled
    /// before they answer.
    pub(super) async fn answer_to(
        &self,
        call: &Call,
        question: &Question,
    ) -> Option<ApprovalAnswer> {
        let pending = PendingCall {
            call_id: &call.id,
            tool: &call.tool,
            answer: call.answer.as_ref(),
            approver: self.approver_for(call.approver.as_ref()),
            on_event: call.on_event.as_ref(),
        };
        // The clocks of outer calls stop while the user thinks.
        let outer = self.outer_call(call);
        let _paused = outer.map(|outer| outer.clock.pause());
        tokio::select! {
            biased;
            () = call.cancel.cancelled() => None,
            answer = self.answer(pending, question) => Some(answer),
        }
    }

    /// Asks the user a question of a running tool.
    pub(crate) async fn confirm(&self, cx: &Context, text: String) -> Result<bool, Error> {
        let approval = &self.session.approval;
        let tool = cx.within.last().map_or("", String::as_str);
        let approver = self.approver_for(cx.approver.as_ref());
        match (approval.approve, approver, &cx.answer) {
            (Approve::Never, ..) | (Approve::Ask, None, None) => return Ok(false),
            (Approve::Auto, _, None) => return Ok(true),
            _ => {}
        }
        let question = Question {
            call_id: cx.call_id().to_owned(),
            tool: tool.to_owned(),
            arguments: Value::Object(serde_json::Map::new()),
            resources: Vec::new(),
            judgement: Judgement {
                verdict: Verdict::Ask,
                parts: Vec::new(),
            },
            suggestion: None,
            rules_file: None,
            confirm: Some(text),
            agent: self.session.agent.clone(),
            review: None,
        };
        let pending = PendingCall {
            call_id: cx.call_id(),
            tool,
            answer: cx.answer.as_ref(),
            approver,
            on_event: cx.on_event.as_ref(),
        };
        match self.answer(pending, &question).await {
            ApprovalAnswer::Later => Err(Error::Waiting {
                question: question.confirm.unwrap_or_default(),
            }),
            ApprovalAnswer::Reject { .. } => Ok(false),
            ApprovalAnswer::Approve
            | ApprovalAnswer::ApproveWith { .. }
            | ApprovalAnswer::ForSession
            | ApprovalAnswer::Always => Ok(true),
        }
    }

    /// Returns the call that this one is part of.
    pub(super) fn outer_call<'a>(&'a self, call: &'a Call) -> Option<&'a OuterCall> {
        call.outer.as_ref().or(self.session.outer.as_ref())
    }

    /// Returns the approver for a call.
    pub(super) fn approver_for<'a>(
        &'a self,
        own: Option<&'a Arc<dyn Approver>>,
    ) -> Option<&'a Arc<dyn Approver>> {
        own.or(self.session.approval.approver.as_ref())
    }

    /// Returns the user's answer. An approver that panics means no.
    pub(super) async fn answer(
        &self,
        pending: PendingCall<'_>,
        question: &Question,
    ) -> ApprovalAnswer {
        if let Some(answer) = pending.answer {
            return answer.clone();
        }
        let approval = &self.session.approval;
        let Some(approver) = pending.approver else {
            return ApprovalAnswer::Reject { reason: None };
        };
        let _one = approval.one.lock().await;
        let call = Call {
            on_event: pending.on_event.cloned(),
            ..Call::new(pending.tool, Value::Null)
        };
        self.emit(&call, || match &question.review {
            Some(review) => review.event(pending.call_id, pending.tool),
            None => EventKind::ApprovalNeeded {
                call_id: pending.call_id.to_owned(),
                tool: pending.tool.to_owned(),
                arguments: question.arguments.clone(),
                question: question.confirm.clone(),
            },
        });
        let answer = AssertUnwindSafe(approver.ask(question))
            .catch_unwind()
            .await;
        answer.unwrap_or_else(|_| ApprovalAnswer::Reject {
            reason: Some("the question could not be shown".to_owned()),
        })
    }

    /// Whether a tool may use a resource without asking the user.
    pub(crate) fn would_allow(&self, tool: &str, resource: Resource, is_reviewed: bool) -> bool {
        let session = &self.session;
        let effect = self.effect_of(tool).unwrap_or(Effect::Execute);
        let resources = [resource];
        let judgement = session.approval.policy().judge(&PolicyInput {
            tool,
            effect,
            resources: &resources,
            work_dir: session.scope.work_dir(),
            bases: &session.shared.bases,
            names: &[],
        });
        match judgement.verdict {
            Verdict::Allow => true,
            Verdict::Review if is_reviewed => true,
            Verdict::Review | Verdict::Ask => session.approval.approve == Approve::Auto,
            Verdict::Deny => false,
        }
    }

    /// Returns the names of a call's paths: as meant in the toolset's style, and with links
    /// resolved.
    pub(super) fn names(
        &self,
        resources: &[Resource],
        paths: &[(FilePath, Access)],
    ) -> Vec<(String, PathBuf)> {
        let session = &self.session;
        let interpreted = resources.iter().filter_map(|resource| match resource {
            Resource::Path(given, _) => {
                let interpreted = session
                    .shared
                    .toolset
                    .paths
                    .interpret(&session.scope, given);
                Some((given.clone(), session.scope.work_dir().join(interpreted)))
            }
            _ => None,
        });
        let real = paths
            .iter()
            .map(|(path, _)| (path.given().to_owned(), path.real().to_owned()));
        let mut names: Vec<_> = interpreted.chain(real).collect();
        let policy = session.approval.policy();
        let aliases = policy.aliases(&session.rule_bases(), &session.scope);
        let others = names.iter().flat_map(|(given, path)| {
            let named = aliases.iter().filter_map(|alias| alias.name(path));
            named.map(|named| (given.clone(), named))
        });
        let others: Vec<_> = others.collect();
        names.extend(others);
        names
    }
}

/// Place of a rule that is only suggested and not in any file.
pub(super) fn suggested() -> RuleLocation {
    RuleLocation::of_answer()
}

/// Adds that `interrupt_on` requires approval, whatever the rules say.
fn interrupted(judgement: Judgement) -> Judgement {
    let first = JudgedPart {
        subject: Subject::Call,
        verdict: Verdict::Ask,
        by: DecidedBy::Session("interrupt_on requires approval for every call".to_owned()),
    };
    Judgement {
        verdict: Verdict::Ask,
        parts: std::iter::once(first).chain(judgement.parts).collect(),
    }
}

/// Starts a reason for a rejection that is not the user's answer.
const UNASKED: &str = "not an answer of the user: ";

impl ApprovalAnswer {
    /// Rejects a call for a reason that is not the user's answer, such as a mode in which
    /// nothing is asked.
    #[must_use]
    pub fn reject_unasked(reason: &str) -> Self {
        Self::Reject {
            reason: Some(format!("{UNASKED}{reason}")),
        }
    }
}

/// Tells the model why something was rejected: in the user's words, if it was the user.
pub(super) fn said_no(reason: Option<String>) -> String {
    let reason = reason.as_deref().map(str::trim).unwrap_or_default();
    let (prefix, reason) = match reason.strip_prefix(UNASKED) {
        Some(reason) => ("", reason),
        None if reason.is_empty() => return "the user said no".to_owned(),
        None => ("the user said no: ", reason),
    };
    let reason = haft_ops::text::brief(reason, MAX_REASON_CHARS);
    format!("{prefix}{reason}")
}

/// A call that needs an answer.
pub(super) struct PendingCall<'a> {
    pub(super) call_id: &'a str,
    pub(super) tool: &'a str,
    /// The user's earlier answer.
    pub(super) answer: Option<&'a ApprovalAnswer>,
    pub(super) approver: Option<&'a Arc<dyn Approver>>,
    pub(super) on_event: Option<&'a Listener>,
}
