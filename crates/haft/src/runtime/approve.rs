//! Asking a person before a call, where a rule says so.

#[cfg(test)]
mod answers;
mod explain;
#[cfg(test)]
mod tests;

pub use explain::{Explained, Refused};

use super::clock::Clock;
use super::{Call, Filled, Form, MOST_SAID, Runtime};
use crate::event::{EventKind, Listener};
use crate::policy::{Act, Part, Place};
use crate::{
    Access, By, Context, Effect, Error, Judgement, Policy, Resource, Rule, Subject, Verdict, Whose,
};
use async_trait::async_trait;
use futures::FutureExt;
use haft_ops::FilePath;
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

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
    /// What the tool itself asks, while it runs.
    pub confirm: Option<String>,
    /// The sub-agent that wants it, where it is one.
    pub agent: Option<String>,
}

impl Question {
    /// Who asks, and about what, on one line.
    #[must_use]
    pub fn reason(&self) -> String {
        reason_of(&self.tool, &self.judgement, "")
    }
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

    /// Lets them fill in what a tool wants to know. Who cannot show a form declines
    /// it.
    async fn fill(&self, form: &Form) -> Filled {
        let _ = form;
        Filled::Declined
    }
}

/// What a session knows about approval.
#[derive(Default)]
pub(crate) struct Approval {
    pub(super) policy: RwLock<Arc<Policy>>,
    /// The rules as they were before a person allowed more.
    pub(super) first: Arc<Policy>,
    pub(super) approve: Approve,
    pub(super) approver: Option<Arc<dyn Approver>>,
    pub(super) asked_first: Vec<(String, Effect)>,
    /// Held by the call that a person is being asked about.
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

    /// The same for another session.
    pub(super) fn anew(&self) -> Self {
        Self {
            policy: RwLock::new(Arc::clone(&self.first)),
            first: Arc::clone(&self.first),
            approve: self.approve,
            approver: self.approver.clone(),
            ..Self::default()
        }
    }

    pub(crate) fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn put(&self, policy: Policy) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    /// A rule of the person's own, for the rest of the session.
    fn allow(&self, rule: Rule) {
        self.put(self.policy().with_first(rule, Whose::Person));
    }
}

/// What a call touches, for a person: a file that is changed is named once.
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

/// A yes.
pub(super) enum Yes {
    /// To the call as it is.
    AsAsked,
    /// With changes to its arguments.
    With(Value),
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
        let policy = approval.policy();
        let waits = self.session.interrupt_on.contains(&call.tool);
        if policy.is_empty() && !waits && call.answer.is_none() {
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
        let mut judgement = policy.judge(&act);
        if waits && judgement.verdict != Verdict::Deny {
            judgement = interrupted(judgement);
        }
        let is_asked = match judgement.verdict {
            Verdict::Allow => false,
            Verdict::Ask => approval.approve != Approve::Auto || waits,
            Verdict::Deny => return Err(denied(&call.tool, &judgement)),
        };
        // Who said no has said no, whatever would be asked today.
        if !is_asked && call.answer.is_none() {
            return Ok(None);
        }
        let has_begun = call.answer_within.is_some() && call.answer.is_none();
        if has_begun && approval.approve != Approve::Never {
            return Ok(None);
        }
        // No rule helps against `interrupt_on`.
        let suggestion = match waits {
            true => None,
            false => policy.suggest(&act, &suggested()),
        };
        let approver = self.asked(call.approver.as_ref());
        let why = match (approval.approve, approver, &call.answer) {
            (Approve::Never, ..) if is_asked => "and --approve never rejects such calls",
            (_, None, None) => "and no user can be asked here",
            _ => {
                return Ok(Some(Question {
                    call_id: call.id.clone(),
                    tool: call.tool.clone(),
                    arguments: arguments.clone(),
                    resources: shown(resources),
                    judgement,
                    suggestion,
                    confirm: None,
                    agent: self.session.agent.clone(),
                }));
            }
        };
        let suggestion = suggestion.as_ref();
        Err(not_approved(&call.tool, &judgement, suggestion, waits, why))
    }

