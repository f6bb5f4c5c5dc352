//! One run from its order to its end. Everything a run waits for is in one loop:
//! the supervisor's reports, the output, the clock, the caller.

use super::capture::Capture;
use super::disk::Log;
use super::job::{Held, Job};
use super::prompt;
use super::sample::{self, Sample};
use super::wire::{Left, Report};
use super::{
    Captured, DRAIN, Ended, Exit, Finished, GRACE, Prompts, Stream, Streams, Survivor, Watch, tree,
};
use crate::Result;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How much is read at a time.
const CHUNK: usize = 256 << 10;

/// How long a question may stand before it counts as unanswered; looked at
/// twice, half of it apart.
const QUESTION: Duration = Duration::from_secs(2);

/// How long after a tree should be dead its death is awaited. What is not gone
/// by then cannot be killed.
const PATIENCE: Duration = Duration::from_millis(400);

/// The most survivors that are named.
const NAMED: usize = 50;

/// What a run is told while it goes on.
pub(super) struct Orders<'a> {
    pub(super) limit: Option<Duration>,
    pub(super) prompts: Prompts,
    pub(super) watch: &'a Watch<'a>,
    pub(super) cancel: &'a CancellationToken,
    /// Requests to end it, with the time it has to end by itself.
    pub(super) stop: mpsc::UnboundedReceiver<Duration>,
    /// Where the processes go that the command leaves behind.
    pub(super) held: Held,
}

pub(super) struct Drive {
    job: Job,
    output: Capture,
    error: Capture,
    streams: Streams,
    begun: Instant,
    phase: Phase,
    ended: Ended,
    status: Exit,
    left: Left,
    /// Whether the supervisor went without a word.
    deserted: bool,
    question: Question,
}

enum Phase {
    Running,
    /// Asked to end; not awaited beyond this.
    Ending(Instant),
    /// Its own process ended; output is not awaited beyond this.
    Draining(Instant),
    Over,
}

/// What is known of a question that nobody has answered yet.
struct Question {
    asks: bool,
    /// When the tree is looked at next.
    next: Instant,
    before: Option<Sample>,
    /// The question, once it is sure that nobody will answer.
    text: Option<String>,
}

impl Phase {
    fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Ending(at) | Self::Draining(at) => Some(*at),
            Self::Running | Self::Over => None,
        }
    }
}

impl Drive {
    pub(super) fn new(
        job: Job,
        output: Capture,
        error: Capture,
        streams: Streams,
        begun: Instant,
    ) -> Self {
        Self {
            job,
            output,
            error,
            streams,
            begun,
            phase: Phase::Running,
            ended: Ended::Itself,
            status: Exit::Unknown,
            left: Left::Nothing,
            deserted: false,
            question: Question {
                asks: false,
                next: begun,
                before: None,
                text: None,
            },
        }
    }

    /// The process number of the supervisor.
    pub(super) fn supervisor(&self) -> u32 {
        self.job.supervisor()
    }

    /// Waits until the command runs, and answers with its number.
    pub(super) async fn started(&mut self) -> Result<u32> {
        match self.job.line.report().await {
            // Inside a sandbox it goes by another number.
            Some(Report::Started(pid)) => Ok(if self.job.is_confined() {
                tree::children(self.job.root())
                    .first()
                    .copied()
                    .unwrap_or(0)
            } else {
                pid
            }),
            Some(Report::Failed(refusal, detail)) => Err(self.job.refused(refusal, detail)),
            _ => Err(self.job.refused(
                super::Refusal::NoSupervisor,
                "the supervisor ended before the command began".to_owned(),
            )),
        }
    }

    /// What can be read while it runs.
    pub(super) fn logs(&self) -> (Option<Arc<Log>>, Option<Arc<Log>>) {
        (self.output.log(), self.error.log())
    }

    pub(super) async fn follow(mut self, mut orders: Orders<'_>) -> Result<Finished> {
        let mut chunk = Vec::with_capacity(CHUNK);
        let deadline = orders.limit.and_then(|limit| self.begun.checked_add(limit));
        while !matches!(self.phase, Phase::Over) {
            if let Phase::Draining(_) = self.phase
                && self.job.pipes.silent()
            {
                break;
            }
            let running = matches!(self.phase, Phase::Running);
            let asked = running && orders.prompts == Prompts::End && self.question.asks;
            tokio::select! {
                biased;
                () = orders.cancel.cancelled(), if running => self.end(Ended::Cancelled, GRACE).await,
                grace = orders.stop.recv(), if running => {
                    // Nobody left who could ask is a request as well.
                    self.end(Ended::Cancelled, grace.unwrap_or(GRACE)).await;
                }
                () = until(deadline), if running => self.end(Ended::TimedOut, GRACE).await,
                () = until(self.phase.deadline()) => self.phase = Phase::Over,
                report = self.job.line.report(), if !matches!(self.phase, Phase::Draining(_)) => {
                    self.hear(report)?;
                }
                stream = self.job.pipes.read(&mut chunk) => {
                    self.keep(stream, &mut chunk, orders.watch).await;
                }
                () = tokio::time::sleep_until(self.question.next), if asked => self.look().await,
            }
        }
        self.drain(&mut chunk, orders.watch).await;
        Ok(self.finish(&orders.held).await)
    }

