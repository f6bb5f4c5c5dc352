//! Settings for approvals.

use super::Builder;
use crate::Effect;
use crate::runtime::approve::{Approve, Approver, OwnRules};
use std::sync::Arc;

impl Builder {
    /// Sets how to handle calls that need approval.
    #[must_use]
    pub fn approve(mut self, approve: Approve) -> Self {
        self.approval.approve = approve;
        self
    }

    /// Sets who is asked for approval. Without an approver, calls that need approval are
    /// refused.
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approval.approver = Some(approver);
        self
    }

    /// Sets the file that permanent answers of the approver are added to. Without one, calls
    /// can be allowed for the session at most.
    #[must_use]
    pub fn own_rules(mut self, own_rules: Arc<dyn OwnRules>) -> Self {
        self.approval.own_rules = Some(own_rules);
        self
    }

    /// Asks the user before every call of these tools, whatever the rules and
    /// [`Approve::Auto`] say.
    #[must_use]
    pub fn interrupt_on<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.interrupt_on.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Asks the user before every call with this effect, even if a rule allows it.
    /// [`Approve::Auto`] overrides this.
    #[must_use]
    pub fn ask_first(mut self, reason: impl Into<String>, effect: Effect) -> Self {
        self.approval.asked_first.push((reason.into(), effect));
        self
    }
}
