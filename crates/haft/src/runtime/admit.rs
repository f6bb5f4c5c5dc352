//! Admission: everything that is decided about a call before it runs.

use super::approve::{Granted, Ruling};
use super::call::merged;
use super::exceptions::Exceptions;
use super::second_look::Asks;
use super::{ApprovalAnswer, Call, Question, Runtime, Session};
use crate::journal::{Intent, Journal};
use crate::policy::{self, Decision, PolicyInput};
use crate::queue::Ticket;
use crate::registry::Entry;
use crate::{Access, Effect, Error, Judgement, PreparedCall, Repair, Reply, Resource};
use haft_ops::FilePath;
use serde_json::Value;
use std::sync::Arc;

/// A call that has its position in the queue for files, or that was refused. Pass it to
/// [`Runtime::finish`]; dropping it gives up the position.
#[must_use = "a call that is not finished is not made"]
pub struct Admitted {
    pub(super) call: Call,
    pub(super) admission: Result<Admission, NotAdmitted>,
    /// The journal that has the intent of the call.
    pub(super) journal: Option<Arc<dyn Journal>>,
}

/// Reason why an admitted call does not run.
pub(super) enum NotAdmitted {
    Refused(Error),
    /// The caller gave the reply.
    Replaced(Reply),
}

/// What the reply tells about the user's answer.
pub(super) enum AnswerDetail {
    /// The arguments that the user changed.
    ChangedArguments(Value),
    /// What became of rules for the user's own file.
    SavedRules(Value),
}

/// A call that was validated, passed the policy and has its position in the queue.
pub(super) struct Admission {
    pub(super) entry: Entry,
    pub(super) prepared: Box<dyn PreparedCall>,
    /// Arguments after repair.
    pub(super) arguments: Arc<Value>,
    pub(super) repairs: Vec<Repair>,
    pub(super) ticket: Ticket,
    pub(super) paths: Arc<[(FilePath, Access)]>,
    /// The question that the user must approve first.
    pub(super) question: Option<Question>,
    /// The rules that put the call under review.
    pub(super) review: Option<Judgement>,
    /// Access beyond the sandbox, once the question is answered.
    pub(super) exceptions: Exceptions,
}

fn intent(call: &Call, arguments: Option<Value>, effect: Effect) -> Intent {
    Intent {
        call_id: call.id.clone(),
        tool: call.tool.clone(),
        arguments,
        effect,
    }
}

impl Admission {
    pub(super) fn intent(&self, call: &Call) -> Intent {
        let arguments = Some(Value::clone(&self.arguments));
        intent(call, arguments, self.entry.tool.effect())
    }
}

impl Session {
    /// Returns the resources that a call uses, with each channel replaced by its host.
    pub(super) fn resources(&self, prepared: &dyn PreparedCall) -> Vec<Resource> {
        let named = prepared.resources().into_iter();
        let known = named.filter_map(|resource| match resource {
            Resource::Channel(name) => self.shared.messenger.host(&name).map(Resource::Host),
            other => Some(other),
        });
        known.collect()
    }
}

impl Runtime {
    /// Finds the tool of a call, repairs and validates the arguments, checks the policy and
    /// takes a position in the queue for files. Calls that write the same file run in the
    /// order in which they were admitted.
    pub async fn admit(&self, call: Call) -> Admitted {
        self.recall().await;
        self.ready_for(&call.tool).await;
        self.admit_now(call)
    }

    /// Admits several calls. All of them take their position in the queue before any of
    /// them runs, so that two writes of the same file happen in the order of the calls.
    pub async fn admit_all(&self, calls: Vec<Call>) -> Vec<Admitted> {
        self.recall().await;
        for call in &calls {
            self.ready_for(&call.tool).await;
        }
        let calls = calls.into_iter();
        calls.map(|call| self.admit_now(call)).collect()
    }

    /// Same as [`Runtime::admit`], if the tools are loaded.
    pub(super) fn admit_now(&self, call: Call) -> Admitted {
        let mut call = self.identified(call);
        let admission = match call.instead.take() {
            Some(reply) => Err(NotAdmitted::Replaced(reply)),
            None => self
                .admission(&mut call, None)
                .map_err(NotAdmitted::Refused),
        };
        Admitted {
            call,
            admission,
            journal: None,
        }
    }

