//! Every key of `haft.yaml`, declared once. The reader, `haft init`, `haft config show`
//! and the published schema all use this list.

use crate::log;

/// A key of `haft.yaml`.
#[derive(Debug)]
pub(crate) struct Key {
    /// Name with dots, such as `tools.preset`.
    pub(crate) name: &'static str,
    pub(crate) kind: ValueKind,
    /// Default value as YAML.
    pub(crate) default: &'static str,
    pub(crate) about: &'static str,
    pub(crate) flag: Option<&'static str>,
    pub(crate) variable: Option<&'static str>,
}

/// Type of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ValueKind {
    Text,
    Choice(&'static [&'static str]),
    /// Integer in this range.
    Whole(u64, u64),
    /// Number from 0 to this maximum.
    Number(u64),
    Truth,
    Texts,
    List,
    /// List of policy rules.
    Rules,
    Map,
    Anything,
}

/// Names of the sandbox modes.
pub(crate) const MODES: &[&str] = &["workspace", "strict", "read-only", "off"];

/// How to handle calls that need approval.
pub(crate) const APPROVE: &[&str] = &["ask", "auto", "never"];

/// One day: no call should take longer.
pub(crate) const MAX_SECONDS: u64 = 86_400;

const PROVIDERS: &[&str] = &[
    "anthropic",
    "openai-responses",
    "openai-completions",
    "google",
    "ollama",
    "replay",
];

pub(crate) static KEYS: &[Key] = &[
    used(
        "tools.toolset",
        ValueKind::Choice(haft::toolsets::NAMES),
        "standard",
        "family of tools",
    )
    .given_by("--toolset", "HAFT_TOOLSET"),
    used(
        "tools.preset",
        ValueKind::Text,
        "coding",
        "which tools the model gets; `all` for every one",
    )
    .given_by("--preset", "HAFT_PRESET"),
    used(
        "tools.work_dir",
        ValueKind::Text,
        ".",
        "work folder, relative to this file",
    )
    .given_by("--dir", "HAFT_DIR"),
    used(
        "tools.timeout",
        ValueKind::Number(MAX_SECONDS),
        "0",
        "seconds a call may take; 0: each tool's default",
    ),
    used(
        "tools.roots",
        ValueKind::Texts,
        "[]",
        "more folders to work in; only in your own file",
    ),
    used(
        "tools.protect",
        ValueKind::Texts,
        "[]",
        "files and folders that tools must not write",
    ),
    used(
        "max_tool_concurrency",
        ValueKind::Whole(1, 256),
        "4",
        "calls of one turn that run at the same time",
    ),
    used(
        "sandbox",
        ValueKind::Choice(MODES),
        "workspace",
        "workspace, strict, read-only or off",
    )
    .given_by("--sandbox", "HAFT_SANDBOX"),
    used(
        "network",
        ValueKind::Choice(&["on", "off"]),
        "off",
        "network access for commands",
    )
    .given_by("--network", "HAFT_NETWORK"),
    used(
        "tools.env",
        ValueKind::Texts,
        "[]",
        "extra variables for commands; in your own file",
    ),
    used(
        "executor",
        ValueKind::Anything,
        "local",
        "where commands run, or { ssh: HOST }",
    ),
    used(
        "backend",
        ValueKind::Anything,
        "filesystem",
        "where files live: filesystem, state, store",
    ),
    used(
        "execution",
        ValueKind::Anything,
        "local",
        "how code runs: local, sandbox, none or a server",
    ),
    used(
        "tools.plugins",
        ValueKind::List,
        "[]",
        "programs that provide tools: { path, args }",
    ),
    used(
        "tools.channels",
        ValueKind::Map,
        "{}",
        "message channels by name; in your own file",
    ),
    used(
        "tools.web",
        ValueKind::Map,
        "{}",
        "search engines and hosts; in your own file",
    ),
    used(
        "policy",
        ValueKind::Rules,
        "[]",
        "rules that allow, ask or deny calls",
    ),
    used(
        "approve",
        ValueKind::Choice(APPROVE),
        "ask",
        "calls that need approval: ask, auto or never",
    )
    .given_by("--approve", "HAFT_APPROVE"),
    used(
        "log",
        ValueKind::Choice(log::LEVELS),
        "warn",
        "off, error, warn, info, debug or trace",
    )
    .given_by("--log", "HAFT_LOG"),
    used(
        "quiet",
        ValueKind::Truth,
        "false",
        "print only results and errors",
    )
    .given_by("--quiet", "HAFT_QUIET"),
    used(
        "provider",
        ValueKind::Choice(PROVIDERS),
        "anthropic",
        "service that runs the model",
    ),
    used(
        "model",
        ValueKind::Text,
        "claude-sonnet-4-5",
        "name of the model",
    )
    .given_by("--model", "HAFT_MODEL"),
    used("base_url", ValueKind::Text, "\"\"", "URL of the provider"),
    used(
        "replay",
        ValueKind::Text,
        "\"\"",
        "recorded session for provider: replay",
    ),
    used(
        "api_key",
        ValueKind::Text,
        "${ANTHROPIC_API_KEY}",
        "API key of the provider",
    ),
    used(
        "system_prompt",
        ValueKind::Text,
        "\"\"",
        "replaces the default instructions",
    ),
    used(
        "context_window",
        ValueKind::Whole(1000, u64::MAX),
        "128000",
        "context size in tokens, if haft does not know it",
    ),
    used(
        "response_format",
        ValueKind::Anything,
        "{}",
        "JSON Schema for the final answer of a run",
    ),
    used(
        "max_turns",
        ValueKind::Whole(1, u64::MAX),
        "50",
        "maximum turns per task",
    ),
    used(
        "max_tokens",
        ValueKind::Whole(1, u64::MAX),
        "1000000",
        "maximum tokens per task; default: no limit",
    ),
    used(
        "max_cost",
        ValueKind::Number(u64::MAX),
        "1.0",
        "maximum US dollars per task; default: no limit",
    ),
    used(
        "max_retries",
        ValueKind::Whole(0, u64::MAX),
        "3",
        "retries of a failed request",
    ),
    used(
        "subagents",
        ValueKind::List,
        "[]",
        "agents that the agent can delegate to",
    ),
    used("skills", ValueKind::Texts, "[]", "folders with skills"),
    used(
        "memory",
        ValueKind::Texts,
        "[]",
        "files in the prompt that the model may update",
    ),
    used(
        "tools.interrupt_on",
        ValueKind::Map,
        "{}",
        "tools that need approval: { write: true }",
    ),
    used(
        "tools.mcp",
        ValueKind::Map,
        "{}",
        "MCP servers: { NAME: { command, args } }",
    ),
];

