//! Signal handling, and the tokio runtime that commands run on.

use crate::exit::{Exit, Failure};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGXFSZ, which kills by default. With a handler, writing beyond the file-size limit
/// becomes an error that a tool can report.
const FILE_SIZE_LIMIT: i32 = 25;

/// Signals that end a command.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    /// Installs the handlers. Must be called inside a tokio runtime.
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

    /// Waits for a signal and returns the exit code it leads to.
    pub(crate) async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Signal(2),
            _ = self.terminate.recv() => Exit::Signal(15),
            _ = self.hang_up.recv() => Exit::Signal(1),
        }
    }
}

/// Maximum number of blocking threads. Further work waits for a free thread: more threads
/// do not make a disk faster.
const THREADS: usize = 32;
/// Maximum number of blocking threads if the address space is limited, since each one
/// reserves part of it.
const FEW_THREADS: usize = 8;
/// Lifetime of an idle thread, practically infinite: blocking work can then still run
/// when the system refuses to start another thread.
const KEEP_ALIVE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Checks that tokio can open its files and start a thread. It would panic if it could
/// not create the socket pair for signals or its first thread.
fn check_resources() -> std::io::Result<()> {
    let pairs: std::io::Result<Vec<_>> = (0..4).map(|_| UnixStream::pair()).collect();
    let thread = std::thread::Builder::new().spawn(|| ())?;
    let _ = thread.join();
    pairs.map(drop)
}

/// Runs a future to completion without waiting for background threads: one that reads a
/// slow disk does not delay an interrupted haft.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    // One thread is enough: file operations run on blocking threads, and several workers
    // would only pass each call around.
    run(tokio::runtime::Builder::new_current_thread(), work)
}

/// Like [`block_on`], but with several worker threads, so that one client of a server
/// cannot delay the others.
pub(crate) fn block_on_many_threads<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    run(tokio::runtime::Builder::new_multi_thread(), work)
}

fn run<T>(
    mut runtime: tokio::runtime::Builder,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let failed = |error| Failure::failed(format!("cannot start: {error}"));
    check_resources().map_err(failed)?;
    let threads = match haft::ops::address_space::is_limited() {
        true => FEW_THREADS,
        false => THREADS,
    };
    let runtime = runtime
        .enable_all()
        .max_blocking_threads(threads)
        .thread_keep_alive(KEEP_ALIVE)
        .build()
        .map_err(failed)?;
    drop(runtime.spawn_blocking(|| ()));
    let result = runtime.block_on(work);
    runtime.shutdown_background();
    result
}
