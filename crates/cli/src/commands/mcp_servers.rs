//! `haft mcp list`, `test`, `add`, `import` and `remove`: the MCP servers whose tools haft uses.
//! `haft mcp install`: haft as a server of another agent.

mod clients;
mod edit;
mod import;
mod install;
pub(crate) mod list;
mod sign_in;
mod test;

pub(crate) use clients::names as client_names;
pub(crate) use list::{ServerStatus, statuses};

use crate::args::Shared;
use crate::args::mcp_servers::Servers;
use crate::exit::{Exit, Failure};
use crate::text::shell_word;
use haft_config::Settings;
use haft_config::external::servers::Server;
use haft_config::mcp::Connection;
use haft_config::redact;
use serde_json::Value;

/// Runs the command.
pub(crate) fn run(shared: &Shared, command: &Servers) -> Result<Exit, Failure> {
    match command {
        Servers::List(args) => list::run(shared, args),
        Servers::Test(args) => test::run(shared, args),
        Servers::Add(args) => edit::add(shared, args),
        Servers::Import(args) => import::run(shared, args),
        Servers::Remove(args) => edit::remove(shared, args),
        Servers::Install(args) => install::run(args),
    }
}

/// Describes how a server is reached, without secrets.
fn describe(server: &Server, settings: &Settings) -> String {
    let written = &server.configured.written;
    match &server.configured.connection {
        Connection::Program { .. } => {
            let program = server
                .configured
                .written_program(Some(&settings.paths.started));
            let program = program.unwrap_or_default();
            let none = Vec::new();
            let mut words = vec![shell_word(&program)];
            let mut before = String::new();
            let given = match &written["command"] {
                Value::Array(all) => all.iter().skip(1).collect(),
                _ => Vec::new(),
            };
            for word in given
                .into_iter()
                .chain(written["args"].as_array().unwrap_or(&none))
            {
                let word = match word {
                    Value::String(word) => word.clone(),
                    other => other.to_string(),
                };
                words.push(shell_word(&redacted(&before, &word)));
                before = word;
            }
            words.join(" ")
        }
        Connection::Address { url, .. } => {
            let key = ["url", "uri"]
                .into_iter()
                .find_map(|key| written[key].as_str());
            redact::text("url", key.unwrap_or(url))
        }
    }
}

/// Hides an argument if its flag says that it is a secret.
fn redacted(flag: &str, word: &str) -> String {
    match word.split_once('=') {
        Some((name, value)) if word.starts_with('-') => {
            format!("{name}={}", redact::text(name, value))
        }
        _ if flag.starts_with('-') && !flag.contains('=') => redact::text(flag, word),
        _ => redact::text("", word),
    }
}
