//! Time limits of tools from other programs.

use crate::Error;
use crate::tool::shorter;
use std::time::Duration;

/// Default time limit of a call.
const DEFAULT: Duration = Duration::from_secs(120);

/// Maximum time limit that can be set.
const MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Time limit of a tool's calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimeLimit {
    /// Set by the user for this tool. The session's limit does not shorten it.
    pub(crate) by_user: Option<Duration>,
    /// Set by the tool or by a project, within the session's limit.
    pub(crate) own: Option<Duration>,
    /// Place where it can be set, for messages.
    pub(crate) set_in: String,
}

impl TimeLimit {
    /// Returns the limit in a session that limits its calls to `session`.
    pub(crate) fn within(&self, session: Option<Duration>) -> Duration {
        self.by_user
            .or_else(|| shorter(session, self.own))
            .unwrap_or(DEFAULT)
    }

    /// Returns the limit in a session without one.
    pub(crate) fn without_session(&self) -> Duration {
        self.within(None)
    }

    /// Returns a hint on how to allow more time than `after`.
    pub(crate) fn remedy(&self, after: Duration) -> String {
        let own = self.by_user.or(self.own).unwrap_or(DEFAULT);
        match after < own {
            true => Error::raise_session_limit(after),
            false => format!("to allow more, set `timeout` (seconds) in {}", self.set_in),
        }
    }

    /// Returns the failure of a call that took too long.
    pub(crate) fn exceeded(&self, after: Duration) -> Error {
        Error::Failed {
            text: Error::TimedOut { after }.to_string(),
            hint: Some(self.remedy(after)),
        }
    }
}

/// Returns a time limit in seconds, if it is more than 0 and at most a day.
#[must_use]
pub fn seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number)
        .ok()
        .filter(|limit| !limit.is_zero())
        .map(|limit| limit.min(MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(by_user: Option<u64>, own: Option<u64>) -> TimeLimit {
        TimeLimit {
            by_user: by_user.map(Duration::from_secs),
            own: own.map(Duration::from_secs),
            set_in: "its entry".into(),
        }
    }

    #[test]
    fn the_users_limit_wins_then_the_sessions_or_the_tools_then_the_default() {
        let within = |limit: TimeLimit, session: Option<u64>| {
            limit.within(session.map(Duration::from_secs)).as_secs()
        };
        assert_eq!(within(limit(None, None), None), 120);
        assert_eq!(within(limit(None, None), Some(300)), 300);
        assert_eq!(within(limit(None, None), Some(5)), 5);
        assert_eq!(within(limit(Some(600), None), Some(300)), 600);
        assert_eq!(within(limit(Some(2), Some(9)), None), 2);
        assert_eq!(within(limit(None, Some(600)), None), 600);
        assert_eq!(within(limit(None, Some(600)), Some(300)), 300);
    }

    #[test]
    fn a_timeout_names_the_key_that_was_reached() {
        let remedy = |limit: TimeLimit, after| limit.remedy(Duration::from_secs(after));
        assert!(remedy(limit(None, None), 5).contains("`tools.timeout`"));
        assert!(remedy(limit(None, None), 120).contains("`timeout` (seconds) in its entry"));
        assert!(remedy(limit(Some(5), None), 5).contains("in its entry"));
        assert!(remedy(limit(None, None), 300).contains("in its entry"));
    }

    #[test]
    fn a_limit_is_more_than_zero_and_at_most_a_day() {
        assert_eq!(seconds(0.5), Some(Duration::from_millis(500)));
        assert_eq!(seconds(1e9), Some(MAX));
        assert_eq!(seconds(0.0), None);
        assert_eq!(seconds(-1.0), None);
        assert_eq!(seconds(f64::NAN), None);
    }
}
