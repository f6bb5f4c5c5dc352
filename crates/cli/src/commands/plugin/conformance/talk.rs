//! One run of the program: lines in, messages out, and a tally of everything that is
//! neither.

use super::family;
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

/// How much that is no message is borne.
const MOST_NOISE: usize = 10_000;

/// How many samples of it are kept, and how long each may be.
const SAMPLES: usize = 3;
const SAMPLE: usize = 100;

/// How many messages wait to be looked at.
const WAITING: usize = 1_000;

/// How much of the last line on stderr is told.
const LAST_WORDS: usize = 120;

/// What was seen besides messages, in all runs.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Lines that are no messages, and the first of them.
    pub(super) noise: usize,
    pub(super) samples: Vec<String>,
    /// Messages on several lines.
    pub(super) pretty: usize,
    /// Messages that had to be repaired.
    pub(super) mended: usize,
    /// Lists of tools without an object around them.
    pub(super) lists: usize,
    /// Bytes of a line whose end has not come.
    pub(super) unended: usize,
    /// Whether it wrote more than can be borne.
    pub(super) is_babbling: bool,
    /// Lines that may be the beginning of a message.
    held: Vec<String>,
    /// Bytes on stderr, and the last line of this run.
    pub(super) logged: u64,
    pub(super) last_words: String,
}

impl Tally {
    pub(super) fn note_noise(&mut self, line: &str) {
        self.noise += 1;
        if self.samples.len() < SAMPLES {
            self.samples.push(line.chars().take(SAMPLE).collect());
        }
    }

    /// A message that was begun and never ended was none.
    pub(super) fn settle(&mut self) {
        for line in std::mem::take(&mut self.held) {
            self.note_noise(&line);
        }
    }
}

/// The tally, which the readers of both streams share.
#[derive(Debug, Clone, Default)]
pub(super) struct Tallies(Arc<Mutex<Tally>>);

impl Tallies {
    pub(super) fn lock(&self) -> MutexGuard<'_, Tally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A program that runs. Dropping it ends its process group.
pub(super) struct Talk {
    child: Child,
    group: Option<rustix::process::Pid>,
    input: Option<ChildStdin>,
    messages: mpsc::Receiver<Map<String, Value>>,
    pub(super) begun: Instant,
}

/// What came next.
#[derive(Debug)]
pub(super) enum Next {
    Message(Map<String, Value>),
    Silence,
    /// Its stdout is closed.
    Gone,
}

impl Talk {
    pub(super) fn start(
        program: &Program,
        screen: &Screen,
        tallies: &Tallies,
    ) -> Result<Self, Unstartable> {
        tallies.lock().last_words.clear();
        let begun = Instant::now();
        let mut child = program.start()?;
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(rustix::process::Pid::from_raw);
        let (sender, messages) = mpsc::channel(WAITING);
        if let Some(output) = child.stdout.take() {
            let hearing = Hearing {
                screen: screen.clone(),
                tallies: tallies.clone(),
                assembler: Assembler::default(),
            };
            tokio::spawn(hearing.run(output, sender));
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

    /// Writes, as long as that may take. What cannot be written is heard as silence.
    pub(super) async fn say(&mut self, line: &[u8], patience: Duration) {
        if let Some(input) = &mut self.input {
            let write = async {
                input.write_all(line).await?;
                input.flush().await
            };
            let _ = timeout(patience, write).await;
        }
    }

    pub(super) async fn next(&mut self, until: Instant) -> Next {
        match timeout_at(until, self.messages.recv()).await {
            Ok(Some(message)) => Next::Message(message),
            Ok(None) => Next::Gone,
            Err(_) => Next::Silence,
        }
    }

    /// A message that is there already.
    pub(super) fn waiting(&mut self) -> Option<Map<String, Value>> {
        self.messages.try_recv().ok()
    }

    /// Whether it has read everything that was written to it.
    pub(super) fn has_read_all(&self) -> bool {
        let input = self.input.as_ref();
        input.is_some_and(|input| haft::ops::executor::unread(input).is_ok_and(|left| left == 0))
    }

    /// Closes its stdin.
    pub(super) fn close(&mut self) {
        self.input = None;
    }

    /// How it ended, if it does within that time.
    pub(super) async fn ended(&mut self, patience: Duration) -> Option<ExitStatus> {
        timeout(patience, self.child.wait()).await.ok()?.ok()
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // Once the leader is reaped its number may be somebody else's; then those it
        // left are found as orphans.
        if let Some(group) = self.group.filter(|_| self.child.id().is_some()) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        family::end(family::left());
    }
}

/// Reads what the program writes to stdout.
struct Hearing {
    screen: Screen,
    tallies: Tallies,
    assembler: Assembler,
}

impl Hearing {
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
                self.tallies.lock().is_babbling = true;
                return;
            }
            if !is_whole {
                self.tallies.lock().unended = line.len();
                continue;
            }
            if !is_over {
                self.tallies.lock().unended = 0;
            }
            let heard = self.line(&line);
            line.clear();
            if let Some(message) = heard
                && sender.send(message).await.is_err()
            {
                return;
            }
            if is_over || self.tallies.lock().is_babbling {
                return;
            }
        }
    }

    fn line(&mut self, line: &[u8]) -> Option<Map<String, Value>> {
        if line.trim_ascii().is_empty() {
            return None;
        }
        self.screen.heard(line);
        let alone = serde_json::from_slice::<Map<String, Value>>(line).ok();
        let arrived = self.assembler.take(line.to_vec());
        let mut tally = self.tallies.lock();
        match arrived {
            None => {
                if tally.held.len() < MOST_NOISE {
                    tally.held.push(shortened(line, SAMPLE));
                }
                None
            }
            Some(Arrived::Message(message)) => {
                if tally.held.is_empty() {
                    let is_list = line.trim_ascii_start().starts_with(b"[");
                    tally.lists += usize::from(is_list);
                    tally.mended += usize::from(alone.is_none() && !is_list);
                } else if alone.as_ref() == Some(&message) {
                    // What seemed to be its beginning was something else.
                    tally.settle();
                } else {
                    tally.held.clear();
                    tally.pretty += 1;
                }
                Some(message)
            }
            Some(Arrived::Noise(noise)) => {
                tally.note_noise(&noise);
                tally.is_babbling |= tally.noise > MOST_NOISE;
                None
            }
            Some(Arrived::Refused { why, .. }) => {
                tally.note_noise(&format!("a message with {why}"));
                None
            }
            Some(Arrived::TooLong) => {
                tally.is_babbling = true;
                None
            }
        }
    }
}

/// Reads what the program writes to stderr, so that it never waits for us.
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
                // Of a line without end the beginning is enough.
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
            tally.last_words = shortened(line.trim_ascii(), LAST_WORDS);
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
