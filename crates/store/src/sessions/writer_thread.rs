//! The thread that writes. Batches of several sessions that wait at the same time share one
//! transaction, and so one wait for the disk; each batch is still all or nothing.

use super::error::{Error, WorkError};
use crate::database::{Database, Durability, Writer};
use crate::problem::Problem;
use rusqlite::Connection;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum delay of work that has no waiting caller.
const MAX_DELAY: Duration = Duration::from_millis(50);

/// Maximum number of jobs in one transaction.
const MAX_JOBS: usize = 512;

/// Urgency and durability of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    /// At once; acknowledged when it is on disk.
    Durable,
    /// At once; may be lost in a power failure.
    Volatile,
    /// Within a moment, together with other jobs; no caller waits.
    Soon,
    /// Like `Durable`, and deleted data is overwritten, even in the log.
    Erase,
}

/// Work inside a transaction. It may run again if other work in the same transaction
/// failed.
trait Work: Send {
    fn run(&mut self, connection: &Connection) -> Result<(), WorkError>;
    fn end(self: Box<Self>, result: Result<(), Error>);
}

struct Task<T, R, A> {
    run: R,
    value: Option<T>,
    answer: A,
}

impl<T, R, A> Work for Task<T, R, A>
where
    T: Send,
    R: FnMut(&Connection) -> Result<T, WorkError> + Send,
    A: FnOnce(Result<T, Error>) + Send,
{
    fn run(&mut self, connection: &Connection) -> Result<(), WorkError> {
        self.value = Some((self.run)(connection)?);
        Ok(())
    }

    fn end(self: Box<Self>, result: Result<(), Error>) {
        match (result, self.value) {
            (Err(error), _) => (self.answer)(Err(error)),
            (Ok(()), Some(value)) => (self.answer)(Ok(value)),
            // Unreachable: only work that has run succeeds.
            (Ok(()), None) => {}
        }
    }
}

struct Job {
    work: Box<dyn Work>,
    urgency: Urgency,
    queued_at: Instant,
}

/// The queue of the writing thread. Dropping it completes all queued work.
pub(super) struct WriterThread {
    database: Database,
    queue: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl WriterThread {
    pub(super) fn open(database: &Database) -> Result<Self, Problem> {
        let (queue, jobs) = channel();
        let thread_database = database.clone();
        let thread = std::thread::Builder::new()
            .name("haft-sessions".to_owned())
            .spawn(move || serve(&thread_database, &jobs))
            .map_err(|error| Problem::io(&error))?;
        Ok(Self {
            database: database.clone(),
            queue: Some(queue),
            thread: Some(thread),
        })
    }

    /// Queues work. `answer` is called on the writing thread.
    pub(super) fn submit<T: Send + 'static>(
        &self,
        urgency: Urgency,
        run: impl FnMut(&Connection) -> Result<T, WorkError> + Send + 'static,
        answer: impl FnOnce(Result<T, Error>) + Send + 'static,
    ) {
        let job = Job {
            work: Box::new(Task {
                run,
                value: None,
                answer,
            }),
            urgency,
            queued_at: Instant::now(),
        };
        let sent = match &self.queue {
            Some(queue) => queue.send(job).map_err(|unsent| unsent.0),
            None => Err(job),
        };
        if let Err(job) = sent {
            job.work.end(Err(ended(&self.database)));
        }
    }

    /// Queues work and blocks until it is done.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        urgency: Urgency,
        run: impl FnMut(&Connection) -> Result<T, WorkError> + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = sync_channel(1);
        self.submit(urgency, run, move |result| {
            let _ = answer.send(result);
        });
        answered
            .recv()
            .unwrap_or_else(|_| Err(ended(&self.database)))
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Error for work that the thread did not answer.
pub(super) fn ended(database: &Database) -> Error {
    let detail = "the thread that writes to it has ended".to_owned();
    database_error(database, Problem::System { detail })
}

/// Converts a problem of the database to an error.
pub(super) fn database_error(database: &Database, problem: Problem) -> Error {
    Error::Database {
        path: database.path().to_owned(),
        problem,
    }
}

fn serve(database: &Database, jobs: &Receiver<Job>) {
    let mut writer = database.writer_blocking();
    // From the first row on: updating a row leaves its old text behind too.
    if let Err(problem) = writer.overwrite_deleted() {
        database.record_damage(&problem);
    }
    while let Ok(first) = jobs.recv() {
        let group = gather(first, jobs);
        settle(database, &mut writer, group);
    }
}

/// Collects all waiting jobs. If no caller waits for any of them, waits a moment for more.
fn gather(first: Job, jobs: &Receiver<Job>) -> Vec<Job> {
    let until = first.queued_at + MAX_DELAY;
    let mut group = vec![first];
    loop {
        while group.len() < MAX_JOBS
            && let Ok(job) = jobs.try_recv()
        {
            group.push(job);
        }
        let is_urgent = group.iter().any(|job| job.urgency != Urgency::Soon);
        if is_urgent || group.len() >= MAX_JOBS {
            return group;
        }
        match jobs.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(job) => group.push(job),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return group,
        }
    }
}

fn settle(database: &Database, writer: &mut Writer, mut group: Vec<Job>) {
    match attempt(database, writer, &mut group) {
        Ok(results) => {
            for (job, result) in group.into_iter().zip(results) {
                job.work.end(result);
            }
        }
        // A lock held by another process affects all jobs.
        Err(problem) if group.len() == 1 || problem == Problem::Locked => {
            database.record_damage(&problem);
            for job in group {
                job.work.end(Err(database_error(database, problem.clone())));
            }
        }
        // A job that is too large for the disk must not fail the others.
        Err(_) => {
            for job in group {
                settle(database, writer, vec![job]);
            }
        }
    }
}

/// Runs a group of jobs in one transaction.
fn attempt(
    database: &Database,
    writer: &mut Writer,
    group: &mut [Job],
) -> Result<Vec<Result<(), Error>>, Problem> {
    database.check_identity()?;
    let has = |urgencies: &[Urgency]| group.iter().any(|job| urgencies.contains(&job.urgency));
    let erases = has(&[Urgency::Erase]);
    writer.set_durability(if has(&[Urgency::Durable, Urgency::Erase]) {
        Durability::PowerFailure
    } else {
        Durability::ProcessEnd
    })?;
    let results = transact(writer, group);
    if erases {
        writer.checkpoint();
    }
    results
}

fn transact(writer: &mut Writer, group: &mut [Job]) -> Result<Vec<Result<(), Error>>, Problem> {
    let queued_at = group.iter().map(|job| job.queued_at).min();
    let transaction = writer.begin(queued_at.unwrap_or_else(Instant::now))?;
    let execute = |sql: &str| -> Result<(), Problem> {
        transaction.prepare_cached(sql)?.execute([])?;
        Ok(())
    };
    let alone = group.len() == 1;
    let mut results = Vec::with_capacity(group.len());
    for job in group {
        if !alone {
            execute("SAVEPOINT job")?;
        }
        match job.work.run(&transaction) {
            Ok(()) => results.push(Ok(())),
            Err(WorkError::Database(problem)) => return Err(problem),
            // Dropping the transaction rolls it back.
            Err(WorkError::Rejected(error)) if alone => return Ok(vec![Err(error)]),
            Err(WorkError::Rejected(error)) => {
                execute("ROLLBACK TO job")?;
                results.push(Err(error));
            }
        }
        if !alone {
            execute("RELEASE job")?;
        }
    }
    transaction.commit()?;
    Ok(results)
}
