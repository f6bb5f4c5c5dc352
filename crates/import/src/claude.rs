//! Converts settings of Claude Code: `.claude/settings.json`, and the servers in
//! `~/.claude.json`.

use crate::draft::Draft;
use crate::rules::{self, Verdict};
use crate::servers::{self, Dialect, tool_name};
use crate::texts;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::path::Path;

/// Model aliases that only Claude Code resolves.
const ALIASES: [&str; 6] = ["default", "sonnet", "opus", "haiku", "opusplan", "best"];

/// Converts `settings.json`.
pub(crate) fn settings(draft: &mut Draft, given: &Map<String, Value>, home: Option<&Path>) {
    for (key, value) in given {
        match (key.as_str(), value) {
            ("$schema", _) => {}
            ("mcpServers", servers) => {
                servers::add_all(draft, "mcpServers", servers, Dialect::Claude);
            }
            ("model", Value::String(model)) => self::model(draft, "model", model),
            // Handled last, because rules about servers need the list of servers.
            ("permissions", _) => {}
            ("sandbox", _) => draft.skip(
                key,
                "haft always runs commands in its own sandbox; see `sandbox` and `network`",
            ),
            ("env", _) => draft.skip(
                key,
                "set these variables in your shell; to pass more of them to commands, list them in tools.env in your own haft.yaml",
            ),
            ("hooks", _) => draft.skip(key, "haft has no hooks"),
            ("apiKeyHelper", _) => draft.skip(key, "set ANTHROPIC_API_KEY, or api_key in your own haft.yaml"),
            _ => draft.skip(key, "haft has no such setting"),
        }
    }
    if let Some(permissions) = given.get("permissions") {
        self::permissions(draft, permissions, home);
    }
}

/// Converts the servers in `~/.claude.json`: those for all folders and those for this
/// one.
pub(crate) fn state(draft: &mut Draft, given: &Map<String, Value>, folder: &Path) {
    if let Some(servers) = given.get("mcpServers") {
        servers::add_all(draft, "mcpServers", servers, Dialect::Claude);
    }
    let projects = given.get("projects").and_then(Value::as_object);
    let mut others = 0;
    for (path, project) in projects.into_iter().flatten() {
        let Some(servers @ Value::Object(map)) = project.get("mcpServers") else {
            continue;
        };
        if Path::new(path) == folder {
            let at = format!("projects.{path}.mcpServers");
            servers::add_all(draft, &at, servers, Dialect::Claude);
        } else {
            others += map.len();
        }
    }
    if others > 0 {
        draft.skip(
            &format!("servers of other folders ({others})"),
            "run `haft init --from` in those folders",
        );
    }
    let rest = given
        .keys()
        .filter(|key| !["mcpServers", "projects"].contains(&key.as_str()))
        .count();
    if rest > 0 {
        draft.skip(
            &format!("other keys ({rest})"),
            "Claude Code's own state, not settings",
        );
    }
}

pub(crate) fn model(draft: &mut Draft, what: &str, model: &str) {
    if ALIASES.contains(&model) || !model.starts_with("claude-") || model.contains('[') {
        return draft.skip(
            what,
            format!("{model} is an alias that only Claude Code knows; set model to the full name"),
        );
    }
    draft.set(what, "provider", "anthropic");
    draft.set(what, "model", model);
}

