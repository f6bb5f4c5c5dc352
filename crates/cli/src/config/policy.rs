//! Reads the rules under `policy`. An invalid rule is an error, because ignoring it could
//! allow more.

#[cfg(test)]
mod tests;

use super::layer::{Layer, Role};
use super::sources::{Origin, Sources};
use super::yaml::{Content, Name, Node, Position};
use crate::exit::Failure;
use haft::ops::text::decode::visible;
use haft::ops::text::spelling::closest;
use haft::{Effect, Policy, Rule, RuleDraft, RuleFile, RuleOwner, Verdict};
use serde_json::{Value, json};

const VERDICTS: [Verdict; 3] = [Verdict::Allow, Verdict::Ask, Verdict::Deny];

/// Keys of a rule besides its verdict.
const KEYS: &[&str] = &["effect", "command", "path", "host", "match", "no_match"];

/// Reads the rules of all files, and warns about rules for unknown tools.
pub(crate) fn load(sources: &Sources<'_>, warnings: &mut Vec<String>) -> Result<Policy, Failure> {
    let mut files = Vec::new();
    for layer in &sources.layers {
        if let Some(node) = layer.get("policy") {
            files.push(file(layer, node)?);
        }
    }
    let policy = Policy::new(files);
    let known = known_tools();
    let servers: Vec<String> = sources
        .entries("tools.mcp")
        .into_iter()
        .map(|server| format!("{}_", super::mcp::label(&server.name)))
        .collect();
    for rule in policy.about_others(&known) {
        // A server's tools are known only after connecting to it.
        if servers.iter().any(|server| rule.tool().starts_with(server)) {
            continue;
        }
        let near = closest(rule.tool(), known.iter().cloned(), 1);
        let server = |near: &String| {
            let before = rule.tool().strip_suffix(near.as_str())?;
            before.strip_suffix('_').map(str::to_owned)
        };
        let hint = match near.first() {
            // A server's tools are named SERVER_TOOL.
            Some(near) if let Some(server) = server(near) => {
                format!(", and no MCP server \"{}\" is configured", visible(&server))
            }
            Some(near) => format!("; did you mean \"{near}\"?"),
            None => String::new(),
        };
        warnings.push(format!(
            "{}: no toolset has a tool \"{}\"{hint}",
            rule.location(),
            visible(rule.tool()),
        ));
    }
    Ok(policy)
}

/// Checks the rules of a file.
pub(crate) fn check(layer: &Layer) -> Result<(), Failure> {
    match layer.get("policy") {
        Some(node) => file(layer, node).map(|_| ()),
        None => Ok(()),
    }
}

/// Formats the rules, each with its position.
pub(crate) fn shown(policy: &Policy) -> Value {
    let rule = |rule: &Rule| format!("{rule} ({})", rule.location());
    policy.rules().map(rule).collect()
}

/// Returns the files that contain rules.
pub(crate) fn from(policy: &Policy) -> String {
    let mut files: Vec<&str> = Vec::new();
    for rule in policy.rules() {
        if !files.contains(&rule.location().file.as_str()) {
            files.push(&rule.location().file);
        }
    }
    if files.is_empty() {
        return Origin::Default.to_string();
    }
    files.join(", ")
}

/// Returns the tools of all toolsets, including those that are only listed in presets,
/// and the tools that an agent adds.
fn known_tools() -> Vec<String> {
    let of_agents = haft_agent::TASK_TOOLS
        .iter()
        .chain([&haft_agent::SKILL_TOOL]);
    let mut names: Vec<String> = of_agents.map(|name| (*name).to_owned()).collect();
    for toolset in haft::toolsets::NAMES
        .iter()
        .filter_map(|name| haft::toolsets::by_name(name))
    {
        let tools = toolset.tools.iter();
        names.extend(tools.map(|tool| tool.definition().name.clone()));
        let listed = toolset.presets.iter().flat_map(|preset| preset.tools);
        names.extend(listed.map(|name| (*name).to_owned()));
    }
    names
}

fn file(layer: &Layer, node: &Node) -> Result<RuleFile, Failure> {
    let Content::List(items) = &node.content else {
        return Err(layer.problem(node.at, "policy must be a list of rules"));
    };
    let rules: Result<Vec<Rule>, Failure> = items.iter().map(|item| rule(layer, item)).collect();
    let owner = match layer.role {
        Role::Project => RuleOwner::Project,
        Role::User | Role::Named => RuleOwner::User,
    };
    Ok(RuleFile {
        owner,
        rules: rules?,
    })
}

fn rule(layer: &Layer, node: &Node) -> Result<Rule, Failure> {
    let Content::Map(entries) = &node.content else {
        let message = format!(
            "a rule must be a map, like {{ ask: write }}, got {}",
            node.kind()
        );
        return Err(layer.problem(node.at, &message));
    };
    let verdict_of = |name: &Name| {
        let named = |verdict: &Verdict| verdict.name() == name.text;
        VERDICTS.into_iter().find(named)
    };
    let mut verdicts = entries
        .iter()
        .filter_map(|(name, value)| verdict_of(name).map(|verdict| (verdict, name, value)));
    let (Some((verdict, _, tool)), second) = (verdicts.next(), verdicts.next()) else {
        // Most likely the verdict is misspelled.
        if let Some((name, _)) = entries
            .iter()
            .find(|(name, _)| !KEYS.contains(&name.text.as_str()))
        {
            return Err(unknown(layer, name));
        }
        return Err(layer.problem(
            node.at,
            "a rule must have allow, ask or deny with the name of a tool",
        ));
    };
    if let Some((other, name, _)) = second {
        let message =
            format!("a rule can have only one verdict, but this one has {verdict} and {other}");
        return Err(layer.problem(name.at, &message));
    }
    let place = haft::RuleLocation {
        file: layer.shown.clone(),
        line: node.at.line,
    };
    let mut draft = RuleDraft::new(verdict, one(layer, verdict.name(), tool)?, place);
    for (name, value) in entries {
        match name.text.as_str() {
            "effect" => draft.effect = Some(effect(layer, value)?),
            "command" => draft.command = Some(words(layer, value)?),
            "path" => draft.path = Some(literal(layer, "path", value)?),
            "host" => draft.host = Some(literal(layer, "host", value)?),
            "match" => draft.matching = texts(layer, "match", value)?,
            "no_match" => draft.not_matching = texts(layer, "no_match", value)?,
            _ if verdict_of(name).is_some() => {}
            _ => return Err(unknown(layer, name)),
        }
    }
    let at = node.at;
    Rule::new(draft).map_err(|bad| layer.problem(at, &visible(&bad.message)))
}

