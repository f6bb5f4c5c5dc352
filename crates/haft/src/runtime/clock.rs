//! Measures how long a call takes and enforces its limit. Time spent waiting for the user
//! or starting a program does not count, neither for the call nor for the calls around it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The clock of one call. Clones share the same time.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    limit: Option<Duration>,
    state: Arc<Mutex<Hands>>,
    /// Clock of the call that this one is part of. It pauses whenever this one does.
    outer: Option<Arc<Clock>>,
}

#[derive(Debug)]
struct Hands {
    begun: Instant,
    /// Total length of finished pauses.
    paused: Duration,
    /// Start of the current pause, and how many callers asked for it.
    standing: Option<(Instant, u32)>,
}

impl Hands {
    /// Returns the total length of pauses up to `now`.
    fn stood(&self, now: Instant) -> Duration {
        let standing = self.standing.map(|(since, _)| now.duration_since(since));
        self.paused + standing.unwrap_or_default()
    }
}

impl Clock {
    pub(crate) fn new(limit: Option<Duration>, outer: Option<Self>) -> Self {
        Self {
            limit,
            outer: outer.map(Arc::new),
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

    /// Returns the time limit of the call.
    pub(crate) fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// Returns when the time is up, as of now: a pause moves it.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let hands = self.hands();
        Some(hands.begun + self.limit? + hands.stood(Instant::now()))
    }

    /// Returns how long the call has run, without pauses.
    pub(crate) fn ran(&self) -> Duration {
        let hands = self.hands();
        let now = Instant::now();
        now.duration_since(hands.begun)
            .saturating_sub(hands.stood(now))
    }

    /// Pauses the clock until the returned guard is dropped.
    pub(crate) fn pause(&self) -> Paused {
        let mut hands = self.hands();
        let (since, many) = hands.standing.unwrap_or((Instant::now(), 0));
        hands.standing = Some((since, many + 1));
        drop(hands);
        Paused {
            clock: self.clone(),
            _outer: self.outer.as_ref().map(|outer| Box::new(outer.pause())),
        }
    }

    /// Waits until the time is up, and `grace` longer.
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

/// Guard of a pause.
#[derive(Debug)]
pub(crate) struct Paused {
    clock: Clock,
    _outer: Option<Box<Paused>>,
}

impl Drop for Paused {
    fn drop(&mut self) {
        let mut hands = self.clock.hands();
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
    fn a_pause_moves_the_deadline_by_its_length() {
        let clock = Clock::new(Some(Duration::from_secs(5)), None);
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
        assert_eq!(Clock::new(None, None).deadline(), None);
    }

    #[test]
    fn a_pause_also_stops_the_clocks_of_outer_calls() {
        let outer = Clock::new(None, None);
        let inner = Clock::new(None, Some(outer.clone()));
        let paused = inner.pause();
        let ran = (outer.ran(), inner.ran());
        assert!(ran.0 > Duration::ZERO);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        assert_eq!((outer.ran(), inner.ran()), ran, "no time passes");
        drop(paused);
        assert!(outer.hands().standing.is_none());
        assert!(outer.hands().paused >= Duration::from_millis(20));
    }
}
