//! Conditions that a caller can wait for.

use super::{Entry, Processes, Status};
use crate::executor::{Listener, Log, Stream};
use crate::{Error, Result, blocking};
use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Interval between checks of a port or a log.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum number of bytes of a log to search at a time. A match in a longer line may be
/// missed.
const WINDOW: usize = 1 << 20;

/// Condition to wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Until {
    /// The process has ended.
    Exit,
    /// The process or one that it started listens on this TCP port.
    Port(u16),
    /// A line of its output matches this pattern.
    Log(String),
    /// It has not written any output for this time.
    Idle(Duration),
}

/// Result of waiting.
#[derive(Debug, Clone)]
pub struct Waited {
    /// Status of the process afterwards.
    pub status: Status,
    /// Whether the condition was met.
    pub outcome: WaitOutcome,
    /// Time spent waiting.
    pub waited: Duration,
    /// Whether only processes outside its tree listen on the port.
    pub port_taken: bool,
}

/// Whether the condition was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitOutcome {
    /// It was met.
    Met,
    /// The process ended first, so it never will be. For a port: its whole tree ended.
    Ended,
    /// The time limit passed first.
    TimedOut,
}

impl Processes {
    /// Waits for a condition, at most `limit`. Every wait ends when the process ends; a
    /// wait for a port ends with the last process of its tree.
    ///
    /// # Errors
    /// [`Error::NoProcess`], [`Error::InvalidPattern`], [`Error::PortElsewhere`], or
    /// [`Error::Cancelled`].
    pub async fn wait(
        &self,
        id: &str,
        until: &Until,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<Waited> {
        let entry = self.entry(id)?;
        let begun = Instant::now();
        let outcome = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Error::Cancelled),
            outcome = entry.wait_until(until) => outcome?,
            () = tokio::time::sleep(limit) => WaitOutcome::TimedOut,
        };
        let waited = begun.elapsed();
        let port_taken = match until {
            Until::Port(port) if outcome != WaitOutcome::Met => entry.is_taken(*port).await?,
            _ => false,
        };
        Ok(Waited {
            status: entry.status(),
            outcome,
            waited,
            port_taken,
        })
    }
}

impl Entry {
    async fn wait_until(&self, until: &Until) -> Result<WaitOutcome> {
        let ended = self.end();
        match until {
            Until::Exit => {
                ended.await;
                Ok(WaitOutcome::Met)
            }
            Until::Port(port) => self.wait_for_port(*port).await,
            Until::Idle(duration) => Ok(tokio::select! {
                () = self.wait_idle(*duration) => WaitOutcome::Met,
                () = ended => WaitOutcome::Ended,
            }),
            Until::Log(pattern) => {
                let matcher = compile(pattern)?;
                let mut searches = [Stream::Output, Stream::Error]
                    .map(|stream| Search::new(self.running.log(stream)));
                tokio::select! {
                    biased;
                    met = self.wait_for_line(&matcher, &mut searches) => met.map(|()| WaitOutcome::Met),
                    () = ended => {
                        // The last output may have arrived together with the end.
                        let found = search_logs(&matcher, &mut searches)?;
                        Ok(if found { WaitOutcome::Met } else { WaitOutcome::Ended })
                    }
                }
            }
        }
    }

    /// Returns once the tree listens on the port, or no process of it is left. A server
    /// that was started in the background outlives the process that started it.
    async fn wait_for_port(&self, port: u16) -> Result<WaitOutcome> {
        loop {
            // Checked before the port, so that the last check sees the final state of the
            // tree.
            let is_over = self.ended.borrow().is_some() && !self.running.has_survivors();
            if self.listener(port).await? == Listener::Own {
                return Ok(WaitOutcome::Met);
            }
            if is_over {
                return Ok(WaitOutcome::Ended);
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Whether another process listens on the port, and none of this tree.
    async fn is_taken(&self, port: u16) -> Result<bool> {
        Ok(self.listener(port).await? == Listener::Other)
    }

    async fn listener(&self, port: u16) -> Result<Listener> {
        let find = self.running.listener();
        let find = find.ok_or(Error::PortElsewhere { port })?;
        blocking::run(blocking::Weight::Heavy, move || Ok(find(port))).await
    }

    async fn wait_idle(&self, duration: Duration) {
        let pulse = self.running.pulse();
        loop {
            let since = pulse.borrow().at.elapsed();
            match duration.checked_sub(since) {
                None | Some(Duration::ZERO) => return,
                Some(left) => tokio::time::sleep(left).await,
            }
        }
    }

    async fn wait_for_line(
        &self,
        matcher: &RegexMatcher,
        searches: &mut [Search; 2],
    ) -> Result<()> {
        let mut pulse = self.running.pulse();
        loop {
            pulse.borrow_and_update();
            if search_logs(matcher, searches)? {
                return Ok(());
            }
            // The notification arrives before the bytes are in the file.
            tokio::select! {
                changed = pulse.changed() => if changed.is_err() {
                    std::future::pending::<()>().await;
                },
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
            }
        }
    }
}

fn compile(pattern: &str) -> Result<RegexMatcher> {
    let mut builder = RegexMatcherBuilder::new();
    let built = builder.multi_line(true).build(pattern);
    built.map_err(|error| Error::InvalidPattern {
        pattern: pattern.to_owned(),
        reason: error.to_string(),
    })
}

/// Position of the search in one stream.
struct Search {
    log: Option<Arc<Log>>,
    seen: u64,
    /// Start of a line whose end has not arrived yet.
    line: Vec<u8>,
}

impl Search {
    fn new(log: Option<Arc<Log>>) -> Self {
        Self {
            log,
            seen: 0,
            line: Vec::new(),
        }
    }

    /// Searches new output, including the line it continues.
    fn find(&mut self, matcher: &RegexMatcher) -> Result<bool> {
        let Some(log) = &self.log else {
            return Ok(false);
        };
        while self.seen < log.len() {
            let (place, fresh) = log
                .from(self.seen, WINDOW)
                .map_err(|error| Error::io("read the log of", "the process", error))?;
            // The bytes in between are not stored, so the line before them is incomplete.
            if place > self.seen {
                self.line.clear();
            }
            self.seen = place + fresh.len() as u64;
            if fresh.is_empty() {
                return Ok(false);
            }
            self.line.extend_from_slice(&fresh);
            let found = matcher
                .is_match(&self.line)
                .map_err(|error| Error::Fault(error.to_string()))?;
            if found {
                return Ok(true);
            }
            let last = memchr::memrchr(b'\n', &self.line).map_or(0, |end| end + 1);
            self.line.drain(..last);
            // An endless line is searched in pieces.
            if self.line.len() > WINDOW {
                self.line.clear();
            }
        }
        Ok(false)
    }
}

fn search_logs(matcher: &RegexMatcher, searches: &mut [Search; 2]) -> Result<bool> {
    for search in searches {
        if search.find(matcher)? {
            return Ok(true);
        }
    }
    Ok(false)
}
