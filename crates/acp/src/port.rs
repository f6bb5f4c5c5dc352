//! Interface between the protocol and the program: opening sessions, and what they offer.

use async_trait::async_trait;
use futures::future::BoxFuture;
use haft::Approver;
use haft_agent::{Agent, Message};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Kind of a failure, which decides the error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// No model can be reached: a key or a provider is missing.
    NeedsSetup,
    /// A session does not exist.
    NotFound,
    /// The request cannot be carried out as it is, such as for a folder that does not exist.
    Invalid,
    /// The session is in use elsewhere.
    InUse,
    /// A failure that the client cannot tell apart from others.
    Failed,
}

/// A failure, as the user sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Kind of the failure.
    pub kind: FailureKind,
    /// Failure, reason and remedy, in one message.
    pub message: String,
}

/// Name and version of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramInfo {
    /// Name that the client shows for the agent.
    pub name: String,
    /// Version, as `--version` prints it.
    pub version: String,
}

/// The way a session handles calls that need approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Only reading: nothing is written, and what would need approval is refused.
    Plan,
    /// The user is asked.
    #[default]
    Ask,
    /// Everything that the rules do not deny is approved.
    Auto,
}

impl Mode {
    /// Every mode, the strictest first.
    pub const ALL: [Self; 3] = [Self::Plan, Self::Ask, Self::Auto];

    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::Auto => "auto",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plan => "Plan",
            Self::Ask => "Ask",
            Self::Auto => "Auto",
        }
    }

    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Plan => "Read only: nothing is changed, and the agent presents a plan",
            Self::Ask => "Ask before calls that the rules do not allow by themselves",
            Self::Auto => "Approve every call that the rules do not deny",
        }
    }
}

/// Start of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// A new session, with this id if it has one already.
    New(Option<String>),
    /// A recorded session.
    Recorded(String),
}

/// A session that the client asks for.
pub struct Wanted {
    /// Whether the session is new or recorded.
    pub start: Start,
    /// Absolute work folder; ignored if the session is recorded and its own folder exists.
    pub folder: PathBuf,
    /// More folders that the tools may use.
    pub roots: Vec<PathBuf>,
    /// MCP servers of the client.
    pub servers: Vec<Server>,
    /// Settings that the user chose in the editor.
    pub choices: Choices,
    /// Asks the user.
    pub approver: Arc<dyn Approver>,
}

/// Settings that the user chose in the editor. `None` is what the configuration says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choices {
    /// Name of the model.
    pub model: Option<String>,
    /// Level of thinking of the model.
    pub effort: Option<String>,
    /// Name of the sandbox.
    pub sandbox: Option<String>,
    /// Network access of commands.
    pub network: Option<String>,
    /// Whether nothing may be changed.
    pub is_read_only: bool,
}

/// An MCP server of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// A program to start.
    Program {
        /// Name of the server.
        name: String,
        /// Path of the program.
        command: PathBuf,
        /// Arguments, without the program.
        arguments: Vec<String>,
        /// Variables in addition to those of haft.
        environment: Vec<(String, String)>,
    },
    /// A server on the network.
    Address {
        /// Name of the server.
        name: String,
        /// Address of its endpoint.
        url: String,
        /// Additional headers of every request.
        headers: Vec<(String, String)>,
        /// Whether it uses the older transport with server-sent events.
        is_sse: bool,
    },
}

impl Server {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Program { name, .. } | Self::Address { name, .. } => name,
        }
    }
}

/// An opened session.
pub struct Opened {
    /// Work folder: that of the record, if the session is recorded.
    pub folder: PathBuf,
    /// The agent and what belongs to it.
    pub seat: Arc<dyn Seat>,
    /// Messages from the beginning, including those that were compacted away.
    pub messages: Vec<Message>,
    /// Values that the user can choose.
    pub offers: Offers,
    /// Problems that the user should know of, once they are known, such as servers that did
    /// not start.
    pub problems: BoxFuture<'static, Vec<String>>,
    /// Title, if the session has one.
    pub title: Option<String>,
    /// Modes that the user can choose.
    pub modes: Vec<Mode>,
    /// Mode that the configuration asks for.
    pub mode: Mode,
    /// Tools whose calls always wait for the user, in every mode.
    pub interrupt_on: BTreeSet<String>,
}

