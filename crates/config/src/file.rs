//! `haft.yaml`, declared once. From these structs come the reader, the published schema,
//! the file that `haft init` writes, the defaults, and who may set a key. The comment of a
//! field is what users read about it. A key without a default has an example for `haft init`.
//!
//! Variables are expanded in every [`Setting`], when it is used. `x-project` says what
//! happens to a setting in a project's file:
//!
//! | `x-project` | |
//! |---|---|
//! | none | it is used; if it needs variables, only once the file is trusted |
//! | `tightens` | the same, but leaving it out would allow more, so that is an error |
//! | `limited` | variables are never expanded; the section decides about the rest |
//! | `ignored` | ignored with a warning |
//! | `literal` | used as it is: nothing is expanded in it, in no file |

use super::caches::CachesEntry;
use super::channels::ChannelEntry;
use super::chat::ChatEntry;
use super::commands::ExecutorEntry;
use super::effects::EffectsEntry;
use super::files::{BackendEntry, ExecutionEntry};
use super::mcp::ServerEntry;
use super::network::NetworkEntry;
use super::plugins::PluginEntry;
use super::policy::RuleEntry;
use super::setting::{List, Map, Names, Number, OneOf, Setting, TextOr, Whole};
use super::web::WebEntry;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Settings of haft, for one folder or for the user.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(title = "haft.yaml")]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// Tools and their permissions.
    #[serde(default)]
    pub(crate) tools: Tools,
    /// Calls of one turn that run at the same time.
    #[schemars(extend("default" = 4))]
    pub(crate) max_tool_concurrency: Option<Setting<Whole<1, 256>>>,
    /// Workspace, strict, read-only or off.
    #[schemars(extend("default" = "workspace", "x-project" = "tightens"))]
    #[schemars(extend("x-flag" = "--sandbox", "x-variable" = "HAFT_SANDBOX"))]
    pub(crate) sandbox: Option<Setting<OneOf<Modes>>>,
    /// Network for commands: on, off or [HOST, …].
    #[schemars(extend("default" = "off", "x-project" = "tightens"))]
    #[schemars(extend("x-flag" = "--network", "x-variable" = "HAFT_NETWORK"))]
    pub(crate) network: Option<Setting<NetworkEntry>>,
    /// Let git over ssh log in with the user's agent.
    #[schemars(extend("default" = false, "x-project" = "ignored"))]
    pub(crate) ssh_agent: Option<Setting<bool>>,
    /// Where commands run, or { ssh: HOST }.
    #[schemars(extend("default" = "local", "x-project" = "ignored"))]
    pub(crate) executor: Option<Setting<ExecutorEntry>>,
    /// Where files live: filesystem, state, store.
    #[schemars(extend("default" = "filesystem"))]
    pub(crate) backend: Option<Setting<BackendEntry>>,
    /// How code runs: local, sandbox, none or a server.
    #[schemars(extend("default" = "local", "x-project" = "tightens"))]
    pub(crate) execution: Option<Setting<ExecutionEntry>>,
    /// Rules that allow, review, ask or deny calls.
    #[serde(default)]
    #[schemars(extend("x-project" = "literal"))]
    pub(crate) policy: List<RuleEntry>,
    /// Limits of `haft undo`; in your own file.
    #[serde(default)]
    #[schemars(extend("default" = {}, "x-project" = "ignored"))]
    pub(crate) effects: EffectsEntry,
    /// Look of the chat; in your own file.
    #[serde(default)]
    #[schemars(extend("default" = {}, "x-project" = "ignored"))]
    pub(crate) chat: ChatEntry,
    /// Calls that need approval: ask, auto or never.
    #[schemars(extend("default" = "ask", "x-project" = "tightens"))]
    #[schemars(extend("x-flag" = "--approve", "x-variable" = "HAFT_APPROVE"))]
    pub(crate) approve: Option<Setting<OneOf<Approval>>>,
    /// Off, error, warn, info, debug or trace.
    #[schemars(extend("default" = "warn"))]
    #[schemars(extend("x-flag" = "--log", "x-variable" = "HAFT_LOG"))]
    pub(crate) log: Option<Setting<OneOf<Levels>>>,
    /// Print only results and errors; in your own file.
    // Most notes are about the project's file, so the project must not silence them.
    #[schemars(extend("default" = false, "x-project" = "ignored"))]
    #[schemars(extend("x-flag" = "--quiet", "x-variable" = "HAFT_QUIET"))]
    pub(crate) quiet: Option<Setting<bool>>,
    /// Service that runs the model.
    #[schemars(extend("examples" = ["anthropic"]))]
    pub(crate) provider: Option<Setting<OneOf<Providers>>>,
    /// Name of the model.
    #[schemars(extend("examples" = ["claude-sonnet-4-5"]))]
    #[schemars(extend("x-flag" = "--model", "x-variable" = "HAFT_MODEL"))]
    pub(crate) model: Option<Setting<String>>,
    /// Thinking: minimal, low, medium, high or max.
    #[schemars(extend("examples" = ["medium"]))]
    #[schemars(extend("x-flag" = "--effort", "x-variable" = "HAFT_EFFORT"))]
    pub(crate) effort: Option<Setting<OneOf<Efforts>>>,
    /// URL of the provider.
    #[schemars(extend("examples" = [""]))]
    pub(crate) base_url: Option<Setting<String>>,
    /// Recorded session for provider: replay.
    #[schemars(extend("examples" = [""]))]
    pub(crate) replay: Option<Setting<String>>,
    /// API key of the provider.
    #[schemars(extend("examples" = ["${ANTHROPIC_API_KEY}"]))]
    pub(crate) api_key: Option<Setting<String>>,
    /// Replaces the default instructions.
    #[schemars(extend("examples" = [""]))]
    pub(crate) system_prompt: Option<Setting<String>>,
    /// Context size in tokens, if haft does not know it.
    #[schemars(extend("examples" = [128_000]))]
    pub(crate) context_window: Option<Setting<Whole<1000>>>,
    /// JSON Schema for the final answer of a run.
    #[schemars(extend("examples" = [{}]))]
    pub(crate) response_format: Option<Setting<Value>>,
    /// Maximum turns per task.
    #[schemars(extend("examples" = [50]))]
    pub(crate) max_turns: Option<Setting<Whole<1>>>,
    /// Maximum tokens per task; default: no limit.
    #[schemars(extend("examples" = [1_000_000]))]
    pub(crate) max_tokens: Option<Setting<Whole<1>>>,
    /// Maximum US dollars per task; default: no limit.
    #[schemars(extend("examples" = [1.0]))]
    pub(crate) max_cost: Option<Setting<Number>>,
    /// Retries of a failed request.
    #[schemars(extend("examples" = [3]))]
    pub(crate) max_retries: Option<Setting<Whole<0>>>,
    /// Agents that the agent can delegate to.
    #[serde(default)]
    pub(crate) subagents: List<Value>,
    /// Folders with skills.
    #[serde(default)]
    pub(crate) skills: List<String>,
    /// Files in the prompt that the model may update.
    #[serde(default)]
    pub(crate) memory: List<String>,
    /// MCP servers as in .mcp.json; like tools.mcp.
    #[serde(default, rename = "mcpServers")]
    pub(crate) mcp_servers: Map<ServerEntry>,
}

