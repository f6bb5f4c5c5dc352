//! Limits of a run, and detection of loops.

use super::Settings;
use crate::{Limit, ToolCall, ToolResult, Usage};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Number of equal turns in a row after which the model is warned.
const WARN_AFTER: u32 = 3;

/// Number of equal turns in a row after which the run is stopped.
const STOP_AFTER: u32 = 5;

/// Returns the limit that a run has reached, if any.
pub(super) fn reached(settings: &Settings, turns: u64, usage: &Usage) -> Option<Limit> {
    if turns >= settings.max_turns {
        return Some(Limit::MaxTurns);
    }
    if settings
        .max_tokens
        .is_some_and(|most| usage.total() >= most)
    {
        return Some(Limit::MaxTokens);
    }
    let cost = usage.cost.unwrap_or(0.0);
    if settings.max_cost.is_some_and(|most| cost >= most) {
        return Some(Limit::MaxCost);
    }
    None
}

/// Counts equal turns in a row: the same calls with the same results. Polling does not count
/// as a loop once the result changes.
#[derive(Debug, Default)]
pub(super) struct LoopDetector {
    last: u64,
    count: u32,
}

/// Verdict about a turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LoopVerdict {
    /// The turn is new, or was repeated only a few times.
    Fine,
    /// Warn the model, with the number of equal turns.
    Warn(u32),
    /// Stop the run.
    Stop,
}

impl LoopDetector {
    pub(super) fn turn(&mut self, calls: &[ToolCall], results: &[ToolResult]) -> LoopVerdict {
        let mut hasher = DefaultHasher::new();
        for call in calls {
            call.name.hash(&mut hasher);
            call.arguments.to_string().hash(&mut hasher);
        }
        for result in results {
            result.is_error.hash(&mut hasher);
            for block in &result.content {
                match block {
                    haft::Content::Image { data, .. } | haft::Content::Audio { data, .. } => {
                        data.hash(&mut hasher);
                    }
                    other => other.in_words().hash(&mut hasher),
                }
            }
        }
        let now = hasher.finish();
        self.count = if now == self.last { self.count + 1 } else { 1 };
        self.last = now;
        match self.count {
            STOP_AFTER.. => LoopVerdict::Stop,
            WARN_AFTER.. => LoopVerdict::Warn(self.count),
            _ => LoopVerdict::Fine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft::Content;
    use serde_json::json;

    #[test]
    fn equal_turns_lead_to_a_warning_and_then_to_a_stop() {
        let turn = |loop_detector: &mut LoopDetector, path: &str, text: &str| {
            let call = ToolCall {
                id: "c".to_owned(),
                name: "read".to_owned(),
                arguments: json!({ "path": path }),
            };
            let result = ToolResult {
                call_id: "c".to_owned(),
                tool: "read".to_owned(),
                content: vec![Content::Text {
                    text: text.to_owned(),
                }],
                is_error: false,
            };
            loop_detector.turn(&[call], &[result])
        };
        let mut loop_detector = LoopDetector::default();
        assert_eq!(turn(&mut loop_detector, "a", "x"), LoopVerdict::Fine);
        assert_eq!(turn(&mut loop_detector, "a", "x"), LoopVerdict::Fine);
        // A different result makes it a different turn.
        assert_eq!(turn(&mut loop_detector, "a", "y"), LoopVerdict::Fine);
        assert_eq!(turn(&mut loop_detector, "b", "y"), LoopVerdict::Fine);
        assert_eq!(turn(&mut loop_detector, "b", "y"), LoopVerdict::Fine);
        assert_eq!(turn(&mut loop_detector, "b", "y"), LoopVerdict::Warn(3));
        assert_eq!(turn(&mut loop_detector, "b", "y"), LoopVerdict::Warn(4));
        assert_eq!(turn(&mut loop_detector, "b", "y"), LoopVerdict::Stop);
    }
}
