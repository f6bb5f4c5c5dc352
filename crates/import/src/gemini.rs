//! Converts Gemini CLI's `settings.json`, in its nested and its older flat form.

use crate::draft::Draft;
use crate::rules::{self, Verdict};
use crate::servers::{self, Dialect, tool_name};
use crate::texts;
use serde_json::{Map, Value};

/// Haft's tools that have a counterpart in Gemini CLI.
const TOOLS: [&str; 9] = [
    "bash",
    "read",
    "edit",
    "write",
    "grep",
    "find",
    "ls",
    "web_fetch",
    "web_search",
];

pub(crate) fn settings(draft: &mut Draft, given: &Map<String, Value>) {
    if let Some(servers) = given.get("mcpServers") {
        servers::add_all(draft, "mcpServers", servers, Dialect::Gemini);
    }
    let nested = |group: &str, key: &str| given.get(group).and_then(|group| group.get(key));
    let model = nested("model", "name").or(given.get("model"));
    if let Some(Value::String(model)) = model {
        draft.set("model", "provider", "google");
        draft.set("model", "model", model.as_str());
    }
    for (old, new) in [("coreTools", "core"), ("allowedTools", "allowed")] {
        if given.contains_key(old) && nested("tools", new).is_some() {
            draft.skip(old, format!("tools.{new} is used instead"));
        }
    }
    let excluded = [nested("tools", "exclude"), given.get("excludeTools")];
    let lists = Lists {
        core: list(nested("tools", "core").or(given.get("coreTools"))),
        excluded: excluded.into_iter().filter_map(list).flatten().collect(),
        allowed: list(nested("tools", "allowed").or(given.get("allowedTools"))),
    };
    servers_in_use(draft, nested("mcp", "allowed"), nested("mcp", "excluded"));
    lists.convert(draft);
    rules::ask_by_default(draft, "Gemini CLI", &["write", "execute", "network"]);
    for (key, value) in given {
        match (key.as_str(), value) {
            ("$schema" | "mcpServers" | "coreTools" | "excludeTools" | "allowedTools", _)
            | ("model", Value::String(_)) => {}
            ("tools" | "model" | "mcp", Value::Object(group)) => {
                for inner in group.keys() {
                    let what = format!("{key}.{inner}");
                    match what.as_str() {
                        "tools.core" | "tools.exclude" | "tools.allowed" | "model.name"
                        | "mcp.allowed" | "mcp.excluded" => {}
                        "tools.sandbox" => sandbox(draft, &what),
                        _ => draft.skip(&what, "haft has no such setting"),
                    }
                }
            }
            ("sandbox", _) => sandbox(draft, key),
            ("context" | "contextFileName", _) => {
                draft.skip(key, "haft reads AGENTS.md; rename the file or link it");
            }
            _ => draft.skip(key, "haft has no such setting"),
        }
    }
}

fn sandbox(draft: &mut Draft, what: &str) {
    draft.skip(what, "haft always runs commands in its own sandbox");
}

/// Returns the names in a list. A single value counts as a list of one.
fn list(value: Option<&Value>) -> Option<Vec<String>> {
    match value? {
        Value::Null => None,
        Value::Array(items) => Some(texts(items)),
        other => Some(texts(std::slice::from_ref(other))),
    }
}

/// Disables the servers that the lists exclude.
fn servers_in_use(draft: &mut Draft, allowed: Option<&Value>, excluded: Option<&Value>) {
    let named = |list: Option<&Value>| list_of(list);
    if let Some(allowed) = allowed.map(|list| named(Some(list))) {
        for name in draft.server_names() {
            if !allowed.contains(&name) {
                draft.disable_server("mcp.allowed", &name, "it is not among the servers in use");
            }
        }
    }
    for name in named(excluded) {
        if draft.has_server(&name) {
            draft.disable_server("mcp.excluded", &name, "it is excluded");
        }
    }
}

fn list_of(value: Option<&Value>) -> Vec<String> {
    list(value).unwrap_or_default()
}

struct Lists {
    /// If set, only these tools are available.
    core: Option<Vec<String>>,
    excluded: Vec<String>,
    allowed: Option<Vec<String>>,
}

