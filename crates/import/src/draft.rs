//! The `haft.yaml` being written, and the report about each converted setting.

use crate::secrets;
use crate::yaml::{entry, flow, scalar};
use crate::{Host, Target, texts};
use haft::ops::text::brief;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;

/// Maximum characters of a setting's name in the report.
const MAX_NAME: usize = 160;

/// Settings collected from another program's file.
pub(crate) struct Draft<'a> {
    target: Target<'a>,
    host: &'a dyn Host,
    settings: Map<String, Value>,
    tools: Map<String, Value>,
    plugins: Vec<Value>,
    servers: Map<String, Value>,
    rules: Vec<Value>,
    /// Formatted items already in the lists, to avoid duplicates.
    listed: HashSet<String>,
    notes: Vec<Note>,
    /// Variables that must be set.
    variables: BTreeSet<String>,
    /// Variables that replace secrets which were not copied, with the secrets.
    hidden: BTreeMap<String, String>,
    /// Reference to the provider's key, which is used only in the user's own file.
    key: Option<String>,
}

#[derive(Debug)]
struct Note {
    what: String,
    outcome: Outcome,
}

/// Outcome of one setting.
#[derive(Debug)]
enum Outcome {
    /// Converted with the same meaning.
    Converted(String),
    /// Converted, but haft allows less than the other program did, and why.
    Stricter(String, String),
    /// A program or URL with its key. Written unless it needs a secret variable and the
    /// file is a project's.
    External(String, Value),
    /// The provider's key. Written only to the user's own file.
    ApiKey(String),
    /// Not converted, and why.
    Skipped(String),
}

impl<'a> Draft<'a> {
    pub(crate) fn new(target: Target<'a>, host: &'a dyn Host) -> Self {
        Self {
            target,
            host,
            settings: Map::new(),
            tools: Map::new(),
            plugins: Vec::new(),
            servers: Map::new(),
            rules: Vec::new(),
            listed: HashSet::new(),
            notes: Vec::new(),
            variables: BTreeSet::new(),
            hidden: BTreeMap::new(),
            key: None,
        }
    }

    /// Returns an empty draft of the same file.
    pub(crate) fn empty_copy(&self) -> Self {
        Self::new(self.target, self.host)
    }

    /// Whether the file is the user's own configuration.
    pub(crate) fn is_own(&self) -> bool {
        self.target.is_own
    }

    /// Whether relative paths start at the work folder.
    pub(crate) fn is_in_work_folder(&self) -> bool {
        !self.target.is_elsewhere
    }

    /// Whether haft can connect to an MCP server at this address.
    pub(crate) fn accepts_server_url(&self, url: &str) -> bool {
        self.host.is_server_url(url)
    }

