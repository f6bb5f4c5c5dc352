//! Programs that are started: what to run, how it ended, what it said.
//!
//! An [`Executor`] runs things somewhere; [`Local`] runs them here. A run ends
//! when the command's own process ends, its memory is bounded whatever the
//! command prints, and nothing it started outlives this process. Whether a
//! command may run is not decided here: a policy did that before, and the launch
//! carries what confines it.

mod capture;
mod disk;
mod drive;
mod handle;
mod hidden;
mod job;
mod listeners;
mod local;
mod lookup;
mod orphans;
mod prompt;
mod running;
mod sample;
pub mod sandbox;
#[cfg(target_os = "linux")]
mod ssh;
#[cfg(target_os = "linux")]
mod supervisor;
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
use async_trait::async_trait;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The most that is held in memory of one stream.
pub const MAX_MEMORY: usize = 2 << 20;

/// How long a tree has between the request to end and its death, when a run is
/// over before the command is.
pub const GRACE: Duration = Duration::from_millis(500);

/// How long output is awaited after the command's own process ended, while
/// something it left behind still holds the pipe.
pub const DRAIN: Duration = Duration::from_millis(150);

/// Starts programs.
#[async_trait]
pub trait Executor: Send + Sync + 'static {
    /// Runs a command to its end, its time limit, or `cancel`. Dropping the
    /// future ends the command too.
    ///
    /// # Errors
    /// [`CannotStart`](crate::Error::CannotStart) when it did not begin. How a
    /// command that did begin ended is never an error.
    async fn run(
        &self,
        launch: Launch,
        watch: &Watch<'_>,
        cancel: &CancellationToken,
    ) -> Result<Finished>;

    /// Starts a command that goes on beside the caller.
    ///
    /// # Errors
    /// [`CannotStart`](crate::Error::CannotStart) when it did not begin.
    async fn start(&self, launch: Launch) -> Result<Running>;

    /// Starts a program that is spoken to: what it reads and writes are the
    /// caller's, whatever the launch says of them; standard error is kept as it
    /// says.
    ///
    /// # Errors
    /// [`CannotStart`](crate::Error::CannotStart) when it did not begin, and where
    /// nothing can be spoken to.
    async fn converse(&self, launch: Launch) -> Result<Conversation> {
        let detail = "no program can be spoken to there".to_owned();
        Err(cannot(&launch.program, Refusal::Other, detail))
    }

    /// Ends everything that it started, and returns when that is gone or cannot be ended.
    async fn close(&self) {}

    /// One like it, for somebody whose commands end apart from the others: dropping it
    /// ends what it started. Nothing where that cannot be told apart.
    fn part(&self) -> Option<Arc<dyn Executor>> {
        None
    }
}

/// Who sees output as it comes.
pub type Watch<'a> = dyn Fn(Stream, &[u8]) + Send + Sync + 'a;

/// A command to start.
#[derive(Debug, Clone)]
pub struct Launch {
    /// What to run.
    pub program: Program,
    /// Where, already checked by a scope.
    pub dir: PathBuf,
    /// All of its environment; nothing is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether its two streams are one.
    pub streams: Streams,
    /// How long it may take.
    pub limit: Option<Duration>,
    /// What is kept of its output.
    pub keep: Keep,
    /// What happens when it waits for a person.
    pub prompts: Prompts,
    /// What it reads.
    pub input: Input,
    /// What confines it. If it cannot be put on, nothing is run.
    pub confinement: Option<sandbox::Confinement>,
}

/// What is run.
#[derive(Debug, Clone)]
pub enum Program {
    /// A script, by a shell.
    Shell {
        /// The shell: a path, or `bash` or `sh`, which are looked up among the
        /// programs of the system first.
        shell: PathBuf,
        /// What stands between the shell and the script, such as `-c`.
        arguments: Vec<String>,
        /// The script.
        script: String,
    },
    /// A program and its arguments, with no shell in between. A name without a
    /// slash is looked up in the command's own `PATH`, in its absolute folders.
    Direct(Vec<OsString>),
}

