//! The `haft.yaml` that is being put together, and the report on what became of each
//! setting.

use super::secrets;
use super::yaml::{entry, flow, scalar};
use crate::config;
use haft::ops::text::brief;
use haft_agent::provider::Provider;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
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
    /// Where the other program's relative paths start.
    folder: PathBuf,
    /// Whether the file that is written is in another folder.
    is_moved: bool,
    /// Variables that must be set.
    variables: BTreeSet<String>,
    /// Those among them that stand in for secrets that were not copied, and the secrets.
    hidden: BTreeMap<String, String>,
    /// The reference to the provider's key, which only counts in the user's own file.
    key: Option<String>,
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
    /// The provider's key. Written, unless the file is a project's.
    Key(String),
    /// Not written, and why.
    Left(String),
}

impl Draft {
    /// An empty one, for the user's own file or for a project's.
    pub(super) fn new(is_own: bool, folder: &Path, is_moved: bool) -> Self {
        Self {
            is_own,
            folder: folder.to_owned(),
            is_moved,
            ..Self::default()
        }
    }

    /// Whether relative paths start at the work folder.
    pub(super) fn is_in_work_folder(&self) -> bool {
        !self.is_moved
    }

    /// A path as it is written in the file. Relative ones start at the file's folder, which may
    /// be another one than before.
    pub(super) fn rooted(&self, given: &str) -> String {
        if !self.is_moved {
            return given.to_owned();
        }
        let is_relative = ["./", "../"].iter().any(|start| given.starts_with(start));
        let names_file = || !given.starts_with(['-', '/']) && self.has_file(given);
        if !is_relative && !names_file() {
            return given.to_owned();
        }
        let path = self.folder.join(given.trim_start_matches("./"));
        path.to_string_lossy().into_owned()
    }

