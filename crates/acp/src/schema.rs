//! The only place that knows the types of the protocol library. [`Protocol`] is what the rest
//! of the crate uses; `v1` and `v2` translate it to the two versions of the protocol.

mod v1;
mod v2;

use crate::commands::Command;
use crate::port::{Listed, Mode, ProgramInfo, Server};
use crate::prompt::Part;
use crate::rpc::{RpcError, code};
use crate::update::{CallUpdate, Update};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Names of the methods that are the same in all versions.
pub(crate) mod method {
    pub(crate) const INITIALIZE: &str = "initialize";
    pub(crate) const CANCEL: &str = "session/cancel";
    pub(crate) const CANCEL_REQUEST: &str = "$/cancel_request";
    pub(crate) const UPDATE: &str = "session/update";
    pub(crate) const ASK: &str = "session/request_permission";
    pub(crate) const ELICIT: &str = "elicitation/create";
    pub(super) const NEW: &str = "session/new";
    pub(super) const RESUME: &str = "session/resume";
    pub(super) const FORK: &str = "session/fork";
    pub(super) const LIST: &str = "session/list";
    pub(super) const CLOSE: &str = "session/close";
    pub(super) const DELETE: &str = "session/delete";
    pub(super) const PROMPT: &str = "session/prompt";
    pub(super) const SET_OPTION: &str = "session/set_config_option";
}

/// The authentication method: id, name, instructions.
const AUTH_METHOD: [&str; 3] = [
    "api-key",
    "API key or local model",
    "Set ANTHROPIC_API_KEY (or OPENAI_API_KEY, GEMINI_API_KEY) where the editor starts \
     haft, or set provider and model in haft.yaml",
];

/// One version of the protocol: reads what the client sends, and writes what it expects.
pub(crate) trait Protocol: Send + Sync {
    /// Answers `initialize`.
    fn initialize(&self, program: &ProgramInfo) -> Result<Value, RpcError>;

    /// Reads a request.
    fn decode(&self, method: &str, params: Value) -> Result<Incoming, RpcError>;

    /// Notes that a session opens whose history has this many prompts that are not replayed.
    fn begin(&self, _session: &str, _prompts: u64) {}

    /// Answers a request that created a session.
    fn created(&self, session: &str, state: &SessionState) -> Result<Value, RpcError>;

    /// Answers a request that opened a recorded session.
    fn opened(&self, state: &SessionState) -> Result<Value, RpcError>;

    /// Returns the update that precedes [`Protocol::opened`], if the version has one.
    fn idle(&self, _session: &str) -> Option<Value> {
        None
    }

    /// Answers a changed setting.
    fn option_set(&self, state: &SessionState) -> Result<Value, RpcError>;

    /// Answers a list of sessions.
    fn listed(&self, sessions: &[Listed], next: Option<String>) -> Result<Value, RpcError>;

    /// Acknowledges a prompt, if the version does that. `content` is the prompt as it came;
    /// `is_recorded` says whether it becomes part of the session.
    fn accepted(&self, _session: &str, _content: Value, _is_recorded: bool) -> Option<Accepted> {
        None
    }

    /// Tells how a prompt ended.
    fn ended(&self, session: &str, result: Result<StopReason, RpcError>) -> Ended;

    /// Creates a `session/update`.
    fn update(&self, session: &str, update: Update) -> Value;

    /// Creates the update with the slash commands.
    fn commands(&self, session: &str, commands: &[Command]) -> Value;

    /// Creates the update with the mode, if the version has modes besides settings.
    fn current_mode(&self, _session: &str, _mode: Mode) -> Option<Value> {
        None
    }

    /// Creates the update with all settings.
    fn settings(&self, session: &str, state: &SessionState) -> Value;

    /// Notes that a question to the user begins or ends. Returns the update about it, if any.
    fn waiting(&self, _session: &str, _change: Waiting) -> Option<Value> {
        None
    }

