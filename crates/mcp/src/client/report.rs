//! A server looked at by a person who wants to know whether it works.

use super::connect::{Opening, Refused};
use super::host::RemoteServer;
use super::listed::{self, Listed, Seen};
use haft::{Definition, Error, Programs, free_name};
use std::time::{Duration, Instant};

/// What was found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// What the server calls itself, and its version.
    pub server: Option<(String, String)>,
    /// The version of the protocol that both speak.
    pub protocol: String,
    /// Its tools, by its own names: what they are called here, and what they are for.
    pub tools: Vec<(String, haft::Definition)>,
    /// What is wrong with others.
    pub problems: Vec<String>,
    /// Tools that are not what they were: what they were, and what they are.
    pub changed: Vec<(String, Seen, Seen)>,
    /// How long it took until it answered.
    pub started: Duration,
    /// How long its list took.
    pub listed: Duration,
}

/// What kept a server from being looked at.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unreached {
    /// The person has to sign in first.
    #[error("wants you to sign in")]
    SignIn {
        /// What the server said about that.
        challenge: Option<String>,
    },
    /// Anything else, in words.
    #[error("{0}")]
    Failed(String),
}

/// The tools under the names that they have in a session: no two share one.
fn named(tools: Vec<Listed>) -> Vec<(String, Definition)> {
    let mut taken: Vec<String> = Vec::new();
    let mut named = Vec::new();
    for Listed {
        own,
        mut definition,
        ..
    } in tools
    {
        definition.name = free_name(&definition.name, |name| taken.contains(name));
        taken.push(definition.name.clone());
        named.push((own, definition));
    }
    named
}

impl RemoteServer {
    /// Reaches the server and says what is found, whatever is remembered of it.
    ///
    /// # Errors
    /// When it cannot be reached, or has no list.
    pub async fn report(
        &self,
        programs: Option<&Programs>,
        patience: Duration,
    ) -> Result<Report, Unreached> {
        self.run_with(programs);
        let failed = |error: Error| Unreached::Failed(error.to_string());
        let recheck = self.may_run().map_err(failed)?;
        if let Some(challenge) = self.sign_in.as_ref().and_then(|sign_in| sign_in.wanted()) {
            return Err(Unreached::SignIn {
                challenge: Some(challenge),
            });
        }
        let begun = Instant::now();
        let connection = match self.way(Opening::Unknown).go(patience).await {
            Ok(connection) => connection,
            Err(Refused::SignIn(challenge)) => return Err(Unreached::SignIn { challenge }),
            Err(Refused::Failed(words)) => return Err(failed(self.failed(words))),
        };
        let started = begun.elapsed();
        let raw = match tokio::time::timeout(patience, connection.list()).await {
            Ok(Ok(raw)) => raw,
            Ok(Err(_)) if connection.is_over() => {
                return Err(failed(self.failed(connection.broke().await)));
            }
            Ok(Err(words)) => return Err(failed(self.failed(words))),
            Err(_) => return Err(failed(self.failed("did not list its tools in time"))),
        };
        let listed = begun.elapsed().saturating_sub(started);
        self.look_again(recheck, &connection)
            .await
            .map_err(failed)?;
        self.remember(&connection, &raw);
        let info = connection.info();
        let protocol = info.as_ref().map(|info| info.protocol_version.to_string());
        let server = info.and_then(|info| {
            let server = info.server_info.as_ref()?;
            Some((server.name.clone(), server.version.clone()))
        });
        let whole = listed::take(&self.remote, &raw);
        let held = self.held(whole.clone());
        connection.end().await;
        Ok(Report {
            server,
            protocol: protocol.unwrap_or_default(),
            tools: named(whole.tools),
            problems: held.problems,
            changed: held.changed,
            started,
            listed,
        })
    }

    /// What is remembered of it: how many tools it has, and the names of those that are
    /// not what they were.
    #[must_use]
    pub fn recall(&self) -> Option<(usize, Vec<String>)> {
        let (_, raw) = self.remembered()?;
        let taken = self.held(listed::take(&self.remote, &raw));
        let changed = taken.changed.iter().map(|(name, ..)| listed::shown(name));
        Some((taken.tools.len(), changed.collect()))
    }

    /// From now on the tools that were found are those that are offered.
    pub fn accept(&self, report: &Report) {
        if let Some(pins) = &self.remote.pins {
            let mut known = pins.load().unwrap_or_default();
            known.extend(report.tools.iter().map(|(own, definition)| {
                let seen = Seen {
                    description: definition.description.clone(),
                    parameters: definition.parameters.clone(),
                };
                (own.clone(), seen)
            }));
            pins.store(&known);
        }
    }
}
