//! Lists the servers and what is known about each, without starting any.

use super::describe;
use crate::args::Shared;
use crate::args::mcp_servers::List;
use crate::exit::{Exit, Failure};
use crate::{output, session, text};
use haft::ops::text::decode::visible;
use haft_config::Settings;
use haft_config::external::servers::{self, Server};
use haft_mcp::client::RemoteServer;
use serde_json::{Value, json};

/// What is known about a server without connecting to it.
pub(crate) struct ServerStatus {
    pub(crate) name: String,
    how: String,
    from: String,
    pub(crate) state: &'static str,
    tools: Option<usize>,
    pub(crate) problem: Option<String>,
}

/// Runs `haft mcp list`.
pub(super) fn run(shared: &Shared, args: &List) -> Result<Exit, Failure> {
    let settings = session::settings(shared)?;
    let servers = statuses(&settings);
    if args.json {
        output::json(&servers.iter().map(ServerStatus::json).collect())?;
        return Ok(Exit::Done);
    }
    if servers.is_empty() {
        if !settings.quiet {
            output::note(
                "no MCP servers configured; add one to haft.yaml: `tools: { mcp: { NAME: { command: …, args: […] } } }`",
            );
        }
        return Ok(Exit::Done);
    }
    output::text(&as_table(&servers))?;
    Ok(Exit::Done)
}

/// Formats servers as a table.
pub(crate) fn as_table(servers: &[ServerStatus]) -> String {
    let rows: Vec<Vec<String>> = servers.iter().map(ServerStatus::row).collect();
    text::table(&rows, None)
}

/// Returns the status of every configured server.
pub(crate) fn statuses(settings: &Settings) -> Vec<ServerStatus> {
    let all = servers::all(settings);
    all.into_iter()
        .map(|server| ServerStatus::of(server, settings))
        .collect()
}

impl ServerStatus {
    fn of(server: Server, settings: &Settings) -> Self {
        let name = server.configured.name.clone();
        let how = describe(&server, settings);
        let from = server.configured.from.clone();
        let program = server.configured.connection.program();
        let missing =
            program.filter(|program| !servers::program_exists(program, crate::env::read()));
        let missing = missing.and_then(|_| server.configured.written_program(None));
        let missing = missing.map(|program| format!("program not found: {program}"));
        let waits = server.waits.is_some();
        let recalled = RemoteServer::new(server.remote)
            .ok()
            .and_then(|server| server.recall());
        let (state, problem) = match (&recalled, missing) {
            _ if waits => ("untrusted", Some("review it with `haft trust`".to_owned())),
            (_, Some(missing)) => ("missing", Some(missing)),
            (Some((_, changed)), None) if !changed.is_empty() => (
                "changed",
                Some(format!(
                    "{}: review it with `haft mcp test {}`",
                    changed.join(", "),
                    text::shell_word(&name)
                )),
            ),
            (Some(_), None) => ("known", None),
            (None, None) => ("new", None),
        };
        Self {
            tools: recalled.filter(|_| !waits).map(|(tools, _)| tools),
            name,
            how,
            from,
            state,
            problem,
        }
    }

    fn row(&self) -> Vec<String> {
        let tools = match self.tools {
            None => String::new(),
            Some(1) => "1 tool".to_owned(),
            Some(tools) => format!("{tools} tools"),
        };
        let last = match &self.problem {
            None => self.how.clone(),
            Some(problem) => format!("{} ({problem})", self.how),
        };
        let cells = [self.name.clone(), self.state.to_owned(), tools, last];
        cells
            .map(|cell| text::on_one_line(&visible(&cell)))
            .to_vec()
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "name": self.name, "how": self.how, "from": self.from, "state": self.state,
            "tools": self.tools, "problem": self.problem,
        })
    }
}