/// The keys under `tools`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tools {
    /// Family of tools.
    #[schemars(extend("default" = "standard"))]
    #[schemars(extend("x-flag" = "--toolset", "x-variable" = "HAFT_TOOLSET"))]
    pub(crate) toolset: Option<Setting<OneOf<Toolsets>>>,
    /// Which tools the model gets; `all` for every one.
    #[schemars(extend("examples" = ["coding"]))]
    #[schemars(extend("x-flag" = "--preset", "x-variable" = "HAFT_PRESET"))]
    pub(crate) preset: Option<Setting<String>>,
    /// Work folder, relative to this file.
    // `--dir` and HAFT_DIR also decide which file is read, so they are looked up earlier.
    #[schemars(extend("examples" = ["."], "x-project" = "tightens"))]
    pub(crate) work_dir: Option<Setting<String>>,
    /// Seconds a call may take; 0: each tool's default.
    #[schemars(extend("default" = 0))]
    pub(crate) timeout: Option<Setting<Number<86_400>>>,
    /// Whether edits repair text that almost matches.
    #[schemars(extend("default" = "on", "x-project" = "tightens"))]
    pub(crate) edit_repair: Option<Setting<OneOf<Switch>>>,
    /// More folders to work in; only in your own file.
    #[schemars(extend("default" = [], "x-project" = "ignored"))]
    pub(crate) roots: Option<Setting<Vec<String>>>,
    /// Files and folders that tools must not write.
    #[schemars(extend("default" = [], "x-project" = "tightens"))]
    pub(crate) protect: Option<Setting<Vec<String>>>,
    /// Extra variables for commands; in your own file.
    #[schemars(extend("default" = [], "x-project" = "ignored"))]
    pub(crate) env: Option<Setting<Vec<String>>>,
    /// Caches of sandboxed commands; in your own file.
    #[serde(default)]
    #[schemars(extend("default" = {}, "x-project" = "ignored"))]
    pub(crate) caches: CachesEntry,
    /// Programs that provide tools: { path, args }.
    #[serde(default)]
    pub(crate) plugins: List<TextOr<PluginEntry>>,
    /// Message channels by name; in your own file.
    // A project may have a console.
    #[serde(default)]
    #[schemars(extend("x-project" = "limited"))]
    pub(crate) channels: Map<ChannelEntry>,
    /// Search engines and hosts; in your own file.
    #[serde(default)]
    #[schemars(extend("default" = {}, "x-project" = "ignored"))]
    pub(crate) web: WebEntry,
    /// Tools that need approval: { write: true }.
    #[serde(default)]
    pub(crate) interrupt_on: Map<bool>,
    /// MCP servers: { NAME: { command, args } }.
    #[serde(default)]
    pub(crate) mcp: Map<ServerEntry>,
}

/// Names of the sandbox modes.
pub const MODES: &[&str] = &["workspace", "strict", "read-only", "off"];

/// How to handle calls that need approval.
pub const APPROVE: &[&str] = &["ask", "auto", "never"];

/// How much the model thinks.
pub const EFFORTS: &[&str] = &["minimal", "low", "medium", "high", "max"];

/// Levels of the log.
pub const LEVELS: &[&str] = &["off", "error", "warn", "info", "debug", "trace"];

/// Themes of the chat.
pub(crate) const THEMES: &[&str] = &["auto", "dark", "light", "contrast", "terminal"];

/// Declares the names that a key accepts.
macro_rules! names {
    ($($type:ident: $names:expr;)*) => {$(
        #[derive(Debug)]
        pub(crate) enum $type {}

        impl Names for $type {
            const NAMES: &'static [&'static str] = $names;
        }
    )*};
}

names! {
    Toolsets: haft::toolsets::NAMES;
    Modes: MODES;
    Approval: APPROVE;
    Efforts: EFFORTS;
    Levels: LEVELS;
    Themes: THEMES;
    Switch: &["on", "off"];
    Providers: &["anthropic", "openai-responses", "openai-completions", "google", "ollama", "replay"];
}
