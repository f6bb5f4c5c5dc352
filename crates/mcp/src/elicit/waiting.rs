//! Calls that will be made again once a person has said something.

use crate::random;
use haft::{Answer, Call};
use rmcp::ErrorData;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many calls are remembered, and how much of their arguments.
const MOST: usize = 256;
const BYTES: usize = 64 << 20;

/// What a person said about a call so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Answers {
    /// Before it began.
    before: Option<Answer>,
    /// To what it asked while it ran.
    within: Option<Answer>,
}

impl Answers {
    /// The call with them.
    pub(crate) fn given_to(&self, mut call: Call) -> Call {
        if let Some(answer) = &self.before {
            call = call.answered(answer.clone());
        }
        if let Some(answer) = &self.within {
            call = call.answered_within(answer.clone());
        }
        call
    }
}

/// A call that was asked about.
struct Round {
    tool: String,
    arguments: Value,
    bytes: usize,
    /// What was said in earlier rounds.
    answers: Answers,
    /// Whether it ran already when it asked.
    is_within: bool,
    until: Instant,
}

/// The calls that a person is being asked about. Each is answered once, for the very
/// tool and arguments that were asked about, and not for ever.
#[derive(Default)]
pub(crate) struct Waiting {
    rounds: Mutex<HashMap<String, Round>>,
}

impl Waiting {
    fn rounds(&self) -> MutexGuard<'_, HashMap<String, Round>> {
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a call, and gives the name that it comes back with.
    pub(crate) fn wait(
        &self,
        tool: &str,
        arguments: Value,
        answers: Answers,
        is_within: bool,
        patience: Duration,
    ) -> Option<String> {
        let state = random::name().ok()?;
        let round = Round {
            tool: tool.to_owned(),
            bytes: arguments.to_string().len(),
            arguments,
            answers,
            is_within,
            until: Instant::now() + patience,
        };
        let mut rounds = self.rounds();
        let now = Instant::now();
        rounds.retain(|_, round| round.until > now);
        // Those that were asked about first give way.
        while rounds.len() >= MOST
            || rounds.values().map(|round| round.bytes).sum::<usize>() + round.bytes > BYTES
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

    /// What was said about a call so far, with what is said now.
    ///
    /// # Errors
    /// When nobody was asked about this very call, or it is too late.
    pub(crate) fn back(
        &self,
        state: &str,
        tool: &str,
        arguments: &Value,
        said: Option<Answer>,
    ) -> Result<Answers, ErrorData> {
        let round = self.rounds().remove(state);
        let refused = |why: &str| {
            let message = format!("{why}: make the call again without requestState");
            Err(ErrorData::invalid_params(message, None))
        };
        let Some(round) = round.filter(|round| round.until > Instant::now()) else {
            return refused("this requestState is not known, was used, or is too old");
        };
        if round.tool != tool || round.arguments != *arguments {
            return refused("this requestState belongs to another call");
        }
        let mut answers = round.answers;
        match round.is_within {
            true => answers.within = said,
            false => answers.before = said,
        }
        Ok(answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wait(waiting: &Waiting, patience: Duration) -> String {
        let arguments = json!({ "a": 1, "b": 2 });
        let state = waiting.wait("write", arguments, Answers::default(), false, patience);
        state.expect("there is randomness")
    }

    #[test]
    fn an_answer_counts_once_and_for_the_same_call() {
        let waiting = Waiting::default();
        let minute = Duration::from_secs(60);
        let yes = || Some(Answer::Approve);
        // The order of arguments is no matter.
        let same = json!({ "b": 2, "a": 1 });
        let state = wait(&waiting, minute);
        let answers = waiting.back(&state, "write", &same, yes()).expect("known");
        assert_eq!(answers.before, yes());
        assert!(waiting.back(&state, "write", &same, yes()).is_err());
        let state = wait(&waiting, minute);
        assert!(waiting.back(&state, "edit", &same, yes()).is_err());
        let state = wait(&waiting, minute);
        let other = json!({ "a": 1, "b": 3 });
        assert!(waiting.back(&state, "write", &other, yes()).is_err());
        assert!(waiting.back(&state, "write", &same, yes()).is_err(), "used");
        let late = wait(&waiting, Duration::ZERO);
        assert!(waiting.back(&late, "write", &same, yes()).is_err());
        assert!(waiting.back("", "write", &same, yes()).is_err());
    }

    #[test]
    fn so_many_are_remembered() {
        let waiting = Waiting::default();
        for _ in 0..1000 {
            wait(&waiting, Duration::from_secs(60));
        }
        assert_eq!(waiting.rounds().len(), MOST);
    }
}
