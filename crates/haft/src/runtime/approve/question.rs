//! A question for the user, and the answers to it.

use super::super::Review;
use super::reason_of;
use crate::{Judgement, Resource, Rule, Suggestion, Verdict};
use serde_json::Value;
use std::path::PathBuf;

/// A call that needs the user's approval.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Question {
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool.
    pub tool: String,
    /// Arguments after repair; the call runs with exactly these.
    pub arguments: Value,
    /// Resources that the call uses, as named in the arguments.
    pub resources: Vec<Resource>,
    /// Decision of the policy about each part of the call, and the rules behind it.
    pub judgement: Judgement,
    /// Rules that would allow such calls from now on.
    pub suggestion: Option<Suggestion>,
    /// File that the suggested rules are added to if the user allows such calls always. If
    /// there is none, they can be allowed for this session only.
    pub rules_file: Option<PathBuf>,
    /// Question from the tool itself, asked while it runs.
    pub confirm: Option<String>,
    /// The sub-agent that makes the call, if it is one.
    pub agent: Option<String>,
    /// Changes that the call has made, if the question is whether to keep them. To approve is
    /// to keep them, to reject is to revert them.
    pub review: Option<Box<Review>>,
}

impl Question {
    /// Creates a question that a front end asks by itself. It belongs to no call.
    #[must_use]
    pub fn own(name: &str, text: impl Into<String>) -> Self {
        Self {
            call_id: String::new(),
            tool: name.to_owned(),
            arguments: Value::Null,
            resources: Vec::new(),
            judgement: Judgement {
                verdict: Verdict::Ask,
                parts: Vec::new(),
            },
            suggestion: None,
            rules_file: None,
            confirm: Some(text.into()),
            agent: None,
            review: None,
        }
    }

    /// Returns the suggested rules.
    pub(crate) fn rules(&self) -> &[Rule] {
        self.suggestion
            .as_ref()
            .map(Suggestion::rules)
            .unwrap_or_default()
    }

    /// Whether the user can answer [`ApprovalAnswer::ForSession`].
    #[must_use]
    pub fn offers_session(&self) -> bool {
        self.suggestion.is_some()
    }

    /// Whether the user can answer [`ApprovalAnswer::Always`].
    #[must_use]
    pub fn offers_always(&self) -> bool {
        self.suggestion.is_some() && self.rules_file.is_some()
    }

    /// Returns one line with the rule that requires approval and the call it is about.
    #[must_use]
    pub fn reason(&self) -> String {
        reason_of(&self.tool, &self.judgement, "")
    }
}

/// The user's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApprovalAnswer {
    /// Approve this call.
    Approve,
    /// Approve with changed arguments. The fields of the object replace those of the call;
    /// the result is validated and checked like any call.
    ApproveWith {
        /// The fields to replace.
        arguments: Value,
    },
    /// Approve, and allow all calls in this session that the suggested rules allow.
    ForSession,
    /// Approve, and allow all calls from now on that the suggested rules allow: adds them to
    /// the user's own rules.
    Always,
    /// No answer is possible now: the call is not made and can be answered later.
    Later,
    /// Reject this call.
    Reject {
        /// The reason, if the user gave one.
        reason: Option<String>,
    },
}
