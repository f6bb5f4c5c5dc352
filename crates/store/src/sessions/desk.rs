//! The thread that writes. Batches of several sessions that wait at the same time go
//! into one transaction and share what makes it last; each of them is still all or
//! nothing.

use super::error::{Error, Stop};
use crate::database::{Database, Lasting, Writer};
use crate::problem::Problem;
use rusqlite::Connection;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long something may wait that is not waited for.
const SOON: Duration = Duration::from_millis(50);

/// How many go into one transaction.
const MOST: usize = 512;

/// How much a piece of work matters to who asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Haste {
    /// Answered when it is on the disk.
    Now,
    /// At once, but nothing is lost with it when the power ends.
    Light,
    /// Nobody waits: together with what comes within a moment.
    Soon,
    /// As now; and what it deletes is overwritten, also in the log.
    Erase,
}

/// A piece of work in a transaction. It may be run again when others in the same
/// transaction failed.
trait Work: Send {
    fn run(&mut self, connection: &Connection) -> Result<(), Stop>;
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
    R: FnMut(&Connection) -> Result<T, Stop> + Send,
    A: FnOnce(Result<T, Error>) + Send,
{
    fn run(&mut self, connection: &Connection) -> Result<(), Stop> {
        self.value = Some((self.run)(connection)?);
        Ok(())
    }

    fn end(self: Box<Self>, result: Result<(), Error>) {
        match (result, self.value) {
            (Err(error), _) => (self.answer)(Err(error)),
            (Ok(()), Some(value)) => (self.answer)(Ok(value)),
            // Only what was run ends well.
            (Ok(()), None) => {}
        }
    }
}

struct Job {
    work: Box<dyn Work>,
    haste: Haste,
    asked: Instant,
}

/// Where work is handed in. When it is dropped all of it is done.
pub(super) struct Desk {
    database: Database,
    queue: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Desk {
    pub(super) fn open(database: &Database) -> Result<Self, Problem> {
        let (queue, jobs) = channel();
        let own = database.clone();
        let thread = std::thread::Builder::new()
            .name("haft-sessions".to_owned())
            .spawn(move || serve(&own, &jobs))
            .map_err(|error| Problem::io(&error))?;
        Ok(Self {
            database: database.clone(),
            queue: Some(queue),
            thread: Some(thread),
        })
    }

    /// Hands work in; the answer is called on the thread that writes.
    pub(super) fn hand_in<T: Send + 'static>(
        &self,
        haste: Haste,
        run: impl FnMut(&Connection) -> Result<T, Stop> + Send + 'static,
        answer: impl FnOnce(Result<T, Error>) + Send + 'static,
    ) {
        let job = Job {
            work: Box::new(Task {
                run,
                value: None,
                answer,
            }),
            haste,
            asked: Instant::now(),
        };
        let sent = match &self.queue {
            Some(queue) => queue.send(job).map_err(|unsent| unsent.0),
            None => Err(job),
        };
        if let Err(job) = sent {
            job.work.end(Err(ended(&self.database)));
        }
    }

    /// Hands work in and waits for it on this thread.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        haste: Haste,
        run: impl FnMut(&Connection) -> Result<T, Stop> + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = sync_channel(1);
        self.hand_in(haste, run, move |result| {
            let _ = answer.send(result);
        });
        answered
            .recv()
            .unwrap_or_else(|_| Err(ended(&self.database)))
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What to say when nobody answers.
pub(super) fn ended(database: &Database) -> Error {
    let detail = "the thread that writes to it has ended".to_owned();
    told(database, Problem::System { detail })
}

/// A problem of the database, told.
pub(super) fn told(database: &Database, problem: Problem) -> Error {
    Error::Database {
        path: database.path().to_owned(),
        problem,
    }
}

fn serve(database: &Database, jobs: &Receiver<Job>) {
    let mut writer = database.writer_blocking();
    // From the first row on: a row that is only changed leaves its old words behind too.
    if let Err(problem) = writer.overwrite_deleted() {
        database.note(&problem);
    }
    while let Ok(first) = jobs.recv() {
        let group = gather(first, jobs);
        settle(database, &mut writer, group);
    }
}

/// All that waits now. What nobody waits for is given a moment to become more.
fn gather(first: Job, jobs: &Receiver<Job>) -> Vec<Job> {
    let until = first.asked + SOON;
    let mut group = vec![first];
    loop {
        while group.len() < MOST
            && let Ok(job) = jobs.try_recv()
        {
            group.push(job);
        }
        let hurries = group.iter().any(|job| job.haste != Haste::Soon);
        if hurries || group.len() >= MOST {
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
        // Whoever holds the lock holds it for each of them.
        Err(problem) if group.len() == 1 || problem == Problem::Locked => {
            database.note(&problem);
            for job in group {
                job.work.end(Err(told(database, problem.clone())));
            }
        }
        // One that is too much for the disk takes no other with it.
        Err(_) => {
            for job in group {
                settle(database, writer, vec![job]);
            }
        }
    }
}

/// Runs a group in one transaction.
fn attempt(
    database: &Database,
    writer: &mut Writer,
    group: &mut [Job],
) -> Result<Vec<Result<(), Error>>, Problem> {
    database.still_there()?;
    let has = |wanted: &[Haste]| group.iter().any(|job| wanted.contains(&job.haste));
    let erases = has(&[Haste::Erase]);
    writer.lasting(if has(&[Haste::Now, Haste::Erase]) {
        Lasting::Power
    } else {
        Lasting::Process
    })?;
    let results = transact(writer, group);
    if erases {
        writer.fold_log();
    }
    results
}

fn transact(writer: &mut Writer, group: &mut [Job]) -> Result<Vec<Result<(), Error>>, Problem> {
    let asked = group.iter().map(|job| job.asked).min();
    let transaction = writer.begin(asked.unwrap_or_else(Instant::now))?;
    let say = |words: &str| -> Result<(), Problem> {
        transaction.prepare_cached(words)?.execute([])?;
        Ok(())
    };
    let alone = group.len() == 1;
    let mut results = Vec::with_capacity(group.len());
    for job in group {
        if !alone {
            say("SAVEPOINT job")?;
        }
        match job.work.run(&transaction) {
            Ok(()) => results.push(Ok(())),
            Err(Stop::Broken(problem)) => return Err(problem),
            // Dropping the transaction rolls back.
            Err(Stop::Said(error)) if alone => return Ok(vec![Err(error)]),
            Err(Stop::Said(error)) => {
                say("ROLLBACK TO job")?;
                results.push(Err(error));
            }
        }
        if !alone {
            say("RELEASE job")?;
        }
    }
    transaction.commit()?;
    Ok(results)
}
