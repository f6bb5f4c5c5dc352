//! Converts `agent.yaml` of the Go agent that the toolset `standard` comes from.

use crate::draft::Draft;
use crate::references::{WorkFolder, references};
use crate::secrets;
use crate::servers::{self, CommandLine, Dialect};
use crate::texts;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Providers that both programs support.
const PROVIDERS: [&str; 5] = [
    "anthropic",
    "openai-responses",
    "openai-completions",
    "google",
    "ollama",
];

pub(crate) fn settings(draft: &mut Draft, given: &Map<String, Value>) {
    for (key, value) in given {
        match (key.as_str(), value) {
            (_, Value::Null) => {}
            ("tools", Value::Object(tools)) => self::tools(draft, tools),
            // The agent's guide shows the list without `tools:` above it.
            ("plugins", Value::Array(plugins)) => self::plugins(draft, plugins),
            ("provider", Value::String(_)) if !provider(given).is_empty() => {
                draft.set(key, key, provider(given));
            }
            ("provider", _) => draft.skip(
                key,
                "haft has anthropic, openai-responses, openai-completions, google and ollama",
            ),
            ("base_url", Value::String(url))
                if secrets::is_literal(url) && secrets::is_secret("url", url) =>
            {
                let hidden = draft.hide(key, "BASE_URL", url);
                draft.set(key, key, hidden);
            }
            ("model" | "base_url" | "system_prompt", Value::String(text)) => {
                let text = references(draft, key, text, Dialect::Claude, WorkFolder::Variable);
                draft.set(key, key, text);
            }
            ("api_key", Value::String(text)) => {
                let carried = references(draft, key, text, Dialect::Claude, WorkFolder::Variable);
                let provider = provider(given);
                match secrets::is_literal(&carried) {
                    true => {
                        let variable = draft.default_key(provider).unwrap_or("API_KEY");
                        draft.hidden_api_key(key, provider, variable, text);
                    }
                    false => draft.api_key(key, provider, &carried),
                }
            }
            ("max_turns" | "max_tool_concurrency", Value::Number(number)) => {
                match number.as_u64() {
                    // In agent.yaml zero means sequential.
                    Some(0) if key == "max_tool_concurrency" => draft.set(key, key, 1),
                    Some(0) | None => {
                        draft.skip(key, "haft has no unlimited turns; the default is 50")
                    }
                    Some(number) if key == "max_tool_concurrency" => {
                        draft.set(key, key, number.min(256));
                    }
                    Some(number) => draft.set(key, key, number),
                }
            }
            ("max_retries", Value::Number(number)) if number.is_u64() => {
                draft.set(key, key, number.clone());
            }
            ("max_cost" | "max_cost_usd", Value::Number(number)) => match number.as_f64() {
                Some(cost) if cost > 0.0 => draft.set(key, "max_cost", number.clone()),
                _ => draft.skip(key, "haft has no cost limit unless max_cost is set"),
            },
            ("tool_timeout", Value::Number(number)) if number.as_f64().is_some_and(is_seconds) => {
                draft.set(key, "tools.timeout", number.clone());
            }
            ("max_tokens", _) => draft.skip(
                key,
                "in agent.yaml it limits one answer; in haft it limits input and output of a whole task",
            ),
            ("auto_approve", Value::Bool(true)) => draft.skip(
                key,
                "calls run without asking unless a rule asks; --approve auto answers those",
            ),
            ("auto_approve", Value::Bool(false)) => draft.skip(
                key,
                "haft asks only if a rule says so: for the tools in confirm_tools, or those in policy",
            ),
            ("context_window", Value::Number(number)) if number.as_u64() >= Some(1_000) => {
                draft.set(key, "context_window", number.clone());
            }
            ("context_window" | "compaction", _) => {
                draft.skip(key, "haft compacts long conversations automatically");
            }
            ("confirm_tools", Value::Array(names)) => {
                for name in texts(names) {
                    let what = format!("confirm_tools {name}");
                    draft.rule(&what, json!({ "ask": name }));
                }
            }
            _ => draft.skip(key, "haft has no such setting"),
        }
    }
}

/// Returns haft's name for the provider, or an empty text if haft does not support it.
fn provider(given: &Map<String, Value>) -> &str {
    match given.get("provider").and_then(Value::as_str) {
        Some("openai") if given.contains_key("base_url") => "openai-completions",
        Some("openai") => "openai-responses",
        Some(name) if PROVIDERS.contains(&name) => name,
        _ => "",
    }
}

fn is_seconds(number: f64) -> bool {
    (0.0..=86_400.0).contains(&number)
}

