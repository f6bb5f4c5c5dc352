//! The connection to a host: named pipes between haft and the ssh below a supervisor, and
//! the task that serves them. The pipes have names only until they are open.
//!
//! ssh returns two streams, and a command with separate streams needs both. So the second
//! stream is split here: reports to haft, recognised by their token, and other output,
//! which goes to the executor's pipe.

use super::super::{Exit, Refusal, Streams, Survivor};
use super::order::{self, Names};
use rustix::fs::{AtFlags, CWD, Mode, chmodat, mkfifoat, unlinkat};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{OpenOptions, Receiver, Sender};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Maximum number of bytes to read at a time.
const CHUNK: usize = 64 << 10;

/// Maximum number of bytes to keep of ssh's own messages.
const MAX_MESSAGES: usize = 8 << 10;

/// Maximum length of a report.
const MAX_REPORT: usize = 1 << 10;

/// State of a run on a host.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// Process id on the host.
    pub(super) pid: u32,
    /// Whether the command was started.
    pub(super) started: bool,
    /// The reason if it was not.
    pub(super) failed: Option<Refusal>,
    /// Exit status of its own process.
    pub(super) ended: Option<Exit>,
    /// Processes it left behind.
    pub(super) left: Vec<Survivor>,
    /// Messages of ssh.
    pub(super) messages: Vec<u8>,
    /// Whether the connection has ended, so that nothing more will be known.
    pub(super) is_closed: bool,
}

/// An open connection. Dropping it closes it, which ends the run on the host.
pub(super) struct Connection {
    pub(super) folder: PathBuf,
    pub(super) state: watch::Receiver<State>,
    /// Requests to end the run, with the time between TERM and KILL.
    pub(super) end: mpsc::UnboundedSender<Duration>,
    task: Option<JoinHandle<()>>,
}

impl Connection {
    /// Creates the pipes in a new folder below `folder`, and serves them until ssh has
    /// ended or `shutdown` is triggered.
    pub(super) fn open(
        folder: &Path,
        streams: Streams,
        order: Vec<u8>,
        names: &Names,
        host: &str,
        shutdown: CancellationToken,
    ) -> io::Result<Self> {
        crate::private::folder(folder)?;
        let pipes = Folder::new(folder)?;
        let sender = |name: &str| -> io::Result<Sender> {
            let path = pipes.pipe(name)?;
            // There is no reader yet, which must not be an error.
            OpenOptions::new().read_write(true).open_sender(path)
        };
        let (lifeline, done) = (sender("in")?, sender("done")?);
        let error = match streams {
            Streams::Merged => None,
            Streams::Separate => Some(sender("error")?),
        };
        let control = OpenOptions::new().open_receiver(pipes.pipe("control")?)?;
        let (state, receiver) = watch::channel(State::default());
        let (end, requests) = mpsc::unbounded_channel();
        let path = pipes.path.clone();
        let server = Server {
            control,
            lifeline,
            pending: order,
            done: Some(done),
            error,
            requests: Some(requests),
            ending: false,
            state,
            sorter: Sorter::new(&names.token),
            greeting: Some(Vec::new()),
            pipes: Some(pipes),
            lost: format!("lost [the connection to {host} was lost]\n"),
        };
        let task = tokio::spawn(async move {
            tokio::select! {
                () = server.serve() => {}
                () = shutdown.cancelled() => {}
            }
        });
        Ok(Self {
            folder: path,
            state: receiver,
            end,
            task: Some(task),
        })
    }

