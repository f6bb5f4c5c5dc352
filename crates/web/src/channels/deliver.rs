//! Trying, waiting and trying again: the same for every kind of channel.

use super::carrier::{Again, Carrier, Failure, Part, Time};
use crate::client::words;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long and how often a part of a message is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How long all tries of one part may take together, waiting included.
    pub timeout: Duration,
    /// How many tries there are.
    pub tries: usize,
    /// How long to wait before the second; it doubles from try to try.
    pub wait: Duration,
}

impl Pace {
    /// What people expect of a message: it is out in half a minute, or not.
    pub const USUAL: Self = Self {
        timeout: Duration::from_secs(30),
        tries: 3,
        wait: Duration::from_millis(500),
    };
}

/// Delivers one part; how many tries it took, or how the last one failed.
pub(super) async fn deliver(
    carrier: &dyn Carrier,
    part: Part<'_>,
    pace: &Pace,
) -> Result<usize, (Failure, usize)> {
    let deadline = Instant::now() + pace.timeout;
    let mut tries = 0;
    loop {
        tries += 1;
        let time = Time {
            left: deadline.saturating_duration_since(Instant::now()),
            whole: pace.timeout,
        };
        let failure = match carrier.attempt(part, time).await {
            Ok(()) => return Ok(tries),
            Err(failure) => failure,
        };
        let wait = match failure.again {
            Again::Never => return Err((failure, tries)),
            Again::Soon => jittered(pace.wait.saturating_mul(1 << (tries - 1).min(16))),
            // As long as they say, and a little more for clocks that differ.
            Again::After(wait) => wait + Duration::from_millis(fastrand::u64(5..50)),
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if tries >= pace.tries || wait >= left {
            return Err((failure, tries));
        }
        sleep(wait).await;
    }
}

/// Between half and one and a half times as long: those who failed together do
/// not come back together.
fn jittered(wait: Duration) -> Duration {
    wait.mul_f64(0.5 + fastrand::f64())
}

/// What is said of a service that wants to be left alone for a while.
pub(super) fn limited(wait: Duration) -> Failure {
    let wait_words = words(Duration::from_secs(wait.as_millis().div_ceil(1000) as u64));
    Failure {
        reason: format!("rate limited: try again in {wait_words}"),
        again: Again::After(wait),
        uncertain: false,
    }
}