impl Lists {
    fn convert(&self, draft: &mut Draft) {
        for entry in &self.excluded {
            convert_entry(
                draft,
                &format!("tools.exclude {entry}"),
                Verdict::Deny,
                entry,
            );
        }
        if let Some(core) = &self.core {
            self.only(draft, core);
        }
        let has_commands = self.core.as_ref().is_some_and(|core| has_commands(core));
        for entry in self.allowed.iter().flatten() {
            let what = format!("tools.allowed {entry}");
            match has_commands && is_shell(entry) {
                true => draft.skip(&what, "tools.core lists single commands, which ask"),
                false => convert_entry(draft, &what, Verdict::Allow, entry),
            }
        }
    }

    /// Denies all other tools.
    fn only(&self, draft: &mut Draft, core: &[String]) {
        for entry in core.iter().filter(|entry| is_shell(entry)) {
            if let (_, Some(command)) = parts(entry) {
                let what = format!("tools.core {entry}");
                rules::command(draft, &what, Verdict::Ask, &prefix(command), true);
            }
        }
        let listed = |tool: &str| {
            core.iter().any(|entry| {
                let (name, command) = parts(entry);
                self::tool(name) == Some(tool) && command.is_none()
            })
        };
        for tool in TOOLS.iter().filter(|tool| !listed(tool)) {
            draft.rule(
                "tools.core does not list it",
                rules::tool(Verdict::Deny, tool),
            );
        }
    }
}

/// Whether single commands are listed instead of the whole shell tool.
fn has_commands(core: &[String]) -> bool {
    let shell: Vec<&String> = core.iter().filter(|entry| is_shell(entry)).collect();
    !shell.is_empty() && shell.iter().all(|entry| parts(entry).1.is_some())
}

fn is_shell(entry: &str) -> bool {
    tool(parts(entry).0) == Some("bash")
}

fn parts(entry: &str) -> (&str, Option<&str>) {
    match entry.split_once('(') {
        Some((name, rest)) => (name.trim(), Some(rest.trim_end_matches(')'))),
        None => (entry.trim(), None),
    }
}

/// Returns a command as a prefix pattern, since Gemini CLI compares the start of
/// commands.
fn prefix(command: &str) -> String {
    format!("{} *", command.trim())
}

fn tool(name: &str) -> Option<&'static str> {
    Some(match name {
        "run_shell_command" | "ShellTool" => "bash",
        "read_file" | "ReadFileTool" | "read_many_files" | "ReadManyFilesTool" => "read",
        "replace" | "EditTool" => "edit",
        "write_file" | "WriteFileTool" => "write",
        "search_file_content" | "grep_search" | "GrepTool" => "grep",
        "glob" | "GlobTool" => "find",
        "list_directory" | "LSTool" => "ls",
        "web_fetch" | "WebFetchTool" => "web_fetch",
        "google_web_search" | "WebSearchTool" => "web_search",
        _ => return None,
    })
}

fn convert_entry(draft: &mut Draft, what: &str, verdict: Verdict, entry: &str) {
    let (name, command) = parts(entry);
    match (tool(name), command) {
        (Some("bash"), Some(command)) => {
            rules::command(draft, what, verdict, &prefix(command), false);
        }
        (Some(tool), None) => draft.rule(what, rules::tool(verdict, tool)),
        (Some(tool), Some(_)) if verdict != Verdict::Allow => draft.stricter_rules(
            what,
            [rules::tool(verdict, tool)],
            "haft has no such rule, so it applies to every call",
        ),
        (Some(_), Some(_)) => draft.skip(what, "haft has no such rule; such calls ask"),
        // May be a tool of any server, because Gemini CLI names them without the server.
        (None, _) if verdict == Verdict::Deny && !draft.server_names().is_empty() => {
            let name = name.rsplit("__").next().unwrap_or(name);
            let names = draft.server_names();
            let denied = |server: &String| rules::tool(verdict, &tool_name(server, name));
            draft.rules(what, names.iter().map(denied));
        }
        (None, _) => draft.skip(what, format!("haft has no tool for {name}")),
    }
}