    /// Creates the parameters of `session/request_permission`. The question is in the content
    /// of the call too.
    fn ask(&self, session: &str, question: &str, call: CallUpdate, answers: Vec<Answer>) -> Value;

    /// Reads the answer to `session/request_permission`: the id, or `None` if it was cancelled.
    fn answered(&self, result: Value) -> Result<Option<String>, RpcError>;

    /// Creates the parameters of `elicitation/create`; `None` if the client could not show the
    /// form.
    fn form(&self, session: &str, call: &str, message: &str, schema: &Value) -> Option<Value>;

    /// Reads the answer to `elicitation/create`.
    fn form_answered(&self, result: Value) -> FormAnswer;
}

/// The protocol that a client and haft have agreed on.
pub(crate) struct Negotiated {
    pub(crate) protocol: Box<dyn Protocol>,
    /// Whether the client shows forms.
    pub(crate) has_forms: bool,
}

/// Reads `initialize`, and chooses the version: the one that the client asks for, or the
/// newest before it.
pub(crate) fn negotiate(params: Value) -> Result<Negotiated, RpcError> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Wanted {
        protocol_version: u16,
    }
    let wanted: Wanted = read(params.clone())?;
    match wanted.protocol_version {
        0 | 1 => Ok(Negotiated {
            has_forms: v1::has_forms(params)?,
            protocol: Box::new(v1::V1),
        }),
        2 => Ok(Negotiated {
            has_forms: v2::has_forms(params)?,
            protocol: Box::<v2::V2>::default(),
        }),
        _ => Ok(Negotiated {
            // The parameters of a later version may look different.
            has_forms: v2::has_forms(params).unwrap_or(false),
            protocol: Box::<v2::V2>::default(),
        }),
    }
}

/// Reads `session/cancel`.
pub(crate) fn cancelled(params: &Value) -> Option<String> {
    Some(params.get("sessionId")?.as_str()?.to_owned())
}

/// A request of the client.
pub(crate) enum Incoming {
    Authenticate,
    Logout,
    New(Place),
    Load(String, Place, Replay),
    Fork(String, Place),
    /// Folder, and where the page starts.
    List(Option<PathBuf>, usize),
    Close(String),
    Delete(String),
    Prompt {
        session: String,
        parts: Vec<Part>,
        /// The prompt as it came.
        content: Value,
    },
    SetMode(String, Mode),
    SetOption(Chosen),
}

/// Whether an opened session is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replay {
    Everything,
    Nothing,
}

/// The answer to a prompt that ends later, and the updates that follow it.
pub(crate) struct Accepted {
    pub(crate) answer: Value,
    pub(crate) updates: Vec<Value>,
}

/// Message about the end of a prompt.
pub(crate) enum Ended {
    Answer(Result<Value, RpcError>),
    Update(Value),
}

/// Change of the number of open questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    Begins,
    Ends,
}

/// Reason why a prompt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopReason {
    EndTurn,
    Cancelled,
    Refusal,
    MaxTurns,
    MaxTokens,
}

/// An answer that the user can choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) id: &'static str,
    pub(crate) name: String,
    pub(crate) kind: AnswerKind,
}

/// Kind of an answer, for an icon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
}

/// The user's response to a form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FormAnswer {
    Accepted(Value),
    Declined,
    Cancelled,
}

/// Folder, further folders and MCP servers of a session.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) servers: Vec<Server>,
}

impl Place {
    /// Checks that all folders are absolute, and that all servers have names.
    fn checked(self) -> Result<Self, RpcError> {
        for path in std::iter::once(&self.folder).chain(&self.roots) {
            absolute(path)?;
        }
        let is_nameless = |server: &Server| server.name().trim().is_empty();
        match self.servers.iter().any(is_nameless) {
            true => Err(RpcError::invalid("an MCP server needs a name")),
            false => Ok(self),
        }
    }
}

