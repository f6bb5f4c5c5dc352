//! Detects which program a file belongs to, by its name and its content.

use crate::jsonc;
use serde_json::{Map, Value};
use std::path::Path;

/// Settings of another program.
#[derive(Debug)]
pub struct Source {
    pub(crate) origin: Origin,
    pub(crate) settings: Map<String, Value>,
}

/// Programs whose settings can be converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    AgentYaml,
    Servers,
    ClaudeSettings,
    ClaudeState,
    Codex,
    Gemini,
    Opencode,
}

impl Source {
    /// Detects the program that a file belongs to; `None` if it is not supported.
    pub fn detect(path: &Path, settings: Value) -> Option<Self> {
        let Value::Object(settings) = settings else {
            return None;
        };
        let origin = match extension(path) {
            Some("toml") => is_codex(&settings).then_some(Origin::Codex),
            Some("yaml" | "yml") => is_agent_yaml(&settings).then_some(Origin::AgentYaml),
            _ => of_json(path, &settings),
        };
        let origin = origin?;
        Some(Self { origin, settings })
    }

    /// Returns a description of the file, such as "settings of Codex".
    pub fn description(&self) -> &'static str {
        match self.origin {
            Origin::AgentYaml => "an agent.yaml",
            Origin::Servers => "a list of MCP servers",
            Origin::ClaudeSettings => "settings of Claude Code",
            Origin::ClaudeState => "the state of Claude Code",
            Origin::Codex => "settings of Codex",
            Origin::Gemini => "settings of Gemini CLI",
            Origin::Opencode => "settings of opencode",
        }
    }
}

/// An error at a position in a file.
#[derive(Debug)]
pub struct SyntaxError {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, if known.
    pub column: Option<usize>,
    /// Description without values of the file, which may be keys.
    pub message: String,
}

/// Parses a file with the extension `toml` as TOML, and others as JSON with comments and
/// trailing commas.
///
/// # Errors
/// If the text is not valid.
pub fn parse(path: &Path, text: &str) -> Result<Value, SyntaxError> {
    match extension(path) {
        Some("toml") => toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            SyntaxError {
                line: before.map_or(1, |before| before.matches('\n').count() + 1),
                column: None,
                message: error.message().to_owned(),
            }
        }),
        _ => serde_json::from_str(&jsonc::plain(text)).map_err(|error| SyntaxError {
            line: error.line(),
            column: Some(error.column().max(1)),
            message: format!("not valid JSON: {}", reason(&error)),
        }),
    }
}

fn extension(path: &Path) -> Option<&str> {
    path.extension().and_then(|extension| extension.to_str())
}

/// Describes a JSON error. For type errors the parser quotes the value, which may be a
/// key, so a fixed text is used.
fn reason(error: &serde_json::Error) -> String {
    if error.is_data() {
        return "a value has the wrong type".to_owned();
    }
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}

fn has(given: &Map<String, Value>, keys: &[&str]) -> bool {
    keys.iter().any(|key| given.contains_key(*key))
}

fn is_codex(given: &Map<String, Value>) -> bool {
    has(
        given,
        &[
            "mcp_servers",
            "model",
            "model_provider",
            "model_providers",
            "sandbox_mode",
            "approval_policy",
            "profiles",
        ],
    )
}

fn is_agent_yaml(given: &Map<String, Value>) -> bool {
    let keys = ["provider", "model", "tools", "plugins", "system_prompt"];
    has(given, &keys)
}

fn of_json(path: &Path, given: &Map<String, Value>) -> Option<Origin> {
    let name = path.file_name()?.to_str()?;
    let folder = path.parent().and_then(Path::file_name);
    let folder = folder.and_then(|folder| folder.to_str());
    let schema = given.get("$schema").and_then(Value::as_str);
    let schema = schema.unwrap_or_default();
    let is_object = |key: &str| given.get(key).is_some_and(Value::is_object);
    let has_inner = |key: &str, inner: &[&str]| {
        let map = given.get(key).and_then(Value::as_object);
        map.is_some_and(|map| has(map, inner))
    };
    if name.starts_with("opencode.json") || schema.contains("opencode.ai") {
        return Some(Origin::Opencode);
    }
    if name == ".claude.json" || (is_object("projects") && is_object("mcpServers")) {
        return Some(Origin::ClaudeState);
    }
    if folder == Some(".claude")
        || schema.contains("claude-code")
        || has_inner("permissions", &["allow", "ask", "deny", "defaultMode"])
    {
        return Some(Origin::ClaudeSettings);
    }
    let is_gemini = folder == Some(".gemini")
        || has(
            given,
            &[
                "coreTools",
                "excludeTools",
                "allowedTools",
                "selectedAuthType",
            ],
        )
        || has_inner("tools", &["core", "exclude", "allowed", "sandbox"])
        || has_inner("model", &["name"]);
    if is_gemini {
        return Some(Origin::Gemini);
    }
    if has(given, &["permission", "mcp"]) {
        return Some(Origin::Opencode);
    }
    (is_object("mcpServers") || is_object("servers")).then_some(Origin::Servers)
}
