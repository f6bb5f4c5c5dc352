//! Checks a server for `haft mcp test`.

use super::connect::ConnectError;
use super::server::RemoteServer;
use super::tool_list::{self, ListedTool, SeenTool};
use haft::{Definition, Error, Programs, free_name};
use std::time::Duration;
use tokio::time::Instant;

/// Result of checking a server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// The server's own name and version.
    pub server: Option<(String, String)>,
    /// The negotiated protocol version.
    pub protocol: String,
    /// Tools by the server's own names, with their definitions in a session.
    pub tools: Vec<(String, haft::Definition)>,
    /// Problems with other tools.
    pub problems: Vec<String>,
    /// Tools that have changed: name, definition when first seen, definition now.
    pub changed: Vec<(String, SeenTool, SeenTool)>,
    /// Time until the handshake was complete.
    pub started: Duration,
    /// Time that listing the tools took.
    pub listed: Duration,
}

/// Reason why a server could not be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The user has to sign in first.
    #[error("wants you to sign in")]
    SignIn {
        /// The server's challenge.
        challenge: Option<String>,
    },
    /// Any other reason.
    #[error("{0}")]
    Failed(String),
}

/// Gives the tools the names that they have in a session, where names are unique.
fn unique_names(tools: Vec<ListedTool>) -> Vec<(String, Definition)> {
    let mut names_in_use: Vec<String> = Vec::new();
    let mut named = Vec::new();
    for ListedTool {
        own_name,
        mut definition,
        ..
    } in tools
    {
        definition.name = free_name(&definition.name, |name| names_in_use.contains(name));
        names_in_use.push(definition.name.clone());
        named.push((own_name, definition));
    }
    named
}

impl RemoteServer {
    /// Connects to the server and checks it, ignoring the stored tools. Without a time limit,
    /// that of a session applies.
    ///
    /// # Errors
    /// When the server cannot be reached, or does not list its tools.
    pub async fn report(
        &self,
        programs: Option<&Programs>,
        timeout: Option<Duration>,
    ) -> Result<Report, ReportError> {
        self.run_with(programs);
        let failed = |error: Error| ReportError::Failed(error.to_string());
        let recheck = self.may_run().map_err(failed)?;
        if let Some(challenge) = self
            .sign_in
            .as_ref()
            .and_then(|sign_in| sign_in.stored_challenge())
        {
            return Err(ReportError::SignIn {
                challenge: Some(challenge),
            });
        }
        let start = Instant::now();
        let explored = self.explored(self.known_start(), timeout).await;
        let (connection, raw, next_start) = match explored {
            Ok(explored) => explored,
            Err(ConnectError::SignIn(challenge)) => return Err(ReportError::SignIn { challenge }),
            Err(ConnectError::Failed(text)) => return Err(failed(self.failed(text))),
        };
        let started = connection.started.saturating_duration_since(start);
        let listed = start.elapsed().saturating_sub(started);
        self.recheck(recheck, &connection).await.map_err(failed)?;
        self.store_known(next_start, &raw);
        let info = connection.info();
        let protocol = info.as_ref().map(|info| info.protocol_version.to_string());
        let server = info.and_then(|info| {
            let server = info.server_info.as_ref()?;
            Some((server.name.clone(), server.version.clone()))
        });
        let full = tool_list::parse(&self.remote, &raw);
        let checked = self.check_pins(full.clone());
        connection.end().await;
        Ok(Report {
            server,
            protocol: protocol.unwrap_or_default(),
            tools: unique_names(full.tools),
            problems: checked.problems,
            changed: checked.changed,
            started,
            listed,
        })
    }

    /// Returns the number of cached tools, and the names of tools that have changed since
    /// they were first seen.
    #[must_use]
    pub fn recall(&self) -> Option<(usize, Vec<String>)> {
        let raw = self.known_tools()?;
        let list = self.check_pins(tool_list::parse(&self.remote, &raw));
        let changed = list.changed.iter().map(|(name, ..)| tool_list::shown(name));
        Some((list.tools.len(), changed.collect()))
    }

    /// Accepts the tools of a report: their current definitions are offered from now on.
    pub fn accept(&self, report: &Report) {
        if let Some(pins) = &self.remote.pins {
            let mut known = pins.load().unwrap_or_default();
            known.extend(report.tools.iter().map(|(own_name, definition)| {
                let seen = SeenTool {
                    description: definition.description.clone(),
                    parameters: definition.parameters.clone(),
                };
                (own_name.clone(), seen)
            }));
            pins.store(&known);
        }
    }
}
