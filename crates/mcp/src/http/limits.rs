//! Limits of the HTTP server.

use std::time::Duration;

/// Limits of an HTTP server. A request beyond a limit gets an error status, and no wait is
/// unlimited.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpLimits {
    /// Maximum size of a request body in bytes.
    pub body: usize,
    /// Maximum size of all unanswered requests together in bytes.
    pub bodies: usize,
    /// Maximum number of open connections.
    pub connections: usize,
    /// Maximum number of sessions.
    pub sessions: usize,
    /// Maximum number of requests per second.
    pub rate: u32,
    /// Time for the head of a request, counted from the connection or from the last
    /// response. A connection that is idle for this long is closed too.
    pub head: Duration,
    /// Time for the body of a request.
    pub transfer: Duration,
    /// Time that a client may leave written data unread.
    pub stalled: Duration,
    /// Time that a session may go without a request or an open stream.
    pub idle: Duration,
    /// Time that a disconnected client has to come back for the result of a call. After
    /// that the call is cancelled.
    pub resume: Duration,
    /// Interval of keep-alive comments on a stream without events.
    pub ping: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            body: 16 << 20,
            bodies: 256 << 20,
            connections: 4096,
            sessions: 2000,
            rate: 10_000,
            head: Duration::from_secs(20),
            transfer: Duration::from_secs(30),
            stalled: Duration::from_secs(60),
            idle: Duration::from_secs(30 * 60),
            resume: Duration::from_secs(10),
            ping: Duration::from_secs(15),
        }
    }
}
