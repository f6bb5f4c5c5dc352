//! One run from start to end. A single loop waits for the supervisor's reports, the output,
//! the clock and the caller.

use super::capture::Capture;
use super::disk::Log;
use super::job::Job;
use super::prompt;
use super::sample::{self, Sample};
use super::survivors::SurvivorRegistry;
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

/// Maximum number of bytes to read at a time.
const CHUNK: usize = 256 << 10;

/// Time after which a question counts as unanswered. The tree is checked twice, after half
/// of it and at the end.
const QUESTION: Duration = Duration::from_secs(2);

/// Time to wait for a tree after it should have been killed. A process that still exists
/// then cannot be killed.
const PATIENCE: Duration = Duration::from_millis(400);

/// Maximum number of survivors to list.
const MAX_SURVIVORS: usize = 50;

/// Settings of a run, and requests while it is running.
pub(super) struct RunControl<'a> {
    pub(super) limit: Option<Duration>,
    pub(super) prompts: Prompts,
    pub(super) watch: &'a Watch<'a>,
    pub(super) cancel: &'a CancellationToken,
    /// Requests to end the run, with the time between TERM and KILL.
    pub(super) stop: mpsc::UnboundedReceiver<Duration>,
    /// Takes over the processes that the command leaves behind.
    pub(super) registry: SurvivorRegistry,
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
    /// Whether the supervisor disappeared without a final report.
    supervisor_lost: bool,
    question: Question,
}

enum Phase {
    Running,
    /// TERM was sent; the deadline for the end.
    Ending(Instant),
    /// Its own process has ended; the deadline for its output.
    Draining(Instant),
    Over,
}

/// State of a possible question to the user.
struct Question {
    is_asking: bool,
    /// Time of the next check.
    next: Instant,
    before: Option<Sample>,
    /// The question, once it is certain that it will not be answered.
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
            supervisor_lost: false,
            question: Question {
                is_asking: false,
                next: begun,
                before: None,
                text: None,
            },
        }
    }

    /// Returns the process id of the supervisor.
    pub(super) fn supervisor(&self) -> u32 {
        self.job.supervisor()
    }

    /// Waits until the command has started, and returns its process id.
    pub(super) async fn started(&mut self) -> Result<u32> {
        match self.job.channel.report().await {
            // Inside a sandbox it has a different process id.
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

    /// Returns the logs, which can be read while the command runs.
    pub(super) fn logs(&self) -> (Option<Arc<Log>>, Option<Arc<Log>>) {
        (self.output.log(), self.error.log())
    }

    pub(super) async fn follow(mut self, mut control: RunControl<'_>) -> Result<Finished> {
        let mut chunk = Vec::with_capacity(CHUNK);
        let deadline = control
            .limit
            .and_then(|limit| self.begun.checked_add(limit));
        while !matches!(self.phase, Phase::Over) {
            if let Phase::Draining(_) = self.phase
                && self.job.pipes.is_closed()
            {
                break;
            }
            let running = matches!(self.phase, Phase::Running);
            let is_waiting = running && control.prompts == Prompts::End && self.question.is_asking;
            tokio::select! {
                biased;
                () = control.cancel.cancelled(), if running => self.end(Ended::Cancelled, GRACE).await,
                grace = control.stop.recv(), if running => {
                    // A closed channel is a request to end the run, too.
                    self.end(Ended::Cancelled, grace.unwrap_or(GRACE)).await;
                }
                () = until(deadline), if running => self.end(Ended::TimedOut, GRACE).await,
                () = until(self.phase.deadline()) => self.phase = Phase::Over,
                report = self.job.channel.report(), if !matches!(self.phase, Phase::Draining(_)) => {
                    self.handle_report(report)?;
                }
                stream = self.job.pipes.read(&mut chunk) => {
                    self.keep(stream, &mut chunk, control.watch).await;
                }
                () = tokio::time::sleep_until(self.question.next), if is_waiting => self.check_question().await,
            }
        }
        self.drain(&mut chunk, control.watch).await;
        Ok(self.finish(&control.registry).await)
    }

    async fn end(&mut self, ended: Ended, grace: Duration) {
        self.ended = ended;
        self.phase = Phase::Ending(Instant::now() + grace + PATIENCE);
        self.job.channel.end(grace).await;
    }

    fn handle_report(&mut self, report: Option<Report>) -> Result<()> {
        match report {
            Some(Report::Started(_)) => {}
            Some(Report::Failed(refusal, detail)) => return Err(self.job.refused(refusal, detail)),
            Some(Report::Exited(status, left)) => {
                self.status = status;
                // If the tree is being ended, the final report is still to come.
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
                self.supervisor_lost = true;
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
        self.question.is_asking = self.question_text().is_some();
        self.question.next = Instant::now() + QUESTION / 2;
        self.question.before = None;
    }

    /// Returns the text that looks like a question, from either stream.
    fn question_text(&self) -> Option<&[u8]> {
        [self.output.last_line(), self.error.last_line()]
            .into_iter()
            .find(|line| prompt::asks(line))
    }

    /// Checks whether the tree waits for an answer.
    async fn check_question(&mut self) {
        let now = sample::look(self.job.root());
        let waits = match (self.question.before, self.question_text()) {
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

    /// Reads what is in the pipes without waiting. It reads no more than a pipe can
    /// contain, so that processes that keep writing cannot prolong this.
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

    async fn finish(mut self, registry: &SurvivorRegistry) -> Finished {
        let must_kill = self.supervisor_lost
            || matches!(self.phase, Phase::Over) && self.ended != Ended::Itself;
        if must_kill {
            self.job.kill_tree().await;
        }
        // Left running, or impossible to kill.
        let survivors = if must_kill || self.left == Left::Some {
            let nodes = tree::descendants(self.job.root());
            nodes
                .into_iter()
                .take(MAX_SURVIVORS)
                .map(Survivor::from)
                .collect()
        } else {
            Vec::new()
        };
        if self.left == Left::Some {
            self.job.keep_survivors(registry);
        } else {
            if !must_kill {
                self.job.tree_ended();
            }
            drop(self.job);
        }
        let output = self.output.finish().await;
        let error = match self.streams {
            Streams::Merged => Captured::default(),
            Streams::Separate => self.error.finish().await,
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
