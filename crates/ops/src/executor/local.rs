//! Commands on this machine.
//!
//! ```text
//! haft ──socket──▶ haft __supervise ──▶ command ──▶ its children
//!   ◀── stdout, stderr: pipes that haft reads ──┘
//! ```
//!
//! Each command runs below a supervisor process, which is the same binary. The supervisor
//! leads a session without a terminal and is the subreaper of the tree, so that orphans,
//! `setsid` and double forks stay below it. It reports when the command itself has exited;
//! haft then waits at most 150 ms for the pipes to close. When the command must end (timeout,
//! cancellation, or the socket closes because haft is gone), the supervisor sends TERM to
//! every process, and after 500 ms KILL, until it has no child left. It signals by pidfd, or
//! by a process id that cannot have been reused yet.
//!
//! Starting a supervisor takes about as long as starting a shell. From the second command on,
//! haft starts the next one while a command runs and keeps it ready for two seconds.

use super::capture::Capture;
use super::drive::{Drive, RunControl};
use super::job::{self, Ahead, Binary, Job};
use super::running::{Conversation, Pulse, Running};
use super::sandbox::busy;
use super::survivors::SurvivorRegistry;
use super::{Executor, Finished, Input, Launch, Refusal, Stream, Streams, Watch};
use crate::Result;
use async_trait::async_trait;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Runs commands on this machine, each below its own supervisor. Dropping it ends
/// everything it started, and so does the end of this process, for whatever reason.
pub struct Local {
    binary: Binary,
    registry: SurvivorRegistry,
    spare: Arc<Mutex<Spare>>,
    /// Whether it is a part of another executor, whose spare supervisor it shares.
    is_part: bool,
}

/// A supervisor that is ready for the next command, because starting one takes about as
/// long as starting a shell. There is none for the first command, which may be the only
/// one.
#[derive(Default)]
struct Spare {
    job: Option<Job>,
    used: Option<Instant>,
    /// Whether a task removes it after it has been unused for a while.
    has_expiry_task: bool,
    /// Whether one is being started.
    is_starting: bool,
    /// Whether no more will be needed.
    is_closed: bool,
}

/// Time after which an unused spare supervisor is removed.
const SPARE_LIFETIME: Duration = Duration::from_secs(2);

/// Maximum length of an argument on Linux; other systems do not accept longer ones.
const LONGEST_WORD: usize = (128 << 10) - 1;

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Local")
            .field("binary", &self.binary)
            .finish_non_exhaustive()
    }
}

impl Local {
    /// Creates an executor that starts supervisors as `supervisor` with `arguments`. That
    /// program must call [`supervise`](super::supervise) and do nothing else.
    #[must_use]
    pub fn new(supervisor: PathBuf, arguments: Vec<OsString>) -> Self {
        Self {
            binary: Binary {
                path: supervisor,
                arguments,
            },
            registry: SurvivorRegistry::new(),
            spare: Arc::default(),
            is_part: false,
        }
    }

    fn take_spare(&self, ahead: &Ahead) -> Option<Job> {
        let mut job = lock(&self.spare).job.take()?;
        job.is_ready_for(ahead).then_some(job)
    }

    /// Starts the next supervisor while this command runs, for a similar one.
    fn prepare_spare(&self, ahead: &Ahead) {
        let mut spare = lock(&self.spare);
        let before = spare.used.replace(Instant::now());
        if spare.job.is_some()
            || spare.is_starting
            || before.is_none_or(|before| before.elapsed() > SPARE_LIFETIME)
        {
            return;
        }
        spare.is_starting = true;
        // On another thread, because starting a program blocks. If no thread is available,
        // the next command just takes longer.
        let (binary, next) = (self.binary.clone(), Arc::clone(&self.spare));
        let ahead = ahead.clone();
        tokio::task::spawn_blocking(move || {
            let job = Job::prepare(&binary, &ahead).ok();
            let mut next = lock(&next);
            next.is_starting = false;
            if next.has_expiry_task && !next.is_closed {
                next.job = job;
            }
        });
        if !std::mem::replace(&mut spare.has_expiry_task, true) {
            tokio::spawn(expire(Arc::clone(&self.spare)));
        }
    }

    /// Starts a supervisor, and retries while the machine is out of resources.
    async fn prepare(&self, ahead: &Ahead) -> std::io::Result<Job> {
        for pause in busy::PAUSES {
            match Job::prepare(&self.binary, ahead) {
                Err(error) if busy::is_passing(&error) => tokio::time::sleep(pause).await,
                prepared => return prepared,
            }
        }
        Job::prepare(&self.binary, ahead)
    }

    async fn begin(&self, launch: &Launch) -> Result<Drive> {
        let Input::Given(bytes) = &launch.input else {
            return self.begin_with(launch, None).await.map(|(drive, _)| drive);
        };
        let (mut input, end) = input_of(launch)?;
        let (drive, _) = self.begin_with(launch, Some(end)).await?;
        let bytes = Arc::clone(bytes);
        // The command need not read all of it.
        tokio::spawn(async move { input.write_all(&bytes).await });
        Ok(drive)
    }

