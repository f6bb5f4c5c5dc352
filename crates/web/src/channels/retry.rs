//! Retries, shared by all channels.

use super::transport::{Failure, Part, Retry, TimeLimit, Transport};
use crate::client::format_seconds;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Limits for delivering one part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Time limit for all attempts of one part, including the waits between them.
    pub timeout: Duration,
    /// Maximum number of attempts.
    pub attempts: usize,
    /// Wait before the second attempt; doubles with each further one.
    pub backoff: Duration,
}

impl RetryPolicy {
    /// Delivers within half a minute or fails.
    pub const DEFAULT: Self = Self {
        timeout: Duration::from_secs(30),
        attempts: 3,
        backoff: Duration::from_millis(500),
    };
}

/// Delivers one part. Returns the number of attempts, also on failure.
pub(super) async fn deliver(
    transport: &dyn Transport,
    part: Part<'_>,
    policy: &RetryPolicy,
) -> Result<usize, (Failure, usize)> {
    let deadline = Instant::now() + policy.timeout;
    let mut tries = 0;
    loop {
        tries += 1;
        let time = TimeLimit {
            left: deadline.saturating_duration_since(Instant::now()),
            total: policy.timeout,
        };
        let failure = match transport.attempt(part, time).await {
            Ok(()) => return Ok(tries),
            Err(failure) => failure,
        };
        let wait = match failure.retry {
            Retry::Never => return Err((failure, tries)),
            Retry::Backoff => jittered(policy.backoff.saturating_mul(1 << (tries - 1).min(16))),
            // A little longer than asked, because clocks differ.
            Retry::After(wait) => wait + Duration::from_millis(fastrand::u64(5..50)),
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if tries >= policy.attempts || wait >= left {
            return Err((failure, tries));
        }
        sleep(wait).await;
    }
}

/// Scales a wait by a random factor between 0.5 and 1.5, so that clients that failed together do
/// not retry together.
fn jittered(wait: Duration) -> Duration {
    wait.mul_f64(0.5 + fastrand::f64())
}

/// Failure for a service that asked to wait before the next attempt.
pub(super) fn rate_limited(wait: Duration) -> Failure {
    let wait_text = format_seconds(Duration::from_secs(wait.as_millis().div_ceil(1000) as u64));
    Failure {
        reason: format!("rate limited: try again in {wait_text}"),
        retry: Retry::After(wait),
        uncertain: false,
    }
}
