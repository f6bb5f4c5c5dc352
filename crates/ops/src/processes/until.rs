//! What a process can be waited for.

use super::{Entry, Processes, Status};
use crate::executor::{Listener, Log, Stream};
use crate::{Error, Result, blocking};
use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How often a port or a log is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// The most of a log that is searched at a time. A line longer than this may be
/// missed.
const WINDOW: usize = 1 << 20;

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Until {
    /// Its end.
    Exit,
    /// It, or a process that it started, listens on this TCP port.
    Port(u16),
    /// A line of its output matches this pattern.
    Log(String),
    /// It has said nothing for so long.
    Idle(Duration),
}

/// How waiting ended.
#[derive(Debug, Clone)]
pub struct Waited {
    /// The process afterwards.
    pub status: Status,
    /// Whether it came to what was waited for.
    pub met: Met,
    /// How long it took.
    pub waited: Duration,
    /// Whether only processes outside its tree listen on the port that was waited for.
    pub port_taken: bool,
}

/// Whether something waited for came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// It came.
    Yes,
    /// The process ended first, so it never will. For a port: its whole tree ended.
    Never,
    /// Time was over.
    NotYet,
}

impl Processes {
    /// Waits for something, at most `limit`. The end of the process ends every wait; a wait
    /// for a port ends with the last process of its tree.
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
        let met = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Error::Cancelled),
            met = entry.reach(until) => met?,
            () = tokio::time::sleep(limit) => Met::NotYet,
        };
        let waited = begun.elapsed();
        let port_taken = match until {
            Until::Port(port) if met != Met::Yes => entry.is_taken(*port).await?,
            _ => false,
        };
        Ok(Waited {
            status: entry.status(),
            met,
            waited,
            port_taken,
        })
    }
}

impl Entry {
    async fn reach(&self, until: &Until) -> Result<Met> {
        let ended = self.end();
        match until {
            Until::Exit => {
                ended.await;
                Ok(Met::Yes)
            }
            Until::Port(port) => self.listens(*port).await,
            Until::Idle(quiet) => Ok(tokio::select! {
                () = self.idle(*quiet) => Met::Yes,
                () = ended => Met::Never,
            }),
            Until::Log(pattern) => {
                let matcher = compile(pattern)?;
                let mut searches = [Stream::Output, Stream::Error]
                    .map(|stream| Search::new(self.running.log(stream)));
                tokio::select! {
                    biased;
                    met = self.line(&matcher, &mut searches) => met.map(|()| Met::Yes),
                    () = ended => {
                        // Its last words may have come with its end.
                        let found = look(&matcher, &mut searches)?;
                        Ok(if found { Met::Yes } else { Met::Never })
                    }
                }
            }
        }
    }

    /// Returns once its tree listens on the port, or nothing of the tree is left. A server
    /// that was started in the background outlives the process that started it.
    async fn listens(&self, port: u16) -> Result<Met> {
        loop {
            // Checked before the look, so that the last look sees the whole tree's end.
            let is_over = self.ended.borrow().is_some() && !self.running.has_survivors();
            if self.listener(port).await? == Listener::Own {
                return Ok(Met::Yes);
            }
            if is_over {
                return Ok(Met::Never);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Whether something else listens on the port, and its tree does not.
    async fn is_taken(&self, port: u16) -> Result<bool> {
        Ok(self.listener(port).await? == Listener::Other)
    }

    async fn listener(&self, port: u16) -> Result<Listener> {
        let find = self.running.listener();
        let find = find.ok_or(Error::PortElsewhere { port })?;
        blocking::run(blocking::Weight::Heavy, move || Ok(find(port))).await
    }

    async fn idle(&self, quiet: Duration) {
        let pulse = self.running.pulse();
        loop {
            let since = pulse.borrow().at.elapsed();
            match quiet.checked_sub(since) {
                None | Some(Duration::ZERO) => return,
                Some(left) => tokio::time::sleep(left).await,
            }
        }
    }

    async fn line(&self, matcher: &RegexMatcher, searches: &mut [Search; 2]) -> Result<()> {
        let mut pulse = self.running.pulse();
        loop {
            pulse.borrow_and_update();
            if look(matcher, searches)? {
                return Ok(());
            }
            // The pulse comes before the bytes are on the disk.
            tokio::select! {
                changed = pulse.changed() => if changed.is_err() {
                    std::future::pending::<()>().await;
                },
                () = tokio::time::sleep(LOOK) => {}
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

/// How far one stream has been searched.
struct Search {
    log: Option<Arc<Log>>,
    seen: u64,
    /// The beginning of a line that had no end yet.
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

    /// Searches what is new, and the line it continues.
    fn find(&mut self, matcher: &RegexMatcher) -> Result<bool> {
        let Some(log) = &self.log else {
            return Ok(false);
        };
        while self.seen < log.len() {
            let (place, fresh) = log
                .from(self.seen, WINDOW)
                .map_err(|error| Error::io("read the log of", "the process", error))?;
            // What went between is not kept: the line before it has no end.
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
            // A line without end is searched in pieces.
            if self.line.len() > WINDOW {
                self.line.clear();
            }
        }
        Ok(false)
    }
}

fn look(matcher: &RegexMatcher, searches: &mut [Search; 2]) -> Result<bool> {
    for search in searches {
        if search.find(matcher)? {
            return Ok(true);
        }
    }
    Ok(false)
}
