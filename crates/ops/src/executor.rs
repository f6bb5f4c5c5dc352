//! Starting programs and capturing their output.
//!
//! An [`Executor`] runs programs somewhere; [`Local`] runs them on this machine. A run ends
//! when the command's own process ends, its memory is bounded whatever the command prints,
//! and no process it started outlives this one. The policy has already decided that the
//! command may run, and the launch contains its confinement.

mod capture;
mod disk;
mod drive;
mod handle;
mod hidden;
mod job;
mod listeners;
mod local;
mod lookup;
#[cfg(target_os = "linux")]
mod notify;
mod orphans;
mod prompt;
mod running;
mod sample;
pub mod sandbox;
#[cfg(target_os = "linux")]
mod ssh;
#[cfg(target_os = "linux")]
mod supervisor;
mod survivors;
mod tree;
mod wire;

pub use disk::Log;
pub use hidden::{Itself, hidden};
pub(crate) use job::cannot_run as cannot;
pub(crate) use listeners::Listener;
pub use local::Local;
pub use lookup::{clean_path, look_up, path_of};
pub use orphans::orphans_ended;
pub use running::{Conversation, Pulse, Running, unread};
#[cfg(target_os = "linux")]
pub use ssh::{Ssh, Target};
#[cfg(target_os = "linux")]
pub use supervisor::supervise;

use crate::Result;
use crate::effects::Recording;
use crate::git::ConfigGate;
use async_trait::async_trait;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Maximum number of bytes in memory for each stream.
pub const MAX_MEMORY: usize = 2 << 20;

/// Time between TERM and KILL when a command must end early.
pub const GRACE: Duration = Duration::from_millis(500);

/// Time to wait for more output after the command has ended, while processes it left behind
/// keep the pipe open.
pub const DRAIN: Duration = Duration::from_millis(150);

/// Starts programs, here or on another machine.
#[async_trait]
pub trait Executor: Send + Sync + 'static {
    /// Runs a command until it ends, its time limit passes, or `cancel` is triggered.
    /// Dropping the future ends the command too.
    ///
    /// # Errors
    /// [`CannotStart`](crate::Error::CannotStart) if it could not be started. The end of a
    /// command that was started is never an error.
    async fn run(
        &self,
        launch: Launch,
        watch: &Watch<'_>,
        cancel: &CancellationToken,
    ) -> Result<Finished>;

    /// Starts a command in the background.
    ///
    /// # Errors
    /// [`CannotStart`](crate::Error::CannotStart) if it could not be started.
    async fn start(&self, launch: Launch) -> Result<Running>;

    /// Starts a program to exchange messages with. The caller owns its standard input and
    /// output, whatever the launch says; standard error is captured as the launch says.
    ///
    /// # Errors
    /// [`CannotStart`](crate::Error::CannotStart) if it could not be started, or if this
    /// executor does not support it.
    async fn converse(&self, launch: Launch) -> Result<Conversation> {
        let detail = "programs that exchange messages are not supported there".to_owned();
        Err(cannot(&launch.program, Refusal::Other, detail))
    }

    /// Ends everything it started. Returns once all of it has ended or cannot be ended.
    async fn close(&self) {}

    /// Returns an executor whose commands can be ended separately: dropping it ends what it
    /// started. `None` if this executor does not support that.
    fn part(&self) -> Option<Arc<dyn Executor>> {
        None
    }
}

/// Callback that receives output as it arrives.
pub type Watch<'a> = dyn Fn(Stream, &[u8]) + Send + Sync + 'a;

/// Request to start a command.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program to run.
    pub program: Program,
    /// Working directory, already checked by a scope.
    pub dir: PathBuf,
    /// The complete environment; nothing is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether both streams are merged.
    pub streams: Streams,
    /// Maximum run time.
    pub limit: Option<Duration>,
    /// Amount of output to keep.
    pub keep: Keep,
    /// What to do if the command waits for user input.
    pub prompts: Prompts,
    /// Content of standard input.
    pub input: Input,
    /// Confinement. If it cannot be applied, the command is not run.
    pub confinement: Option<sandbox::Confinement>,
    /// Network to join, if the confinement says so.
    pub network: Option<Arc<sandbox::SessionNetwork>>,
    /// Cache layers of the session, if the confinement has a place for them.
    pub layers: Option<Arc<sandbox::SessionLayers>>,
    /// Recorder of the files that it changes. Only a confined command can be recorded.
    pub recording: Recording,
    /// Git configurations that it may change although they are protected, as far as that is
    /// harmless.
    pub config_gate: Option<Arc<ConfigGate>>,
}