/// Values that the user can choose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offers {
    /// Models of the provider.
    pub model: Options,
    /// Levels of thinking; empty if the provider has none.
    pub effort: Options,
    /// Modes of the sandbox for commands.
    pub sandbox: Options,
    /// Network access of commands.
    pub network: Options,
}

/// Values of one setting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The value in effect.
    pub current: String,
    /// All values, each with a description.
    pub values: Vec<(String, String)>,
}

/// The recorded session of a sub-agent.
#[derive(Debug, Clone, PartialEq)]
pub struct SubAgent {
    /// Id of the session.
    pub session: String,
    /// Session and id of the call that started it.
    pub started_by: (String, String),
    /// Messages from the beginning.
    pub messages: Vec<Message>,
}

/// A slash command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlashCommand {
    /// Name, without the slash.
    pub name: String,
    /// Description for the list of commands.
    pub description: String,
    /// Hint at its arguments, if it takes any.
    pub hint: Option<String>,
    /// Text of the prompt; `$ARGUMENTS` stands for what the user typed after the name.
    pub prompt: String,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Id to open the session with.
    pub id: String,
    /// Folder that the session works in.
    pub folder: PathBuf,
    /// Title, if it has one.
    pub title: Option<String>,
    /// Time of the last record, as RFC 3339.
    pub updated: String,
}

/// The program behind the protocol.
#[async_trait]
pub trait Host: Send + Sync {
    /// Returns the name and version of the program.
    fn info(&self) -> ProgramInfo;

    /// Checks that a model is configured.
    async fn check_model(&self) -> Result<(), Failure>;

    /// Checks that a session could be opened, apart from whether it is in use.
    async fn check_open(&self, wanted: &Wanted) -> Result<(), Failure>;

    /// Opens a session.
    async fn open(&self, wanted: Wanted) -> Result<Opened, Failure>;

    /// Lists recorded sessions, newest first.
    async fn list(&self, folder: Option<&Path>) -> Result<Vec<Listed>, Failure>;

    /// Copies a session and returns the id of the copy.
    async fn fork(&self, session: &str) -> Result<String, Failure>;

    /// Deletes a session.
    async fn delete(&self, session: &str) -> Result<(), Failure>;
}

/// The agent of an opened session, and what the user can do besides prompting it. Texts and
/// errors are messages for the user.
#[async_trait]
pub trait Seat: Send + Sync {
    /// Returns the agent.
    fn agent(&self) -> &Agent;

    /// Whether an earlier run is unfinished, which the next prompt continues.
    fn take_unfinished_run(&self) -> bool;

    /// Uses the model and the effort in `choices`, from the next request on.
    async fn set_model(&self, choices: &Choices) -> Result<(), String>;

    /// Notes that a run starts, which [`Seat::undo`] is about.
    fn note_run(&self);

    /// Returns the user's own slash commands, which may have changed.
    async fn slash_commands(&self) -> Vec<SlashCommand>;

    /// Returns the recorded sessions of the sub-agents, those of sub-agents of sub-agents too.
    async fn sub_agents(&self) -> Vec<SubAgent>;

    /// Compacts the conversation. Returns its estimated tokens before and after.
    async fn compact(&self) -> Result<(u64, u64), String>;

    /// Writes the conversation as Markdown to a file; to one with a name of its own if `file`
    /// is empty.
    async fn export(&self, file: String) -> Result<String, String>;

    /// Returns what the last run, or the calls and paths in `words`, changed.
    async fn changes(&self, words: String) -> Result<String, String>;

    /// Takes back what the last run, or the calls and paths in `words`, changed.
    async fn undo(&self, words: String) -> Result<String, String>;

    /// Takes the last undo back.
    async fn redo(&self) -> Result<String, String>;

    /// Ends everything that the session started.
    async fn close(&self);
}
