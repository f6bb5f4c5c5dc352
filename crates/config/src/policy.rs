//! Reads the rules under `policy`. An invalid rule is an error, because ignoring it could
//! allow more.

#[cfg(test)]
mod tests;

use super::Notes;
use super::layer::{Layer, Role};
use super::reader::FoundValue;
use super::setting::{TextOr, inline_schema};
use super::sources::{Origin, Sources};
use crate::failure::Failure;
use haft::ops::text::decode::visible;
use haft::ops::text::spelling::closest;
use haft::{Effect, Policy, Rule, RuleDraft, RuleFile, RuleOwner, Verdict};
use schemars::{JsonSchema, json_schema};
use serde::de::{self, Deserialize, Deserializer};

/// Verdict about calls, and the calls that it is about.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["allow"] }, { "required": ["review"] }, { "required": ["ask"] }, { "required": ["deny"] }]))]
pub(crate) struct RuleEntry {
    /// Allow calls of this tool; "*" for every tool.
    allow: Option<String>,
    /// Run calls of this tool without network, then let the user keep or revert what they
    /// changed; "*" for every tool.
    review: Option<String>,
    /// Ask the user before calls of this tool; "*" for every tool.
    ask: Option<String>,
    /// Never allow calls of this tool; "*" for every tool.
    deny: Option<String>,
    /// Only calls with this effect.
    effect: Option<EffectName>,
    /// Only simple commands that start with these words.
    command: Option<Words>,
    /// Only paths that match this glob, relative to the work folder or absolute.
    path: Option<Literal>,
    /// Only this host; *.example.com for all its subdomains. For network also with a port.
    host: Option<Literal>,
    /// Examples that the rule must match.
    #[serde(default, rename = "match")]
    matching: Vec<String>,
    /// Examples that the rule must not match.
    #[serde(default, rename = "no_match")]
    not_matching: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
struct EffectName(Effect);

/// The first words of a command.
#[derive(Debug)]
struct Words(Vec<String>);

/// A text without variables. Rules do not expand them, so one would never match.
#[derive(Debug)]
struct Literal(String);

/// Characters that are special to a shell.
const SHELL: &[char] = &[
    '|', '&', ';', '<', '>', '$', '`', '*', '?', '[', ']', '{', '}', '(', ')', '"', '\'',
];

impl<'de> Deserialize<'de> for EffectName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let names = Effect::ALL.map(|effect| effect.name()).join(", ");
        Effect::by_name(&text).map(Self).ok_or_else(|| {
            de::Error::custom(format_args!("must be {names}, got \"{}\"", visible(&text)))
        })
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match TextOr::deserialize(deserializer)? {
            TextOr::Full(words) => Ok(Self(words)),
            // Words of a simple command cannot contain these characters, so the rule would
            // never match.
            TextOr::Text(text) if text.contains(SHELL) => Err(de::Error::custom(format_args!(
                "must be the first words of a simple command, not a pattern or a shell line: \"{}\"",
                visible(&text)
            ))),
            TextOr::Text(text) => Ok(Self(
                text.split_ascii_whitespace().map(str::to_owned).collect(),
            )),
        }
    }
}

impl<'de> Deserialize<'de> for Literal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.contains("${") {
            true => Err(de::Error::custom(
                "contains a variable, which rules do not expand: write the value",
            )),
            false => Ok(Self(text)),
        }
    }
}

inline_schema!([] EffectName, _generator => json_schema!({ "enum": Effect::ALL.map(|effect| effect.name()) }));
inline_schema!([] Words, generator => TextOr::<Vec<String>>::json_schema(generator));
inline_schema!([] Literal, generator => String::json_schema(generator));

/// Reads the rules of all files, and warns about rules for unknown tools.
pub(crate) fn load(sources: &Sources, notes: &mut Notes) -> Result<Policy, Failure> {
    let layers = sources.layers.iter();
    let layers = layers.filter(|layer| !layer.file.policy.0.is_empty());
    let files: Result<Vec<_>, _> = layers.map(rules).collect();
    let policy = Policy::new(files?);
    let known = known_tools();
    let servers = sources
        .layers
        .iter()
        .flat_map(|layer| &layer.file.tools.mcp.0);
    let servers: Vec<String> = servers
        .map(|(name, _)| format!("{}_", super::mcp::label(name)))
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
        notes.warn(format!(
            "{}: no toolset has a tool \"{}\"{hint}",
            rule.location(),
            visible(rule.tool()),
        ));
    }
    let rule = |rule: &Rule| format!("{rule} ({})", rule.location());
    let shown = policy.rules().map(rule).collect();
    notes.show_value("policy", shown, from(&policy));
    Ok(policy)
}

/// Returns the files that contain rules.
fn from(policy: &Policy) -> String {
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
    names.extend([haft::NETWORK, haft::OUTSIDE_WRITE, haft::UNSANDBOXED].map(str::to_owned));
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

/// Returns the rules of a file.
pub(crate) fn rules(layer: &Layer) -> Result<RuleFile, Failure> {
    let owner = match layer.role {
        Role::Project => RuleOwner::Project,
        _ => RuleOwner::User,
    };
    let rules = layer.file.policy.0.iter();
    let rules = rules.filter_map(|(_, setting)| layer.found(setting));
    let rules = rules.map(|found| rule(layer, found));
    let rules = rules.collect::<Result<_, _>>()?;
    Ok(RuleFile { owner, rules })
}

fn rule(layer: &Layer, found: &FoundValue) -> Result<Rule, Failure> {
    let entry: RuleEntry = layer.as_written(found)?;
    let at = found.node.at;
    let verdicts = [
        (Verdict::Allow, entry.allow),
        (Verdict::Review, entry.review),
        (Verdict::Ask, entry.ask),
        (Verdict::Deny, entry.deny),
    ];
    let given = verdicts.into_iter();
    let mut given = given.filter_map(|(verdict, tool)| Some((verdict, tool?)));
    let (verdict, tool) = given.next().ok_or_else(|| {
        let message = "a rule must have allow, review, ask or deny with the name of a tool";
        layer.problem(at, message)
    })?;
    if let Some((other, _)) = given.next() {
        let message =
            format!("a rule can have only one verdict, but this one has {verdict} and {other}");
        return Err(layer.problem(at, &message));
    }
    let place = haft::RuleLocation {
        file: layer.shown.clone(),
        line: at.line,
    };
    let mut draft = RuleDraft::new(verdict, tool, place);
    draft.effect = entry.effect.map(|effect| effect.0);
    draft.command = entry.command.map(|words| words.0);
    draft.path = entry.path.map(|path| path.0);
    draft.host = entry.host.map(|host| host.0);
    draft.matching = entry.matching;
    draft.not_matching = entry.not_matching;
    Rule::new(draft).map_err(|bad| layer.problem(at, &visible(&bad.message)))
}
