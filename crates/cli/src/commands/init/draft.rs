//! The `haft.yaml` that is being put together, and the report on what became of each
//! setting.

use super::secrets;
use crate::config;
use haft::ops::text::brief;
use haft_agent::provider::Provider;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Longest line of the report that names a setting.
const SHOWN: usize = 160;

/// Settings collected from another program's file.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// Whether the file is the user's own configuration. A project's file cannot loosen
    /// anything, so some settings only make sense in the user's own.
    pub(super) is_own: bool,
    settings: Map<String, Value>,
    tools: Map<String, Value>,
    plugins: Vec<Value>,
    servers: Map<String, Value>,
    rules: Vec<Value>,
    /// What is in the lists so far, as it is written.
    listed: HashSet<String>,
    notes: Vec<Note>,
    /// Where the other program's relative paths start, if the file is in another folder.
    moved_from: Option<PathBuf>,
    /// Variables that must be set.
    variables: BTreeSet<String>,
    /// Those among them that stand in for secrets that were not copied.
    hidden: BTreeSet<String>,
}

#[derive(Debug)]
struct Note {
    what: String,
    fate: Fate,
}

/// Outcome of one setting.
#[derive(Debug)]
enum Fate {
    /// Written with the same meaning.
    Carried(String),
    /// Written, but haft will allow less than the other program did, and why.
    Stricter(String, String),
    /// A program or an address, by its key. Written, unless it needs a secret variable and
    /// the file is a project's.
    Reached(String, Value),
    /// Not written, and why.
    Left(String),
}

impl Draft {
    /// An empty one, for the user's own file or for a project's.
    pub(super) fn new(is_own: bool, moved_from: Option<&Path>) -> Self {
        Self {
            is_own,
            moved_from: moved_from.map(Path::to_owned),
            ..Self::default()
        }
    }

    /// Whether relative paths start at the work folder.
    pub(super) fn is_in_work_folder(&self) -> bool {
        self.moved_from.is_none()
    }

    /// A path as it is written in the file. Relative ones start at the file's folder, which may
    /// be another one than before.
    pub(super) fn rooted(&self, given: &str) -> String {
        let Some(folder) = &self.moved_from else {
            return given.to_owned();
        };
        let is_relative = ["./", "../"].iter().any(|start| given.starts_with(start));
        let names_file = || {
            let found = folder.join(given).symlink_metadata();
            !given.starts_with(['-', '/']) && found.is_ok_and(|found| found.is_file())
        };
        if !is_relative && !names_file() {
            return given.to_owned();
        }
        let path = folder.join(given.trim_start_matches("./"));
        path.to_string_lossy().into_owned()
    }

    /// Sets a key, by its dotted name, with the same meaning.
    pub(super) fn set(&mut self, what: &str, key: &str, value: impl Into<Value>) {
        let value = value.into();
        let becomes = format!("{key}: {}", flow(&value));
        self.put(key, value);
        self.note(what, Fate::Carried(becomes));
    }

    /// Sets a key to something that allows less than the setting did.
    pub(super) fn set_stricter(
        &mut self,
        what: &str,
        key: &str,
        value: impl Into<Value>,
        why: &str,
    ) {
        let value = value.into();
        let becomes = format!("{key}: {}", flow(&value));
        self.put(key, value);
        self.note(what, Fate::Stricter(becomes, why.to_owned()));
    }

    /// Whether a key outside of `tools` is set.
    pub(super) fn sets(&self, key: &str) -> bool {
        self.settings.contains_key(key)
    }

    /// Sets the key of a provider, a reference to a variable, unless haft looks there anyway.
    pub(super) fn api_key(&mut self, what: &str, provider: &str, reference: &str) {
        let usual = usual_key(provider).filter(|usual| reference == format!("${{{usual}}}"));
        match usual {
            Some(usual) => {
                self.variables.remove(usual);
                self.same(what, &format!("haft uses {usual} without being told"));
            }
            None => self.set(what, "api_key", reference),
        }
    }