fn permissions(draft: &mut Draft, given: &Value, home: Option<&Path>) {
    let Value::Object(given) = given else {
        return draft.skip("permissions", "not a map");
    };
    let restricted = restricted_servers(given);
    // The order in which Claude Code checks them; in haft the first matching rule
    // decides.
    for (key, verdict) in [
        ("deny", Verdict::Deny),
        ("ask", Verdict::Ask),
        ("allow", Verdict::Allow),
    ] {
        let Some(Value::Array(listed)) = given.get(key) else {
            continue;
        };
        for rule in texts(listed) {
            let what = format!("permissions.{key} {rule}");
            let server = rule.strip_prefix("mcp__").unwrap_or_default();
            let server = server.split("__").next().unwrap_or_default();
            if verdict == Verdict::Allow && restricted.contains(server) {
                draft.skip(&what, "another rule asks about or denies the whole server");
            } else {
                self::rule(draft, &what, verdict, &rule, home);
            }
        }
    }
    for (key, value) in given {
        match (key.as_str(), value) {
            ("deny" | "ask" | "allow" | "defaultMode", _) => {}
            ("additionalDirectories", Value::Array(folders)) if draft.is_own() => {
                for folder in texts(folders) {
                    draft.push("permissions.additionalDirectories", "tools.roots", folder);
                }
            }
            ("additionalDirectories", _) => draft.skip(
                "permissions.additionalDirectories",
                "a project's file cannot add folders; list them as tools.roots in your own haft.yaml",
            ),
            (key, _) => draft.skip(&format!("permissions.{key}"), "haft has no such setting"),
        }
    }
    let mode = given.get("defaultMode").and_then(Value::as_str);
    let what = format!("permissions.defaultMode {}", mode.unwrap_or_default());
    match mode {
        None | Some("default") => {}
        Some("acceptEdits") => {
            let tools = ["edit", "write"].iter();
            draft.rules(&what, tools.map(|tool| rules::tool(Verdict::Allow, tool)));
        }
        Some("plan") => draft.set(&what, "sandbox", "read-only"),
        Some("dontAsk") => draft.set(&what, "approve", "never"),
        Some(_) => draft.skip(
            &what,
            "calls that no rule allows ask first; `--approve auto` runs them without asking",
        ),
    }
    rules::ask_by_default(draft, "Claude Code", &["write", "execute", "network"]);
}

/// Returns servers that a rule asks about or denies entirely. Such a rule precedes those
/// that allow single tools.
fn restricted_servers(given: &Map<String, Value>) -> HashSet<String> {
    ["deny", "ask"]
        .iter()
        .filter_map(|key| given.get(*key).and_then(Value::as_array))
        .flat_map(|listed| texts(listed))
        .filter_map(|rule| {
            let name = rule.strip_prefix("mcp__")?;
            match name.split_once("__") {
                Some((_, tool)) if !tool.contains('*') && !tool.is_empty() => None,
                Some((server, _)) => Some(server.to_owned()),
                None => Some(name.to_owned()),
            }
        })
        .collect()
}

/// Returns haft's tools for a tool of Claude Code.
fn tools(name: &str) -> Option<&'static [&'static str]> {
    Some(match name {
        "Bash" => &["bash"],
        "Read" => &["read", "grep", "find", "ls"],
        "Edit" | "MultiEdit" => &["edit", "write"],
        "Write" => &["write"],
        "Grep" => &["grep"],
        "Glob" => &["find"],
        "LS" => &["ls"],
        "WebFetch" => &["web_fetch"],
        "WebSearch" => &["web_search"],
        "Skill" => &["skill"],
        "Task" | "Agent" => &["task"],
        _ => return None,
    })
}

fn rule(draft: &mut Draft, what: &str, verdict: Verdict, rule: &str, home: Option<&Path>) {
    let (name, specifier) = match rule.split_once('(') {
        Some((name, rest)) => (name, rest.strip_suffix(')').map(str::trim)),
        None => (rule, None),
    };
    if rule.contains('(') && specifier.is_none() {
        return draft.skip(what, "not a rule that haft understands");
    }
    if let Some(server) = name.strip_prefix("mcp__") {
        return self::server(draft, what, verdict, server);
    }
    let Some(tools) = tools(name) else {
        return draft.skip(what, format!("haft has no tool for {name}"));
    };
    match (name, specifier) {
        ("Read" | "Grep" | "Glob" | "LS", _) if verdict == Verdict::Allow => {
            draft.same(what, "haft reads without asking");
        }
        ("Bash", Some(pattern)) => rules::command(draft, what, verdict, pattern, false),
        (_, None | Some("" | "*" | "**")) => {
            draft.rules(what, tools.iter().map(|tool| rules::tool(verdict, tool)));
        }
        ("WebFetch", Some(domain)) => host(draft, what, verdict, domain),
        ("Read" | "Edit" | "MultiEdit" | "Write" | "Grep" | "Glob" | "LS", Some(pattern)) => {
            path(draft, what, verdict, (name, tools), pattern, home);
        }
        _ => match verdict {
            Verdict::Allow => draft.skip(what, "haft has no such rule; such calls ask"),
            _ => {
                let why = "haft has no such rule, so it applies to every call";
                let all = tools.iter().map(|tool| rules::tool(verdict, tool));
                draft.stricter_rules(what, all, why);
            }
        },
    }
}

