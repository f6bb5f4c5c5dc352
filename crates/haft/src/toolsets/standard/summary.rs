//! The last line of a search: what was searched, what was skipped, and why.

use crate::Reply;
use haft_ops::scope::filter::LeftOut;
use haft_ops::search::{self, Pattern, Stopped};
use std::fmt::Write as _;

/// Paths that a rule denies.
pub(super) const DENIED: &str = "denied by rules";

/// Paths that need approval.
pub(super) const ASKS: &str = "that rules ask about";

/// Returns the pattern to search for, and why it is plain text: code such as `foo(` is not
/// a regular expression, but its meaning is clear.
pub(super) fn pattern(text: String) -> (Pattern, Option<String>) {
    match search::meant_literally(&text) {
        Some(reason) => (Pattern::Literal(text), Some(reason)),
        None => (Pattern::Regex(text), None),
    }
}

/// Notes that a pattern was searched for as plain text, and why.
pub(super) fn with_literal(reply: Reply, reason: Option<String>) -> Reply {
    match reason {
        Some(reason) => reply.above_footer(&format!(
            "[searched for the text as it is, which is not a regular expression: {reason}]"
        )),
        None => reply,
    }
}

/// Counts of a search.
pub(super) struct Summary<'a> {
    pub(super) shown: u64,
    pub(super) total: u64,
    pub(super) searched: u64,
    pub(super) skipped: &'a [(u64, &'a str)],
    pub(super) stopped: Option<Stopped>,
}

impl Summary<'_> {
    fn skipped(&self) -> u64 {
        self.skipped.iter().map(|(count, _)| count).sum()
    }

    /// Whether there is more to report than the results.
    pub(super) fn is_partial(&self) -> bool {
        self.shown < self.total || self.skipped() > 0 || self.stopped.is_some()
    }

    /// Formats `[100 of 412 matches; searched 1234 files, skipped 5: 3 binary, 2
    /// unreadable]`.
    pub(super) fn line(&self) -> String {
        let mut line = String::from("[");
        if self.shown < self.total {
            let _ = write!(
                line,
                "{} of {}; ",
                self.shown,
                count(self.total, "match", "matches")
            );
        } else if self.total > 0 {
            let _ = write!(line, "{}; ", count(self.total, "match", "matches"));
        }
        let _ = write!(line, "searched {}", count(self.searched, "file", "files"));
        if self.skipped() > 0 {
            let reasons = reasons(self.skipped);
            let _ = write!(line, ", skipped {}: {reasons}", self.skipped());
        }
        match self.stopped {
            Some(Stopped::Deadline) => line.push_str("; stopped: out of time, there may be more"),
            Some(Stopped::Cancelled) => line.push_str("; stopped: cancelled, there may be more"),
            None => {}
        }
        line.push(']');
        line
    }
}

/// Formats `[2 entries left out: 1 denied by rules, 1 that rules ask about]`, if there are
/// any.
pub(super) fn left_out(left_out: LeftOut) -> Option<String> {
    let all = left_out.total();
    let reasons = reasons(&[(left_out.denied, DENIED), (left_out.asks, ASKS)]);
    (all > 0).then(|| format!("[{} left out: {reasons}]", count(all, "entry", "entries")))
}

fn reasons(skipped: &[(u64, &str)]) -> String {
    let some = skipped.iter().filter(|(count, _)| *count > 0);
    let reasons: Vec<String> = some.map(|(count, why)| format!("{count} {why}")).collect();
    reasons.join(", ")
}

fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Adds the counts to the details.
pub(super) fn details(reply: Reply, summary: &Summary<'_>) -> Reply {
    reply
        .detail("shown", summary.shown)
        .detail("matches", summary.total)
        .detail("searched", summary.searched)
        .detail("skipped", summary.skipped())
        .detail("complete", summary.stopped.is_none())
}
