//! How much a model thinks before it answers.

use super::failure::quoted;
use std::fmt;
use std::str::FromStr;

/// Level of thinking. Each wire format turns it into what its provider accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// As little as possible.
    Minimal,
    /// Little.
    Low,
    /// A balance of speed and quality.
    Medium,
    /// Much.
    High,
    /// As much as possible.
    Max,
}

impl Effort {
    /// All levels.
    pub const ALL: [Self; 5] = [
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::Max,
    ];

    /// Returns the name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Max => "max",
        }
    }

    /// Returns the number of tokens for models that take a number instead of a level.
    pub(super) fn tokens(self) -> u64 {
        match self {
            Self::Minimal => 1024,
            Self::Low => 4096,
            Self::Medium => 8192,
            Self::High => 16_384,
            Self::Max => 24_576,
        }
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The level does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown effort {}; possible values: minimal, low, medium, high, max", quoted(.0))]
pub struct UnknownEffort(String);

impl FromStr for Effort {
    type Err = UnknownEffort;

    fn from_str(name: &str) -> Result<Self, UnknownEffort> {
        let found = Self::ALL.into_iter().find(|known| known.name() == name);
        found.ok_or_else(|| UnknownEffort(name.to_owned()))
    }
}