    /// Keeps serving it in the background for the processes that the command left behind.
    pub(super) fn release(mut self) {
        self.task = None;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

/// A folder of named pipes, removed when it is dropped. Open pipes keep working.
struct Folder {
    path: PathBuf,
}

const PIPES: [&str; 4] = ["in", "done", "error", "control"];

impl Folder {
    fn new(below: &Path) -> io::Result<Self> {
        let path = below.join(format!("ssh-{}", order::random()));
        crate::private::folder(&path)?;
        Ok(Self { path })
    }

    fn pipe(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR)?;
        // The umask may have removed permissions that the owner needs.
        chmodat(CWD, &path, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        for name in PIPES {
            let _ = unlinkat(CWD, self.path.join(name), AtFlags::empty());
        }
        let _ = unlinkat(CWD, &self.path, AtFlags::REMOVEDIR);
    }
}

struct Server {
    control: Receiver,
    lifeline: Sender,
    /// Bytes still to be written to the lifeline.
    pending: Vec<u8>,
    done: Option<Sender>,
    error: Option<Sender>,
    requests: Option<mpsc::UnboundedReceiver<Duration>>,
    ending: bool,
    state: watch::Sender<State>,
    sorter: Sorter,
    /// The first line comes from the shell that starts ssh; `None` once it has arrived.
    greeting: Option<Vec<u8>>,
    pipes: Option<Folder>,
    lost: String,
}

impl Server {
    async fn serve(mut self) {
        let mut chunk = Vec::with_capacity(CHUNK);
        loop {
            chunk.clear();
            tokio::select! {
                read = self.control.read_buf(&mut chunk) => match read {
                    Ok(0) | Err(_) => break,
                    Ok(_) => self.take(&chunk).await,
                },
                written = self.lifeline.write(&self.pending), if !self.pending.is_empty() => {
                    let written = written.unwrap_or(self.pending.len());
                    self.pending.drain(..written);
                }
                request = next_request(self.requests.as_mut()) => match request {
                    Some(grace) => {
                        self.ending = true;
                        self.pending.extend(format!("{}\n", grace.as_millis().max(1)).bytes());
                    }
                    None => self.requests = None,
                },
            }
        }
        let rest = std::mem::take(&mut self.sorter.partial);
        self.other(&rest).await;
        let state = self.state.borrow().clone();
        if state.started && state.ended.is_none() {
            let word = std::mem::take(&mut self.lost);
            self.tell(&word).await;
        }
        // Before the shell continues, which waits for both of these.
        self.state.send_modify(|state| state.is_closed = true);
        drop(self.error.take());
        drop(self.done.take());
    }

    async fn tell(&mut self, word: &str) {
        if let Some(mut done) = self.done.take() {
            let _ = done.write_all(word.as_bytes()).await;
            self.done = Some(done);
        }
    }

    async fn take(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        if let Some(greeting) = &mut self.greeting {
            let end = bytes.iter().position(|&byte| byte == b'\n');
            let (first, rest) = bytes.split_at(end.map_or(bytes.len(), |at| at + 1));
            greeting.extend_from_slice(first);
            bytes = rest;
            if end.is_some() {
                // The other side has opened the pipes, too.
                self.pipes = None;
                if greeting.starts_with(b"N") {
                    let text = b"the program ssh was not found: install an OpenSSH client";
                    self.state.send_modify(|state| state.messages.extend(text));
                }
                self.greeting = None;
            }
        }
        let (rest, reports) = self.sorter.feed(bytes);
        for piece in reports {
            match piece {
                Piece::Report(text) => self.handle_report(&text).await,
                Piece::Other(bytes) => self.other(&bytes).await,
            }
        }
        self.other(&rest).await;
    }

    async fn handle_report(&mut self, report: &str) {
        let mut words = report.splitn(3, ' ');
        let (kind, first, second) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        let number = first.parse().unwrap_or(0);
        self.state.send_modify(|state| match kind {
            "P" => state.pid = number,
            "S" => state.started = true,
            "F" => {
                state.failed = Some(match first {
                    "directory" => Refusal::NoDirectory,
                    "missing" => Refusal::Missing,
                    _ => Refusal::NotExecutable,
                });
            }
            "L" => state.left.push(Survivor {
                pid: number,
                name: second.to_owned(),
            }),
            "X" => {
                let value = second.trim().parse().unwrap_or(0);
                state.ended = Some(match first {
                    "signal" => Exit::Signal(value),
                    _ => Exit::Code(value),
                });
            }
            _ => {}
        });
        let left = !self.state.borrow().left.is_empty();
        // If the run is being ended, haft waits for the rest.
        if kind == "X" && left && !self.ending {
            self.tell("left\n").await;
        }
    }

    /// Handles bytes that are not a report: messages of ssh, or output of the command.
    async fn other(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let started = self.state.borrow().started;
        match &mut self.error {
            Some(error) if started => drop(error.write_all(bytes).await),
            _ => self.state.send_modify(|state| {
                state.messages.extend_from_slice(bytes);
                let over = state.messages.len().saturating_sub(MAX_MESSAGES);
                state.messages.drain(..over);
            }),
        }
    }
}

async fn next_request(
    requests: Option<&mut mpsc::UnboundedReceiver<Duration>>,
) -> Option<Duration> {
    match requests {
        Some(requests) => requests.recv().await,
        None => std::future::pending().await,
    }
}

/// Separates reports from other bytes in a stream.
struct Sorter {
    token: Vec<u8>,
    /// Bytes that may be the start of a report.
    partial: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Report(String),
    Other(Vec<u8>),
}

impl Sorter {
    fn new(token: &str) -> Self {
        Self {
            token: format!("{token} ").into_bytes(),
            partial: Vec::new(),
        }
    }

    /// Returns the bytes before the first report, then each complete report with the bytes
    /// after it.
    fn feed(&mut self, bytes: &[u8]) -> (Vec<u8>, Vec<Piece>) {
        let mut pieces = Vec::new();
        let mut rest = std::mem::take(&mut self.partial);
        rest.extend_from_slice(bytes);
        while let Some(at) = memchr::memmem::find(&rest, &self.token) {
            let report = rest.split_off(at);
            let body = report.get(self.token.len()..).unwrap_or_default();
            let Some(end) = body.iter().position(|&byte| byte == b'\n') else {
                if report.len() < MAX_REPORT {
                    self.partial = report;
                }
                return (rest, pieces);
            };
            if !rest.is_empty() {
                pieces.push(Piece::Other(rest));
            }
            let (text, after) = body.split_at(end);
            pieces.push(Piece::Report(String::from_utf8_lossy(text).into_owned()));
            rest = after.get(1..).unwrap_or_default().to_vec();
        }
        let begun = (1..self.token.len().min(rest.len() + 1))
            .rev()
            .find(|&length| {
                self.token
                    .get(..length)
                    .is_some_and(|part| rest.ends_with(part))
            });
        if let Some(length) = begun {
            self.partial = rest.split_off(rest.len() - length);
        }
        (rest, pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reports_are_found_wherever_a_stream_is_cut(
            // Prefixes of the token, but never all of it.
            parts in prop::collection::vec("[ab \n]{0,6}", 1..6),
            sizes in prop::collection::vec(1_usize..9, 1..40),
        ) {
            let mut stream = Vec::new();
            for (at, part) in parts.iter().enumerate() {
                stream.extend_from_slice(part.as_bytes());
                stream.extend_from_slice(format!("aabc R {at}\n").as_bytes());
            }
            let mut sorter = Sorter::new("aabc");
            let (mut other, mut reports) = (Vec::new(), Vec::new());
            let mut left = stream.as_slice();
            for size in sizes.iter().cycle() {
                if left.is_empty() { break; }
                let (now, later) = left.split_at((*size).min(left.len()));
                left = later;
                let (rest, pieces) = sorter.feed(now);
                for piece in pieces {
                    match piece {
                        Piece::Report(text) => reports.push(text),
                        Piece::Other(bytes) => other.extend(bytes),
                    }
                }
                other.extend(rest);
            }
            let expected: Vec<String> = (0..parts.len()).map(|at| format!("R {at}")).collect();
            prop_assert_eq!(reports, expected);
            prop_assert_eq!(String::from_utf8(other).unwrap(), parts.concat());
        }
    }
}
