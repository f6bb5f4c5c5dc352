//! How much a server takes.

use std::time::Duration;

/// The bounds of a server over HTTP. Whatever is beyond them is refused with a status
/// that says so, and never waited for without an end.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpLimits {
    /// The longest body of a request, in bytes.
    pub body: usize,
    /// The bytes of all requests together that are not answered yet.
    pub bodies: usize,
    /// How many connections there may be.
    pub connections: usize,
    /// How many sessions there may be.
    pub sessions: usize,
    /// How many requests are taken within a second.
    pub rate: u32,
    /// How long the head of a request may take, from the connection or from the last
    /// answer on: a connection that is not used for so long is closed too.
    pub head: Duration,
    /// How long its body may take.
    pub transfer: Duration,
    /// How long a client may leave what is written to it unread.
    pub stalled: Duration,
    /// How long a session may go without a request or a stream.
    pub idle: Duration,
    /// How long a client that is gone may come back for the answer of a call. Then the
    /// call is cancelled.
    pub resume: Duration,
    /// How often a stream says that it is there while it has nothing to say.
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