    async fn begin_with(
        &self,
        launch: &Launch,
        input: Option<OwnedFd>,
    ) -> Result<(Drive, Option<Receiver>)> {
        let begun = Instant::now();
        if launch.program.longest_word() > LONGEST_WORD {
            // The system would reject it after copying it several times.
            let detail = "an argument of the command is longer than 128 KiB".to_owned();
            return Err(job::cannot_run(&launch.program, Refusal::TooLong, detail));
        }
        let takes_output = input.is_some() && launch.input == Input::Nothing;
        let ahead = Ahead::of(launch);
        let spare = self.take_spare(&ahead);
        let mut job = match spare {
            Some(job) => job,
            None => self.prepare(&ahead).await.map_err(|error| {
                let program = job::program_name(&launch.program);
                let refusal = match busy::is_passing(&error) {
                    true => Refusal::Busy,
                    false => Refusal::NoSupervisor,
                };
                let detail = format!("cannot start its supervisor process: {error}");
                job::cannot(&program, refusal, detail)
            })?,
        };
        job.register(&self.registry);
        job.begin(launch, input).await;
        self.prepare_spare(&ahead);
        let taken = if takes_output {
            job.take_output()
        } else {
            None
        };
        let output = Capture::new(&launch.keep, Stream::Output);
        let error = match launch.streams {
            Streams::Merged => Capture::nothing(),
            Streams::Separate => Capture::new(&launch.keep, Stream::Error),
        };
        let drive = Drive::new(job, output, error, launch.streams, begun);
        Ok((drive, taken))
    }

    /// Follows a running command in the background.
    async fn follow(&self, mut drive: Drive, launch: Launch) -> Result<Running> {
        let pid = drive.started().await?;
        let supervisor = drive.supervisor();
        let (output, error) = drive.logs();
        let pulse = watch::Sender::new(Pulse {
            bytes: 0,
            at: std::time::Instant::now(),
        });
        let finished = watch::Sender::new(None);
        let (stop, stopped) = mpsc::unbounded_channel();
        let registry = self.registry.part();
        let running = Running {
            pid,
            supervisor: Some(supervisor),
            registry: registry.clone(),
            output,
            error,
            pulse: pulse.subscribe(),
            finished: finished.subscribe(),
            stop,
        };
        tokio::spawn(async move {
            let beat = |_: Stream, bytes: &[u8]| {
                pulse.send_modify(|pulse| {
                    pulse.bytes += bytes.len() as u64;
                    pulse.at = std::time::Instant::now();
                });
            };
            let control = RunControl {
                limit: launch.limit,
                prompts: launch.prompts,
                watch: &beat,
                cancel: registry.shutdown(),
                stop: stopped,
                registry: registry.clone(),
            };
            let ended = drive.follow(control).await;
            finished.send_replace(Some(Arc::new(ended)));
        });
        Ok(running)
    }
}

/// Creates a pipe for the command's standard input.
fn input_of(launch: &Launch) -> Result<(Sender, OwnedFd)> {
    job::input().map_err(|error| {
        let program = job::program_name(&launch.program);
        job::cannot(&program, Refusal::Other, error.to_string())
    })
}

fn lock(spare: &Mutex<Spare>) -> MutexGuard<'_, Spare> {
    spare.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes a spare supervisor that was not used.
async fn expire(spare: Arc<Mutex<Spare>>) {
    loop {
        let next = {
            let mut spare = lock(&spare);
            let used = spare.used.unwrap_or_else(Instant::now);
            if used.elapsed() >= SPARE_LIFETIME {
                spare.job = None;
                spare.has_expiry_task = false;
                return;
            }
            used + SPARE_LIFETIME
        };
        tokio::time::sleep_until(next).await;
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if !self.is_part {
            let mut spare = lock(&self.spare);
            spare.is_closed = true;
            spare.job = None;
        }
        self.registry.shutdown().cancel();
    }
}

#[async_trait]
impl Executor for Local {
    async fn close(&self) {
        self.registry.end_all().await;
    }

    fn part(&self) -> Option<Arc<dyn Executor>> {
        Some(Arc::new(Self {
            binary: self.binary.clone(),
            registry: self.registry.part(),
            spare: Arc::clone(&self.spare),
            is_part: true,
        }))
    }

    async fn run(
        &self,
        launch: Launch,
        watch: &Watch<'_>,
        cancel: &CancellationToken,
    ) -> Result<Finished> {
        let drive = self.begin(&launch).await?;
        // Kept alive, because dropping it would end the command.
        let (_stop, stop) = mpsc::unbounded_channel();
        let control = RunControl {
            limit: launch.limit,
            prompts: launch.prompts,
            watch,
            cancel,
            stop,
            registry: self.registry.clone(),
        };
        drive.follow(control).await
    }

    async fn start(&self, launch: Launch) -> Result<Running> {
        let drive = self.begin(&launch).await?;
        self.follow(drive, launch).await
    }

    async fn converse(&self, launch: Launch) -> Result<Conversation> {
        let launch = Launch {
            input: Input::Nothing,
            streams: Streams::Separate,
            ..launch
        };
        let (input, end) = input_of(&launch)?;
        let (drive, output) = self.begin_with(&launch, Some(end)).await?;
        let lost = || {
            let program = job::program_name(&launch.program);
            job::cannot(
                &program,
                Refusal::Other,
                "its output pipe is missing".to_owned(),
            )
        };
        let output = output.ok_or_else(lost)?;
        let running = self.follow(drive, launch).await?;
        Ok(Conversation {
            input,
            output,
            running,
        })
    }
}
