//! What a tool asks a person to fill in while it runs.
//!
//! Another matter than approval: nothing is allowed by it, so neither the rules nor
//! `--approve auto` can answer in the person's place.

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

/// A few fields for a person.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Form {
    /// The call that wants to know.
    pub call_id: String,
    /// Its tool.
    pub tool: String,
    /// What they are asked.
    pub message: String,
    /// The fields: the JSON Schema of a flat object.
    pub schema: Value,
}

impl Form {
    /// Whether these fields are what is asked for. What is not will not count as filled
    /// in, so whoever shows a form to a person looks before the person has gone.
    ///
    /// # Errors
    /// `Error::Invalid` says what is wrong with them, any other that nothing ever fits.
    pub fn check(&self, fields: &Value) -> Result<(), Error> {
        fitted(&self.schema, fields.clone()).map(drop)
    }

    /// The same for one field of them, before the others are known.
    ///
    /// # Errors
    /// As [`Form::check`].
    pub fn check_field(&self, name: &str, value: &Value) -> Result<(), Error> {
        // What is said of several fields together is not looked at.
        let own = ["$schema", "$id", "$defs", "definitions", "properties"];
        let own = own.map(|key| (key, self.schema.get(key)));
        let schema: Value = own
            .into_iter()
            .filter_map(|(key, part)| Some((key, part?.clone())))
            .collect();
        fitted(&schema, serde_json::json!({ name: value })).map(drop)
    }
}

/// What became of a form.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Filled {
    /// Filled in, with an object that fits its schema.
    Accepted(Value),
    /// They would rather not, or nobody is there.
    Declined,
    /// Put away without an answer.
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

/// What does not fit was not filled in.
fn fitting(schema: &Value, fields: Value) -> Filled {
    match fitted(schema, fields) {
        Ok(fields) => Filled::Accepted(fields),
        Err(error) => {
            tracing::warn!(%error, "a form was filled in with something else");
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
        let approver = self.asked(cx.approver.as_ref());
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Filled::Dismissed,
            filled = self.session.approval.fill(approver, &form) => filled,
        }
    }
}
