//! Calls that the client repeats once the user has answered.

use crate::random;
use haft::{ApprovalAnswer, Call, Reply};
use rmcp::ErrorData;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Limits on the number of remembered calls, and on the size of their arguments.
const MAX_CALLS: usize = 256;
const MAX_BYTES: usize = 64 << 20;

/// The user's answers about a call so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Answers {
    /// Approval to start the call.
    before: Option<ApprovalAnswer>,
    /// ApprovalAnswer to a question that the call asked while it ran.
    within: Option<ApprovalAnswer>,
}

/// A repeated call, with everything known about it.
#[derive(Debug, Default)]
pub(crate) struct Repeated {
    pub(crate) answers: Answers,
    /// The id and the reply of the call, if it has run and its changes are decided about.
    pub(crate) held: Option<(String, Reply)>,
}

impl Answers {
    /// Returns the answer about the changes of a call that has run.
    pub(crate) fn of_review(&self) -> Option<&ApprovalAnswer> {
        self.within.as_ref()
    }

    /// Adds the answers to the call.
    pub(crate) fn apply(&self, mut call: Call) -> Call {
        if let Some(answer) = &self.before {
            call = call.answered(answer.clone());
        }
        if let Some(answer) = &self.within {
            call = call.answered_within(answer.clone());
        }
        call
    }
}

/// A call whose question the user has not answered yet.
struct PendingCall {
    tool: String,
    arguments: Value,
    bytes: usize,
    /// Answers from earlier attempts.
    answers: Answers,
    /// Whether the call was already running when it asked.
    is_within: bool,
    held: Option<(String, Reply)>,
    until: Instant,
}

/// The calls that wait for an answer. Each can be resumed once, with the same tool and
/// arguments, and only for a limited time.
#[derive(Clone, Default)]
pub(crate) struct PendingCalls {
    rounds: Arc<Mutex<HashMap<String, PendingCall>>>,
}

impl PendingCalls {
    fn rounds(&self) -> MutexGuard<'_, HashMap<String, PendingCall>> {
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a call and returns the token that the client repeats it with.
    pub(crate) fn remember(
        &self,
        tool: &str,
        arguments: Value,
        answers: Answers,
        is_within: bool,
        held: Option<(String, Reply)>,
        timeout: Duration,
    ) -> Option<String> {
        let state = random::id().ok()?;
        let round = PendingCall {
            tool: tool.to_owned(),
            bytes: arguments.to_string().len(),
            arguments,
            answers,
            is_within,
            held,
            until: Instant::now() + timeout,
        };
        let mut rounds = self.rounds();
        let now = Instant::now();
        rounds.retain(|_, round| round.until > now);
        // The oldest calls are dropped first.
        while rounds.len() >= MAX_CALLS
            || rounds.values().map(|round| round.bytes).sum::<usize>() + round.bytes > MAX_BYTES
        {
            let oldest = rounds.iter().min_by_key(|(_, round)| round.until);
            let Some(oldest) = oldest.map(|(state, _)| state.clone()) else {
                break;
            };
            rounds.remove(&oldest);
        }
        rounds.insert(state.clone(), round);
        Some(state)
    }

    /// Forgets a call whose question was not answered. Returns its id and reply if it has
    /// run.
    pub(crate) fn give_up(&self, state: &str) -> Option<(String, Reply)> {
        self.rounds().remove(state)?.held
    }

    /// Returns all answers about a call, including the one it brings.
    ///
    /// # Errors
    /// When no such call is waiting, or it has expired.
    pub(crate) fn resume(
        &self,
        state: &str,
        tool: &str,
        arguments: &Value,
        answer: Option<ApprovalAnswer>,
    ) -> Result<Repeated, ErrorData> {
        let round = self.rounds().remove(state);
        let refused = |why: &str| {
            let message = format!("{why}: make the call again without requestState");
            Err(ErrorData::invalid_params(message, None))
        };
        let Some(round) = round.filter(|round| round.until > Instant::now()) else {
            return refused("unknown, used or expired requestState");
        };
        if round.tool != tool || round.arguments != *arguments {
            return refused("requestState of a different call");
        }
        let mut answers = round.answers;
        match round.is_within {
            true => answers.within = answer,
            false => answers.before = answer,
        }
        let held = round.held;
        Ok(Repeated { answers, held })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn remember(waiting: &PendingCalls, timeout: Duration) -> String {
        let arguments = json!({ "a": 1, "b": 2 });
        let state = waiting.remember("write", arguments, Answers::default(), false, None, timeout);
        state.expect("there is randomness")
    }

    #[test]
    fn an_answer_counts_once_and_only_for_the_same_call() {
        let waiting = PendingCalls::default();
        let minute = Duration::from_secs(60);
        let yes = || Some(ApprovalAnswer::Approve);
        // The order of arguments does not matter.
        let same = json!({ "b": 2, "a": 1 });
        let state = remember(&waiting, minute);
        let answers = waiting
            .resume(&state, "write", &same, yes())
            .expect("known");
        assert_eq!(answers.answers.before, yes());
        assert!(waiting.resume(&state, "write", &same, yes()).is_err());
        let state = remember(&waiting, minute);
        assert!(waiting.resume(&state, "edit", &same, yes()).is_err());
        let state = remember(&waiting, minute);
        let other = json!({ "a": 1, "b": 3 });
        assert!(waiting.resume(&state, "write", &other, yes()).is_err());
        assert!(
            waiting.resume(&state, "write", &same, yes()).is_err(),
            "used"
        );
        let late = remember(&waiting, Duration::ZERO);
        assert!(waiting.resume(&late, "write", &same, yes()).is_err());
        assert!(waiting.resume("", "write", &same, yes()).is_err());
    }

    #[test]
    fn the_number_of_remembered_calls_is_limited() {
        let waiting = PendingCalls::default();
        for _ in 0..1000 {
            remember(&waiting, Duration::from_secs(60));
        }
        assert_eq!(waiting.rounds().len(), MAX_CALLS);
    }
}
