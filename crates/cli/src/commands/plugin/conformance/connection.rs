//! Connection to a running plugin: sends lines, receives messages, and counts everything
//! else.

use super::processes;
use super::program::{Program, Unstartable};
use super::screen::{Screen, shortened};
use haft::plugin_protocol::{Arrived, Assembler, LONGEST};
use serde_json::{Map, Value};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

/// Maximum number of lines that are not messages.
const MAX_NOISE: usize = 10_000;

/// Number of samples of such lines, and their maximum length.
const SAMPLES: usize = 3;
const SAMPLE: usize = 100;

/// Maximum number of queued messages.
const MAX_QUEUED: usize = 1_000;

/// Maximum characters of the last line on stderr.
const MAX_LAST_LINE: usize = 120;

/// Output other than well-formed messages, in all runs.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Lines that are not messages, and the first of them.
    pub(super) noise: usize,
    pub(super) samples: Vec<String>,
    /// Messages that span several lines.
    pub(super) pretty: usize,
    /// Messages that had to be repaired.
    pub(super) repaired: usize,
    /// Bare lists of tools.
    pub(super) lists: usize,
    /// Bytes of a line without a newline so far.
    pub(super) unended: usize,
    /// Whether it wrote more than the limits allow.
    pub(super) has_endless_output: bool,
    /// Lines that may be the start of a message.
    pending: Vec<String>,
    /// Bytes on stderr, and its last line in this run.
    pub(super) logged: u64,
    pub(super) last_line: String,
}

impl Tally {
    pub(super) fn note_noise(&mut self, line: &str) {
        self.noise += 1;
        if self.samples.len() < SAMPLES {
            self.samples.push(line.chars().take(SAMPLE).collect());
        }
    }

    /// Counts an unfinished message as noise.
    pub(super) fn settle(&mut self) {
        for line in std::mem::take(&mut self.pending) {
            self.note_noise(&line);
        }
    }
}

/// The tally, shared by the readers of stdout and stderr.
#[derive(Debug, Clone, Default)]
pub(super) struct Tallies(Arc<Mutex<Tally>>);

impl Tallies {
    pub(super) fn lock(&self) -> MutexGuard<'_, Tally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running plugin. Dropping it kills its process group.
pub(super) struct Connection {
    child: Child,
    group: Option<rustix::process::Pid>,
    input: Option<ChildStdin>,
    messages: mpsc::Receiver<Map<String, Value>>,
    pub(super) begun: Instant,
}

/// Result of waiting for a message.
#[derive(Debug)]
pub(super) enum Next {
    Message(Map<String, Value>),
    Silence,
    /// Stdout is closed.
    Gone,
}

impl Connection {
    pub(super) fn start(
        program: &Program,
        screen: &Screen,
        tallies: &Tallies,
    ) -> Result<Self, Unstartable> {
        tallies.lock().last_line.clear();
        let begun = Instant::now();
        let mut child = program.start()?;
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(rustix::process::Pid::from_raw);
        let (sender, messages) = mpsc::channel(MAX_QUEUED);
        if let Some(output) = child.stdout.take() {
            let reader = StdoutReader {
                screen: screen.clone(),
                tallies: tallies.clone(),
                assembler: Assembler::default(),
            };
            tokio::spawn(reader.run(output, sender));
        }
        if let Some(error) = child.stderr.take() {
            tokio::spawn(log(error, screen.clone(), tallies.clone()));
        }
        Ok(Self {
            group,
            input: child.stdin.take(),
            child,
            messages,
            begun,
        })
    }

    /// Writes a line within a time limit. A failed write shows up later as a missing
    /// answer.
    pub(super) async fn send(&mut self, line: &[u8], limit: Duration) {
        if let Some(input) = &mut self.input {
            let write = async {
                input.write_all(line).await?;
                input.flush().await
            };
            let _ = timeout(limit, write).await;
        }
    }

    pub(super) async fn next(&mut self, until: Instant) -> Next {
        match timeout_at(until, self.messages.recv()).await {
            Ok(Some(message)) => Next::Message(message),
            Ok(None) => Next::Gone,
            Err(_) => Next::Silence,
        }
    }

    /// Returns a message that has already arrived.
    pub(super) fn try_next(&mut self) -> Option<Map<String, Value>> {
        self.messages.try_recv().ok()
    }

    /// Whether the plugin has read everything that was sent.
    pub(super) fn has_read_all(&self) -> bool {
        let input = self.input.as_ref();
        input.is_some_and(|input| haft::ops::executor::unread(input).is_ok_and(|left| left == 0))
    }

    /// Closes the plugin's stdin.
    pub(super) fn close(&mut self) {
        self.input = None;
    }

