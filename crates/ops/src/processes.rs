//! Background processes with ids: starting, inspecting, waiting and killing. All of them
//! end at the latest with this table.

mod until;

pub use until::{Until, WaitOutcome, Waited};

use crate::exec::{After, Finding};
use crate::executor::{
    Disk, Ended, Executor, Exit, Finished, Keep, Launch, Refusal, Running, Stream, Survivor, When,
};
use crate::{Error, Result, blocking};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

/// Maximum number of running processes.
pub const MAX_ACTIVE: usize = 16;

/// Time for which an ended process is remembered.
pub const REMEMBERED: Duration = Duration::from_secs(30 * 60);

/// Time that a process has to exit before it is killed.
pub const GRACE: Duration = Duration::from_secs(2);

/// The background processes of a session.
pub struct Processes {
    executor: Arc<dyn Executor>,
    folder: PathBuf,
    /// Maximum number of bytes stored of each stream.
    max: u64,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    last: u64,
    /// Number of processes that are about to start.
    starting: usize,
    entries: Vec<Arc<Entry>>,
}

/// One background process.
#[derive(Debug)]
struct Entry {
    id: String,
    title: String,
    dir: PathBuf,
    started: SystemTime,
    running: Running,
    logs: [PathBuf; 2],
    /// Set once everything about its end is known.
    ended: watch::Receiver<Option<End>>,
}

/// End of a process.
#[derive(Debug, Clone)]
struct End {
    at: SystemTime,
    since: Instant,
    findings: Vec<Finding>,
    /// Whether a caller has seen it since.
    is_reported: Arc<AtomicBool>,
}

/// Status of a process.
#[derive(Debug, Clone)]
pub struct Status {
    /// Id: `proc-1`, `proc-2` and so on.
    pub id: String,
    /// Title that the caller gave it.
    pub title: String,
    /// Folder in which it was started.
    pub dir: PathBuf,
    /// Process id in the operating system.
    pub pid: u32,
    /// Time of the start.
    pub started: SystemTime,
    /// Whether it is running or how it ended.
    pub state: State,
    /// Changes it made to protected paths; known once it has ended.
    pub findings: Vec<Finding>,
}

/// State of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It is running.
    Running,
    /// It has ended.
    Ended {
        /// Exit status or signal.
        status: Exit,
        /// Reason for the end.
        by: Ended,
        /// Time of the end.
        at: SystemTime,
        /// Processes that it left running.
        left: Vec<Survivor>,
    },
    /// It could not be started.
    Failed {
        /// The reason as a fact.
        refusal: Refusal,
        /// The reason in words.
        detail: String,
        /// Time of the failure.
        at: SystemTime,
    },
}

impl Status {
    /// Whether the process or one that it started is running.
    #[must_use]
    pub fn is_active(&self) -> bool {
        match &self.state {
            State::Running => true,
            State::Ended { left, .. } => !left.is_empty(),
            State::Failed { .. } => false,
        }
    }
}

/// The last output of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    /// Standard output, or both streams if they are merged.
    pub output: Vec<u8>,
    /// Standard error, if it is separate.
    pub error: Vec<u8>,
    /// Total number of bytes in standard output.
    pub output_bytes: u64,
    /// Total number of bytes in standard error.
    pub error_bytes: u64,
    /// Total number of lines in standard output.
    pub output_lines: u64,
    /// Total number of lines in standard error.
    pub error_lines: u64,
    /// File with the complete standard output.
    pub output_file: PathBuf,
    /// File with the complete standard error.
    pub error_file: PathBuf,
}

impl std::fmt::Debug for Processes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Processes").finish_non_exhaustive()
    }
}

