//! Limits the number of requests per second.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A token bucket that holds the requests of one second.
pub(super) struct RateLimit {
    rate: f64,
    state: Mutex<(f64, Instant)>,
}

impl RateLimit {
    pub(super) fn new(rate: u32) -> Self {
        let rate = f64::from(rate.max(1));
        Self {
            rate,
            state: Mutex::new((rate, Instant::now())),
        }
    }

    /// Whether another request is allowed now.
    pub(super) fn admits(&self) -> bool {
        self.admits_at(Instant::now())
    }

    fn admits_at(&self, now: Instant) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, since) = *state;
        let passed = now.saturating_duration_since(since).as_secs_f64();
        let left = (left + passed * self.rate).min(self.rate);
        let admits = left >= 1.0;
        *state = (if admits { left - 1.0 } else { left }, now);
        admits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_burst_of_one_second_is_allowed_and_then_the_rate_applies() {
        let limit = RateLimit::new(100);
        let start = Instant::now();
        let admitted = |from: Duration| (0..1000).filter(|_| limit.admits_at(start + from)).count();
        assert_eq!(admitted(Duration::ZERO), 100);
        assert_eq!(admitted(Duration::from_millis(500)), 50);
        assert_eq!(admitted(Duration::from_secs(60)), 100);
    }
}
