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
use super::drive::{Drive, Orders};
use super::job::{self, Binary, Held, Job};
use super::running::{Conversation, Pulse, Running};
use super::sandbox::{Confinement, Surface, busy};
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

/// Runs commands here, each below a supervisor of its own. Dropping it ends what
/// it started, and so does the end of this process, whatever ended it.
pub struct Local {
    binary: Binary,
    held: Held,
    spare: Arc<Mutex<Spare>>,
    /// Whether it is a part of another, whose spare supervisor it shares.
    is_part: bool,
}

/// A supervisor that waits for the next command: starting one takes about as
/// long as starting a shell. The first command gets none, since it may be the
/// only one.
#[derive(Default)]
struct Spare {
    job: Option<Job>,
    used: Option<Instant>,
    /// Whether somebody is there who takes it away when it is not used.
    kept: bool,
    /// Whether one is being started.
    coming: bool,
    /// Whether nobody will want one any more.
    over: bool,
}

/// How long a spare supervisor waits.
const WAITS: Duration = Duration::from_secs(2);

/// No system takes a longer word of a command than Linux does.
const LONGEST_WORD: usize = (128 << 10) - 1;

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Local")
            .field("binary", &self.binary)
            .finish_non_exhaustive()
    }
}

impl Local {
    /// Starts supervisors as `supervisor` with `arguments`: a program that then
    /// calls [`supervise`](super::supervise) and does nothing else.
    #[must_use]
    pub fn new(supervisor: PathBuf, arguments: Vec<OsString>) -> Self {
        Self {
            binary: Binary {
                path: supervisor,
                arguments,
            },
            held: Held::new(),
            spare: Arc::default(),
            is_part: false,
        }
    }

    fn take(&self, surface: Option<Surface>) -> Option<Job> {
        let mut job = lock(&self.spare).job.take()?;
        job.waits(surface).then_some(job)
    }

    /// Starts the next supervisor while this command runs, for one like it.
    fn provide(&self, surface: Option<Surface>) {
        let mut spare = lock(&self.spare);
        let before = spare.used.replace(Instant::now());
        if spare.job.is_some()
            || spare.coming
            || before.is_none_or(|before| before.elapsed() > WAITS)
        {
            return;
        }
        spare.coming = true;
        // On a thread of its own: who starts a program waits until it has started.
        // Without one the next command takes longer, that is all.
        let (binary, next) = (self.binary.clone(), Arc::clone(&self.spare));
        tokio::task::spawn_blocking(move || {
            let job = Job::prepare(&binary, surface).ok();
            let mut next = lock(&next);
            next.coming = false;
            if next.kept && !next.over {
                next.job = job;
            }
        });
        if !std::mem::replace(&mut spare.kept, true) {
            tokio::spawn(expire(Arc::clone(&self.spare)));
        }
    }

    /// Starts a supervisor, and tries again while the machine has no room for one.
    async fn prepare(&self, surface: Option<Surface>) -> std::io::Result<Job> {
        for pause in busy::PAUSES {
            match Job::prepare(&self.binary, surface) {
                Err(error) if busy::is_passing(&error) => tokio::time::sleep(pause).await,
                prepared => return prepared,
            }
        }
        Job::prepare(&self.binary, surface)
    }

    async fn begin(&self, launch: &Launch) -> Result<Drive> {
        let Input::Given(bytes) = &launch.input else {
            return self.begin_with(launch, None).await.map(|(drive, _)| drive);
        };
        let (mut input, end) = input_of(launch)?;
        let (drive, _) = self.begin_with(launch, Some(end)).await?;
        let bytes = Arc::clone(bytes);
        // It may read all of it, some or nothing: that is its business.
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
            // The system would refuse it, after it has been copied several times.
            let detail = "a word of the command is longer than 128 KiB".to_owned();
            return Err(job::cannot_run(&launch.program, Refusal::TooLong, detail));
        }
        let takes_output = input.is_some() && launch.input == Input::Nothing;
        let surface = launch.confinement.as_ref().map(Confinement::surface);
        let spare = self.take(surface);
        let mut job = match spare {
            Some(job) => job,
            None => self.prepare(surface).await.map_err(|error| {
                let program = job::named(&launch.program);
                let refusal = match busy::is_passing(&error) {
                    true => Refusal::Busy,
                    false => Refusal::NoSupervisor,
                };
                let detail = format!("cannot start the process that watches over it: {error}");
                job::cannot(&program, refusal, detail)
            })?,
        };
        job.count_with(&self.held);
        job.begin(launch, input).await;
        self.provide(surface);
        let taken = if takes_output {
            job.take_output()
        } else {
            None
        };
        let output = Capture::new(&launch.keep, Stream::Output);
        let error = match launch.streams {
            Streams::Merged => Capture::nothing(),
            Streams::Apart => Capture::new(&launch.keep, Stream::Error),
        };
        let drive = Drive::new(job, output, error, launch.streams, begun);
        Ok((drive, taken))
    }

    /// Follows a command that has begun, beside the caller.
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
        let held = self.held.part();
        let running = Running {
            pid,
            supervisor: Some(supervisor),
            held: held.clone(),
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
            let orders = Orders {
                limit: launch.limit,
                prompts: launch.prompts,
                watch: &beat,
                cancel: held.over(),
                stop: stopped,
                held: held.clone(),
            };
            let ended = drive.follow(orders).await;
            finished.send_replace(Some(Arc::new(ended)));
        });
        Ok(running)
    }
}

/// A pipe for what a command reads.
fn input_of(launch: &Launch) -> Result<(Sender, OwnedFd)> {
    job::input().map_err(|error| {
        let program = job::named(&launch.program);
        job::cannot(&program, Refusal::Other, error.to_string())
    })
}

fn lock(spare: &Mutex<Spare>) -> MutexGuard<'_, Spare> {
    spare.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a spare supervisor away that nobody wanted.
async fn expire(spare: Arc<Mutex<Spare>>) {
    loop {
        let next = {
            let mut spare = lock(&spare);
            let used = spare.used.unwrap_or_else(Instant::now);
            if used.elapsed() >= WAITS {
                spare.job = None;
                spare.kept = false;
                return;
            }
            used + WAITS
        };
        tokio::time::sleep_until(next).await;
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if !self.is_part {
            let mut spare = lock(&self.spare);
            spare.over = true;
            spare.job = None;
        }
        self.held.over().cancel();
    }
}

#[async_trait]
impl Executor for Local {
    async fn close(&self) {
        self.held.end_all().await;
    }

    fn part(&self) -> Option<Arc<dyn Executor>> {
        Some(Arc::new(Self {
            binary: self.binary.clone(),
            held: self.held.part(),
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
        // Held, so that nobody asks by having gone.
        let (_stop, stop) = mpsc::unbounded_channel();
        let orders = Orders {
            limit: launch.limit,
            prompts: launch.prompts,
            watch,
            cancel,
            stop,
            held: self.held.clone(),
        };
        drive.follow(orders).await
    }

    async fn start(&self, launch: Launch) -> Result<Running> {
        let drive = self.begin(&launch).await?;
        self.follow(drive, launch).await
    }

    async fn converse(&self, launch: Launch) -> Result<Conversation> {
        let launch = Launch {
            input: Input::Nothing,
            streams: Streams::Apart,
            ..launch
        };
        let (input, end) = input_of(&launch)?;
        let (drive, output) = self.begin_with(&launch, Some(end)).await?;
        let lost = || {
            let program = job::named(&launch.program);
            job::cannot(
                &program,
                Refusal::Other,
                "its output is not there".to_owned(),
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
