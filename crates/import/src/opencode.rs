//! Converts `opencode.json` and `opencode.jsonc`.

use crate::draft::Draft;
use crate::references::{WorkFolder, references};
use crate::rules::{self, Verdict};
use crate::secrets;
use crate::servers::{self, Dialect};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::Path;

pub(crate) fn settings(draft: &mut Draft, given: &Map<String, Value>, home: Option<&Path>) {
    if let Some(servers) = given.get("mcp") {
        servers::add_all(draft, "mcp", servers, Dialect::Opencode);
    }
    if let Some(Value::String(name)) = given.get("model") {
        model(draft, given, name);
    }
    permissions(draft, given, home);
    for (key, value) in given {
        match (key.as_str(), value) {
            ("$schema" | "mcp" | "model" | "permission" | "provider", _) => {}
            ("tools", Value::Object(_)) => {}
            ("agent" | "mode", Value::Object(agents)) => {
                for (name, agent) in agents {
                    let what = format!("{key}.{name}");
                    match name == primary(given) {
                        true => primary_agent(draft, &what, agent),
                        false => subagent(draft, &what, name, agent),
                    }
                }
            }
            // The agent `plan` only reads files.
            ("default_agent", _) if primary(given) == "plan" => {
                draft.set("default_agent plan", "sandbox", "read-only");
            }
            ("default_agent", _) => draft.same(key, "its permissions apply to the session"),
            ("instructions", _) => {
                draft.skip(key, "haft reads AGENTS.md from the repository's root down")
            }
            _ => draft.skip(key, "haft has no such setting"),
        }
    }
}

/// Converts a model in the form `PROVIDER/MODEL`.
fn model(draft: &mut Draft, given: &Map<String, Value>, name: &str) {
    let Some((provider, model)) = name.split_once('/') else {
        return draft.skip("model", "not in the form PROVIDER/MODEL");
    };
    let options = given
        .get("provider")
        .and_then(|all| all.get(provider))
        .and_then(|provider| provider.get("options"));
    let base = options
        .and_then(|options| options.get("baseURL"))
        .and_then(Value::as_str);
    let package = given
        .get("provider")
        .and_then(|all| all.get(provider))
        .and_then(|provider| provider.get("npm"))
        .and_then(Value::as_str);
    let kind = match (provider, base, package) {
        (_, Some(_), Some("@ai-sdk/openai-compatible")) if provider != "ollama" => {
            "openai-completions"
        }
        ("anthropic", ..) | (_, Some(_), Some("@ai-sdk/anthropic")) => "anthropic",
        ("google", ..) | (_, Some(_), Some("@ai-sdk/google")) => "google",
        ("ollama", ..) => "ollama",
        ("openai", None, _) => "openai-responses",
        (_, Some(_), _) => "openai-completions",
        _ => {
            return draft.skip(
                &format!("model {name}"),
                "haft has no such provider; set provider, model and base_url yourself",
            );
        }
    };
    draft.set("model", "provider", kind);
    draft.set("model", "model", model);
    if let Some(base) = base {
        let what = format!("provider.{provider}.options.baseURL");
        match secrets::is_secret("url", base) {
            true => draft.skip(&what, "it contains a secret; set base_url yourself"),
            false => draft.set(&what, "base_url", base),
        }
    }
    if let Some(Value::String(key)) = options.and_then(|options| options.get("apiKey")) {
        let what = format!("provider.{provider}.options.apiKey");
        let carried = references(draft, &what, key, Dialect::Opencode, WorkFolder::Variable);
        match secrets::is_literal(&carried) {
            true => {
                let name = secrets::variable(&[provider, "api_key"]);
                draft.hidden_api_key(&what, kind, &name, key);
            }
            false => draft.api_key(&what, kind, &carried),
        }
    }
}

