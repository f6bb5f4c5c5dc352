//! The `haft.yaml` that is being put together, and the report on what became of each
//! setting.

use super::secrets;
use haft::ops::text::brief;
use haft_agent::provider::Provider;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;

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
    servers: Map<String, Value>,
    rules: Vec<Value>,
    notes: Vec<Note>,
    /// Variables that stand in for values that were not copied.
    variables: BTreeSet<String>,
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
    /// Not written, and why.
    Left(String),
}

impl Draft {
    /// An empty one, for the user's own file or for a project's.
    pub(super) fn new(is_own: bool) -> Self {
        Self {
            is_own,
            ..Self::default()
        }
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
            && !items.contains(&item)
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
            shown.push(flow(&rule));
            if !self.rules.contains(&rule) {
                self.rules.push(rule);
            }
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
        self.note(what, Fate::Carried(format!("tools.mcp.{name}")));
        self.servers.insert(name.to_owned(), server.into());
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

    /// Whether nothing was carried over.
    pub(super) fn is_empty(&self) -> bool {
        self.settings.is_empty()
            && self.tools.is_empty()
            && self.servers.is_empty()
            && self.rules.is_empty()
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
        if !self.tools.is_empty() || !self.servers.is_empty() {
            text.push_str("tools:\n");
            for (name, value) in &self.tools {
                text.push_str(&entry("  ", name, value));
            }
            if !self.servers.is_empty() {
                text.push_str("  mcp:\n");
                for (name, value) in &self.servers {
                    let _ = writeln!(text, "    {}: {}", scalar(name), flow(value));
                }
            }
        }
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
        let of = |line: fn(&Note) -> Option<String>| self.notes.iter().filter_map(line).collect();
        group(
            "carried over",
            of(|note| match &note.fate {
                Fate::Carried(becomes) => Some(format!("{} -> {becomes}", note.what)),
                _ => None,
            }),
        );
        group(
            "carried over, but stricter than before",
            of(|note| match &note.fate {
                Fate::Stricter(becomes, why) => Some(format!("{} -> {becomes}: {why}", note.what)),
                _ => None,
            }),
        );
        group(
            "not carried over",
            of(|note| match &note.fate {
                Fate::Left(why) => Some(format!("{}: {why}", note.what)),
                _ => None,
            }),
        );
        text
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