impl Processes {
    /// Creates a table. `executor` starts its processes; their output is stored in
    /// `folder`, at most `max` bytes of each stream.
    #[must_use]
    pub fn new(executor: Arc<dyn Executor>, folder: PathBuf, max: u64) -> Self {
        Self {
            executor,
            folder,
            max,
            table: Mutex::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a process, and checks its changes after it has ended. The table decides where
    /// the output is stored, whatever the launch says.
    ///
    /// # Errors
    /// [`Error::TooManyProcesses`], or [`Error::CannotStart`].
    pub async fn start(&self, title: String, mut launch: Launch, after: After) -> Result<Status> {
        let slot = self.reserve_slot()?;
        let id = format!("proc-{}", slot.number);
        let logs = ["out", "err"].map(|stream| self.folder.join(format!("{id}.{stream}")));
        let [output, error] = logs.clone();
        launch.keep = Keep {
            head: 0,
            tail: 0,
            disk: Some(Disk {
                output,
                error,
                max: self.max,
                when: When::Always,
            }),
        };
        let dir = launch.dir.clone();
        let started = SystemTime::now();
        let running = match self.executor.start(launch).await {
            Ok(running) => running,
            Err(error) => {
                remove(&logs);
                return Err(error);
            }
        };
        let ended = record_end(&running, after);
        let entry = Arc::new(Entry {
            id,
            title,
            dir,
            started,
            running,
            logs,
            ended,
        });
        self.table().entries.push(Arc::clone(&entry));
        drop(slot);
        Ok(entry.status())
    }

    /// Reserves a number and one of the available slots until the result is dropped.
    fn reserve_slot(&self) -> Result<Slot<'_>> {
        let mut table = self.table();
        table.forget();
        let active = table.entries.iter().filter(|entry| entry.active()).count();
        if active + table.starting >= MAX_ACTIVE {
            return Err(Error::TooManyProcesses { limit: MAX_ACTIVE });
        }
        table.starting += 1;
        table.last += 1;
        Ok(Slot {
            processes: self,
            number: table.last,
        })
    }

    fn entry(&self, id: &str) -> Result<Arc<Entry>> {
        let mut table = self.table();
        table.forget();
        let found = table.entries.iter().find(|entry| entry.id == id);
        found
            .cloned()
            .ok_or_else(|| Error::NoProcess { id: id.to_owned() })
    }

    /// Returns the status of a process.
    ///
    /// # Errors
    /// [`Error::NoProcess`].
    pub fn status(&self, id: &str) -> Result<Status> {
        Ok(self.entry(id)?.status())
    }

    /// Returns the status of all processes, in the order in which they were started.
    #[must_use]
    pub fn list(&self) -> Vec<Status> {
        let mut table = self.table();
        table.forget();
        table.entries.iter().map(|entry| entry.status()).collect()
    }

    /// Returns the last bytes of each stream, at most `max` of each.
    ///
    /// # Errors
    /// [`Error::NoProcess`], or [`Error::Io`] if the log cannot be read.
    pub async fn log(&self, id: &str, max: usize) -> Result<Tail> {
        let entry = self.entry(id)?;
        let log = |stream| entry.running.log(stream);
        let (output, error) = (log(Stream::Output), log(Stream::Error));
        let [output_file, error_file] = entry.logs.clone();
        let id = id.to_owned();
        blocking::run(blocking::Weight::Heavy, move || {
            let read = |log: Option<Arc<crate::executor::Log>>| match log {
                None => Ok((0, 0, Vec::new())),
                Some(log) => match log.tail(max) {
                    Ok(tail) => Ok((log.len(), log.lines(), tail)),
                    Err(error) => Err(Error::io("read the log of", id.as_str(), error)),
                },
            };
            let (output_bytes, output_lines, output) = read(output)?;
            let (error_bytes, error_lines, error) = read(error)?;
            Ok(Tail {
                output,
                error,
                output_bytes,
                error_bytes,
                output_lines,
                error_lines,
                output_file,
                error_file,
            })
        })
        .await
    }

    /// Kills a process and its whole tree, and returns how it ended. If the process has
    /// ended already, kills those it left running.
    ///
    /// # Errors
    /// [`Error::NoProcess`].
    pub async fn kill(&self, id: &str) -> Result<Status> {
        let entry = self.entry(id)?;
        entry.running.kill(GRACE).await;
        entry.end().await;
        Ok(entry.status())
    }
}

impl Processes {
    /// Waits until all processes have ended, after their executor was closed. Returns the
    /// changes to protected paths made by those that had not ended before, because these
    /// were not reported yet.
    pub async fn close(&self) -> Vec<Finding> {
        let entries = self.table().entries.clone();
        let mut findings = Vec::new();
        for entry in entries {
            entry.running.kill(crate::executor::GRACE).await;
            entry.end().await;
            let end = entry.ended.borrow().clone();
            if let Some(end) = end.filter(|end| !end.is_reported.load(Ordering::Relaxed)) {
                findings.extend(end.findings);
            }
        }
        findings
    }
}

/// A reserved slot for a process.
struct Slot<'a> {
    processes: &'a Processes,
    number: u64,
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.processes.table().starting -= 1;
    }
}