/// Returns haft's tools for a permission.
fn tools(name: &str) -> &'static [&'static str] {
    match name {
        "*" => &["*"],
        "bash" => &["bash"],
        "edit" | "write" | "patch" => &["edit", "write"],
        "read" => &["read"],
        "grep" => &["grep"],
        "glob" => &["find"],
        "list" => &["ls"],
        "webfetch" => &["web_fetch"],
        "websearch" => &["web_search"],
        "task" => &["task"],
        "skill" => &["skill"],
        _ => &[],
    }
}

/// A permission for a tool, optionally limited to a pattern.
struct Permission {
    what: String,
    tool: String,
    pattern: Option<String>,
    verdict: Verdict,
}

/// Returns the agent that a session starts with; its permissions become the session's.
fn primary(given: &Map<String, Value>) -> &str {
    let named = given.get("default_agent").and_then(Value::as_str);
    named.unwrap_or("build")
}

fn primary_agent(draft: &mut Draft, what: &str, agent: &Value) {
    for key in agent.as_object().into_iter().flat_map(Map::keys) {
        if !["permission", "tools", "description", "mode"].contains(&key.as_str()) {
            draft.skip(
                &format!("{what}.{key}"),
                "haft has only one primary agent; set it for the session",
            );
        }
    }
}

fn permissions(draft: &mut Draft, given: &Map<String, Value>, home: Option<&Path>) {
    let mut all = Vec::new();
    collect_all(draft, &mut all, "", given);
    // The agent's own permissions override the general ones.
    for group in ["mode", "agent"] {
        let name = primary(given);
        let agent = given.get(group).and_then(|agents| agents.get(name));
        if let Some(Value::Object(agent)) = agent {
            collect_all(draft, &mut all, &format!("{group}.{name}."), agent);
        }
    }
    // Index of the first denial per tool.
    let mut denials: HashMap<&str, usize> = HashMap::new();
    for (at, permission) in all.iter().enumerate() {
        if permission.verdict == Verdict::Deny {
            denials.entry(&permission.tool).or_insert(at);
        }
    }
    // In opencode the last matching rule decides, in haft the first.
    for (at, permission) in all.iter().enumerate().rev() {
        let is_denied = |tool: &str| denials.get(tool).is_some_and(|first| *first < at);
        let over_denials = is_denied(&permission.tool) || is_denied("*");
        convert_permission(draft, permission, over_denials, home);
    }
}

/// Collects the permissions and tools in one map.
fn collect_all(draft: &mut Draft, all: &mut Vec<Permission>, at: &str, given: &Map<String, Value>) {
    match given.get("permission") {
        None => {}
        Some(Value::Object(map)) => {
            for (tool, value) in map {
                collect(draft, all, at, tool, value);
            }
        }
        Some(value) => collect(draft, all, at, "*", value),
    }
    let Some(Value::Object(map)) = given.get("tools") else {
        return;
    };
    for (tool, value) in map {
        let what = format!("{at}tools.{tool}");
        match (value, tools(tool)) {
            (Value::Bool(true), _) => {}
            (Value::Bool(false), [_, ..]) => all.push(Permission {
                what: format!("{what} false"),
                tool: tool.clone(),
                pattern: None,
                verdict: Verdict::Deny,
            }),
            (Value::Bool(false), []) => {
                of_servers(draft, &format!("{what} false"), tool, Verdict::Deny);
            }
            _ => draft.skip(&what, "haft has no such tool"),
        }
    }
}

/// Whether any part of a permission denies.
fn denies(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.values().any(denies),
        value => *value == json!("deny"),
    }
}

