//! `haft mcp install`: adds haft to the MCP servers of another agent, in that agent's own
//! settings.

use crate::args::mcp_servers::Install;
use crate::exit::{Exit, Failure};
use crate::{env, output};
use haft_config::edit_file;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Name of haft among the servers.
const NAME: &str = "haft";

/// Arguments with which an agent starts haft.
const ARGUMENTS: [&str; 3] = ["mcp", "--preset", "all"];

/// An agent and its settings.
struct Client {
    name: &'static str,
    /// Its settings, below the home folder.
    file: &'static str,
    form: Form,
}

/// Form in which an agent writes a server down.
#[derive(Clone, Copy)]
enum Form {
    /// JSON with the servers in this object; some agents want further keys.
    Json {
        servers: &'static str,
        more: &'static [(&'static str, &'static str)],
    },
    /// JSON in which `command` is a list.
    List,
    Toml,
}

const PLAIN: Form = Form::Json {
    servers: "mcpServers",
    more: &[],
};

const CLIENTS: [Client; 9] = [
    Client {
        name: "claude",
        file: ".claude.json",
        form: Form::Json {
            servers: "mcpServers",
            more: &[("type", "stdio")],
        },
    },
    Client {
        name: "codex",
        file: ".codex/config.toml",
        form: Form::Toml,
    },
    Client {
        name: "gemini",
        file: ".gemini/settings.json",
        form: PLAIN,
    },
    Client {
        name: "qwen",
        file: ".qwen/settings.json",
        form: PLAIN,
    },
    Client {
        name: "opencode",
        file: ".config/opencode/opencode.json",
        form: Form::List,
    },
    Client {
        name: "cursor",
        file: ".cursor/mcp.json",
        form: PLAIN,
    },
    Client {
        name: "vscode",
        file: ".config/Code/User/mcp.json",
        form: Form::Json {
            servers: "servers",
            more: &[("type", "stdio")],
        },
    },
    Client {
        name: "cline",
        file: ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        form: PLAIN,
    },
    Client {
        name: "zed",
        file: ".config/zed/settings.json",
        form: Form::Json {
            servers: "context_servers",
            more: &[],
        },
    },
];

/// Returns the names of the agents.
pub(crate) fn names() -> [&'static str; CLIENTS.len()] {
    CLIENTS.map(|client| client.name)
}

/// Runs the command.
pub(super) fn run(args: &Install) -> Result<Exit, Failure> {
    let client = CLIENTS.iter().find(|client| client.name == args.program);
    let client = client.ok_or_else(|| Failure::usage(format!("unknown agent {}", args.program)))?;
    let folders = env::read().folders();
    let home = folders
        .home
        .ok_or_else(|| Failure::failed("HOME is not set"))?;
    let file = home.join(client.file);
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

/// Result of adding haft to a text.
enum Added {
    To(String),
    /// It was there.
    BeforeThis,
    /// A server with the name is there, but it is not this haft.
    Another,
    Unreadable,
}

fn in_json(old: &str, form: Form, program: &str) -> Added {
    let text = if old.trim().is_empty() { "{}" } else { old };
    let Ok(mut settings) = serde_json::from_str::<Map<String, Value>>(text) else {
        return Added::Unreadable;
    };
    let (section, entry) = entry(form, program);
    let servers = settings.entry(section).or_insert_with(|| json!({}));
    let Some(servers) = servers.as_object_mut() else {
        return Added::Unreadable;
    };
    match servers.get(NAME) {
        Some(known) if *known == entry => return Added::BeforeThis,
        Some(_) => return Added::Another,
        None => {}
    }
    servers.insert(NAME.to_owned(), entry);
    match serde_json::to_string_pretty(&settings) {
        Ok(text) => Added::To(text + "\n"),
        Err(_) => Added::Unreadable,
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