fn unknown(layer: &Layer, name: &Name) -> Failure {
    let known = VERDICTS.iter().map(|verdict| verdict.name());
    let known = known.chain(KEYS.iter().copied()).map(str::to_owned);
    let near = closest(&name.text, known, 1);
    let suggestion = near
        .first()
        .map(|near| format!("; did you mean \"{near}\"?"))
        .unwrap_or_default();
    let message = format!(
        "unknown key \"{}\" in a rule{suggestion}",
        visible(&name.text)
    );
    layer.problem(name.at, &message)
}

fn wrong(layer: &Layer, at: Position, key: &str, expected: &str, got: &str) -> Failure {
    layer.problem(at, &format!("{key} must be {expected}, got {got}"))
}

fn one(layer: &Layer, key: &str, node: &Node) -> Result<String, Failure> {
    match node.text() {
        Some(text) => Ok(text.to_owned()),
        None => Err(wrong(layer, node.at, key, "text", node.kind())),
    }
}

/// Returns a text without variables. Rules do not expand them, so one would never match.
fn literal(layer: &Layer, key: &str, node: &Node) -> Result<String, Failure> {
    let text = one(layer, key, node)?;
    if text.contains("${") {
        let message =
            format!("{key} contains a variable, which rules do not expand: write the value");
        return Err(layer.problem(node.at, &message));
    }
    Ok(text)
}

fn effect(layer: &Layer, node: &Node) -> Result<Effect, Failure> {
    let text = one(layer, "effect", node)?;
    let names: Vec<&str> = Effect::ALL.iter().map(|effect| effect.name()).collect();
    Effect::by_name(&text).ok_or_else(|| {
        let got = format!("\"{}\"", visible(&text));
        wrong(layer, node.at, "effect", &names.join(", "), &got)
    })
}

/// Characters that are special to a shell.
const SHELL: &[char] = &[
    '|', '&', ';', '<', '>', '$', '`', '*', '?', '[', ']', '{', '}', '(', ')', '"', '\'',
];

/// Reads the words of a command: a text, which is split at spaces, or a list.
fn words(layer: &Layer, node: &Node) -> Result<Vec<String>, Failure> {
    match (&node.content, node.text()) {
        (Content::List(_), _) => texts(layer, "command", node),
        // Words of a simple command cannot contain these characters, so the rule would
        // never match.
        (_, Some(text)) if text.contains(SHELL) => Err(layer.problem(
            node.at,
            &format!(
                "command must be the first words of a simple command, not a pattern or a shell line: \"{}\"",
                visible(text)
            ),
        )),
        (_, Some(text)) => Ok(text.split_ascii_whitespace().map(str::to_owned).collect()),
        _ => {
            let expected = "text or a list of words";
            Err(wrong(layer, node.at, "command", expected, node.kind()))
        }
    }
}

fn texts(layer: &Layer, key: &str, node: &Node) -> Result<Vec<String>, Failure> {
    let Content::List(items) = &node.content else {
        return Err(wrong(layer, node.at, key, "a list of texts", node.kind()));
    };
    let text = |item: &Node| match item.text() {
        Some(text) => Ok(text.to_owned()),
        None => {
            let got = format!("{} in it", item.kind());
            Err(wrong(layer, item.at, key, "a list of texts", &got))
        }
    };
    items.iter().map(text).collect()
}

/// The JSON Schema of a rule, for editors.
pub(crate) fn schema() -> Value {
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    let tool = |does: &str| json!({ "description": does, "type": "string", "minLength": 1 });
    let effects: Vec<&str> = Effect::ALL.iter().map(|effect| effect.name()).collect();
    json!({
        "type": "object",
        "properties": {
            "allow": tool("Allow calls of this tool; \"*\" for every tool"),
            "ask": tool("Ask the user before calls of this tool; \"*\" for every tool"),
            "deny": tool("Never allow calls of this tool; \"*\" for every tool"),
            "effect": { "description": "Only calls with this effect", "enum": effects },
            "command": {
                "description": "Only simple commands that start with these words",
                "anyOf": [{ "type": "string" }, texts],
            },
            "path": { "description": "Only paths that match this glob, relative to the work folder or absolute", "type": "string" },
            "host": { "description": "Only this host; *.example.com for all its subdomains", "type": "string" },
            "match": { "description": "Examples that the rule must match", "type": "array", "items": { "type": "string" } },
            "no_match": { "description": "Examples that the rule must not match", "type": "array", "items": { "type": "string" } },
        },
        "oneOf": [{ "required": ["allow"] }, { "required": ["ask"] }, { "required": ["deny"] }],
        "additionalProperties": false,
    })
}