    /// Returns the exit status, if the plugin exits within the time limit.
    pub(super) async fn exit_status(&mut self, limit: Duration) -> Option<ExitStatus> {
        timeout(limit, self.child.wait()).await.ok()?.ok()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Once the leader is reaped, its id may belong to another process; its children
        // are then found as orphans.
        if let Some(group) = self.group.filter(|_| self.child.id().is_some()) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        processes::kill(processes::descendants());
    }
}

/// Reads the plugin's stdout.
struct StdoutReader {
    screen: Screen,
    tallies: Tallies,
    assembler: Assembler,
}

impl StdoutReader {
    async fn run(
        mut self,
        output: impl AsyncRead + Unpin,
        sender: mpsc::Sender<Map<String, Value>>,
    ) {
        let mut reader = BufReader::with_capacity(64 << 10, output);
        let mut line = Vec::new();
        loop {
            let (used, is_whole, is_over) = match reader.fill_buf().await {
                Ok([]) | Err(_) => (0, true, true),
                Ok(buffer) => {
                    let end = buffer.iter().position(|byte| *byte == b'\n');
                    let part = buffer.get(..end.unwrap_or(buffer.len()));
                    line.extend_from_slice(part.unwrap_or_default());
                    (
                        end.map_or(buffer.len(), |end| end + 1),
                        end.is_some(),
                        false,
                    )
                }
            };
            reader.consume(used);
            if line.len() > LONGEST {
                self.tallies.lock().has_endless_output = true;
                return;
            }
            if !is_whole {
                self.tallies.lock().unended = line.len();
                continue;
            }
            if !is_over {
                self.tallies.lock().unended = 0;
            }
            let received = self.line(&line);
            line.clear();
            if let Some(message) = received
                && sender.send(message).await.is_err()
            {
                return;
            }
            if is_over || self.tallies.lock().has_endless_output {
                return;
            }
        }
    }

    fn line(&mut self, line: &[u8]) -> Option<Map<String, Value>> {
        if line.trim_ascii().is_empty() {
            return None;
        }
        self.screen.received(line);
        let alone = serde_json::from_slice::<Map<String, Value>>(line).ok();
        let arrived = self.assembler.take(line.to_vec());
        let mut tally = self.tallies.lock();
        match arrived {
            None => {
                if tally.pending.len() < MAX_NOISE {
                    tally.pending.push(shortened(line, SAMPLE));
                }
                None
            }
            Some(Arrived::Message(message)) => {
                if tally.pending.is_empty() {
                    let is_list = line.trim_ascii_start().starts_with(b"[");
                    tally.lists += usize::from(is_list);
                    tally.repaired += usize::from(alone.is_none() && !is_list);
                } else if alone.as_ref() == Some(&message) {
                    // The pending lines were not the start of this message.
                    tally.settle();
                } else {
                    tally.pending.clear();
                    tally.pretty += 1;
                }
                Some(message)
            }
            Some(Arrived::Noise(noise)) => {
                tally.note_noise(&noise);
                tally.has_endless_output |= tally.noise > MAX_NOISE;
                None
            }
            Some(Arrived::Refused { why, .. }) => {
                tally.note_noise(&format!("a message with {why}"));
                None
            }
            Some(Arrived::TooLong) => {
                tally.has_endless_output = true;
                None
            }
        }
    }
}

/// Reads the plugin's stderr, so that the plugin never blocks on it.
async fn log(error: impl AsyncRead + Unpin, screen: Screen, tallies: Tallies) {
    let mut reader = BufReader::with_capacity(64 << 10, error);
    let mut line = Vec::new();
    loop {
        let (used, is_whole, is_over) = match reader.fill_buf().await {
            Ok([]) | Err(_) => (0, true, true),
            Ok(buffer) => {
                let end = buffer.iter().position(|byte| *byte == b'\n');
                let part = buffer
                    .get(..end.unwrap_or(buffer.len()))
                    .unwrap_or_default();
                // The start of an endless line is enough.
                let room = (8_usize << 10).saturating_sub(line.len());
                line.extend_from_slice(part.get(..room).unwrap_or(part));
                (
                    end.map_or(buffer.len(), |end| end + 1),
                    end.is_some(),
                    false,
                )
            }
        };
        reader.consume(used);
        let mut tally = tallies.lock();
        tally.logged += used as u64;
        if is_whole && !line.trim_ascii().is_empty() {
            screen.logged(&line);
            tally.last_line = shortened(line.trim_ascii(), MAX_LAST_LINE);
        }
        drop(tally);
        if is_whole {
            line.clear();
        }
        if is_over {
            return;
        }
    }
}