    /// Judges one more thing that a running call is about to touch.
    pub(crate) fn may(
        &self,
        tool: &str,
        effect: Effect,
        resource: Resource,
        paths: &[(FilePath, Access)],
    ) -> Result<(), Error> {
        let approval = &self.session.approval;
        let policy = approval.policy();
        if policy.is_empty() {
            return Ok(());
        }
        let resources = [resource];
        let names = self.names(&resources, paths);
        let act = Act {
            tool,
            effect,
            resources: &resources,
            work_dir: self.session.scope.work_dir(),
            bases: &self.session.bases,
            names: &names,
        };
        let judgement = policy.judge(&act);
        let is_allowed = match judgement.verdict {
            Verdict::Allow => true,
            Verdict::Deny => false,
            Verdict::Ask => {
                let call = Act {
                    effect: Effect::Execute,
                    resources: &[],
                    names: &[],
                    ..act
                };
                let call = policy.judge(&call);
                let said = |by: &By| call.parts.iter().any(|part| part.by == *by);
                approval.approve == Approve::Auto || judgement.decisive().all(|part| said(&part.by))
            }
        };
        if is_allowed {
            return Ok(());
        }
        Err(denied(tool, &judgement))
    }

    /// Asks, when it is this call's turn. Anything but a yes is an error.
    pub(super) async fn ask(&self, call: &Call, question: Question) -> Result<Yes, Error> {
        let asked = Asked {
            call_id: &call.id,
            tool: &call.tool,
            answer: call.answer.as_ref(),
            approver: self.asked(call.approver.as_ref()),
            on_event: call.on_event.as_ref(),
        };
        // The calls that this one is part of do not run while a person thinks.
        let _paused = self.clock_around(call).map(Clock::pause);
        let answer = tokio::select! {
            biased;
            () = call.cancel.cancelled() => return Err(Error::Cancelled),
            answer = self.answer(asked, &question) => answer,
        };
        let reason = match answer {
            Answer::Approve => return Ok(Yes::AsAsked),
            Answer::ApproveWith { arguments } => return Ok(Yes::With(arguments)),
            Answer::Always => {
                if let Some(rule) = question.suggestion {
                    self.session.approval.allow(rule);
                }
                return Ok(Yes::AsAsked);
            }
            Answer::Later => {
                return Err(Error::Waiting {
                    question: reason_of(&call.tool, &question.judgement, ""),
                });
            }
            Answer::Reject { reason } => reason.filter(|reason| !reason.trim().is_empty()),
        };
        // What the person said comes first: long lines are cut at the end.
        let no = match reason {
            Some(reason) => {
                let reason = haft_ops::text::brief(reason.trim(), MOST_SAID);
                format!("the user said no: {reason}")
            }
            None => "the user said no".to_owned(),
        };
        let asked = reason_of(&call.tool, &question.judgement, "");
        Err(Error::Refused(Box::new(Error::NotApproved {
            reason: on_one_line(format!("{no} ({asked})")),
            remedy: "Do not retry it in another form; continue without it, or ask the user what they want."
                .to_owned(),
        })))
    }

