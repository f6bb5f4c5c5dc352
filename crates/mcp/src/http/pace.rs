//! How many requests are taken within a second.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Counts requests. So many may come at once as within a second.
pub(super) struct Pace {
    rate: f64,
    state: Mutex<(f64, Instant)>,
}

impl Pace {
    pub(super) fn new(rate: u32) -> Self {
        let rate = f64::from(rate.max(1));
        Self {
            rate,
            state: Mutex::new((rate, Instant::now())),
        }
    }

    /// Whether one more may come.
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
    fn a_burst_is_one_second_and_then_it_goes_on_at_the_rate() {
        let pace = Pace::new(100);
        let begun = Instant::now();
        let admitted = |from: Duration| (0..1000).filter(|_| pace.admits_at(begun + from)).count();
        assert_eq!(admitted(Duration::ZERO), 100);
        assert_eq!(admitted(Duration::from_millis(500)), 50);
        assert_eq!(admitted(Duration::from_secs(60)), 100);
    }
}