fn absolute(path: &Path) -> Result<(), RpcError> {
    match path.is_absolute() {
        true => Ok(()),
        false => {
            let path = path.display();
            Err(RpcError::invalid(format!("not an absolute path: {path}")))
        }
    }
}

/// Checks the folder whose sessions are listed.
fn listed_folder(folder: Option<PathBuf>) -> Result<Option<PathBuf>, RpcError> {
    if let Some(folder) = &folder {
        absolute(folder)?;
    }
    Ok(folder)
}

/// A value of a setting that the user chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) session: String,
    pub(crate) option: String,
    pub(crate) value: String,
}

/// A setting that the user can change.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) category: Category,
    pub(crate) options: crate::port::Options,
}

/// Subject of a setting, which decides its place in the editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Category {
    Mode,
    Model,
    Effort,
    Other,
}

/// State that comes with an opened session.
pub(crate) struct SessionState {
    pub(crate) mode: Mode,
    /// Modes that the user can choose.
    pub(crate) modes: Vec<Mode>,
    pub(crate) settings: Vec<Setting>,
    pub(crate) commands: Vec<Command>,
}

impl SessionState {
    /// Returns all settings, of which the mode is the first.
    fn all_settings(&self) -> impl Iterator<Item = Setting> {
        let values = self
            .modes
            .iter()
            .map(|mode| (mode.id().to_owned(), mode.description().to_owned()));
        let mode = Setting {
            id: "mode",
            name: "Mode",
            description: "How calls that need approval are handled",
            category: Category::Mode,
            options: crate::port::Options {
                current: self.mode.id().to_owned(),
                values: values.collect(),
            },
        };
        std::iter::once(mode).chain(self.settings.clone())
    }
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    serde_json::from_value(params)
        .map_err(|error| RpcError::invalid(format!("invalid params: {}", explained(&error))))
}

/// Explains what is wrong with parameters, without names of Rust types.
fn explained(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if text.contains("untagged enum McpServer") {
        return "an MCP server has a name, and command, args and env, or type http or sse with a \
                url and headers"
            .to_owned();
    }
    if text.contains("untagged enum SessionConfigOptionValue") {
        return "value must be the id of one of the values of the option".to_owned();
    }
    if let Some((before, _)) = text.split_once(" any variant of untagged enum ") {
        return format!("{before} any form that is known");
    }
    match text.split_once(", expected struct ") {
        Some((before, _)) => format!("{before}, expected an object"),
        None => text,
    }
}

fn write(value: impl Serialize) -> Result<Value, RpcError> {
    serde_json::to_value(value).map_err(|error| RpcError::new(code::INTERNAL, error.to_string()))
}

/// Checks the id of the authentication method.
fn authenticate(id: &str) -> Result<Incoming, RpcError> {
    match id == AUTH_METHOD[0] {
        true => Ok(Incoming::Authenticate),
        false => Err(RpcError::invalid(format!(
            "unknown authentication method {id}; haft offers {}",
            AUTH_METHOD[0]
        ))),
    }
}

fn mode(id: &str) -> Result<Mode, RpcError> {
    let mode = Mode::ALL.into_iter().find(|mode| mode.id() == id);
    mode.ok_or_else(|| {
        RpcError::invalid(format!(
            "unknown mode {id}; the modes are plan, ask and auto"
        ))
    })
}

/// Reads the params of a request that needs none.
fn or_empty(params: Value) -> Value {
    match params {
        Value::Null => Value::Object(serde_json::Map::new()),
        params => params,
    }
}

/// Reads the place in a list where a page starts.
fn page(cursor: Option<&str>) -> Result<usize, RpcError> {
    let from = cursor.map(str::parse).transpose();
    let from = from.map_err(|_| RpcError::invalid("unknown cursor"))?;
    Ok(from.unwrap_or_default())
}

fn unknown(method: &str) -> RpcError {
    RpcError::new(code::METHOD_NOT_FOUND, format!("unknown method {method}"))
}