    /// Whether a path that is written in the other program's file is that of a file.
    pub(super) fn has_file(&self, given: &str) -> bool {
        let found = self.folder.join(given).symlink_metadata();
        found.is_ok_and(|found| found.is_file())
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
            Some(usual) => self.same(what, &format!("haft uses {usual} without being told")),
            None => {
                self.note(what, Fate::Key(format!("api_key: {}", scalar(reference))));
                self.key = Some(reference.to_owned());
            }
        }
    }

    /// Puts a variable in the place of a provider's key that is written out.
    pub(super) fn hidden_api_key(&mut self, what: &str, provider: &str, name: &str, key: &str) {
        let reference = self.hide(what, name, key);
        if usual_key(provider).is_none_or(|usual| reference != format!("${{{usual}}}")) {
            self.key = Some(reference);
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

    /// The secret variables that keep something out of a project's file. What is switched off
    /// needs none.
    fn secrets_of(&self, reached: &Value) -> BTreeSet<String> {
        if self.is_own || reached.get("enabled") == Some(&Value::Bool(false)) {
            return BTreeSet::new();
        }
        let is_secret = |name: &String| self.hidden.contains_key(name) || config::is_secret(name);
        named(reached).into_iter().filter(is_secret).collect()
    }

    /// Whether something is kept out of a project's file.
    fn is_withheld(&self, reached: &Value) -> bool {
        !self.secrets_of(reached).is_empty()
    }

    /// The secret variables that keep what a note is about out of a project's file.
    fn withheld_of(&self, key: &str, noted: &Value) -> BTreeSet<String> {
        // A server may have been switched off since.
        let server = key.strip_prefix("tools.mcp.");
        let server = server.and_then(|name| self.servers.get(name));
        self.secrets_of(server.unwrap_or(noted))
    }

    /// Whether something has to be in the user's own file to work.
    pub(super) fn withholds(&self) -> bool {
        let mut all = self.servers.values().chain(&self.plugins);
        self.moves_service() || all.any(|reached| self.is_withheld(reached))
    }

    /// The MCP servers that have to be in the user's own file to work.
    pub(super) fn withheld_servers(&self) -> impl Iterator<Item = &str> {
        let withheld = |(_, server): &(&String, &Value)| self.is_withheld(server);
        let servers = self.servers.iter().filter(withheld);
        servers.map(|(name, _)| name.as_str())
    }

    /// What the user's own file needs in addition to a project's: of this draft, which is one
    /// of the user's own, the parts that the project's leaves out.
    pub(super) fn beside(&self, project: &Self) -> String {
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

    /// Whether the provider with its address and key goes into the user's own file. Without
    /// that key the project's address would get another one of the user's.
    fn moves_service(&self) -> bool {
        !self.is_own && self.key.is_some()
    }

    /// The settings that are written.
    fn kept_settings(&self) -> impl Iterator<Item = (&String, &Value)> {
        let is_kept = |name: &str| !(self.moves_service() && is_of_service(name));
        self.settings.iter().filter(move |(name, _)| is_kept(name))
    }

    /// The line with the provider's key.
    fn key_line(&self) -> String {
        let line = |key: &String| entry("", "api_key", &key.as_str().into());
        self.key.as_ref().map(line).unwrap_or_default()
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

    /// Puts the name of a variable in the place of a secret value. Another value gets another
    /// variable: the name with a number behind it.
    pub(super) fn hide(&mut self, what: &str, variable: &str, secret: &str) -> String {
        let mut name = variable.to_owned();
        let mut number = 2;
        while self.hidden.get(&name).is_some_and(|known| known != secret) {
            name = format!("{variable}_{number}");
            number += 1;
        }
        self.left(
            what,
            format!("secrets are not copied; set the variable {name}"),
        );
        self.hidden.insert(name.clone(), secret.to_owned());
        self.needs(&name)
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
        self.kept_settings().next().is_none()
            && self.tools.is_empty()
            && self.rules.is_empty()
            && (self.key.is_none() || !self.is_own)
            && reached.all(|reached| self.is_withheld(reached))
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
        for (name, value) in self.kept_settings() {
            text.push_str(&entry("", name, value));
        }
        if self.is_own {
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

    /// What is kept out of a project's file, as the notes call it.
    fn withheld(&self) -> Vec<&str> {
        let withheld = |note: &&Note| match &note.fate {
            Fate::Reached(key, reached) => !self.withheld_of(key, reached).is_empty(),
            _ => false,
        };
        let notes = self.notes.iter().filter(withheld);
        notes.map(|note| note.what.as_str()).collect()
    }

    /// The report: one line per setting, grouped by outcome. `own` is the draft of the user's
    /// own file, if something has to go there.
    pub(super) fn report(&self, own: Option<&Self>) -> String {
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
            of(&|note| match &note.fate {
                Fate::Carried(becomes) if !is_part(note) && !moves(becomes) => {
                    Some(format!("{} -> {becomes}", note.what))
                }
                Fate::Reached(becomes, reached)
                    if self.withheld_of(becomes, reached).is_empty() =>
                {
                    Some(format!("{} -> {becomes}", note.what))
                }
                Fate::Key(becomes) if self.is_own => Some(format!("{} -> {becomes}", note.what)),
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
        let mut for_own: Vec<String> = of(&|note| match &note.fate {
            Fate::Reached(becomes, reached) => {
                let names: Vec<String> = self.withheld_of(becomes, reached).into_iter().collect();
                (!names.is_empty()).then(|| format!("{}: it needs {}", note.what, names.join(", ")))
            }
            Fate::Key(becomes) if !self.is_own => Some(format!("{} -> {becomes}", note.what)),
            Fate::Carried(becomes) if moves(becomes) => Some(format!("{} -> {becomes}", note.what)),
            _ => None,
        });
        let parts = own.into_iter().flat_map(|own| &own.notes);
        let parts = parts.filter(|note| is_part(note));
        for_own.extend(parts.filter_map(|note| match &note.fate {
            Fate::Carried(becomes) => Some(format!("{} -> {becomes}", note.what)),
            _ => None,
        }));
        group(
            "for your own haft.yaml, because a project's never gets secret variables",
            for_own,
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

/// Whether a key says where a provider's key is sent.
fn is_of_service(key: &str) -> bool {
    ["provider", "base_url"].contains(&key)
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
