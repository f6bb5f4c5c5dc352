//! A supervisor as haft sees it: its process, the socket to it, and the pipes that the
//! command writes to.

use super::sandbox::{CommonConfinement, Confinement, SessionLayers, SessionNetwork};
use super::survivors::SurvivorRegistry;
use super::wire::{self, Notified, Order, Report};
use super::{GRACE, Launch, Program, Refusal, Stream, Streams, handle, tree};
use crate::Error;
use crate::effects::{Hold, Incomplete};
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::process::{Child, Command};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Requested capacity of a pipe in bytes; a large one needs fewer reads.
pub(super) const PIPE: usize = 1 << 20;

/// Amount and interval of reading the output of survivors. The output is discarded, but
/// without a reader their next write would kill them.
const IDLE_READ: usize = 64 << 10;
const IDLE_PAUSE: Duration = Duration::from_millis(5);

/// Command that starts supervisors.
#[derive(Debug, Clone)]
pub(super) struct Binary {
    pub(super) path: PathBuf,
    pub(super) arguments: Vec<OsString>,
}

/// What a supervisor applies before it knows its command.
#[derive(Debug, Clone, Default)]
pub(super) struct Ahead {
    common: Option<CommonConfinement>,
    /// The session's network, if the command joins it.
    network: Option<Arc<SessionNetwork>>,
    /// The cache layers that the command gets copies of.
    layers: Option<Arc<SessionLayers>>,
}

impl Ahead {
    pub(super) fn of(launch: &Launch) -> Self {
        let confinement = launch.confinement.as_ref();
        Self {
            common: confinement.map(Confinement::common),
            network: launch
                .network
                .clone()
                .filter(|_| confinement.is_some_and(Confinement::joins_network)),
            layers: launch.layers.clone().filter(|_| confinement.is_some()),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.common == other.common
            && is_same(self.network.as_ref(), other.network.as_ref())
            && is_same(self.layers.as_ref(), other.layers.as_ref())
    }
}

fn is_same<T>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}

pub(super) struct Job {
    pub(super) channel: Channel,
    pub(super) pipes: Pipes,
    child: Option<Child>,
    supervisor: u32,
    /// The part of the confinement that the supervisor has applied already.
    ahead: Ahead,
    /// Whether a second supervisor runs between the first and the command.
    confined: bool,
    program: String,
    /// Tokens that make [`SurvivorRegistry::end_all`] wait for this supervisor.
    registered: Vec<TaskTrackerToken>,
    /// Keeps the set of changes open until the command's tree has ended.
    hold: Option<Hold>,
}

/// Socket for reports and requests. Dropping it ends the tree.
pub(super) struct Channel {
    stream: UnixStream,
    arrived: Vec<u8>,
}

/// Pipes that the command writes to, until it has ended.
pub(super) struct Pipes {
    output: Option<Receiver>,
    error: Option<Receiver>,
}