    /// Returns the variable that haft reads the provider's key from by default.
    pub(crate) fn default_key(&self, provider: &str) -> Option<&'static str> {
        self.host.key_variable(provider)
    }

    /// Returns a path as it must be written in the new file, whose relative paths may
    /// start from another folder.
    pub(crate) fn rooted(&self, given: &str) -> String {
        if self.is_in_work_folder() {
            return given.to_owned();
        }
        let is_relative = ["./", "../"].iter().any(|start| given.starts_with(start));
        let names_file = || !given.starts_with(['-', '/']) && self.has_file(given);
        if !is_relative && !names_file() {
            return given.to_owned();
        }
        let path = self.target.folder.join(given.trim_start_matches("./"));
        path.to_string_lossy().into_owned()
    }

    /// Whether a path in the other program's file is an existing file.
    pub(crate) fn has_file(&self, given: &str) -> bool {
        self.host.is_file(&self.target.folder.join(given))
    }

    /// Sets a key, given its dotted name, with the same meaning.
    pub(crate) fn set(&mut self, what: &str, key: &str, value: impl Into<Value>) {
        let value = value.into();
        let becomes = format!("{key}: {}", flow(&value));
        self.put(key, value);
        self.note(what, Outcome::Converted(becomes));
    }

    /// Sets a key to a value that allows less than the original setting.
    pub(crate) fn set_stricter(
        &mut self,
        what: &str,
        key: &str,
        value: impl Into<Value>,
        why: &str,
    ) {
        let value = value.into();
        let becomes = format!("{key}: {}", flow(&value));
        self.put(key, value);
        self.note(what, Outcome::Stricter(becomes, why.to_owned()));
    }

    /// Sets the provider's key to a variable, unless haft reads that variable anyway.
    pub(crate) fn api_key(&mut self, what: &str, provider: &str, reference: &str) {
        let usual = self.default_key(provider);
        let usual = usual.filter(|usual| reference == format!("${{{usual}}}"));
        match usual {
            Some(usual) => self.same(what, &format!("haft uses {usual} by default")),
            None => {
                self.note(
                    what,
                    Outcome::ApiKey(format!("api_key: {}", scalar(reference))),
                );
                self.key = Some(reference.to_owned());
            }
        }
    }

    /// Replaces a literal provider key by a variable.
    pub(crate) fn hidden_api_key(&mut self, what: &str, provider: &str, name: &str, key: &str) {
        let reference = self.hide(what, name, key);
        let usual = self.default_key(provider);
        if usual.is_none_or(|usual| reference != format!("${{{usual}}}")) {
            self.key = Some(reference);
        }
    }

    /// Adds an item to a list, given its dotted name.
    pub(crate) fn push(&mut self, what: &str, key: &str, item: impl Into<Value>) {
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
        self.note(what, Outcome::Converted(becomes));
    }

    fn put(&mut self, key: &str, value: Value) {
        match key.strip_prefix("tools.") {
            Some(name) => self.tools.insert(name.to_owned(), value),
            None => self.settings.insert(key.to_owned(), value),
        };
    }

    /// Adds a rule with the same meaning.
    pub(crate) fn rule(&mut self, what: &str, rule: Value) {
        self.rules(what, [rule]);
    }

    /// Adds rules that together have the same meaning.
    pub(crate) fn rules(&mut self, what: &str, rules: impl IntoIterator<Item = Value>) {
        let becomes = self.put_rules(rules);
        self.note(what, Outcome::Converted(becomes));
    }

    /// Adds rules that allow less than the setting did.
    pub(crate) fn stricter_rules(
        &mut self,
        what: &str,
        rules: impl IntoIterator<Item = Value>,
        why: &str,
    ) {
        let becomes = self.put_rules(rules);
        self.note(what, Outcome::Stricter(becomes, why.to_owned()));
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

    /// Reports that haft does the same without a setting.
    pub(crate) fn same(&mut self, what: &str, how: &str) {
        self.note(what, Outcome::Converted(how.to_owned()));
    }

    /// Reports that a setting is not converted, and why.
    pub(crate) fn skip(&mut self, what: &str, why: impl Into<String>) {
        self.note(what, Outcome::Skipped(why.into()));
    }

    /// Adds an MCP server.
    pub(crate) fn server(&mut self, what: &str, name: &str, server: Map<String, Value>) {
        let server = Value::from(server);
        let outcome = Outcome::External(format!("tools.mcp.{name}"), server.clone());
        self.note(what, outcome);
        self.servers.insert(name.to_owned(), server);
    }

    /// Returns the MCP servers, with their names.
    pub(crate) fn servers(&self) -> impl Iterator<Item = (&str, &Value)> {
        let servers = self.servers.iter();
        servers.map(|(name, server)| (name.as_str(), server))
    }

    /// Adds a plugin.
    pub(crate) fn plugin(&mut self, what: &str, plugin: Map<String, Value>) {
        let plugin = Value::from(plugin);
        let becomes = format!("tools.plugins: {}", flow(&plugin));
        if self.listed.insert(becomes.clone()) {
            self.plugins.push(plugin.clone());
        }
        self.note(what, Outcome::External(becomes, plugin));
    }

    /// Returns the secret variables that keep an item out of a project's file. A disabled
    /// item needs none.
    fn secrets_of(&self, reached: &Value) -> BTreeSet<String> {
        if self.target.is_own || reached.get("enabled") == Some(&Value::Bool(false)) {
            return BTreeSet::new();
        }
        let is_secret = |name: &String| self.hidden.contains_key(name) || self.host.is_secret(name);
        self.variables_in(reached)
            .into_iter()
            .filter(is_secret)
            .collect()
    }

    /// Whether an item is kept out of a project's file.
    fn is_withheld(&self, reached: &Value) -> bool {
        !self.secrets_of(reached).is_empty()
    }

    /// Returns the secret variables that keep a noted item out of a project's file.
    fn withheld_of(&self, key: &str, noted: &Value) -> BTreeSet<String> {
        // The server may have been disabled since.
        let server = key.strip_prefix("tools.mcp.");
        let server = server.and_then(|name| self.servers.get(name));
        self.secrets_of(server.unwrap_or(noted))
    }

    /// Whether something works only in the user's own file.
    pub(crate) fn withholds(&self) -> bool {
        let mut all = self.servers.values().chain(&self.plugins);
        self.moves_service() || all.any(|reached| self.is_withheld(reached))
    }

    /// Returns the MCP servers that work only in the user's own file.
    pub(crate) fn withheld_servers(&self) -> impl Iterator<Item = &str> {
        let withheld = |(_, server): &(&String, &Value)| self.is_withheld(server);
        let servers = self.servers.iter().filter(withheld);
        servers.map(|(name, _)| name.as_str())
    }

    /// Returns the lines that a project's file withholds. `self` is the draft for the user's
    /// own file.
    pub(crate) fn lines_withheld_from(&self, project: &Self) -> String {
        let out = |reached: &&Value| project.is_withheld(reached);
        let plugins: Vec<&Value> = self.plugins.iter().filter(out).collect();
        let servers = self.servers.iter().filter(|(_, server)| out(server));
        let tools = reached(&plugins, &servers.collect::<Vec<_>>(), &Map::new());
        if !project.moves_service() {
            return tools;
        }
        let place = self.settings.iter().filter(|(name, _)| is_of_service(name));
        let place: String = place.map(|(name, value)| entry("", name, value)).collect();
        format!("{place}{}{tools}", self.key_line())
    }

    /// Whether provider, address and key go into the user's own file. Otherwise the
    /// project's address would receive another key of the user's.
    fn moves_service(&self) -> bool {
        !self.target.is_own && self.key.is_some()
    }

    /// Returns the settings to write.
    fn written_settings(&self) -> impl Iterator<Item = (&String, &Value)> {
        let is_kept = |name: &str| !(self.moves_service() && is_of_service(name));
        self.settings.iter().filter(move |(name, _)| is_kept(name))
    }

    /// Returns the line with the provider's key.
    fn key_line(&self) -> String {
        let line = |key: &String| entry("", "api_key", &key.as_str().into());
        self.key.as_ref().map(line).unwrap_or_default()
    }

    /// Whether there is an MCP server of this name.
    pub(crate) fn has_server(&self, name: &str) -> bool {
        self.servers.contains_key(name)
    }

    /// Returns the names of the MCP servers so far.
    pub(crate) fn server_names(&self) -> Vec<String> {
        self.servers.keys().cloned().collect()
    }

    /// Disables a server.
    pub(crate) fn disable_server(&mut self, what: &str, name: &str, why: &str) {
        if let Some(Value::Object(server)) = self.servers.get_mut(name) {
            server.insert("enabled".to_owned(), false.into());
        }
        let becomes = format!("tools.mcp.{name}.enabled: false");
        self.note(what, Outcome::Stricter(becomes, why.to_owned()));
    }

    /// Replaces a secret by a variable. Different secrets get different variables,
    /// numbered if needed.
    pub(crate) fn hide(&mut self, what: &str, variable: &str, secret: &str) -> String {
        let mut name = variable.to_owned();
        let mut number = 2;
        while self.hidden.get(&name).is_some_and(|known| known != secret) {
            name = format!("{variable}_{number}");
            number += 1;
        }
        self.skip(what, format!("secrets are not copied; set variable {name}"));
        self.hidden.insert(name.clone(), secret.to_owned());
        self.needs(&name)
    }

    /// Writes a reference to a variable.
    pub(crate) fn needs(&mut self, variable: &str) -> String {
        self.variables.insert(variable.to_owned());
        format!("${{{variable}}}")
    }

    fn note(&mut self, what: &str, outcome: Outcome) {
        let what = brief(secrets::redacted(what), MAX_NAME);
        self.notes.push(Note { what, outcome });
    }

    /// Whether there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        let mut reached = self.servers.values().chain(&self.plugins);
        self.written_settings().next().is_none()
            && self.tools.is_empty()
            && self.rules.is_empty()
            && (self.key.is_none() || !self.target.is_own)
            && reached.all(|reached| self.is_withheld(reached))
    }

    /// Returns the variables that must be set.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(String::as_str)
    }

    /// Returns the variables in a value, as `${NAME}` or in a list `env`.
    fn variables_in(&self, value: &Value) -> Vec<String> {
        let all = |value: &Value| self.variables_in(value);
        match value {
            Value::String(text) => self.host.variables(text),
            Value::Array(items) => items.iter().flat_map(all).collect(),
            Value::Object(map) => {
                let passed = match map.get("env") {
                    Some(Value::Array(names)) => texts(names),
                    _ => Vec::new(),
                };
                map.values().flat_map(all).chain(passed).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the text of the file.
    pub(crate) fn text(&self, from: &str) -> String {
        let mut text = format!(
            "# Written by `haft init --from {}`.\n\
             # `haft config show` shows the effective settings.\n\n",
            haft::ops::text::decode::visible(from).replace('\n', " ")
        );
        for (name, value) in self.written_settings() {
            text.push_str(&entry("", name, value));
        }
        if self.target.is_own {
            text.push_str(&self.key_line());
        }
        let kept = |reached: &&Value| !self.is_withheld(reached);
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

    /// Returns the names of items that are kept out of a project's file.
    fn withheld(&self) -> Vec<&str> {
        let withheld = |note: &&Note| match &note.outcome {
            Outcome::External(key, reached) => !self.withheld_of(key, reached).is_empty(),
            _ => false,
        };
        let notes = self.notes.iter().filter(withheld);
        notes.map(|note| note.what.as_str()).collect()
    }

    /// Returns the report: one line per setting, grouped by outcome. `own` is the draft
    /// of the user's own file, if something must go there.
    pub(crate) fn report(&self, own: Option<&Self>) -> String {
        let mut text = String::new();
        let withheld = self.withheld();
        let is_part = |note: &Note| {
            withheld.iter().any(|whole| {
                let rest = note.what.strip_prefix(whole);
                rest.is_some_and(|rest| rest.starts_with(['.', ',']))
            })
        };
        let moves = |becomes: &str| {
            let name = becomes.split_once(": ").map_or("", |(name, _)| name);
            self.moves_service() && is_of_service(name)
        };
        let mut group = |title: &str, lines: Vec<String>| {
            if !lines.is_empty() {
                let _ = write!(text, "{title}:\n  {}\n", lines.join("\n  "));
            }
        };
        let of =
            |line: &dyn Fn(&Note) -> Option<String>| self.notes.iter().filter_map(line).collect();
        group(
            "carried over",
            of(&|note| match &note.outcome {
                Outcome::Converted(becomes) if !is_part(note) && !moves(becomes) => {
                    Some(format!("{} -> {becomes}", note.what))
                }
                Outcome::External(becomes, reached)
                    if self.withheld_of(becomes, reached).is_empty() =>
                {
                    Some(format!("{} -> {becomes}", note.what))
                }
                Outcome::ApiKey(becomes) if self.target.is_own => {
                    Some(format!("{} -> {becomes}", note.what))
                }
                _ => None,
            }),
        );
        group(
            "carried over, but stricter than before",
            of(&|note| match &note.outcome {
                Outcome::Stricter(becomes, why) => {
                    Some(format!("{} -> {becomes}: {why}", note.what))
                }
                _ => None,
            }),
        );
        let mut for_own: Vec<String> = of(&|note| match &note.outcome {
            Outcome::External(becomes, reached) => {
                let names: Vec<String> = self.withheld_of(becomes, reached).into_iter().collect();
                (!names.is_empty()).then(|| format!("{}: it needs {}", note.what, names.join(", ")))
            }
            Outcome::ApiKey(becomes) if !self.target.is_own => {
                Some(format!("{} -> {becomes}", note.what))
            }
            Outcome::Converted(becomes) if moves(becomes) => {
                Some(format!("{} -> {becomes}", note.what))
            }
            _ => None,
        });
        let parts = own.into_iter().flat_map(|own| &own.notes);
        let parts = parts.filter(|note| is_part(note));
        for_own.extend(parts.filter_map(|note| match &note.outcome {
            Outcome::Converted(becomes) => Some(format!("{} -> {becomes}", note.what)),
            _ => None,
        }));
        group(
            "for your own haft.yaml, because a project's never gets secret variables",
            for_own,
        );
        group(
            "not carried over",
            of(&|note| match &note.outcome {
                Outcome::Skipped(why) => Some(format!("{}: {why}", note.what)),
                _ => None,
            }),
        );
        text
    }
}

/// Whether a key decides where the provider's key is sent.
fn is_of_service(key: &str) -> bool {
    ["provider", "base_url"].contains(&key)
}

/// Formats the section `tools`: plugins, servers and other keys.
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
