//! Converts the settings of other agents to a `haft.yaml`.
//!
//! 1. [`parse`] reads TOML and JSON; the caller parses YAML with the parser for `haft.yaml`;
//! 2. [`Source::detect`] finds out which program the settings belong to;
//! 3. [`convert`] creates the text of the new file, and a report about each setting.
//!
//! Nothing here opens files, prints or reads the environment: what a conversion asks about
//! the machine goes through [`Host`].

mod agent_yaml;
mod claude;
mod codex;
mod draft;
mod gemini;
mod jsonc;
mod opencode;
mod origin;
mod references;
mod rules;
mod secrets;
mod servers;
mod yaml;

pub use origin::{Source, SyntaxError, parse};

use draft::Draft;
use origin::Origin;
use serde_json::Value;
use servers::Dialect;
use std::path::Path;

/// Answers questions about this machine and about haft's own configuration.
pub trait Host {
    /// Whether a path is an existing file. A symbolic link is not.
    fn is_file(&self, path: &Path) -> bool;

    /// Whether a variable may hold a secret, so that a project's file never gets it.
    fn is_secret(&self, variable: &str) -> bool;

    /// Names of the variables that haft expands in a text of its configuration.
    fn variables(&self, text: &str) -> Vec<String>;

    /// Whether haft can connect to an MCP server at this address.
    fn is_server_url(&self, url: &str) -> bool;

    /// Variable that haft reads the key of a provider from by default.
    fn key_variable(&self, provider: &str) -> Option<&'static str>;
}

/// The file to create.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// Whether it is the user's own configuration. A project's file cannot loosen anything
    /// and never gets secret variables.
    pub is_own: bool,
    /// The work folder, where relative paths of the other program start.
    pub folder: &'a Path,
    /// Whether the new file is in another folder, so that relative paths must be changed.
    pub is_elsewhere: bool,
    /// The user's home folder, for patterns that start with `~`.
    pub home: Option<&'a Path>,
}

/// Converts settings for a file.
pub fn convert<'a>(source: &Source, target: Target<'a>, host: &'a dyn Host) -> Conversion<'a> {
    let file = draft(source, target, host);
    let own_target = Target {
        is_own: true,
        is_elsewhere: true,
        ..target
    };
    let own = file.withholds().then(|| draft(source, own_target, host));
    Conversion { file, own }
}

/// Converts only the MCP servers, for the user's own file.
pub fn convert_servers<'a>(
    source: &Source,
    target: Target<'a>,
    host: &'a dyn Host,
) -> Conversion<'a> {
    let is_servers = |key: &str| match key {
        "mcpServers" | "servers" | "mcp_servers" | "projects" => true,
        "mcp" => source.origin == Origin::Opencode,
        _ => false,
    };
    let settings = source.settings.iter();
    let settings = settings.filter(|(key, _)| is_servers(key));
    let source = Source {
        origin: source.origin,
        settings: settings
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    };
    let target = Target {
        is_own: true,
        is_elsewhere: true,
        ..target
    };
    convert(&source, target, host)
}

/// Formats a key and its value as YAML, on one line.
#[must_use]
pub fn entry_line(name: &str, value: &Value) -> String {
    format!("{}: {}", yaml::scalar(name), yaml::flow(value))
}

/// Result of [`convert`]: the text of the file, and what does not belong in it.
pub struct Conversion<'a> {
    file: Draft<'a>,
    /// The same settings for the user's own file, if something must go there.
    own: Option<Draft<'a>>,
}

impl Conversion<'_> {
    /// Whether the file would contain nothing.
    pub fn is_empty(&self) -> bool {
        self.file.is_empty()
    }

    /// Returns the text of the file. Its first line names the file it was converted from.
    pub fn text(&self, from: &str) -> String {
        self.file.text(from)
    }

    /// Returns the report: one line per setting, grouped by outcome.
    pub fn report(&self) -> String {
        self.file.report(self.own.as_ref())
    }

    /// Returns the lines that the user's own file needs in addition, because a project's
    /// file never gets secret variables; `None` if nothing is withheld.
    pub fn own_lines(&self) -> Option<String> {
        let own = self.own.as_ref()?;
        Some(own.lines_withheld_from(&self.file))
    }

    /// Returns the names of the MCP servers in [`Self::own_lines`].
    pub fn own_servers(&self) -> impl Iterator<Item = &str> {
        self.file.withheld_servers()
    }

    /// Returns the MCP servers, with their names.
    pub fn servers(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.file.servers()
    }

    /// Returns the variables that must be set, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.file.variables()
    }
}

fn draft<'a>(source: &Source, target: Target<'a>, host: &'a dyn Host) -> Draft<'a> {
    let mut draft = Draft::new(target, host);
    let given = &source.settings;
    match source.origin {
        Origin::AgentYaml => agent_yaml::settings(&mut draft, given),
        Origin::ClaudeSettings => claude::settings(&mut draft, given, target.home),
        Origin::ClaudeState => claude::state(&mut draft, given, target.folder),
        Origin::Codex => codex::settings(&mut draft, given),
        Origin::Gemini => gemini::settings(&mut draft, given),
        Origin::Opencode => opencode::settings(&mut draft, given, target.home),
        Origin::Servers => {
            for (key, value) in given {
                match key.as_str() {
                    "mcpServers" | "servers" => {
                        servers::add_all(&mut draft, key, value, Dialect::Claude);
                    }
                    "$schema" => {}
                    "inputs" => draft.skip(key, "haft does not ask for values; set variables"),
                    _ => draft.skip(key, "not a server"),
                }
            }
        }
    }
    draft
}

/// Returns the text of each value; other types than text as JSON.
fn texts(items: &[Value]) -> Vec<String> {
    let text = |item: &Value| match item {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    items.iter().map(text).collect()
}
