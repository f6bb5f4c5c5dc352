//! One supervisor seen from haft: its process, the line to it, and the pipes the
//! command writes to.

use super::sandbox::Surface;
use super::wire::{self, Order, Report};
use super::{GRACE, Launch, Program, Refusal, Stream, Streams, handle, tree};
use crate::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// How much a pipe holds, if the system grants it: fewer turns for a flood.
pub(super) const PIPE: usize = 1 << 20;

/// How much is read of a survivor's output at a time, and how often. Nobody
/// wants it, but without a reader it would be ended by its next line.
const IDLE_READ: usize = 64 << 10;
const IDLE_PAUSE: Duration = Duration::from_millis(5);

/// How long the end of everything may take: what is asked to end has the usual grace, and
/// is killed then.
const LONGEST_END: Duration = Duration::from_secs(3);

/// How supervisors are started.
#[derive(Debug, Clone)]
pub(super) struct Binary {
    pub(super) path: PathBuf,
    pub(super) arguments: Vec<OsString>,
}

pub(super) struct Job {
    pub(super) line: Line,
    pub(super) pipes: Pipes,
    child: Option<Child>,
    supervisor: u32,
    /// What its supervisor has put on already.
    surface: Option<Surface>,
    /// Whether a second supervisor stands between the first and the command.
    confined: bool,
    program: String,
    /// For as long as its supervisor is there, somebody may wait for it.
    counted: Vec<TaskTrackerToken>,
}

/// What reports come by and requests go by. Dropping it ends the tree.
pub(super) struct Line {
    stream: UnixStream,
    arrived: Vec<u8>,
}

/// What the command writes to, until it has ended.
pub(super) struct Pipes {
    output: Option<Receiver>,
    error: Option<Receiver>,
}