    /// Asks what a tool wants to know while it runs.
    pub(crate) async fn confirm(&self, cx: &Context, text: String) -> Result<bool, Error> {
        let approval = &self.session.approval;
        let tool = cx.within.last().map_or("", String::as_str);
        let approver = self.asked(cx.approver.as_ref());
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
            confirm: Some(text),
            agent: self.session.agent.clone(),
        };
        let asked = Asked {
            call_id: cx.call_id(),
            tool,
            answer: cx.answer.as_ref(),
            approver,
            on_event: cx.on_event.as_ref(),
        };
        match self.answer(asked, &question).await {
            Answer::Later => Err(Error::Waiting {
                question: question.confirm.unwrap_or_default(),
            }),
            Answer::Reject { .. } => Ok(false),
            Answer::Approve | Answer::ApproveWith { .. } | Answer::Always => Ok(true),
        }
    }

    /// The clock of the call that this one is part of.
    pub(super) fn clock_around<'a>(&'a self, call: &'a Call) -> Option<&'a Clock> {
        call.clock.as_ref().or(self.session.clock.as_ref())
    }

    /// Who is asked about a call.
    pub(super) fn asked<'a>(
        &'a self,
        own: Option<&'a Arc<dyn Approver>>,
    ) -> Option<&'a Arc<dyn Approver>> {
        own.or(self.session.approval.approver.as_ref())
    }

    /// What a person says. A check that cannot run means no.
    async fn answer(&self, asked: Asked<'_>, question: &Question) -> Answer {
        if let Some(answer) = asked.answer {
            return answer.clone();
        }
        let approval = &self.session.approval;
        let Some(approver) = asked.approver else {
            return Answer::Reject { reason: None };
        };
        let _one = approval.one.lock().await;
        let call = Call {
            on_event: asked.on_event.cloned(),
            ..Call::new(asked.tool, Value::Null)
        };
        self.emit(&call, || EventKind::ApprovalNeeded {
            call_id: asked.call_id.to_owned(),
            tool: asked.tool.to_owned(),
            arguments: question.arguments.clone(),
            question: question.confirm.clone(),
        });
        let answer = AssertUnwindSafe(approver.ask(question))
            .catch_unwind()
            .await;
        answer.unwrap_or_else(|_| Answer::Reject {
            reason: Some("the question could not be shown".to_owned()),
        })
    }

    /// Whether a tool may touch something without anybody being asked.
    pub(crate) fn would_allow(&self, tool: &str, resource: Resource) -> bool {
        let session = &self.session;
        let effect = self.effect_of(tool).unwrap_or(Effect::Execute);
        let resources = [resource];
        let judgement = session.approval.policy().judge(&Act {
            tool,
            effect,
            resources: &resources,
            work_dir: session.scope.work_dir(),
            bases: &session.bases,
            names: &[],
        });
        match judgement.verdict {
            Verdict::Allow => true,
            Verdict::Ask => session.approval.approve == Approve::Auto,
            Verdict::Deny => false,
        }
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
        let mut names: Vec<_> = meant.chain(real).collect();
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

/// A call that waits for a person whatever the rules say.
fn interrupted(judgement: Judgement) -> Judgement {
    let first = Part {
        subject: Subject::Call,
        verdict: Verdict::Ask,
        by: By::Session("interrupt_on requires approval for every call".to_owned()),
    };
    Judgement {
        verdict: Verdict::Ask,
        parts: std::iter::once(first).chain(judgement.parts).collect(),
    }
}

/// What is asked about, and who wants to know.
struct Asked<'a> {
    call_id: &'a str,
    tool: &'a str,
    /// What was said about it before.
    answer: Option<&'a Answer>,
    approver: Option<&'a Arc<dyn Approver>>,
    on_event: Option<&'a Listener>,
}

fn not_approved(
    tool: &str,
    judgement: &Judgement,
    suggestion: Option<&Rule>,
    waits: bool,
    why: &str,
) -> Error {
    if waits {
        return Error::NotApproved {
            reason: reason_of(tool, judgement, why),
            remedy: "This call always needs the user's approval: in a terminal, or through `haft run` and `haft resume`.".to_owned(),
        };
    }
    let rule = suggestion
        .map(|rule| format!(", or the rule {rule} at the top of `policy` in their own settings"))
        .unwrap_or_default();
    Error::NotApproved {
        reason: reason_of(tool, judgement, why),
        remedy: format!("The user can allow it with --approve auto{rule}."),
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
        1 => reason.push_str(", and one more part of the call"),
        more => reason.push_str(&format!(", and {more} more parts of the call")),
    }
    if !why.is_empty() {
        reason.push_str(", ");
        reason.push_str(why);
    }
    on_one_line(reason)
}

/// What a model or a person wrote must not look like lines of ours.
fn on_one_line(text: String) -> String {
    match text.contains(char::is_control) {
        true => text.chars().flat_map(escaped).collect(),
        false => text,
    }
}

fn escaped(c: char) -> Vec<char> {
    if c.is_control() {
        c.escape_default().collect()
    } else {
        vec![c]
    }
}

fn said(tool: &str, part: &Part) -> String {
    let about = match part.subject {
        Subject::Call => tool.to_owned(),
        _ => format!("{tool}, {}", part.subject),
    };
    let about = match about.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", haft_ops::text::decode::prefix(&about, end)),
        None => about,
    };
    match (&part.by, part.verdict) {
        (By::Rule(rule, place), Verdict::Deny) => {
            format!("{place} denies this call ({rule}): {about}")
        }
        (By::Rule(rule, place), _) => format!("{place} requires approval ({rule}): {about}"),
        (By::NotAnalysed(place), _) => {
            format!(
                "{place} has a rule about commands, and this command cannot be checked against it: {about}"
            )
        }
        (By::Unreadable { rule, place, why }, _) => format!(
            "{place} denies commands ({rule}), and this call cannot be checked against it: {why}; \
             write each command with literal words, or have the user change that rule: {about}"
        ),
        (By::Session(reason), _) => format!("{reason}: {about}"),
        (By::Nobody, _) => about,
    }
}