    /// Adds to a list, by its dotted name.
    pub(super) fn push(&mut self, what: &str, key: &str, item: impl Into<Value>) {
        let item = item.into();
        let becomes = format!("{key}: {}", flow(&item));
        let map = match key.strip_prefix("tools.") {
            Some(_) => &mut self.tools,
            None => &mut self.settings,
        };
        let name = key.strip_prefix("tools.").unwrap_or(key);
        let list = map.entry(name).or_insert_with(|| json!([]));
        if let Value::Array(items) = list
            && self.listed.insert(becomes.clone())
        {
            items.push(item);
        }
        self.note(what, Fate::Carried(becomes));
    }

    fn put(&mut self, key: &str, value: Value) {
        match key.strip_prefix("tools.") {
            Some(name) => self.tools.insert(name.to_owned(), value),
            None => self.settings.insert(key.to_owned(), value),
        };
    }

    /// Adds a rule with the same meaning.
    pub(super) fn rule(&mut self, what: &str, rule: Value) {
        self.rules(what, [rule]);
    }

    /// Adds rules that together have the same meaning.
    pub(super) fn rules(&mut self, what: &str, rules: impl IntoIterator<Item = Value>) {
        let becomes = self.put_rules(rules);
        self.note(what, Fate::Carried(becomes));
    }

    /// Adds rules that allow less than the setting did.
    pub(super) fn stricter_rules(
        &mut self,
        what: &str,
        rules: impl IntoIterator<Item = Value>,
        why: &str,
    ) {
        let becomes = self.put_rules(rules);
        self.note(what, Fate::Stricter(becomes, why.to_owned()));
    }

    fn put_rules(&mut self, rules: impl IntoIterator<Item = Value>) -> String {
        let mut shown = Vec::new();
        for rule in rules {
            let text = flow(&rule);
            if self.listed.insert(format!("policy: {text}")) {
                self.rules.push(rule);
            }
            shown.push(text);
        }
        format!("policy: {}", shown.join(", "))
    }

    /// Says that haft does the same without a setting.
    pub(super) fn same(&mut self, what: &str, how: &str) {
        self.note(what, Fate::Carried(how.to_owned()));
    }

    /// Says that a setting is not carried over, and why.
    pub(super) fn left(&mut self, what: &str, why: impl Into<String>) {
        self.note(what, Fate::Left(why.into()));
    }

    /// Adds an MCP server.
    pub(super) fn server(&mut self, what: &str, name: &str, server: Map<String, Value>) {
        let server = Value::from(server);
        let fate = Fate::Reached(format!("tools.mcp.{name}"), server.clone());
        self.note(what, fate);
        self.servers.insert(name.to_owned(), server);
    }

    /// Adds a plugin.
    pub(super) fn plugin(&mut self, what: &str, plugin: Map<String, Value>) {
        let plugin = Value::from(plugin);
        let becomes = format!("tools.plugins: {}", flow(&plugin));
        if self.listed.insert(becomes.clone()) {
            self.plugins.push(plugin.clone());
        }
        self.note(what, Fate::Reached(becomes, plugin));
    }

    /// The secret variable that keeps something out of a project's file. What is switched off
    /// needs none.
    fn withheld(&self, reached: &Value) -> Option<String> {
        if self.is_own || reached.get("enabled") == Some(&Value::Bool(false)) {
            return None;
        }
        let is_secret = |name: &String| self.hidden.contains(name) || config::is_secret(name);
        named(reached).into_iter().find(is_secret)
    }

    /// The secret variable that keeps what a note is about out of a project's file.
    fn withheld_of(&self, key: &str, noted: &Value) -> Option<String> {
        // A server may have been switched off since.
        let server = key.strip_prefix("tools.mcp.");
        let server = server.and_then(|name| self.servers.get(name));
        self.withheld(server.unwrap_or(noted))
    }

    /// Whether something has to be in the user's own file to work.
    pub(super) fn withholds(&self) -> bool {
        let mut all = self.servers.values().chain(&self.plugins);
        all.any(|reached| self.withheld(reached).is_some())
    }

