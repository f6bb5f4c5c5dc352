//! `haft mcp install`: adds haft to the MCP servers of another agent, in that agent's own
//! settings.

use super::clients::{self, Form};
use crate::args::mcp_servers::Install;
use crate::exit::{Exit, Failure};
use crate::{env, output};
use haft_config::edit_file;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Name of haft among the servers.
const NAME: &str = "haft";

/// Arguments with which an agent starts haft.
const ARGUMENTS: [&str; 3] = ["mcp", "--preset", "all"];

/// Runs the command.
pub(super) fn run(args: &Install) -> Result<Exit, Failure> {
    let client = clients::named(&args.program);
    let client = client.ok_or_else(|| Failure::usage(format!("unknown agent {}", args.program)))?;
    let folders = env::read().folders();
    let home = folders
        .home
        .ok_or_else(|| Failure::failed("HOME is not set"))?;
    let mut files = client.files.iter().map(|file| home.join(file));
    let file = files.clone().find(|file| file.is_file());
    let file = file.or_else(|| files.next()).unwrap_or(home);
    let program = program();
    let mut is_new = true;
    edit_file(&file, |old| {
        let new = match client.form {
            Form::Toml => in_toml(old, &program),
            Form::Json { .. } | Form::List => in_json(old, client.form, &program),
        };
        let shown = file.display();
        match new {
            Added::To(text) => Ok(Some(text)),
            Added::BeforeThis => {
                is_new = false;
                Ok(None)
            }
            Added::Another => Err(Failure::failed(format!(
                "{shown} has another server \"{NAME}\""
            ))
            .hint("remove it there, then try again")),
            Added::Unreadable => Err(Failure::failed(format!(
                "{shown} has comments or a form that haft cannot change safely"
            ))
            .hint(format!(
                "add this to it yourself:\n{}",
                pasted(client.form, &program)
            ))),
        }
    })?;
    let (shown, name) = (file.display(), client.name);
    output::text(&match is_new {
        true => format!("added haft to {shown}; restart {name} to use it"),
        false => format!("{shown} has haft already"),
    })?;
    Ok(Exit::Done)
}

/// Returns the command that starts this haft: its name if that leads here, or else its path.
fn program() -> String {
    let here = std::env::current_exe().unwrap_or_else(|_| PathBuf::from(NAME));
    let path = env::read().variable("PATH").unwrap_or_default();
    let first = std::env::split_paths(&path)
        .map(|folder| folder.join(NAME))
        .find(|program| program.is_file());
    let real = |path: &Path| haft::ops::scope::real(path);
    match first {
        Some(first) if real(&first) == real(&here) => NAME.to_owned(),
        _ => here.to_string_lossy().into_owned(),
    }
}

/// One step of indentation.
const STEP: &str = "  ";

/// Result of adding haft to a text.
enum Added {
    To(String),
    /// It was there.
    BeforeThis,
    /// A server with the name is there, but it is not this haft.
    Another,
    Unreadable,
}

/// An object of JSON in a text, with its values as they are written.
struct Object<'a> {
    text: &'a str,
    values: HashMap<String, &'a RawValue>,
}

impl<'a> Object<'a> {
    /// `None` if it is not one.
    fn new(text: &'a str) -> Option<Self> {
        let values = serde_json::from_str(text).ok()?;
        Some(Self { text, values })
    }

    /// Returns the text with one more entry at its end. `indent` is that of the object.
    fn with(&self, name: &str, value: &Value, indent: &str) -> Option<String> {
        let start = self.text.trim_end().strip_suffix('}')?.trim_end();
        let comma = if self.values.is_empty() { "" } else { "," };
        let value = serde_json::to_string_pretty(value).ok()?;
        let value = value.replace('\n', &format!("\n{indent}{STEP}"));
        Some(format!(
            "{start}{comma}\n{indent}{STEP}\"{name}\": {value}\n{indent}}}"
        ))
    }
}

/// Adds haft at the end of the servers, which leaves everything else as it is written.
fn in_json(old: &str, form: Form, program: &str) -> Added {
    let text = if old.trim().is_empty() { "{}" } else { old };
    let (section, entry) = entry(form, program);
    let Some(settings) = Object::new(text) else {
        return Added::Unreadable;
    };
    let Some(servers) = settings.values.get(section).map(|servers| servers.get()) else {
        let servers = json!({ NAME: entry });
        let new = settings.with(section, &servers, "");
        return new.map_or(Added::Unreadable, |new| Added::To(new + "\n"));
    };
    let Some(object) = Object::new(servers) else {
        return Added::Unreadable;
    };
    if let Some(known) = object.values.get(NAME) {
        let known: Value = serde_json::from_str(known.get()).unwrap_or_default();
        return match known["command"] == entry["command"] {
            true => Added::BeforeThis,
            false => Added::Another,
        };
    }
    // The servers are a part of the text, so this is where they start in it.
    let start = servers.as_ptr() as usize - text.as_ptr() as usize;
    let parts = text.get(..start).zip(text.get(start + servers.len()..));
    let new = object.with(NAME, &entry, STEP);
    match parts.zip(new) {
        Some(((before, after), new)) => Added::To(format!("{before}{new}{after}")),
        None => Added::Unreadable,
    }
}

/// Returns the key of the servers, and haft among them.
fn entry(form: Form, program: &str) -> (&'static str, Value) {
    match form {
        Form::Json { servers, more } => {
            let more = more.iter().map(|(key, value)| (*key, json!(value)));
            let start = [("command", json!(program)), ("args", json!(ARGUMENTS))];
            let all = more.chain(start);
            let all: Map<String, Value> = all.map(|(key, value)| (key.to_owned(), value)).collect();
            (servers, Value::Object(all))
        }
        Form::List | Form::Toml => {
            let command: Vec<&str> = std::iter::once(program).chain(ARGUMENTS).collect();
            let entry = json!({ "type": "local", "command": command, "enabled": true });
            ("mcp", entry)
        }
    }
}

/// Adds a table at the end, which leaves everything else as it is written.
fn in_toml(old: &str, program: &str) -> Added {
    let Ok(settings) = old.parse::<toml::Table>() else {
        return Added::Unreadable;
    };
    let known = settings.get("mcp_servers").and_then(|all| all.get(NAME));
    if let Some(known) = known {
        let is_same = known.get("command").and_then(toml::Value::as_str) == Some(program);
        return if is_same {
            Added::BeforeThis
        } else {
            Added::Another
        };
    }
    let gap = match old.is_empty() || old.ends_with("\n\n") {
        true => "",
        false if old.ends_with('\n') => "\n",
        false => "\n\n",
    };
    let new = format!("{old}{gap}{}\n", table(program));
    // The servers may be written in a way that cannot be continued.
    match new.parse::<toml::Table>() {
        Ok(_) => Added::To(new),
        Err(_) => Added::Unreadable,
    }
}

fn table(program: &str) -> String {
    // Strings of JSON, and lists of them, are also TOML.
    let (program, arguments) = (json!(program), json!(ARGUMENTS));
    format!("[mcp_servers.{NAME}]\ncommand = {program}\nargs = {arguments}")
}

/// Returns what the user would add.
fn pasted(form: Form, program: &str) -> String {
    if matches!(form, Form::Toml) {
        return table(program);
    }
    let (section, entry) = entry(form, program);
    format!("\"{section}\": {{ \"{NAME}\": {entry} }}")
}
