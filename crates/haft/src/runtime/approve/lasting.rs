//! Answers that hold for more than one call.

use super::{Approval, ApprovalAnswer};
use crate::{Reply, Rule, Runtime};
use serde_json::{Value, json};

impl Approval {
    /// Adds rules to the user's own file. Returns what became of that, for the details of the
    /// call.
    pub(super) async fn save(&self, rules: &[Rule]) -> Value {
        let written: Vec<String> = rules.iter().map(ToString::to_string).collect();
        let Some(own) = self.own_rules.clone() else {
            return json!({ "rules": written, "error": "there is no file for rules" });
        };
        let file = own.file().display().to_string();
        let rules = rules.to_vec();
        let saved = haft_ops::blocking::on_a_thread(move || own.add(&rules)).await;
        match saved.unwrap_or_else(Err) {
            Ok(()) => json!({ "rules": written, "file": file }),
            Err(why) => {
                tracing::warn!(target: "haft", "the rule holds for this session only: {why}");
                json!({ "rules": written, "file": file, "error": why })
            }
        }
    }
}

impl Runtime {
    /// Applies an answer that holds for more than one call. Returns what became of the rules
    /// if they were added to the user's own.
    pub(in crate::runtime) async fn remember(
        &self,
        answer: &ApprovalAnswer,
        rules: &[Rule],
    ) -> Option<Value> {
        let approval = &self.session.approval;
        match answer {
            ApprovalAnswer::ForSession => approval.allow(rules),
            ApprovalAnswer::Always => {
                approval.allow(rules);
                return Some(approval.save(rules).await);
            }
            _ => {}
        }
        None
    }
}

/// Name of the detail about rules that were added to the user's own.
const DETAIL: &str = "always_allowed";

/// Adds to a reply what became of rules that the user wanted in their own file. If they could
/// not be written, the model is told too, because some front ends show no details.
pub(in crate::runtime) fn about_saved_rules(reply: Reply, saved: Value) -> Reply {
    let reply = match &saved["error"] {
        Value::String(why) => {
            let line = format!("[the rule holds for this session only: {why}]");
            reply.told("rule_not_saved", why.clone().into(), &line)
        }
        _ => reply,
    };
    reply.detail(DETAIL, saved)
}