impl Job {
    /// Starts a supervisor, which waits for its order. It applies `ahead` in advance.
    pub(super) fn prepare(binary: &Binary, ahead: &Ahead) -> io::Result<Self> {
        let (mut ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        let layers = ahead.layers.as_ref();
        let count = layers.map_or(0, |layers| layers.count());
        ours.write_all(&wire::prelude(ahead.common, count))?;
        let network = ahead.network.iter().flat_map(|network| network.handles());
        let layers = layers.into_iter().flat_map(|layers| layers.handles());
        for namespace in network.chain(layers) {
            handle::send(&ours, namespace)?;
        }
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
        // It owns copies of our pipes.
        drop(command);
        Ok(Self {
            channel: Channel {
                stream: UnixStream::from_std(ours)?,
                arrived: Vec::new(),
            },
            pipes: Pipes {
                output: Some(output),
                error: Some(error),
            },
            supervisor: child.id().unwrap_or(0),
            child: Some(child),
            ahead: ahead.clone(),
            confined: false,
            program: String::new(),
            registered: Vec::new(),
            hold: None,
        })
    }

    /// Whether the supervisor is still waiting, for a command with this confinement.
    pub(super) fn is_ready_for(&mut self, ahead: &Ahead) -> bool {
        let child = self.child.as_mut();
        self.ahead.is_same(ahead) && child.is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Sends the order to the supervisor, and the command's standard input with it.
    pub(super) async fn begin(&mut self, launch: &Launch, input: Option<OwnedFd>) {
        self.program = program_name(&launch.program);
        self.confined = launch.confinement.is_some();
        if launch.streams == Streams::Merged {
            self.pipes.error = None;
        }
        // If this fails, the supervisor has ended, which is noticed when its report is
        // missing.
        let (listens, notified) = listens(launch).unzip();
        if listens.is_some() {
            self.hold = launch.recording.hold();
        }
        let order = order(launch, input.is_some(), notified);
        let _ = self.channel.stream.write_all(&order.to_bytes()).await;
        for handle in [input, listens].into_iter().flatten() {
            let _ = self.channel.send_fd(&handle).await;
        }
    }

    /// Announces that the whole tree has ended, so that its set of changes can be finished.
    pub(super) fn tree_ended(&mut self) {
        self.hold = None;
    }

    /// Registers the job, so that `end_all` waits for it.
    pub(super) fn register(&mut self, registry: &SurvivorRegistry) {
        self.registered = registry.all.iter().map(TaskTracker::token).collect();
    }

    /// Takes the pipe with the command's standard output, for another reader.
    pub(super) fn take_output(&mut self) -> Option<Receiver> {
        self.pipes.output.take()
    }

    pub(super) fn refused(&self, refusal: Refusal, detail: String) -> Error {
        cannot(&self.program, refusal, detail)
    }

    pub(super) fn is_confined(&self) -> bool {
        self.confined
    }

    /// Returns the process id of the supervisor, the outer one if there are two.
    pub(super) fn supervisor(&self) -> u32 {
        self.supervisor
    }

    /// Returns the process whose children are the command's processes.
    pub(super) fn root(&self) -> u32 {
        let inner = || tree::children(self.supervisor).first().copied();
        if self.confined { inner() } else { None }.unwrap_or(self.supervisor)
    }

    /// Kills the tree of a supervisor that was killed or does not respond. Runs on another
    /// thread, because it reads the process table many times.
    pub(super) async fn kill_tree(&self) {
        let (supervisor, inner) = (self.supervisor, self.confined.then(|| self.root()));
        let kill_tree = move || {
            if let Some(inner) = inner {
                // Killing the first process of a namespace kills all its processes.
                tree::kill(inner);
            }
            tree::kill_below(supervisor);
            tree::kill_session(supervisor);
        };
        let _ = tokio::task::spawn_blocking(kill_tree).await;
    }

    /// Lets the supervisor keep the processes that the command left, until they end or
    /// `registry` ends them.
    pub(super) fn keep_survivors(mut self, registry: &SurvivorRegistry) {
        let shutdown = registry.shutdown.clone();
        registry.tasks.spawn(async move {
            let Self { channel, pipes, .. } = &mut self;
            let read = async {
                let mut chunk = Vec::with_capacity(IDLE_READ);
                loop {
                    pipes.read(&mut chunk).await;
                    chunk.clear();
                    tokio::time::sleep(IDLE_PAUSE).await;
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = channel.wait_closed() => return,
                () = read => {}
            }
            channel.end(GRACE).await;
            let _ = tokio::time::timeout(GRACE * 2, channel.wait_closed()).await;
        });
    }
}

impl Channel {
    /// Waits for the next report. Returns `None` once the supervisor is gone. Cancel-safe.
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

    /// Waits until the supervisor is gone, ignoring further reports.
    async fn wait_closed(&mut self) {
        while self.report().await.is_some() {}
    }

    /// Sends a file descriptor.
    async fn send_fd(&self, fd: &OwnedFd) -> io::Result<()> {
        loop {
            self.stream.writable().await?;
            let sent = self
                .stream
                .try_io(Interest::WRITABLE, || handle::send(&self.stream, fd));
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return sent,
            }
        }
    }

    /// Requests the end of the tree. If the socket is closed, it has ended already.
    pub(super) async fn end(&mut self, grace: Duration) {
        let millis = u32::try_from(grace.as_millis()).unwrap_or(u32::MAX);
        let _ = self.stream.write_all(&millis.to_le_bytes()).await;
    }
}

impl Pipes {
    /// Waits for more output, at most as much as fits in `chunk`. Cancel-safe. Never
    /// completes once both pipes are closed.
    pub(super) async fn read(&mut self, chunk: &mut Vec<u8>) -> Stream {
        let Self { output, error } = self;
        let stream = tokio::select! {
            () = readable(output.as_ref()) => Stream::Output,
            () = readable(error.as_ref()) => Stream::Error,
        };
        self.read_now(stream, chunk);
        stream
    }

    /// Reads available output without waiting.
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

    pub(super) fn is_closed(&self) -> bool {
        self.output.is_none() && self.error.is_none()
    }
}

async fn readable(pipe: Option<&Receiver>) {
    match pipe {
        // The next read reports the same error.
        Some(pipe) => drop(pipe.readable().await),
        None => std::future::pending().await,
    }
}

impl Drop for Job {
    /// Waits for the supervisor in the background, because its exit status must be read.
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let hold = self.hold.take();
        if let Some(mut child) = self.child.take() {
            let registered = std::mem::take(&mut self.registered);
            runtime.spawn(async move {
                let _ = child.wait().await;
                drop(registered);
                // On another thread, because it may write the set.
                if hold.is_some() {
                    let _ = tokio::task::spawn_blocking(|| drop(hold)).await;
                }
            });
        }
    }
}

fn pipe() -> io::Result<(Receiver, OwnedFd)> {
    let (reader, writer) = std::io::pipe()?;
    // Beyond the user's quota the system refuses, and a small pipe works too.
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(&reader, PIPE);
    Ok((Receiver::from_owned_fd(reader.into())?, writer.into()))
}

/// Creates a pipe for the standard input of a command.
pub(super) fn input() -> io::Result<(Sender, OwnedFd)> {
    let (reader, writer) = std::io::pipe()?;
    Ok((Sender::from_owned_fd(writer.into())?, reader.into()))
}

/// Starts recording the changes of a command, and letting some of them through. Returns a
/// socket for its supervisor, and the calls to be notified.
fn listens(launch: &Launch) -> Option<(OwnedFd, Notified)> {
    #[cfg(target_os = "linux")]
    if launch.confinement.is_some() {
        return super::notify::start(&launch.recording, launch.config_gate.as_ref());
    }
    // The filter takes away the right to gain privileges, which an unconfined command has.
    launch.recording.unrecorded(Incomplete::SandboxOff);
    None
}

fn order(launch: &Launch, reads: bool, notified: Option<Notified>) -> Order {
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
        notified,
    }
}

/// Returns the name of the program for error messages.
pub(super) fn program_name(program: &Program) -> String {
    let path = match program {
        Program::Shell { shell, .. } => shell.as_path(),
        Program::Direct(words) => words.first().map_or(Path::new(""), Path::new),
    };
    path.to_string_lossy().into_owned()
}

/// Creates the error for a program that could not be started.
pub(crate) fn cannot_run(program: &Program, refusal: Refusal, detail: String) -> Error {
    cannot(&program_name(program), refusal, detail)
}

pub(super) fn cannot(program: &str, refusal: Refusal, detail: String) -> Error {
    Error::CannotStart {
        program: program.to_owned(),
        refusal,
        detail,
    }
}