    /// What the user's own file needs in addition to a project's: of this draft, which is one
    /// of the user's own, the parts that the project's leaves out.
    pub(super) fn beside(&self, project: &Self) -> String {
        let out = |reached: &&Value| project.withheld(reached).is_some();
        let plugins: Vec<&Value> = self.plugins.iter().filter(out).collect();
        let servers = self.servers.iter().filter(|(_, server)| out(server));
        reached(&plugins, &servers.collect::<Vec<_>>(), &Map::new())
    }

    /// Whether there is an MCP server of this name.
    pub(super) fn has_server(&self, name: &str) -> bool {
        self.servers.contains_key(name)
    }

    /// The names of the MCP servers so far.
    pub(super) fn server_names(&self) -> Vec<String> {
        self.servers.keys().cloned().collect()
    }

    /// Switches a server off.
    pub(super) fn disable_server(&mut self, what: &str, name: &str, why: &str) {
        if let Some(Value::Object(server)) = self.servers.get_mut(name) {
            server.insert("enabled".to_owned(), false.into());
        }
        let becomes = format!("tools.mcp.{name}.enabled: false");
        self.note(what, Fate::Stricter(becomes, why.to_owned()));
    }

    /// Puts the name of a variable in the place of a secret value.
    pub(super) fn hide(&mut self, what: &str, variable: &str) -> String {
        self.left(
            what,
            format!("secrets are not copied; set the variable {variable}"),
        );
        self.hidden.insert(variable.to_owned());
        self.needs(variable)
    }

    /// Writes a reference to a variable.
    pub(super) fn needs(&mut self, variable: &str) -> String {
        self.variables.insert(variable.to_owned());
        format!("${{{variable}}}")
    }

    fn note(&mut self, what: &str, fate: Fate) {
        let what = brief(secrets::redacted(what), SHOWN);
        self.notes.push(Note { what, fate });
    }

    /// Whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        let mut reached = self.servers.values().chain(&self.plugins);
        self.settings.is_empty()
            && self.tools.is_empty()
            && self.rules.is_empty()
            && reached.all(|reached| self.withheld(reached).is_some())
    }

    /// Names of the variables that must be set for everything to work.
    pub(super) fn variables(&self) -> &BTreeSet<String> {
        &self.variables
    }

    /// The text of the file.
    pub(super) fn text(&self, from: &str) -> String {
        let mut text = format!(
            "# Written by `haft init --from {}`.\n\
             # `haft config show` says what is in force.\n\n",
            haft::ops::text::decode::visible(from).replace('\n', " ")
        );
        for (name, value) in &self.settings {
            text.push_str(&entry("", name, value));
        }
        let kept = |reached: &&Value| self.withheld(reached).is_none();
        let plugins: Vec<&Value> = self.plugins.iter().filter(kept).collect();
        let servers = self.servers.iter().filter(|(_, server)| kept(server));
        text.push_str(&reached(
            &plugins,
            &servers.collect::<Vec<_>>(),
            &self.tools,
        ));
        if !self.rules.is_empty() {
            text.push_str("policy:\n");
            for rule in &self.rules {
                let _ = writeln!(text, "  - {}", flow(rule));
            }
        }
        text
    }

    /// The report: one line per setting, grouped by outcome.
    pub(super) fn report(&self) -> String {
        let mut text = String::new();
        let mut group = |title: &str, lines: Vec<String>| {
            if !lines.is_empty() {
                let _ = write!(text, "{title}:\n  {}\n", lines.join("\n  "));
            }
        };
        let of =
            |line: &dyn Fn(&Note) -> Option<String>| self.notes.iter().filter_map(line).collect();
        group(
            "carried over",
            of(&|note| match &note.fate {
                Fate::Carried(becomes) => Some(format!("{} -> {becomes}", note.what)),
                Fate::Reached(becomes, reached) if self.withheld_of(becomes, reached).is_none() => {
                    Some(format!("{} -> {becomes}", note.what))
                }
                _ => None,
            }),
        );
        group(
            "carried over, but stricter than before",
            of(&|note| match &note.fate {
                Fate::Stricter(becomes, why) => Some(format!("{} -> {becomes}: {why}", note.what)),
                _ => None,
            }),
        );
        group(
            "for your own haft.yaml, because a project's never gets secret variables",
            of(&|note| match &note.fate {
                Fate::Reached(becomes, reached) => self
                    .withheld_of(becomes, reached)
                    .map(|name| format!("{}: it needs {name}", note.what)),
                _ => None,
            }),
        );
        group(
            "not carried over",
            of(&|note| match &note.fate {
                Fate::Left(why) => Some(format!("{}: {why}", note.what)),
                _ => None,
            }),
        );
        text
    }
}

