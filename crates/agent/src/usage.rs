//! What an answer cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tokens of one answer, or of several together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// Tokens that were sent, those from a cache included.
    pub input: u64,
    /// Tokens that came back, reasoning included.
    pub output: u64,
    /// Of those sent: how many came from the provider's cache.
    pub cache_read: u64,
    /// Of those sent: how many were put into it.
    pub cache_write: u64,
    /// Of those that came back: how many were reasoning.
    pub reasoning: u64,
    /// What it cost in USD, where the price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl Usage {
    /// All tokens, both ways.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Adds another answer's. The cost stays known as long as one of them is.
    pub fn add(&mut self, other: &Self) {
        // Numbers of a provider may be any, and must not begin again at zero.
        let add = |own: &mut u64, other: u64| *own = own.saturating_add(other);
        add(&mut self.input, other.input);
        add(&mut self.output, other.output);
        add(&mut self.cache_read, other.cache_read);
        add(&mut self.cache_write, other.cache_write);
        add(&mut self.reasoning, other.reasoning);
        self.cost = match (self.cost, other.cost) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
        };
    }
}

/// USD for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Sent, not from a cache.
    pub input: f64,
    /// Came back.
    pub output: f64,
    /// Sent, from the cache.
    pub cache_read: f64,
    /// Sent, and put into the cache.
    pub cache_write: f64,
}

impl Price {
    /// What this usage costs.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "nobody sends so many tokens that a price would notice"
    )]
    pub fn of(&self, usage: &Usage) -> f64 {
        let plain = usage
            .input
            .saturating_sub(usage.cache_read)
            .saturating_sub(usage.cache_write);
        let millions = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        millions(plain, self.input)
            + millions(usage.cache_read, self.cache_read)
            + millions(usage.cache_write, self.cache_write)
            + millions(usage.output, self.output)
    }
}
