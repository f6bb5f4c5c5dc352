//! When an agent has to stop, and when it goes round in circles.

use super::Settings;
use crate::{Limit, ToolCall, ToolResult, Usage};
use std::hash::{DefaultHasher, Hash, Hasher};

/// So many equal turns in a row, and the model is told.
const TOLD: u32 = 3;

/// So many, and it is stopped.
const STOPPED: u32 = 5;

/// Which limit a run has reached, if any.
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

/// Turns that are the same: equal calls with equal results. One that waits for
/// something gets another result some day, and is none.
#[derive(Debug, Default)]
pub(super) struct Circle {
    last: u64,
    count: u32,
}

/// What a turn means for the circle.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// It is another one, or not yet one too many.
    Fine,
    /// The model should know.
    Tell(u32),
    /// Enough.
    Stop,
}

impl Circle {
    pub(super) fn turn(&mut self, calls: &[ToolCall], results: &[ToolResult]) -> Round {
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
            STOPPED.. => Round::Stop,
            TOLD.. => Round::Tell(self.count),
            _ => Round::Fine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft::Content;
    use serde_json::json;

    #[test]
    fn equal_turns_are_told_and_then_stopped() {
        let turn = |circle: &mut Circle, path: &str, text: &str| {
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
            circle.turn(&[call], &[result])
        };
        let mut circle = Circle::default();
        assert_eq!(turn(&mut circle, "a", "x"), Round::Fine);
        assert_eq!(turn(&mut circle, "a", "x"), Round::Fine);
        // Another result, another turn.
        assert_eq!(turn(&mut circle, "a", "y"), Round::Fine);
        assert_eq!(turn(&mut circle, "b", "y"), Round::Fine);
        assert_eq!(turn(&mut circle, "b", "y"), Round::Fine);
        assert_eq!(turn(&mut circle, "b", "y"), Round::Tell(3));
        assert_eq!(turn(&mut circle, "b", "y"), Round::Tell(4));
        assert_eq!(turn(&mut circle, "b", "y"), Round::Stop);
    }
}