fn tools(draft: &mut Draft, given: &Map<String, Value>) {
    draft.set("tools of agent.yaml", "tools.toolset", "standard");
    for (key, value) in given {
        let what = format!("tools.{key}");
        match (key.as_str(), value) {
            (_, Value::Null) => {}
            ("preset", Value::String(name)) => {
                let name = name.trim().to_lowercase();
                match haft::toolsets::by_name("standard")
                    .is_some_and(|toolset| toolset.preset(Some(&name)).is_ok())
                {
                    true => draft.set(&what, &what, name),
                    false => draft.set_stricter(
                        &what,
                        &what,
                        "none",
                        "haft has no such preset, and agent.yaml offers no tools for an unknown one",
                    ),
                }
            }
            ("work_dir", Value::String(folder))
                if draft.is_own() || !(folder.starts_with(['/', '~']) || folder.contains("..")) =>
            {
                draft.set(&what, &what, folder.as_str());
            }
            ("work_dir", _) => draft.skip(
                &what,
                "a project's file stays in its folder; run haft there, or pass --dir",
            ),
            ("plugins", Value::Array(plugins)) => self::plugins(draft, plugins),
            ("timeout", Value::Number(number)) if number.as_f64().is_some_and(is_seconds) => {
                draft.set(&what, &what, number.clone());
            }
            _ => draft.skip(&what, "haft has no such setting"),
        }
    }
}

fn plugins(draft: &mut Draft, given: &[Value]) {
    for (at, plugin) in given.iter().enumerate() {
        // A path alone means the same as a map with only a path.
        let path = plugin
            .as_str()
            .or(plugin.get("path").and_then(Value::as_str));
        match path.filter(|path| !path.trim().is_empty()) {
            Some(path) => self::plugin(draft, path, plugin),
            None => draft.skip(
                &format!("tools.plugins, entry {}", at + 1),
                "it has no path",
            ),
        }
    }
}

fn plugin(draft: &mut Draft, line: &str, given: &Value) {
    let what = format!("tools.plugins {line}");
    let mut words = servers::split(draft, &what, line);
    let path = words.first().cloned().unwrap_or_default();
    if let Some(Value::Array(more)) = given.get("args") {
        words.extend(texts(more));
    }
    let mut plugin = Map::new();
    plugin.insert("path".to_owned(), draft.rooted(&path).into());
    let cwd = given.get("cwd").and_then(Value::as_str);
    if words.len() > 1 {
        let stem = Path::new(&path).file_stem().and_then(|stem| stem.to_str());
        let name = stem.unwrap_or(&path);
        let line = CommandLine {
            what: &what,
            owner: name,
            dialect: Dialect::Claude,
            is_elsewhere: cwd.is_some_and(|cwd| cwd != "."),
        };
        let words = line.words(draft, &words).split_off(1);
        plugin.insert("args".to_owned(), words.into());
    }
    if let Some(given) = given.get("env") {
        let env = environment(draft, &format!("{what}.env"), given);
        match env {
            Some(env) => {
                plugin.insert("env".to_owned(), env);
            }
            None => draft.skip(&format!("{what}.env"), "not a list of names or a map"),
        }
    }
    for (key, value) in given.as_object().into_iter().flatten() {
        let at = format!("{what}.{key}");
        let carried = match (key.as_str(), value) {
            ("path" | "args" | "env", _) | (_, Value::Null) => continue,
            ("cwd", Value::String(dir)) => draft.rooted(dir).into(),
            ("timeout" | "start_timeout", _) if value.as_f64().is_some_and(is_seconds) => {
                value.clone()
            }
            ("override", Value::Bool(_)) => value.clone(),
            ("protocol", Value::String(name))
                if ["auto", "describe", "init"].contains(&name.as_str()) =>
            {
                value.clone()
            }
            ("timeout" | "start_timeout", _) => {
                draft.skip(&at, "not a number of seconds up to a day");
                continue;
            }
            ("cwd" | "override" | "protocol", _) => {
                draft.skip(&at, "not a value that haft understands");
                continue;
            }
            _ => {
                draft.skip(&at, "haft has no such setting for a plugin");
                continue;
            }
        };
        plugin.insert(key.clone(), carried);
    }
    draft.plugin(&what, plugin);
}

/// Converts a plugin's variables: a list of names or of `NAME=VALUE`, or a map.
fn environment(draft: &mut Draft, what: &str, given: &Value) -> Option<Value> {
    let pairs: Vec<(String, String)> = match given {
        Value::Object(map) => {
            let text = |value: &Value| texts(std::slice::from_ref(value)).concat();
            map.iter()
                .map(|(name, value)| (name.clone(), text(value)))
                .collect()
        }
        Value::Array(items) => {
            let items = texts(items);
            if items.iter().all(|item| !item.contains('=')) {
                return Some(items.into());
            }
            let pair = |item: &String| match item.split_once('=') {
                Some((name, value)) => (name.to_owned(), value.to_owned()),
                None => (item.clone(), format!("${{{item}}}")),
            };
            items.iter().map(pair).collect()
        }
        _ => return None,
    };
    let mut out = Map::new();
    for (name, value) in pairs {
        let carried = servers::variable(draft, what, &name, &value, Dialect::Claude);
        out.insert(name, carried.into());
    }
    Some(out.into())
}