fn collect(draft: &mut Draft, all: &mut Vec<Permission>, at: &str, tool: &str, value: &Value) {
    let what = format!("{at}permission.{tool}");
    if tools(tool).is_empty() {
        return match (tool, value.as_str().and_then(Verdict::by_name)) {
            ("external_directory", _) if denies(value) => draft.set_stricter(
                &format!("{what} deny"),
                "sandbox",
                "strict",
                "commands can use only the work folder and system folders",
            ),
            ("external_directory", _) => draft.skip(
                &what,
                "the sandbox decides which folders can be written; see tools.roots",
            ),
            (_, Some(verdict)) => of_servers(draft, &what, tool, verdict),
            (_, None) => of_servers(draft, &what, tool, Verdict::Deny),
        };
    }
    let mut push =
        |draft: &mut Draft, what: String, pattern: Option<&String>, value: &Value| match value
            .as_str()
            .and_then(Verdict::by_name)
        {
            Some(verdict) => all.push(Permission {
                what: format!("{what} {}", value.as_str().unwrap_or_default()),
                tool: tool.to_owned(),
                pattern: pattern.filter(|pattern| *pattern != "*").cloned(),
                verdict,
            }),
            None => draft.skip(&what, "not allow, ask or deny"),
        };
    match value {
        Value::Object(map) => {
            for (pattern, value) in map {
                push(draft, format!("{what} {pattern}"), Some(pattern), value);
            }
        }
        value => push(draft, what, None, value),
    }
}

/// Adds a rule about tools of MCP servers, which both programs name SERVER_TOOL. These
/// rules come first, so that no other rule loosens them.
fn of_servers(draft: &mut Draft, what: &str, pattern: &str, verdict: Verdict) {
    let start = pattern.trim_end_matches('*');
    let names = draft.server_names();
    let is_of = |server: &&String| start.starts_with(&format!("{server}_"));
    let is_about = |server: &&String| server.starts_with(start.trim_end_matches('_'));
    if !pattern.contains('*') && names.iter().any(|server| is_of(&server)) {
        return draft.rule(what, rules::tool(verdict, pattern));
    }
    let about: Vec<&String> = names
        .iter()
        .filter(|server| pattern.contains('*') && (is_about(server) || is_of(server)))
        .collect();
    match (verdict, about.is_empty()) {
        (_, true) => draft.skip(what, "haft has no such tool"),
        (Verdict::Allow, false) => draft.skip(what, "haft has no rule for all tools of a server"),
        (Verdict::Ask, false) => draft.stricter_rules(
            what,
            [json!({ "ask": "*", "effect": "execute" })],
            "haft has no rule for all tools of a server, so all of them and commands ask",
        ),
        (Verdict::Deny, false) => {
            for server in about {
                draft.disable_server(what, server, "haft has no rule for all tools of a server");
            }
        }
    }
}

fn convert_permission(
    draft: &mut Draft,
    permission: &Permission,
    over_denials: bool,
    home: Option<&Path>,
) {
    let Permission {
        what,
        tool,
        pattern,
        verdict,
    } = permission;
    match (tool.as_str(), pattern) {
        (_, None) => {
            let tools = tools(tool).iter();
            draft.rules(what, tools.map(|tool| rules::tool(*verdict, tool)));
        }
        ("bash", Some(pattern)) => rules::command(draft, what, *verdict, pattern, over_denials),
        ("edit" | "write" | "patch" | "read", Some(pattern)) => {
            for tool in tools(tool) {
                match rules::from_wildcard(pattern, *verdict, home) {
                    // Asking about more paths than the pattern matches would loosen a
                    // denial below.
                    Some(glob) if *verdict == Verdict::Ask && over_denials => draft.stricter_rules(
                        what,
                        [rules::narrowed(Verdict::Deny, tool, "path", &glob)],
                        "haft's pattern matches more, and a rule below denies some of it",
                    ),
                    Some(glob) => {
                        draft.rule(what, rules::narrowed(*verdict, tool, "path", &glob));
                    }
                    None => widen(draft, what, *verdict, tool, over_denials),
                }
            }
        }
        (_, Some(_)) => {
            for tool in tools(tool) {
                widen(draft, what, *verdict, tool, over_denials);
            }
        }
    }
}