/// The section `tools`: what is reached, beside other keys.
fn reached(
    plugins: &[&Value],
    servers: &[(&String, &Value)],
    others: &Map<String, Value>,
) -> String {
    if plugins.is_empty() && servers.is_empty() && others.is_empty() {
        return String::new();
    }
    let mut text = String::from("tools:\n");
    for (name, value) in others {
        text.push_str(&entry("  ", name, value));
    }
    if !plugins.is_empty() {
        text.push_str("  plugins:\n");
        for plugin in plugins {
            let _ = writeln!(text, "    - {}", flow(plugin));
        }
    }
    if !servers.is_empty() {
        text.push_str("  mcp:\n");
        for (name, server) in servers {
            let _ = writeln!(text, "    {}: {}", scalar(name), flow(server));
        }
    }
    text
}

/// The variables that something names, as `${NAME}` or in a list `env`.
fn named(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => config::variables(text),
        Value::Array(items) => items.iter().flat_map(named).collect(),
        Value::Object(map) => {
            let passed = match map.get("env") {
                Some(Value::Array(names)) => super::servers::texts(names),
                _ => Vec::new(),
            };
            map.values().flat_map(named).chain(passed).collect()
        }
        _ => Vec::new(),
    }
}

/// The variable that haft reads a provider's key from by default.
pub(super) fn usual_key(provider: &str) -> Option<&'static str> {
    let provider: Provider = provider.parse().ok()?;
    provider.key_variable()
}

/// A key and its value: lists of maps one item a line, long texts as a block.
fn entry(indent: &str, name: &str, value: &Value) -> String {
    match value {
        Value::Array(items) if items.iter().any(Value::is_object) => {
            let lines = items
                .iter()
                .map(|item| format!("{indent}  - {}\n", flow(item)));
            format!("{indent}{name}:\n{}", lines.collect::<String>())
        }
        Value::String(text) if is_block(text) => {
            let end = if text.ends_with('\n') { "" } else { "-" };
            let lines = text.lines().map(|line| match line {
                "" => "\n".to_owned(),
                line => format!("{indent}  {line}\n"),
            });
            format!("{indent}{name}: |{end}\n{}", lines.collect::<String>())
        }
        other => format!("{indent}{name}: {}\n", flow(other)),
    }
}

/// Whether a text reads better over several lines, and means the same there.
fn is_block(text: &str) -> bool {
    let is_plain = |c: char| c == '\n' || !(c.is_control() || is_odd(c));
    text.trim_end_matches('\n').contains('\n')
        && !text.starts_with([' ', '\n'])
        && !text.ends_with("\n\n")
        && text.chars().all(is_plain)
}

/// A value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => {
            let entries: Vec<String> = map
                .iter()
                .map(|(name, value)| format!("{}: {}", scalar(name), flow(value)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
        other => other.to_string(),
    }
}

/// Words that YAML readers take for something other than text.
const WORDS: [&str; 10] = [
    "true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan",
];

/// A text: plain if it cannot be taken for anything else, in quotes otherwise.
fn scalar(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " _-./".contains(c);
    if text.starts_with(|c: char| c.is_ascii_alphabetic())
        && !text.ends_with(' ')
        && text.chars().all(is_plain)
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
    {
        return text.to_owned();
    }
    let mut quoted = String::new();
    for c in Value::from(text).to_string().chars() {
        match is_odd(c) {
            true => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            false => quoted.push(c),
        }
    }
    quoted
}

/// Characters that JSON may have in quotes and YAML may not, or that cannot be seen.
fn is_odd(c: char) -> bool {
    matches!(
        c,
        '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    )
}
