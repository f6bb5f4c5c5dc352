//! Resources that a running call uses although its tool did not declare them.

use super::Runtime;
use super::approve::{Approve, denied, not_approved, suggested};
use crate::policy::PolicyInput;
use crate::{Access, DecidedBy, Effect, Error, Resource, Verdict};
use haft_ops::FilePath;

impl Runtime {
    /// Applies the policy to a resource. Its path, if it is one, has been checked by the
    /// scope. Questions cannot be asked here, because an answer that only comes later would
    /// repeat a call that has begun. A call under review may use what a rule reviews.
    ///
    /// # Errors
    /// When a rule denies the resource, or asks about it.
    pub(crate) fn may(
        &self,
        tool: &str,
        effect: Effect,
        resource: Resource,
        paths: &[(FilePath, Access)],
        is_reviewed: bool,
    ) -> Result<(), Error> {
        if let Resource::Path(given, Access::Write | Access::Unlink) = &resource
            && !matches!(effect, Effect::Write | Effect::Execute)
        {
            return Err(Error::Denied {
                reason: crate::policy::no_write_effect(given),
            });
        }
        let session = &self.session;
        let policy = session.approval.policy();
        if policy.is_empty() {
            return Ok(());
        }
        let resources = [resource];
        let names = self.names(&resources, paths);
        let act = PolicyInput {
            tool,
            effect: effect_of(effect, &resources),
            resources: &resources,
            work_dir: session.scope.work_dir(),
            bases: &session.shared.bases,
            names: &names,
        };
        let judgement = policy.judge(&act);
        match judgement.verdict {
            Verdict::Allow => return Ok(()),
            Verdict::Deny => return Err(denied(tool, &judgement)),
            Verdict::Review if is_reviewed => return Ok(()),
            Verdict::Review | Verdict::Ask => {}
        }
        let call = policy.judge(&PolicyInput {
            effect,
            resources: &[],
            names: &[],
            ..act
        });
        let is_answered = |by: &DecidedBy| call.parts.iter().any(|part| part.by == *by);
        let why = match session.approval.approve {
            Approve::Auto => return Ok(()),
            _ if judgement.decisive().all(|part| is_answered(&part.by)) => return Ok(()),
            Approve::Never => "and --approve never rejects such calls",
            Approve::Ask => "and the user cannot be asked about it while the call runs",
        };
        let suggestion = policy.suggest(&act, &suggested());
        let suggestion = suggestion.as_ref();
        Err(not_approved(tool, &judgement, suggestion, false, why))
    }
}

/// Returns the effect that rules see. A rule that allows a program to run says nothing about
/// the files and hosts that its code uses.
fn effect_of(tool: Effect, resources: &[Resource]) -> Effect {
    match (tool, resources) {
        (Effect::Execute, [Resource::Path(_, Access::Read)]) => Effect::Read,
        (Effect::Execute, [Resource::Path(..)]) => Effect::Write,
        (Effect::Execute, [Resource::Host(_)]) => Effect::Network,
        (tool, _) => tool,
    }
}