/// Handles a pattern haft cannot express: drops an `allow`, and widens `ask` and `deny` to
/// the whole tool.
fn widen(draft: &mut Draft, what: &str, verdict: Verdict, tool: &str, over_denials: bool) {
    let verdict = match (verdict, over_denials) {
        (Verdict::Allow, _) => return draft.skip(what, "haft has no such pattern for this tool"),
        (_, true) => Verdict::Deny,
        (verdict, false) => verdict,
    };
    draft.stricter_rules(
        what,
        [rules::tool(verdict, tool)],
        "haft has no such pattern for this tool, so it applies to every call",
    );
}

fn subagent(draft: &mut Draft, what: &str, name: &str, given: &Value) {
    let text = |key: &str| given.get(key).and_then(Value::as_str);
    if given.get("disable") == Some(&Value::Bool(true)) {
        return draft.skip(what, "it is disabled");
    }
    if text("mode") == Some("primary") || ["build", "plan"].contains(&name) {
        return draft.skip(what, "haft has only one primary agent");
    }
    let Some(description) = text("description") else {
        return draft.skip(what, "a sub-agent needs a description");
    };
    let mut spec = Map::new();
    spec.insert("name".to_owned(), name.into());
    spec.insert("description".to_owned(), description.into());
    match text("prompt") {
        Some(prompt) if prompt.contains("{file:") => draft.skip(
            &format!("{what}.prompt"),
            "put the text of the file into system_prompt",
        ),
        Some(prompt) => {
            spec.insert("system_prompt".to_owned(), prompt.into());
        }
        None => {}
    }
    if let Some(model) = text("model") {
        let model = match model.split_once('/') {
            Some(("anthropic" | "google" | "ollama", _)) => Some(model.to_owned()),
            Some(("openai", model)) => Some(format!("openai-responses/{model}")),
            _ => None,
        };
        match model {
            Some(model) => {
                spec.insert("model".to_owned(), model.into());
            }
            None => draft.skip(&format!("{what}.model"), "haft has no such provider"),
        }
    }
    spec.insert("tools".to_owned(), tools_of(given).into());
    let waits = waiting(given);
    if !waits.is_empty() {
        spec.insert("interrupt_on".to_owned(), waits.into());
    }
    for key in given.as_object().into_iter().flat_map(Map::keys) {
        if ![
            "description",
            "mode",
            "prompt",
            "model",
            "disable",
            "tools",
            "permission",
        ]
        .contains(&key.as_str())
        {
            draft.skip(
                &format!("{what}.{key}"),
                "haft has no such setting for a sub-agent",
            );
        }
    }
    draft.push(what, "subagents", spec);
}

/// Returns the values that a sub-agent's permissions and tools have for a tool.
fn values_for<'a>(given: &'a Value, tool: &str) -> Vec<&'a Value> {
    let of = |group: &str| given.get(group).and_then(|group| group.get(tool));
    let all = given.get("permission").filter(|all| all.is_string());
    of("tools")
        .into_iter()
        .chain(of("permission"))
        .chain(all)
        .collect()
}

/// Returns the file tools that a sub-agent gets. Commands are excluded, because its rules
/// about them cannot be converted.
fn tools_of(given: &Value) -> Vec<&'static str> {
    let is_denied = |name: &str| {
        values_for(given, name)
            .into_iter()
            .chain(values_for(given, "*"))
            .any(|value| *value == json!(false) || *value == json!("deny") || value.is_object())
    };
    let mut tools = vec!["read"];
    if !is_denied("edit") && !is_denied("write") {
        tools.extend(["edit", "write"]);
    }
    tools
}

fn waiting(given: &Value) -> Map<String, Value> {
    let asks = values_for(given, "edit")
        .iter()
        .any(|value| **value == json!("ask"));
    let tools = tools_of(given);
    ["edit", "write"]
        .into_iter()
        .filter(|tool| asks && tools.contains(tool))
        .map(|tool| (tool.to_owned(), true.into()))
        .collect()
}
