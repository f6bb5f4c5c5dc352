//! Detects which program a file belongs to, by its name and its content.

use super::{Source, jsonc};
use crate::config;
use crate::exit::Failure;
use serde_json::{Map, Value};
use std::path::Path;

/// Programs whose settings can be converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    AgentYaml,
    Servers,
    ClaudeSettings,
    ClaudeState,
    Codex,
    Gemini,
    Opencode,
}

impl Origin {
    /// Description of the file, for the report.
    pub(super) fn about(self) -> &'static str {
        match self {
            Self::AgentYaml => "an agent.yaml",
            Self::Servers => "a list of MCP servers",
            Self::ClaudeSettings => "settings of Claude Code",
            Self::ClaudeState => "the state of Claude Code",
            Self::Codex => "settings of Codex",
            Self::Gemini => "settings of Gemini CLI",
            Self::Opencode => "settings of opencode",
        }
    }
}

/// Reads a file and detects its program.
pub(super) fn read(path: &Path, shown: &str) -> Result<Source, Failure> {
    let Some(text) = config::read_text(path, shown)? else {
        return Err(Failure::usage(format!("{shown} not found")));
    };
    let extension = path.extension().and_then(|extension| extension.to_str());
    let value = match extension {
        Some("toml") => toml::from_str::<Value>(&text).map_err(|error| {
            let line = error
                .span()
                .and_then(|span| text.get(..span.start))
                .map_or(1, |before| before.matches('\n').count() + 1);
            Failure::at(&format!("{shown}:{line}"), error.message())
        })?,
        Some("yaml" | "yml") => config::yaml_value(&text, shown)?,
        _ => serde_json::from_str(&jsonc::plain(&text)).map_err(|error| {
            let place = format!("{shown}:{}:{}", error.line(), error.column().max(1));
            Failure::at(&place, &format!("not valid JSON: {}", reason(&error)))
        })?,
    };
    let Value::Object(given) = value else {
        return Err(unknown(shown));
    };
    let origin = match extension {
        Some("toml") => is_codex(&given).then_some(Origin::Codex),
        Some("yaml" | "yml") => is_agent_yaml(&given).then_some(Origin::AgentYaml),
        _ => of_json(path, &given),
    };
    let origin = origin.ok_or_else(|| unknown(shown))?;
    Ok(Source { origin, given })
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

fn unknown(shown: &str) -> Failure {
    Failure::usage(format!("cannot tell which program {shown} belongs to")).hint(
        "supported: agent.yaml, .mcp.json, .claude/settings.json, ~/.claude.json, Codex config.toml, .gemini/settings.json, opencode.json",
    )
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