const fn used(
    name: &'static str,
    kind: ValueKind,
    default: &'static str,
    about: &'static str,
) -> Key {
    Key {
        name,
        kind,
        default,
        about,
        flag: None,
        variable: None,
    }
}

impl Key {
    const fn given_by(self, flag: &'static str, variable: &'static str) -> Self {
        Self {
            flag: Some(flag),
            variable: Some(variable),
            ..self
        }
    }

    /// Returns the part of the name before the dot and the part after it.
    pub(crate) fn parts(&self) -> (Option<&'static str>, &'static str) {
        match self.name.split_once('.') {
            Some((section, name)) => (Some(section), name),
            None => (None, self.name),
        }
    }
}

/// Finds a key by its name.
pub(crate) fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// Returns the keys of a section, or the top-level ones.
pub(crate) fn names_in(section: Option<&str>) -> Vec<String> {
    let mut names: Vec<String> = KEYS
        .iter()
        .filter(|key| key.parts().0 == section)
        .map(|key| key.parts().1.to_owned())
        .collect();
    if section.is_none() {
        names.push(SECTION.to_owned());
    }
    names
}

/// The only key that contains other keys.
pub(crate) const SECTION: &str = "tools";

impl ValueKind {
    /// Describes the expected value in messages.
    pub(crate) fn expected(self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Choice(names) => match names {
                [only] => (*only).to_owned(),
                [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
                [] => "nothing".to_owned(),
            },
            Self::Whole(least, u64::MAX) => format!("a whole number, at least {least}"),
            Self::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Self::Number(u64::MAX) => "a number, at least 0".to_owned(),
            Self::Number(most) => format!("a number from 0 to {most}"),
            Self::Truth => "true or false".to_owned(),
            Self::Texts => "a list of texts".to_owned(),
            Self::List => "a list".to_owned(),
            Self::Rules => "a list of rules".to_owned(),
            Self::Map => "a map".to_owned(),
            Self::Anything => "a value".to_owned(),
        }
    }
}