    async fn end(&mut self, ended: Ended, grace: Duration) {
        self.ended = ended;
        self.phase = Phase::Ending(Instant::now() + grace + PATIENCE);
        self.job.line.end(grace).await;
    }

    fn hear(&mut self, report: Option<Report>) -> Result<()> {
        match report {
            Some(Report::Started(_)) => {}
            Some(Report::Failed(refusal, detail)) => return Err(self.job.refused(refusal, detail)),
            Some(Report::Exited(status, left)) => {
                self.status = status;
                // While the tree is being ended, its last word is still to come.
                if matches!(self.phase, Phase::Running) || left == Left::Nothing {
                    self.left = left;
                    self.phase = Phase::Draining(Instant::now() + DRAIN);
                }
            }
            Some(Report::Gone(status)) => {
                self.status = status;
                self.left = Left::Nothing;
                self.phase = Phase::Draining(Instant::now() + DRAIN);
            }
            None => {
                self.deserted = true;
                self.phase = Phase::Draining(Instant::now() + DRAIN);
            }
        }
        Ok(())
    }

    async fn keep(&mut self, stream: Stream, chunk: &mut Vec<u8>, watch: &Watch<'_>) {
        if chunk.is_empty() {
            return;
        }
        watch(stream, chunk);
        let capture = match stream {
            Stream::Output => &mut self.output,
            Stream::Error => &mut self.error,
        };
        capture.feed(chunk).await;
        chunk.reserve(CHUNK);
        self.question.asks = self.asked().is_some();
        self.question.next = Instant::now() + QUESTION / 2;
        self.question.before = None;
    }

    /// What the command seems to ask, on either stream.
    fn asked(&self) -> Option<&[u8]> {
        [self.output.last_line(), self.error.last_line()]
            .into_iter()
            .find(|line| prompt::asks(line))
    }

    /// Looks whether the tree waits for an answer.
    async fn look(&mut self) {
        let now = sample::look(self.job.root());
        let waits = match (self.question.before, self.asked()) {
            (Some(before), Some(line)) if now.waits(before) => Some(prompt::plain(line)),
            _ => None,
        };
        self.question.before = Some(now);
        self.question.next = Instant::now() + QUESTION / 2;
        if waits.is_some() {
            self.question.text = waits;
            self.end(Ended::Waiting, GRACE).await;
        }
    }

    /// Takes what is in the pipes without waiting for more. Whoever still writes
    /// to them cannot make this last: no more is taken than a pipe holds.
    async fn drain(&mut self, chunk: &mut Vec<u8>, watch: &Watch<'_>) {
        for stream in [Stream::Output, Stream::Error] {
            let mut taken = 0;
            while taken < super::job::PIPE {
                self.job.pipes.read_now(stream, chunk);
                if chunk.is_empty() {
                    break;
                }
                taken += chunk.len();
                self.keep(stream, chunk, watch).await;
            }
        }
    }

    async fn finish(self, held: &Held) -> Finished {
        let unanswered =
            self.deserted || matches!(self.phase, Phase::Over) && self.ended != Ended::Itself;
        if unanswered {
            self.job.avenge().await;
        }
        // Left, or not to be killed at all.
        let survivors = if unanswered || self.left == Left::Some {
            let nodes = tree::descendants(self.job.root());
            nodes.into_iter().take(NAMED).map(Survivor::from).collect()
        } else {
            Vec::new()
        };
        if self.left == Left::Some {
            self.job.hold(held);
        } else {
            drop(self.job);
        }
        let output = self.output.finish().await;
        let error = match self.streams {
            Streams::Merged => Captured::default(),
            Streams::Apart => self.error.finish().await,
        };
        Finished {
            status: self.status,
            ended: self.ended,
            output,
            error,
            survivors,
            duration: self.begun.elapsed(),
            waiting_for_input: self.question.text,
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
