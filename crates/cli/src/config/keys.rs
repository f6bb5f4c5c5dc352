//! Every key of `haft.yaml`, declared once: the reader, `haft init`, `haft
//! config show` and the published schema all follow this list.

use crate::log;

/// A key, by its dotted name.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// The default, as one would write it in the file.
    pub(crate) default: &'static str,
    pub(crate) about: &'static str,
    pub(crate) flag: Option<&'static str>,
    pub(crate) variable: Option<&'static str>,
}

/// What a value must be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Text,
    Choice(&'static [&'static str]),
    /// A whole number in this range.
    Whole(u64, u64),
    /// A number that is not negative, up to this one.
    Number(u64),
    Truth,
    Texts,
    List,
    /// The rules of a policy.
    Rules,
    Map,
    Anything,
}

/// The names of the sandbox modes.
pub(crate) const MODES: &[&str] = &["workspace", "strict", "read-only", "off"];

/// What becomes of what a rule asks about.
pub(crate) const APPROVE: &[&str] = &["ask", "auto", "never"];

/// A day: nothing that a model waits for takes longer.
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
        Kind::Choice(haft::toolsets::NAMES),
        "standard",
        "which tools there are",
    )
    .given_by("--toolset", "HAFT_TOOLSET"),
    used(
        "tools.preset",
        Kind::Text,
        "coding",
        "which of them a model sees; `all` for every one",
    )
    .given_by("--preset", "HAFT_PRESET"),
    used(
        "tools.work_dir",
        Kind::Text,
        ".",
        "the work folder, from this file's folder",
    )
    .given_by("--dir", "HAFT_DIR"),
    used(
        "tools.timeout",
        Kind::Number(MAX_SECONDS),
        "0",
        "seconds any call may take; 0 = each tool's own",
    ),
    used(
        "tools.roots",
        Kind::Texts,
        "[]",
        "more folders to work in; not in a project's file",
    ),
    used(
        "tools.protect",
        Kind::Texts,
        "[]",
        "files and folders that are never written",
    ),
    used(
        "max_tool_concurrency",
        Kind::Whole(1, 256),
        "4",
        "how many calls of one turn run at a time",
    ),
    used(
        "sandbox",
        Kind::Choice(MODES),
        "workspace",
        "workspace, strict, read-only or off",
    )
    .given_by("--sandbox", "HAFT_SANDBOX"),
    used(
        "network",
        Kind::Choice(&["on", "off"]),
        "off",
        "the network, for commands",
    )
    .given_by("--network", "HAFT_NETWORK"),
    used(
        "tools.env",
        Kind::Texts,
        "[]",
        "more variables for commands; in your own file",
    ),
    used(
        "executor",
        Kind::Anything,
        "local",
        "where commands run, or { ssh: HOST }",
    ),
    used(
        "backend",
        Kind::Anything,
        "filesystem",
        "where files live: filesystem, state, store",
    ),
    used(
        "execution",
        Kind::Anything,
        "local",
        "how code is run: local, sandbox, none, a server",
    ),
    used(
        "tools.plugins",
        Kind::List,
        "[]",
        "programs that bring tools: { path, args }",
    ),
    used(
        "tools.channels",
        Kind::Map,
        "{}",
        "where messages go, by name; in your own file",
    ),
    used(
        "tools.web",
        Kind::Map,
        "{}",
        "search engines and hosts; in your own file",
    ),
    used(
        "policy",
        Kind::Rules,
        "[]",
        "rules that allow, ask or deny calls",
    ),
    used(
        "approve",
        Kind::Choice(APPROVE),
        "ask",
        "what a rule asks about: ask, auto or never",
    )
    .given_by("--approve", "HAFT_APPROVE"),
    used(
        "log",
        Kind::Choice(log::LEVELS),
        "warn",
        "off, error, warn, info, debug or trace",
    )
    .given_by("--log", "HAFT_LOG"),
    used(
        "quiet",
        Kind::Truth,
        "false",
        "no notes beside results and errors",
    )
    .given_by("--quiet", "HAFT_QUIET"),
    used(
        "provider",
        Kind::Choice(PROVIDERS),
        "anthropic",
        "who runs the model",
    ),
    used("model", Kind::Text, "claude-sonnet-4-5", "the model's name")
        .given_by("--model", "HAFT_MODEL"),
    used("base_url", Kind::Text, "\"\"", "where the provider answers"),
    used(
        "replay",
        Kind::Text,
        "\"\"",
        "a recorded session, for provider: replay",
    ),
    used(
        "api_key",
        Kind::Text,
        "${ANTHROPIC_API_KEY}",
        "the provider's key",
    ),
    used(
        "system_prompt",
        Kind::Text,
        "\"\"",
        "what the model is told first",
    ),
    used(
        "context_window",
        Kind::Whole(1000, u64::MAX),
        "128000",
        "tokens the model takes, where haft does not know",
    ),
    used(
        "response_format",
        Kind::Anything,
        "{}",
        "a JSON Schema for the final answer of a run",
    ),
    used(
        "max_turns",
        Kind::Whole(1, u64::MAX),
        "50",
        "turns of one task",
    ),
    used(
        "max_tokens",
        Kind::Whole(1, u64::MAX),
        "1000000",
        "tokens of one task; no bound if not set",
    ),
    used(
        "max_cost",
        Kind::Number(u64::MAX),
        "1.0",
        "US dollars of one task; no bound if not set",
    ),
    used(
        "max_retries",
        Kind::Whole(0, u64::MAX),
        "3",
        "repeats of a failed request",
    ),
    used(
        "subagents",
        Kind::List,
        "[]",
        "agents that the agent may ask",
    ),
    used("skills", Kind::Texts, "[]", "folders of skills"),
    used(
        "memory",
        Kind::Texts,
        "[]",
        "files in the prompt that the model may update",
    ),
    used(
        "tools.interrupt_on",
        Kind::Map,
        "{}",
        "calls that wait for a person: { write: true }",
    ),
    used(
        "tools.mcp",
        Kind::Map,
        "{}",
        "MCP servers: { NAME: { command, args } }",
    ),
];

const fn used(name: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Key {
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

    /// The part of the name before the dot, and the part after it.
    pub(crate) fn parts(&self) -> (Option<&'static str>, &'static str) {
        match self.name.split_once('.') {
            Some((section, name)) => (Some(section), name),
            None => (None, self.name),
        }
    }
}

/// A key by its dotted name.
pub(crate) fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The names that a section may hold; those of the file itself for none.
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

/// The one key that holds other keys.
pub(crate) const SECTION: &str = "tools";

impl Kind {
    /// What is wanted, for messages.
    pub(crate) fn wanted(self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Choice(names) => match names {
                [only] => (*only).to_owned(),
                [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
                [] => "nothing".to_owned(),
            },
            Self::Whole(least, u64::MAX) => format!("a whole number from {least} on"),
            Self::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Self::Number(u64::MAX) => "a number from 0 on".to_owned(),
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
