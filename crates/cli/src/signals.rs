//! Signals that ask haft to end, and the one that must not.

use crate::exit::{Exit, Failure};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGXFSZ, which kills by default. With a handler, writing beyond a file-size
/// limit is an error that a tool can report.
const FILE_SIZE_LIMIT: i32 = 25;

/// The signals that end a command.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    /// Listens from now on. Needs a tokio runtime around it.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let on = |kind| {
            signal(kind).map_err(|error| Failure::failed(format!("cannot handle signals: {error}")))
        };
        let _ = on(SignalKind::from_raw(FILE_SIZE_LIMIT))?;
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hang_up: on(SignalKind::hangup())?,
        })
    }

    /// Waits for the next one, and says how the command ends by it.
    pub(crate) async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Signal(2),
            _ = self.terminate.recv() => Exit::Signal(15),
            _ = self.hang_up.recv() => Exit::Signal(1),
        }
    }
}

/// How many threads wait for disks at a time, at most. What is more waits for one of
/// them: a hundred calls at once are not done sooner by a hundred threads.
const THREADS: usize = 32;
/// The same where the address space is limited, of which each thread takes a part.
const FEW_THREADS: usize = 8;
/// Threads stay for good: once there is one, work that blocks can always be done, even
/// when the system has no more threads to give.
const FOR_GOOD: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Whether as many files can be open as tokio needs to start, and a thread can be
/// started. It would panic where it cannot make the pair of sockets that tells it of
/// signals, or its first thread.
fn room_to_start() -> std::io::Result<()> {
    let pairs: std::io::Result<Vec<_>> = (0..4).map(|_| UnixStream::pair()).collect();
    let thread = std::thread::Builder::new().spawn(|| ())?;
    let _ = thread.join();
    pairs.map(drop)
}

/// Runs asynchronous work to its end, and waits for nothing it left behind: a
/// thread that reads a slow disk does not keep an interrupted haft alive.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    // One thread for what waits; tools that work on files have threads of their
    // own. More would only hand each call from one to the next.
    run(tokio::runtime::Builder::new_current_thread(), work)
}

/// The same for the many who talk to a server at once: one of them who keeps a thread
/// busy is not waited for by the others.
pub(crate) fn block_on_for_many<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    run(tokio::runtime::Builder::new_multi_thread(), work)
}

fn run<T>(
    mut runtime: tokio::runtime::Builder,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let failed = |error| Failure::failed(format!("cannot start: {error}"));
    room_to_start().map_err(failed)?;
    let threads = match haft::ops::memory::is_limited() {
        true => FEW_THREADS,
        false => THREADS,
    };
    let runtime = runtime
        .enable_all()
        .max_blocking_threads(threads)
        .thread_keep_alive(FOR_GOOD)
        .build()
        .map_err(failed)?;
    drop(runtime.spawn_blocking(|| ()));
    let result = runtime.block_on(work);
    runtime.shutdown_background();
    result
}