impl Job {
    /// Starts a supervisor, which then waits for its order; with what can be put
    /// on before it comes.
    pub(super) fn prepare(binary: &Binary, surface: Option<Surface>) -> io::Result<Self> {
        let (mut ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.write_all(&wire::prelude(surface))?;
        ours.set_nonblocking(true)?;
        let (output, output_end) = pipe()?;
        let (error, error_end) = pipe()?;
        #[expect(clippy::disallowed_methods, reason = "this is an executor")]
        let mut command = Command::new(&binary.path);
        command
            .args(&binary.arguments)
            .env_clear()
            .current_dir("/")
            .stdin(OwnedFd::from(theirs))
            .stdout(output_end)
            .stderr(error_end);
        let child = command.spawn()?;
        // It holds our copies of the pipes.
        drop(command);
        Ok(Self {
            line: Line {
                stream: UnixStream::from_std(ours)?,
                arrived: Vec::new(),
            },
            pipes: Pipes {
                output: Some(output),
                error: Some(error),
            },
            supervisor: child.id().unwrap_or(0),
            child: Some(child),
            surface,
            confined: false,
            program: String::new(),
            counted: Vec::new(),
        })
    }

    /// Whether its supervisor still waits, for such a command.
    pub(super) fn waits(&mut self, surface: Option<Surface>) -> bool {
        let child = self.child.as_mut();
        self.surface == surface && child.is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Gives the supervisor its order, and with it what the command reads.
    pub(super) async fn begin(&mut self, launch: &Launch, input: Option<OwnedFd>) {
        self.program = named(&launch.program);
        self.confined = launch.confinement.is_some();
        if launch.streams == Streams::Merged {
            self.pipes.error = None;
        }
        // If it cannot be written, the supervisor has ended, and its silence is
        // heard where reports are.
        let order = order(launch, input.is_some());
        let _ = self.line.stream.write_all(&order.to_bytes()).await;
        if let Some(input) = input {
            let _ = self.line.hand(&input).await;
        }
    }

    /// Whoever ends all that is of this waits for it as well.
    pub(super) fn count_with(&mut self, held: &Held) {
        self.counted = held.all.iter().map(TaskTracker::token).collect();
    }

    /// What the command writes, for somebody else to read.
    pub(super) fn take_output(&mut self) -> Option<Receiver> {
        self.pipes.output.take()
    }

    pub(super) fn refused(&self, refusal: Refusal, detail: String) -> Error {
        cannot(&self.program, refusal, detail)
    }

    pub(super) fn is_confined(&self) -> bool {
        self.confined
    }

    /// The process number of the supervisor, the outer one where there are two.
    pub(super) fn supervisor(&self) -> u32 {
        self.supervisor
    }

    /// Whose children the command's processes are.
    pub(super) fn root(&self) -> u32 {
        let inner = || tree::children(self.supervisor).first().copied();
        if self.confined { inner() } else { None }.unwrap_or(self.supervisor)
    }

    /// The supervisor was killed, or does not answer: it swept nothing, and what
    /// is still known to belong to it is killed from here. On another thread, as
    /// it takes many looks at the table of processes.
    pub(super) async fn avenge(&self) {
        let (supervisor, inner) = (self.supervisor, self.confined.then(|| self.root()));
        let avenge = move || {
            if let Some(inner) = inner {
                // With the first process of a namespace its whole tree goes.
                tree::kill(inner);
            }
            tree::kill_below(supervisor);
            tree::kill_session(supervisor);
        };
        let _ = tokio::task::spawn_blocking(avenge).await;
    }

    /// Lets the supervisor hold what the command left, until that ends or
    /// `held` is over.
    pub(super) fn hold(mut self, held: &Held) {
        let over = held.over.clone();
        held.tasks.spawn(async move {
            let Self { line, pipes, .. } = &mut self;
            let read = async {
                let mut chunk = Vec::with_capacity(IDLE_READ);
                loop {
                    pipes.read(&mut chunk).await;
                    chunk.clear();
                    tokio::time::sleep(IDLE_PAUSE).await;
                }
            };
            tokio::select! {
                () = over.cancelled() => {}
                () = line.silence() => return,
                () = read => {}
            }
            line.end(GRACE).await;
            let _ = tokio::time::timeout(GRACE * 2, line.silence()).await;
        });
    }
}

/// What commands left running, and how it is ended.
#[derive(Debug, Clone)]
pub(super) struct Held {
    over: CancellationToken,
    /// What was left running.
    tasks: TaskTracker,
    /// Everything that runs, of this and of what this is a part of.
    all: Vec<TaskTracker>,
}

impl Held {
    pub(super) fn new() -> Self {
        Self {
            over: CancellationToken::new(),
            tasks: TaskTracker::new(),
            all: vec![TaskTracker::new()],
        }
    }

    /// A part of it that can be ended alone.
    pub(super) fn part(&self) -> Self {
        Self {
            over: self.over.child_token(),
            tasks: TaskTracker::new(),
            all: self
                .all
                .iter()
                .cloned()
                .chain([TaskTracker::new()])
                .collect(),
        }
    }

    pub(super) fn over(&self) -> &CancellationToken {
        &self.over
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Waits until everything is gone that was left running.
    pub(super) async fn gone(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Ends everything, and waits until it is gone or cannot be ended.
    pub(super) async fn end_all(&self) {
        self.over.cancel();
        if let Some(all) = self.all.last() {
            all.close();
            let _ = tokio::time::timeout(LONGEST_END, all.wait()).await;
        }
    }
}

impl Line {
    /// The next report; nothing once the supervisor is gone. Safe to drop while
    /// it waits.
    pub(super) async fn report(&mut self) -> Option<Report> {
        loop {
            if let Some(body) = wire::take(&mut self.arrived) {
                return Report::parse(&body);
            }
            match self.stream.read_buf(&mut self.arrived).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Waits until the supervisor is gone, whatever it still has to say.
    async fn silence(&mut self) {
        while self.report().await.is_some() {}
    }

    /// Hands over something that is open.
    async fn hand(&self, what: &OwnedFd) -> io::Result<()> {
        loop {
            self.stream.writable().await?;
            let sent = self
                .stream
                .try_io(Interest::WRITABLE, || handle::send(&self.stream, what));
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return sent,
            }
        }
    }

    /// Asks for the end of the tree. If nobody listens, it has ended.
    pub(super) async fn end(&mut self, grace: Duration) {
        let millis = u32::try_from(grace.as_millis()).unwrap_or(u32::MAX);
        let _ = self.stream.write_all(&millis.to_le_bytes()).await;
    }
}

impl Pipes {
    /// Waits for the next output, at most as much as `chunk` has room for. Safe
    /// to drop while it waits; pending for ever once both pipes have ended.
    pub(super) async fn read(&mut self, chunk: &mut Vec<u8>) -> Stream {
        let Self { output, error } = self;
        let stream = tokio::select! {
            () = readable(output.as_ref()) => Stream::Output,
            () = readable(error.as_ref()) => Stream::Error,
        };
        self.read_now(stream, chunk);
        stream
    }

    /// Reads what is there.
    pub(super) fn read_now(&mut self, stream: Stream, chunk: &mut Vec<u8>) {
        let pipe = match stream {
            Stream::Output => &mut self.output,
            Stream::Error => &mut self.error,
        };
        match pipe.as_ref().map(|pipe| pipe.try_read_buf(chunk)) {
            Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
            Some(Ok(0) | Err(_)) => *pipe = None,
            Some(Ok(_)) | None => {}
        }
    }

    pub(super) fn silent(&self) -> bool {
        self.output.is_none() && self.error.is_none()
    }
}

async fn readable(pipe: Option<&Receiver>) {
    match pipe {
        // An error is met again by whoever reads.
        Some(pipe) => drop(pipe.readable().await),
        None => std::future::pending().await,
    }
}

impl Drop for Job {
    /// Somebody has to read how the supervisor ended.
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let counted = std::mem::take(&mut self.counted);
            runtime.spawn(async move {
                let _ = child.wait().await;
                drop(counted);
            });
        }
    }
}

fn pipe() -> io::Result<(Receiver, OwnedFd)> {
    let (reader, writer) = std::io::pipe()?;
    // Beyond a user's share the system says no, and a small pipe does as well.
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(&reader, PIPE);
    Ok((Receiver::from_owned_fd(reader.into())?, writer.into()))
}

/// A pipe that a command reads from.
pub(super) fn input() -> io::Result<(Sender, OwnedFd)> {
    let (reader, writer) = std::io::pipe()?;
    Ok((Sender::from_owned_fd(writer.into())?, reader.into()))
}

fn order(launch: &Launch, reads: bool) -> Order {
    let argv = match &launch.program {
        Program::Direct(words) => words.clone(),
        Program::Shell {
            shell,
            arguments,
            script,
        } => std::iter::once(shell.clone().into_os_string())
            .chain(arguments.iter().map(OsString::from))
            .chain([script.into()])
            .collect(),
    };
    Order {
        streams: launch.streams,
        argv,
        dir: launch.dir.clone(),
        environment: launch.environment.clone(),
        reads,
        confinement: launch.confinement.clone(),
    }
}

/// What a failure calls the program.
pub(super) fn named(program: &Program) -> String {
    let path = match program {
        Program::Shell { shell, .. } => shell.as_path(),
        Program::Direct(words) => words.first().map_or(Path::new(""), Path::new),
    };
    path.to_string_lossy().into_owned()
}

/// A failure to start what was to be run.
pub(crate) fn cannot_run(program: &Program, refusal: Refusal, detail: String) -> Error {
    cannot(&named(program), refusal, detail)
}

pub(super) fn cannot(program: &str, refusal: Refusal, detail: String) -> Error {
    Error::CannotStart {
        program: program.to_owned(),
        refusal,
        detail,
    }
}
