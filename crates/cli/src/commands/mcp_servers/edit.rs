//! `haft mcp add` and `haft mcp remove`: changes of the user's own file.

use crate::args::Shared;
use crate::args::mcp_servers::{Add, Remove};
use crate::exit::{Exit, Failure};
use crate::{env, output, session};
use haft::ops::text::spelling;
use haft_config::external::servers;
use haft_config::{NewServer, OwnServers};
use serde_json::{Map, Value};

/// Runs `haft mcp add`.
pub(super) fn add(shared: &Shared, args: &Add) -> Result<Exit, Failure> {
    let own = own(shared)?;
    own.add(&[new(&args.name, entry(args)?)])?;
    output::text(&format!(
        "added {} to {}\ncheck it with: haft mcp test {}",
        args.name,
        own.file().display(),
        args.name
    ))?;
    Ok(Exit::Done)
}

/// Runs `haft mcp remove`.
pub(super) fn remove(shared: &Shared, args: &Remove) -> Result<Exit, Failure> {
    let own = own(shared)?;
    let (name, file) = (&args.name, own.file().display());
    if own.remove(name)? {
        output::text(&format!("removed {name} from {file}"))?;
        return Ok(Exit::Done);
    }
    let settings = session::settings(shared)?;
    let all = servers::all(&settings);
    let found = all.iter().find(|server| server.configured.name == *name);
    if let Some(server) = found {
        return Err(Failure::failed(format!(
            "{name} is configured in {}, not in {file}",
            server.configured.from
        ))
        .hint("remove it there; a project's file belongs to the project"));
    }
    let near = spelling::hint(name, &own.names()?);
    Err(Failure::usage(format!(
        "{file} has no MCP server \"{name}\"{near}"
    )))
}

/// Returns the file that the user's servers are in.
pub(super) fn own(shared: &Shared) -> Result<OwnServers, Failure> {
    OwnServers::new(&shared.flags(), env::read()).ok_or_else(|| {
        Failure::failed("cannot find the config folder for your own haft.yaml")
            .hint("set HOME or XDG_CONFIG_HOME")
    })
}

/// Creates a server to add.
pub(super) fn new(name: &str, entry: Value) -> NewServer {
    NewServer {
        name: name.to_owned(),
        text: haft_import::entry_line(name, &entry),
        entry,
    }
}

fn entry(args: &Add) -> Result<Value, Failure> {
    let mut entry = Map::new();
    if let Some((program, arguments)) = args.command.split_first() {
        entry.insert("command".to_owned(), program.clone().into());
        if !arguments.is_empty() {
            entry.insert("args".to_owned(), arguments.to_vec().into());
        }
        let variables = pairs("--env", "NAME=VALUE", &args.env, '=')?;
        if !variables.is_empty() {
            entry.insert("env".to_owned(), variables.into());
        }
    }
    if let Some(url) = &args.url {
        entry.insert("url".to_owned(), url.clone().into());
        let headers = pairs("--header", "\"NAME: VALUE\"", &args.header, ':')?;
        if !headers.is_empty() {
            entry.insert("headers".to_owned(), headers.into());
        }
    }
    if let Some(transport) = &args.transport {
        entry.insert("type".to_owned(), transport.clone().into());
    }
    Ok(entry.into())
}

fn pairs(
    flag: &str,
    form: &str,
    given: &[String],
    separator: char,
) -> Result<Map<String, Value>, Failure> {
    let pair = |text: &String| {
        let (name, value) = text.split_once(separator)?;
        let (name, value) = match separator {
            ':' => (name.trim(), value.trim()),
            _ => (name, value),
        };
        (!name.is_empty()).then(|| (name.to_owned(), Value::from(value)))
    };
    // The text may be a secret, so it is not repeated.
    let wrong = || Failure::usage(format!("{flag} must be {form}"));
    given
        .iter()
        .map(|text| pair(text).ok_or_else(wrong))
        .collect()
}