    /// Records the intents of several calls in one batch of `journal`, before any of them
    /// runs. That journal also gets their outcomes, even of calls that are refused. Other
    /// calls are recorded in the session's journal when they start.
    ///
    /// # Errors
    /// When the journal cannot record them. Then the calls must not be made.
    pub async fn record_intents(
        &self,
        calls: &mut [Admitted],
        journal: &Arc<dyn Journal>,
    ) -> Result<(), Error> {
        let intents = calls.iter().map(|one| self.intent(one)).collect();
        journal.intents(intents).await?;
        for one in calls {
            one.journal = Some(Arc::clone(journal));
        }
        Ok(())
    }

    fn intent(&self, admitted: &Admitted) -> Intent {
        let call = &admitted.call;
        match &admitted.admission {
            Ok(admission) => admission.intent(call),
            // It does not run.
            Err(_) => intent(call, None, Effect::Pure),
        }
    }

    /// Takes the arguments out of the call, because they may be large. `ticket` is the
    /// position of the call, if it has one.
    fn admission(&self, call: &mut Call, ticket: Option<Ticket>) -> Result<Admission, Error> {
        let session = &self.session;
        let entry = session
            .tools
            .entry(&call.tool)
            .ok_or_else(|| self.unknown_tool(&call.tool))?;
        let given = std::mem::take(&mut call.arguments);
        let can_request = self.offers_exceptions(&entry, self.asks(call) == Asks::User);
        let (arguments, repairs) = match can_request {
            true => entry.requesting().prepare(given)?,
            false => entry.checker.prepare(given)?,
        };
        let arguments = Arc::new(arguments);
        let prepared = Arc::clone(&entry.tool).prepare(Arc::clone(&arguments))?;
        let resources = session.resources(&*prepared);
        let refused = |error| Error::Refused(Box::new(error));
        let effect = entry.tool.effect();
        let paths = match policy::decide(
            &session.scope,
            session.shared.toolset.paths,
            effect,
            &resources,
        ) {
            Decision::Allow(paths) => paths,
            Decision::Deny(error) => return Err(refused(error)),
        };
        let requested = self.requested(
            call,
            &arguments,
            &PolicyInput {
                tool: &call.tool,
                effect,
                resources: &resources,
                work_dir: session.scope.work_dir(),
                bases: &session.shared.bases,
                names: &[],
            },
        )?;
        let ruling = self
            .judge(call, &arguments, &entry, &resources, &paths, &requested)
            .map_err(refused)?;
        let (question, review) = match ruling {
            Ruling::Run => (None, None),
            Ruling::Ask(question) => (Some(*question), None),
            Ruling::Review(judgement) => (None, Some(judgement)),
        };
        Ok(Admission {
            entry,
            prepared,
            arguments,
            repairs,
            ticket: match ticket {
                Some(ticket) => ticket.exchange(&paths),
                None => {
                    let outer = self.outer_call(call).map(|outer| &outer.position);
                    session.queue.ticket(&paths, outer)
                }
            },
            paths: paths.into(),
            question,
            review,
            exceptions: requested.granted,
        })
    }

    /// Waits for the user's answer if the call needs approval. If the user changed the
    /// arguments, the new call is validated and checked again. Also returns the detail of the
    /// reply that tells about the answer.
    pub(super) async fn approved(
        &self,
        call: &Call,
        mut admission: Admission,
    ) -> Result<(Admission, Option<AnswerDetail>), Error> {
        let Some(question) = admission.question.take() else {
            return Ok((admission, None));
        };
        match self.ask(call, question).await? {
            Granted::AsRequested => Ok((admission, None)),
            Granted::Always(saved) => Ok((admission, Some(AnswerDetail::SavedRules(saved)))),
            Granted::With(changes) => {
                let mut call = call.clone();
                call.arguments = merged(&admission.arguments, changes)?;
                call.answer = Some(ApprovalAnswer::Approve);
                let mut admission = self.admission(&mut call, Some(admission.ticket))?;
                admission.question = None;
                let arguments = Value::clone(&admission.arguments);
                Ok((admission, Some(AnswerDetail::ChangedArguments(arguments))))
            }
        }
    }
}
