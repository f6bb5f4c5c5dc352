//! The first message that a worker receives.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Access rights of a module.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rights {
    /// Only computation: tables, text, numbers, the clock, and the functions of `haft`. No
    /// access to the machine.
    Pure,
    /// The standard library: files, programs, the environment. Of `debug`, only
    /// `traceback`. Modules written in C are not loaded.
    Full,
}

/// Limits of a module for loading and for each call.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Limits {
    /// Memory of the module in bytes, for all calls together.
    pub memory: u64,
    /// Number of Lua instructions.
    pub instructions: u64,
    /// Time in seconds, without waiting for `haft.call`. Loading gets at most five of them.
    pub seconds: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 64 << 20,
            instructions: 500_000_000,
            seconds: 120.0,
        }
    }
}

impl Limits {
    /// Minimum memory limit in bytes. An empty module needs about this much.
    const LEAST_MEMORY: u64 = 1 << 20;
    const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
    const LONGEST_LOADING: Duration = Duration::from_secs(5);

    pub(crate) fn bytes(&self) -> usize {
        usize::try_from(self.memory.max(Self::LEAST_MEMORY)).unwrap_or(usize::MAX)
    }

    pub(crate) fn calling(&self) -> Duration {
        Duration::try_from_secs_f64(self.seconds)
            .unwrap_or(Self::LONGEST)
            .min(Self::LONGEST)
    }

    pub(crate) fn loading(&self) -> Duration {
        self.calling().min(Self::LONGEST_LOADING)
    }
}

/// The first line that a worker reads.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename = "load")]
pub struct Load {
    /// Path of the source, for messages. It is not opened.
    pub path: String,
    /// Source text of the module.
    pub source: String,
    /// Access rights of the module.
    pub rights: Rights,
    /// Limits; missing ones have their defaults.
    #[serde(default)]
    pub limits: Limits,
}

impl Load {
    /// Returns the line to send, without its newline.
    pub fn line(&self) -> String {
        // Cannot fail: the struct has only text and numbers.
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Limits;

    fn seconds(seconds: f64) -> (Duration, Duration) {
        let limits = Limits {
            seconds,
            ..Limits::default()
        };
        (limits.calling(), limits.loading())
    }

    #[test]
    fn loading_has_at_most_five_seconds_and_any_number_is_a_time() {
        let day = Duration::from_secs(24 * 60 * 60);
        let five = Duration::from_secs(5);
        assert_eq!(seconds(120.0), (Duration::from_secs(120), five));
        assert_eq!(
            seconds(0.5),
            (Duration::from_millis(500), Duration::from_millis(500))
        );
        assert_eq!(seconds(0.0), (Duration::ZERO, Duration::ZERO));
        for odd in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(seconds(odd), (day, five), "{odd}");
        }
    }
}
