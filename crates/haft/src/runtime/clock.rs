//! How long a call may take. Time in which a person is asked does not count.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time of one call. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    limit: Option<Duration>,
    state: Arc<Mutex<Hands>>,
}

#[derive(Debug)]
struct Hands {
    begun: Instant,
    /// How long it stood still so far.
    paused: Duration,
    /// Since when it stands still, and for how many.
    standing: Option<(Instant, u32)>,
}

impl Clock {
    pub(crate) fn new(limit: Option<Duration>) -> Self {
        Self {
            limit,
            state: Arc::new(Mutex::new(Hands {
                begun: Instant::now(),
                paused: Duration::ZERO,
                standing: None,
            })),
        }
    }

    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the call may take.
    pub(crate) fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// When the time is over, as it looks now.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let hands = self.hands();
        let standing = hands
            .standing
            .map_or(Duration::ZERO, |(since, _)| since.elapsed());
        Some(hands.begun + self.limit? + hands.paused + standing)
    }

    /// Stands still until what this returns is dropped.
    pub(crate) fn pause(&self) -> Paused {
        let mut hands = self.hands();
        let (since, many) = hands.standing.unwrap_or((Instant::now(), 0));
        hands.standing = Some((since, many + 1));
        drop(hands);
        Paused(self.clone())
    }

    /// Waits until the time is over, and `grace` longer.
    pub(crate) async fn over(&self, grace: Duration) {
        loop {
            let Some(deadline) = self.deadline() else {
                return std::future::pending().await;
            };
            let end = deadline + grace;
            if end <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(end.into()).await;
        }
    }
}

/// While it is there, no time passes for the call.
#[derive(Debug)]
pub(crate) struct Paused(Clock);

impl Drop for Paused {
    fn drop(&mut self) {
        let mut hands = self.0.hands();
        match hands.standing {
            Some((since, 1)) => {
                hands.paused += since.elapsed();
                hands.standing = None;
            }
            Some((since, many)) => hands.standing = Some((since, many - 1)),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_moves_the_deadline_by_as_long_as_it_lasted() {
        let clock = Clock::new(Some(Duration::from_secs(5)));
        let before = clock.deadline().unwrap();
        let outer = clock.pause();
        let inner = clock.pause();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        drop(outer);
        assert!(clock.deadline().unwrap() - before >= Duration::from_millis(20));
        drop(inner);
        let after = clock.deadline().unwrap();
        assert!(after - before >= Duration::from_millis(20));
        assert_eq!(clock.deadline().unwrap(), after);
        assert_eq!(Clock::new(None).deadline(), None);
    }
}