impl Program {
    /// How long its longest word is, in bytes.
    fn longest_word(&self) -> usize {
        match self {
            Self::Shell { script, .. } => script.len(),
            Self::Direct(words) => words.iter().map(|word| word.len()).max().unwrap_or(0),
        }
    }
}

/// What a command reads from its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Nothing: it is at its end.
    Nothing,
    /// These bytes.
    Given(std::sync::Arc<[u8]>),
}

/// Whether standard output and standard error are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// One stream, in order of arrival.
    Merged,
    /// Two.
    Apart,
}

/// Which of the streams; [`Streams::Merged`] has only `Output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output, or both.
    Output,
    /// Standard error.
    Error,
}

/// What is done about a command that asks something nobody can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prompts {
    /// It is ended.
    End,
    /// It waits on.
    Wait,
}

/// What is kept of each stream.
#[derive(Debug, Clone)]
pub struct Keep {
    /// Bytes of its beginning held in memory.
    pub head: usize,
    /// Bytes of its end held in memory. Both together are at most
    /// [`MAX_MEMORY`].
    pub tail: usize,
    /// Where the whole of it goes.
    pub disk: Option<Disk>,
}

/// Where whole outputs are written.
#[derive(Debug, Clone)]
pub struct Disk {
    /// The file for standard output, or for both.
    pub output: PathBuf,
    /// The file for standard error, when it is apart.
    pub error: PathBuf,
    /// The most that one file takes; beyond it, beginning and end are kept.
    pub max: u64,
    /// When the files are made.
    pub when: When,
}

/// When an output goes to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Once there is more than memory keeps.
    Overflow,
    /// From the first byte on.
    Always,
}

/// A command that ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How its own process ended.
    pub status: Exit,
    /// Who ended it.
    pub ended: Ended,
    /// Standard output, or both streams.
    pub output: Captured,
    /// Standard error, when it is apart.
    pub error: Captured,
    /// What it left running. These end with this process at the latest.
    pub survivors: Vec<Survivor>,
    /// From the request to the end.
    pub duration: Duration,
    /// What it asked for, when it was ended because nobody could answer.
    pub waiting_for_input: Option<String>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody saw: its supervisor was killed, or it could not be ended in time.
    Unknown,
}

/// Who ended a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It ended by itself.
    Itself,
    /// Its time was over.
    TimedOut,
    /// The caller did.
    Cancelled,
    /// It waited for a person.
    Waiting,
}

/// What is left of one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// Its beginning.
    pub head: Vec<u8>,
    /// Its end. With nothing between them, both together are the whole stream.
    pub tail: Vec<u8>,
    /// How many bytes there were.
    pub total_bytes: u64,
    /// How many lines, the last one counted even without its newline.
    pub total_lines: u64,
    /// The file that has the whole of it.
    pub spill: Option<PathBuf>,
    /// How many bytes from the middle that file lacks.
    pub omitted: u64,
    /// Why there is no such file, or why it ends early.
    pub trouble: Option<String>,
}

impl Captured {
    /// How many bytes are between `head` and `tail`, and not in memory.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.total_bytes
            .saturating_sub((self.head.len() + self.tail.len()) as u64)
    }
}

/// A process that outlived the command that started it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    /// Its number.
    pub pid: u32,
    /// Its name, at most 15 bytes of it.
    pub name: String,
}

/// Why a command did not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such program.
    Missing,
    /// It is there and cannot be executed.
    NotExecutable,
    /// The command line or the environment is longer than the system takes.
    TooLong,
    /// The working directory is not there, or no directory.
    NoDirectory,
    /// The confinement asked for could not be set up.
    Unconfined,
    /// The machine had no room for it just now; it may have later.
    Busy,
    /// Its file is open for writing.
    Written,
    /// What rules close to it could not be found, or is too much to be hidden.
    Closed,
    /// What an earlier command made at a protected place is still there.
    Stuck,
    /// The supervisor could not be started, or was killed.
    NoSupervisor,
    /// Something else.
    Other,
}
