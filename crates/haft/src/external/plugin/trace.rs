//! Observing the host of a plugin, for programs that test plugins.

use super::lines::{Arrived, MessageForm};
use super::pipe::Pipe;
use super::shape;
use crate::{Definition, Error};
use haft_ops::executor::{Finished, Log, Running, Stream};
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// Maximum length of a line of stderr that is passed on, in bytes.
const MAX_LINE: usize = 8 << 10;

/// Maximum number of bytes of stderr to read at a time.
const CHUNK: usize = 64 << 10;

/// Time until output that was announced is in the log.
const WRITTEN: Duration = Duration::from_millis(5);

/// Something that a plugin or its host did.
#[derive(Debug)]
pub enum TraceEvent<'a> {
    /// The host started the program.
    Started {
        /// Id of the process.
        pid: u32,
    },
    /// The host could not start the program.
    NotStarted(&'a Error),
    /// The host writes this line to stdin.
    Sent(&'a str),
    /// The host closed stdin.
    InputClosed,
    /// The program wrote this line to stdout.
    Received(&'a [u8]),
    /// The program wrote a part of a line to stdout.
    Unfinished,
    /// The host read a message from the last line or lines.
    Message(&'a Map<String, Value>, MessageForm),
    /// The host skipped the last line or lines. This is the start of their text, or why they
    /// were refused.
    Skipped(&'a str),
    /// The host stopped reading stdout, because there was too much that is not a message.
    TooMuchOutput,
    /// The program wrote this line to stderr.
    Logged(&'a [u8]),
    /// The host accepted a message as the definition of the plugin.
    Defined(&'a Map<String, Value>),
    /// The host completed the handshake.
    Introduced {
        /// Name of the protocol in the configuration.
        protocol: &'static str,
        /// Whether the plugin uses version 2 of it.
        is_second: bool,
    },
    /// The host uses a tool of the definition, or leaves it out for this reason. Reported
    /// for each tool in order.
    Tool(Result<&'a Definition, &'a str>),
    /// The last message answers a call.
    Answered {
        /// Id of the call.
        call_id: &'a str,
        /// Whether the message contains that id.
        is_named: bool,
        /// Deviations from the documented form of a result, which the host tolerates.
        deviations: Vec<String>,
    },
    /// The last message reports progress.
    Updated {
        /// Deviations from the documented form of an update, which the host tolerates.
        deviations: Vec<String>,
    },
    /// The last message is an answer to no pending call. The host dropped it.
    Stray {
        /// Whether the message contains an id.
        is_named: bool,
    },
    /// The last message is not one that the host knows. The host dropped it.
    Unknown,
    /// A process ended.
    Exited {
        /// Id of the process.
        pid: u32,
        /// Exit status, and the processes that it left running.
        finished: &'a Finished,
    },
}

/// Observes everything that happens between a plugin and its host. Cheap to clone. The
/// default one observes nothing.
#[derive(Clone, Default)]
pub struct Trace(Option<Arc<Observer>>);

struct Observer {
    observe: Box<dyn Fn(TraceEvent<'_>) + Send + Sync>,
    /// Input of the last process.
    input: Mutex<Weak<Pipe>>,
}

impl Trace {
    /// Passes each event to this function, which must return soon and must not call the
    /// plugin.
    #[must_use]
    pub fn new(observe: impl Fn(TraceEvent<'_>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(Observer {
            observe: Box::new(observe),
            input: Mutex::default(),
        })))
    }

    /// Closes the input of the running process, so that it can exit by itself.
    pub fn close_input(&self) {
        let Some(observer) = &self.0 else { return };
        let input = observer
            .input
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(pipe) = input.upgrade() {
            pipe.close();
            self.emit(|| TraceEvent::InputClosed);
        }
    }

    /// Reports an event, which is created only if something observes it.
    pub(super) fn emit<'a>(&self, event: impl FnOnce() -> TraceEvent<'a>) {
        if let Some(observer) = &self.0 {
            (observer.observe)(event());
        }
    }

    /// Reports what the last lines of output are.
    pub(super) fn arrived(&self, arrived: &Arrived, form: MessageForm) {
        self.emit(|| match arrived {
            Arrived::Message(message) => TraceEvent::Message(message, form),
            Arrived::Noise(text) => TraceEvent::Skipped(text),
            Arrived::Refused { why, .. } => TraceEvent::Skipped(why),
            Arrived::TooLong => TraceEvent::TooMuchOutput,
        });
    }

    /// Reports an update.
    pub(super) fn updated(&self, message: &Map<String, Value>) {
        self.emit(|| TraceEvent::Updated {
            deviations: shape::update(message),
        });
    }

    /// Returns the deviations of a result, if something observes them.
    pub(super) fn deviations(&self, message: &Map<String, Value>) -> Vec<String> {
        match self.0 {
            Some(_) => shape::result(message),
            None => Vec::new(),
        }
    }

    /// Reports the start of a process, and from now on its stderr and its end.
    pub(super) fn started(&self, pipe: &Arc<Pipe>, running: &Running) {
        let Some(observer) = &self.0 else { return };
        let mut input = observer
            .input
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *input = Arc::downgrade(pipe);
        drop(input);
        let pid = running.pid();
        self.emit(|| TraceEvent::Started { pid });
        let (trace, log) = (self.clone(), running.log(Stream::Error));
        let (mut pulse, mut end) = (running.pulse(), running.end());
        tokio::spawn(async move {
            let mut stderr = Stderr::default();
            while pulse.changed().await.is_ok() {
                tokio::time::sleep(WRITTEN).await;
                stderr.read(log.as_deref(), &trace);
            }
            stderr.read(log.as_deref(), &trace);
            stderr.end_line(&trace);
            if let Ok(ended) = end.wait_for(Option::is_some).await
                && let Some(Ok(finished)) = ended.as_deref()
            {
                trace.emit(|| TraceEvent::Exited { pid, finished });
            }
        });
    }
}

/// Position in the log of a process.
#[derive(Default)]
struct Stderr {
    place: u64,
    line: Vec<u8>,
}

impl Stderr {
    /// Reports the lines that are new in the log.
    fn read(&mut self, log: Option<&Log>, trace: &Trace) {
        while let Some(Ok((place, bytes))) = log.map(|log| log.from(self.place, CHUNK))
            && !bytes.is_empty()
        {
            self.place = place + bytes.len() as u64;
            for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
                let text = piece.strip_suffix(b"\n").unwrap_or(piece);
                let room = MAX_LINE.saturating_sub(self.line.len());
                self.line
                    .extend_from_slice(text.get(..room).unwrap_or(text));
                if text.len() < piece.len() {
                    self.end_line(trace);
                }
            }
        }
    }

    fn end_line(&mut self, trace: &Trace) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            trace.emit(|| TraceEvent::Logged(&line));
        }
    }
}