impl Table {
    fn forget(&mut self) {
        self.entries
            .retain(|entry| match entry.ended.borrow().as_ref() {
                None => true,
                Some(end) => end.since.elapsed() < REMEMBERED,
            });
    }
}

impl Entry {
    /// Whether the process or one that it left behind is running.
    fn active(&self) -> bool {
        self.running.finished().is_none() || self.running.has_survivors()
    }

    /// Waits until the process has ended.
    async fn end(&self) {
        // If the sender is gone, there is nothing to wait for either.
        let _ = self.ended.clone().wait_for(Option::is_some).await;
    }

    fn status(&self) -> Status {
        let end = self.ended.borrow().clone();
        let at = || end.as_ref().map_or_else(SystemTime::now, |end| end.at);
        if let Some(end) = &end {
            end.is_reported.store(true, Ordering::Relaxed);
        }
        let finished = self.running.finished().filter(|_| end.is_some());
        let state = match finished.as_deref() {
            None => State::Running,
            Some(Ok(Finished {
                status,
                ended,
                survivors,
                ..
            })) => State::Ended {
                status: *status,
                by: *ended,
                at: at(),
                left: match self.running.has_survivors() {
                    true => survivors.clone(),
                    false => Vec::new(),
                },
            },
            Some(Err(Error::CannotStart {
                refusal, detail, ..
            })) => State::Failed {
                refusal: *refusal,
                detail: detail.clone(),
                at: at(),
            },
            Some(Err(error)) => State::Failed {
                refusal: Refusal::Other,
                detail: error.to_string(),
                at: at(),
            },
        };
        Status {
            id: self.id.clone(),
            title: self.title.clone(),
            dir: self.dir.clone(),
            pid: self.running.pid(),
            started: self.started,
            state,
            findings: end.map(|end| end.findings).unwrap_or_default(),
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        remove(&self.logs);
    }
}

/// Records when a process ended and which protected paths it changed.
fn record_end(running: &Running, after: After) -> watch::Receiver<Option<End>> {
    let mut end = running.end();
    let (ended, receiver) = watch::channel(None);
    tokio::spawn(async move {
        let _ = end.wait_for(Option::is_some).await;
        let (at, since) = (SystemTime::now(), Instant::now());
        if ended.receiver_count() == 0 {
            // No reply could report it; the session checks when it ends.
            return;
        }
        let finished = end.borrow().clone();
        let look = move || {
            let finished = finished
                .as_ref()
                .and_then(|finished| finished.as_ref().as_ref().ok());
            Ok(after.look(finished))
        };
        let looked = blocking::run(blocking::Weight::Heavy, look).await;
        let findings = looked.unwrap_or_default();
        ended.send_replace(Some(End {
            at,
            since,
            findings,
            is_reported: Arc::default(),
        }));
    });
    receiver
}

#[expect(
    clippy::disallowed_methods,
    reason = "logs lie in haft's own folder, outside every scope"
)]
fn remove(logs: &[PathBuf]) {
    for log in logs {
        // A log that was never created counts as removed.
        let _ = std::fs::remove_file(log);
    }
}