fn path(
    draft: &mut Draft,
    what: &str,
    verdict: Verdict,
    (name, tools): (&str, &[&str]),
    pattern: &str,
    home: Option<&Path>,
) {
    let Some(glob) = rules::from_gitignore(pattern, verdict, home) else {
        return match verdict {
            Verdict::Allow => draft.skip(what, "haft has no such pattern; such calls ask"),
            _ => {
                let why = "haft has no such pattern, so it applies to every path";
                let all = tools.iter().map(|tool| rules::tool(verdict, tool));
                draft.stricter_rules(what, all, why);
            }
        };
    };
    match (verdict, name) {
        (Verdict::Deny, "Read") => draft.stricter_rules(
            what,
            [rules::narrowed(verdict, "*", "path", &glob)],
            "it is also hidden from commands, and no tool can write it",
        ),
        _ => {
            let about = |tool: &&str| rules::narrowed(verdict, tool, "path", &glob);
            draft.rules(what, tools.iter().map(about));
        }
    }
}

fn host(draft: &mut Draft, what: &str, verdict: Verdict, specifier: &str) {
    let Some(domain) = specifier.strip_prefix("domain:").map(str::trim) else {
        return match verdict {
            Verdict::Allow => draft.skip(what, "haft has rules for hosts, not for URLs"),
            _ => draft.stricter_rules(
                what,
                [rules::tool(verdict, "web_fetch")],
                "haft has rules for hosts, not for URLs",
            ),
        };
    };
    let is_plain = |domain: &str| {
        !domain.is_empty()
            && domain
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || ".-".contains(c))
    };
    match domain.strip_prefix("*.").unwrap_or(domain) {
        rest if is_plain(rest) => {
            let mut hosts = vec![domain.to_owned()];
            if rest == domain && verdict != Verdict::Allow {
                hosts.push(format!("*.{domain}"));
            }
            let about = |host: &String| rules::narrowed(verdict, "web_fetch", "host", host);
            draft.rules(what, hosts.iter().map(about));
        }
        _ if verdict == Verdict::Allow => draft.skip(what, "haft has no such pattern for hosts"),
        _ => draft.stricter_rules(
            what,
            [rules::tool(verdict, "web_fetch")],
            "haft has no such pattern for hosts, so it applies to all of them",
        ),
    }
}

/// Converts a rule for `mcp__SERVER__TOOL` or for a whole server.
fn server(draft: &mut Draft, what: &str, verdict: Verdict, name: &str) {
    if let Some((server, tool)) = name.split_once("__")
        && !tool.contains('*')
        && !tool.is_empty()
    {
        return draft.rule(what, rules::tool(verdict, &tool_name(server, tool)));
    }
    let server = name.split("__").next().unwrap_or(name);
    match verdict {
        Verdict::Allow => draft.skip(
            what,
            "haft has no rule for all tools of a server; its calls ask",
        ),
        Verdict::Ask => draft.skip(what, "calls of MCP tools ask anyway"),
        Verdict::Deny if draft.has_server(server) => {
            draft.disable_server(what, server, "haft has no rule for all tools of a server");
        }
        Verdict::Deny => draft.skip(
            what,
            format!("leave {server} out of tools.mcp, or set enabled: false there"),
        ),
    }
}