/// A program to run.
#[derive(Debug, Clone)]
pub enum Program {
    /// A script that a shell runs.
    Shell {
        /// The shell: a path, or `bash` or `sh`, which are looked up in the system folders
        /// first.
        shell: PathBuf,
        /// Arguments between the shell and the script, such as `-c`.
        arguments: Vec<String>,
        /// Text of the script.
        script: String,
    },
    /// A program and its arguments, without a shell. A name without a slash is looked up in
    /// the absolute folders of the command's own `PATH`.
    Direct(Vec<OsString>),
}

impl Program {
    /// Returns the length of the longest argument in bytes.
    fn longest_word(&self) -> usize {
        match self {
            Self::Shell { script, .. } => script.len(),
            Self::Direct(words) => words.iter().map(|word| word.len()).max().unwrap_or(0),
        }
    }
}

/// Standard input of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// No input: end of file at once.
    Nothing,
    /// These bytes, then end of file.
    Given(std::sync::Arc<[u8]>),
}

/// Whether standard output and standard error are separate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// One stream, in order of arrival.
    Merged,
    /// Two separate streams.
    Separate,
}

/// One of the two streams. With [`Streams::Merged`], everything is `Output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output, or both if they are merged.
    Output,
    /// Standard error, if it is separate.
    Error,
}

/// What to do if a command waits for user input, which will never come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prompts {
    /// Ends the command.
    End,
    /// Lets it wait until the time limit.
    Wait,
}

/// Amount of each stream to keep.
#[derive(Debug, Clone)]
pub struct Keep {
    /// Number of bytes to keep in memory from the start.
    pub head: usize,
    /// Number of bytes to keep in memory from the end. Together with `head` at most
    /// [`MAX_MEMORY`].
    pub tail: usize,
    /// Files for the complete output.
    pub disk: Option<Disk>,
}

/// Files that receive complete outputs.
#[derive(Debug, Clone)]
pub struct Disk {
    /// File for standard output, or for both streams if they are merged.
    pub output: PathBuf,
    /// File for standard error, if it is separate.
    pub error: PathBuf,
    /// Maximum size of each file in bytes. Of a longer output, the start and the end are
    /// kept.
    pub max: u64,
    /// When to create the files.
    pub when: When,
}

/// When to write an output to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Once it exceeds the bytes kept in memory.
    Overflow,
    /// From the first byte.
    Always,
}

/// A command that has ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Exit status of its own process.
    pub status: Exit,
    /// Reason for the end.
    pub ended: Ended,
    /// Standard output, or both streams if they are merged.
    pub output: Captured,
    /// Standard error, if it is separate.
    pub error: Captured,
    /// Processes it left running. They end at the latest with this process.
    pub survivors: Vec<Survivor>,
    /// Time from the request to the end.
    pub duration: Duration,
    /// The question on which it was waiting, if it was ended for that.
    pub waiting_for_input: Option<String>,
}

/// Exit status of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
    /// Unknown, because its supervisor was killed or it could not be ended in time.
    Unknown,
}

/// Reason why a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The command itself.
    Itself,
    /// The time limit.
    TimedOut,
    /// The caller, by cancelling it.
    Cancelled,
    /// The executor, because it waited for user input.
    Waiting,
}

/// The captured part of one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// Bytes from the start.
    pub head: Vec<u8>,
    /// Bytes from the end. If nothing is missing, `head` and `tail` together are the
    /// complete stream.
    pub tail: Vec<u8>,
    /// Total number of bytes.
    pub total_bytes: u64,
    /// Total number of lines, including a last one without a newline.
    pub total_lines: u64,
    /// File with the complete stream.
    pub spill: Option<PathBuf>,
    /// Number of bytes missing from the middle of that file.
    pub omitted: u64,
    /// The reason if that file is missing or incomplete.
    pub trouble: Option<String>,
}

impl Captured {
    /// Returns the number of bytes between `head` and `tail` that are not in memory.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.total_bytes
            .saturating_sub((self.head.len() + self.tail.len()) as u64)
    }
}

/// A process that outlived the command that started it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    /// Process id in the operating system.
    pub pid: u32,
    /// Process name, at most 15 bytes of it.
    pub name: String,
}

/// The reason why a command could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The program does not exist.
    Missing,
    /// The program is not executable.
    NotExecutable,
    /// The command line or the environment exceeds a limit of the system.
    TooLong,
    /// The working directory does not exist or is not a directory.
    NoDirectory,
    /// The requested confinement could not be set up.
    Unconfined,
    /// The machine is out of resources; a later attempt may succeed.
    Busy,
    /// The program file is open for writing.
    Written,
    /// The files hidden by rules could not be determined, or are too many to hide.
    CannotHide,
    /// A file that an earlier command created at a protected path is still there.
    Stuck,
    /// The supervisor could not be started, or was killed.
    NoSupervisor,
    /// Any other reason.
    Other,
}
