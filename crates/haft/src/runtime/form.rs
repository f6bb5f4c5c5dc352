//! Forms that a tool shows to the user while it runs.
//!
//! Unlike approvals, forms allow nothing, so neither rules nor `--approve auto` can answer
//! them.

use super::Runtime;
#[cfg(test)]
mod tests;

use super::approve::{Approval, Approve, Approver};
use crate::schema::{Checker, Ranges};
use crate::{Context, Error};
use futures::FutureExt;
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// A form with a few fields.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Form {
    /// Id of the call that shows it.
    pub call_id: String,
    /// Name of the tool that shows it.
    pub tool: String,
    /// Text above the fields.
    pub message: String,
    /// JSON Schema of a flat object with the fields.
    pub schema: Value,
}

impl Form {
    /// Checks all fields against the schema. Front ends should check before the user leaves
    /// the form, because invalid fields count as not filled in.
    ///
    /// # Errors
    /// `Error::Invalid` lists the problems. Any other error means that the schema cannot be
    /// satisfied.
    pub fn check(&self, fields: &Value) -> Result<(), Error> {
        fitted(&self.schema, fields.clone()).map(drop)
    }

    /// Checks one field, before the others are known.
    ///
    /// # Errors
    /// As [`Form::check`].
    pub fn check_field(&self, name: &str, value: &Value) -> Result<(), Error> {
        // Constraints that involve several fields are not checked.
        let own = ["$schema", "$id", "$defs", "definitions", "properties"];
        let own = own.map(|key| (key, self.schema.get(key)));
        let schema: Value = own
            .into_iter()
            .filter_map(|(key, part)| Some((key, part?.clone())))
            .collect();
        fitted(&schema, serde_json::json!({ name: value })).map(drop)
    }
}

/// The user's response to a form.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Filled {
    /// Filled in, with an object that matches the schema.
    Accepted(Value),
    /// Refused by the user, or no user is available.
    Declined,
    /// Closed without an answer.
    Dismissed,
}

impl Approval {
    async fn fill(&self, approver: Option<&Arc<dyn Approver>>, form: &Form) -> Filled {
        let (Some(approver), Approve::Ask | Approve::Auto) = (approver, self.approve) else {
            return Filled::Declined;
        };
        let _one = self.one.lock().await;
        let filled = AssertUnwindSafe(approver.fill(form)).catch_unwind().await;
        match filled {
            Ok(Filled::Accepted(fields)) => fitting(&form.schema, fields),
            Ok(other) => other,
            Err(_) => Filled::Dismissed,
        }
    }
}

/// Declines fields that do not match the schema.
fn fitting(schema: &Value, fields: Value) -> Filled {
    match fitted(schema, fields) {
        Ok(fields) => Filled::Accepted(fields),
        Err(error) => {
            tracing::warn!(%error, "a form was filled in with invalid values");
            Filled::Dismissed
        }
    }
}

fn fitted(schema: &Value, fields: Value) -> Result<Value, Error> {
    let (fields, _) = Checker::new(schema, Ranges::Refuse).prepare(fields)?;
    Ok(fields)
}

impl Runtime {
    pub(crate) async fn fill(&self, cx: &Context, message: String, schema: Value) -> Filled {
        let form = Form {
            call_id: cx.call_id().to_owned(),
            tool: cx.within.last().cloned().unwrap_or_default(),
            message,
            schema,
        };
        let approver = self.approver_for(cx.approver.as_ref());
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Filled::Dismissed,
            filled = self.session.approval.fill(approver, &form) => filled,
        }
    }
}
