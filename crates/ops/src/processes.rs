//! Processes in the background, by name: started, looked at, waited for, killed.
//! They end with the table at the latest.

mod until;

pub use until::{Met, Until, Waited};

use crate::exec::{After, Touched};
use crate::executor::{
    Disk, Ended, Executor, Exit, Finished, Keep, Launch, Refusal, Running, Stream, Survivor, When,
};
use crate::{Error, Result, blocking};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

/// How many may run at a time.
pub const MAX_ACTIVE: usize = 16;

/// How long one that ended is remembered.
pub const REMEMBERED: Duration = Duration::from_secs(30 * 60);

/// How long one that is killed has to end by itself.
pub const GRACE: Duration = Duration::from_secs(2);

/// The processes of a session.
pub struct Processes {
    executor: Arc<dyn Executor>,
    folder: PathBuf,
    /// The most that is kept of one stream.
    max: u64,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    last: u64,
    /// Places taken by processes that are about to start.
    starting: usize,
    entries: Vec<Arc<Entry>>,
}

/// One process.
#[derive(Debug)]
struct Entry {
    id: String,
    title: String,
    dir: PathBuf,
    started: SystemTime,
    running: Running,
    logs: [PathBuf; 2],
    /// Its end, once everything about it is known.
    ended: watch::Receiver<Option<End>>,
}

/// The end of a process.
#[derive(Debug, Clone)]
struct End {
    at: SystemTime,
    since: Instant,
    touched: Vec<Touched>,
    /// Whether somebody asked about it since.
    is_told: Arc<AtomicBool>,
}

/// What is known of a process.
#[derive(Debug, Clone)]
pub struct Status {
    /// Its name: `proc-1`, `proc-2` and so on.
    pub id: String,
    /// What whoever started it calls it.
    pub title: String,
    /// The folder it was started in.
    pub dir: PathBuf,
    /// The number of its own process.
    pub pid: u32,
    /// When it began.
    pub started: SystemTime,
    /// Whether it runs, and else how it ended.
    pub state: State,
    /// What it did to places that it had better not, once it has ended.
    pub touched: Vec<Touched>,
}

/// Where a process is in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It runs.
    Running,
    /// It ended.
    Ended {
        /// How.
        status: Exit,
        /// Who ended it.
        by: Ended,
        /// When.
        at: SystemTime,
        /// What it left running.
        left: Vec<Survivor>,
    },
    /// It did not become what it should have.
    Failed {
        /// Why, as a fact.
        refusal: Refusal,
        /// Why, in words.
        detail: String,
        /// When.
        at: SystemTime,
    },
}

impl Status {
    /// Whether it runs, or something that it started does.
    #[must_use]
    pub fn is_active(&self) -> bool {
        match &self.state {
            State::Running => true,
            State::Ended { left, .. } => !left.is_empty(),
            State::Failed { .. } => false,
        }
    }
}

/// The end of what a process has said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    /// Standard output, or both.
    pub output: Vec<u8>,
    /// Standard error.
    pub error: Vec<u8>,
    /// How much there is of standard output.
    pub output_bytes: u64,
    /// How much there is of standard error.
    pub error_bytes: u64,
    /// How many lines of standard output there are.
    pub output_lines: u64,
    /// How many lines of standard error there are.
    pub error_lines: u64,
    /// The file that has the whole of standard output.
    pub output_file: PathBuf,
    /// The file that has the whole of standard error.
    pub error_file: PathBuf,
}

impl std::fmt::Debug for Processes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Processes").finish_non_exhaustive()
    }
}

impl Processes {
    /// A table whose processes are started by `executor`, with their outputs in
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

    /// Starts a process, and looks after it when it has ended. Where its output is
    /// kept is the table's choice, whatever the launch says.
    ///
    /// # Errors
    /// [`Error::TooManyProcesses`], or [`Error::CannotStart`].
    pub async fn start(&self, title: String, mut launch: Launch, after: After) -> Result<Status> {
        let place = self.take_place()?;
        let id = format!("proc-{}", place.number);
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
        let ended = note_end(&running, after);
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
        drop(place);
        Ok(entry.status())
    }

    /// A number, and one of the places, until what is answered here is dropped.
    fn take_place(&self) -> Result<Place<'_>> {
        let mut table = self.table();
        table.forget();
        let active = table.entries.iter().filter(|entry| entry.active()).count();
        if active + table.starting >= MAX_ACTIVE {
            return Err(Error::TooManyProcesses { limit: MAX_ACTIVE });
        }
        table.starting += 1;
        table.last += 1;
        Ok(Place {
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

    /// What is known of a process.
    ///
    /// # Errors
    /// [`Error::NoProcess`].
    pub fn status(&self, id: &str) -> Result<Status> {
        Ok(self.entry(id)?.status())
    }

    /// All of them, in the order in which they began.
    #[must_use]
    pub fn list(&self) -> Vec<Status> {
        let mut table = self.table();
        table.forget();
        table.entries.iter().map(|entry| entry.status()).collect()
    }

    /// The last bytes of each stream, at most `max` of each.
    ///
    /// # Errors
    /// [`Error::NoProcess`], or [`Error::Io`] when the log cannot be read.
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

    /// Ends a process and its whole tree, and answers with how it ended. Of one
    /// that has ended, what it left running is.
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
    /// Waits for the end of all of them, once their executor was closed, and answers with
    /// what those did to places that they had better not that had not ended before: nobody
    /// was told of it.
    pub async fn close(&self) -> Vec<Touched> {
        let entries = self.table().entries.clone();
        let mut touched = Vec::new();
        for entry in entries {
            entry.running.kill(crate::executor::GRACE).await;
            entry.end().await;
            let end = entry.ended.borrow().clone();
            if let Some(end) = end.filter(|end| !end.is_told.load(Ordering::Relaxed)) {
                touched.extend(end.touched);
            }
        }
        touched
    }
}

/// One of the places, taken.
struct Place<'a> {
    processes: &'a Processes,
    number: u64,
}

impl Drop for Place<'_> {
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
    /// What runs or has left something running.
    fn active(&self) -> bool {
        self.running.finished().is_none() || self.running.has_survivors()
    }

    /// Waits for its end.
    async fn end(&self) {
        // A sender that is gone has nothing more to say either.
        let _ = self.ended.clone().wait_for(Option::is_some).await;
    }

    fn status(&self) -> Status {
        let end = self.ended.borrow().clone();
        let at = || end.as_ref().map_or_else(SystemTime::now, |end| end.at);
        if let Some(end) = &end {
            end.is_told.store(true, Ordering::Relaxed);
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
            touched: end.map(|end| end.touched).unwrap_or_default(),
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        remove(&self.logs);
    }
}

/// Writes down when a process ended and what it touched, once.
fn note_end(running: &Running, after: After) -> watch::Receiver<Option<End>> {
    let mut end = running.end();
    let (ended, receiver) = watch::channel(None);
    tokio::spawn(async move {
        let _ = end.wait_for(Option::is_some).await;
        let (at, since) = (SystemTime::now(), Instant::now());
        if ended.receiver_count() == 0 {
            // Nobody would hear of it: the session looks when it ends.
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
        let touched = looked.unwrap_or_default();
        ended.send_replace(Some(End {
            at,
            since,
            touched,
            is_told: Arc::default(),
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
        // One that was never made is as good as removed.
        let _ = std::fs::remove_file(log);
    }
}
