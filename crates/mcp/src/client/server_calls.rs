//! Calls of a server's tools.

use super::call::{Call, Outcome};
use super::connect::{self, ConnectError};
use super::connection::Connection;
use super::content;
use super::server::{RemoteServer, lock};
use super::tool_list::{self, ListedTool};
use haft::{Context, Error, Reply};
use rmcp::model::{ClientRequest, PingRequest};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Time that a server has to answer a ping after it did not answer a call.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

impl RemoteServer {
    /// Calls one of the server's tools.
    pub(super) async fn call(
        &self,
        tool: &ListedTool,
        arguments: Value,
        cx: &Context,
    ) -> Result<Reply, Error> {
        let connection = tokio::select! {
            connection = cx.off_the_clock(self.connection()) => connection?,
            () = cx.cancel().cancelled() => return Err(Error::Cancelled),
        };
        // The tool may have changed since it was offered.
        let cached = lock(&self.cached).clone();
        let now =
            cached.and_then(|cached| cached.list.tools.iter().find(|one| *one == tool).cloned());
        let Some(now) = now else {
            return Err(self.failed(format!(
                "has changed or removed its tool {}, so it was not called; `haft mcp test {}` shows the change",
                tool_list::shown(&tool.own_name),
                self.remote.name
            )));
        };
        let programs = self.programs.get().and_then(Option::as_ref);
        let program = connect::program_name(&self.remote.name);
        let _attributed = programs.and_then(|programs| programs.attributed(&program, cx));
        let call = Call {
            server: &self.remote.name,
            tool: &tool.own_name,
            arguments: match arguments {
                Value::Object(fields) => fields,
                _ => serde_json::Map::new(),
            },
            timeout: self.remote.timeout,
            cx,
        };
        let outcome = tokio::select! {
            biased;
            outcome = call.make(&connection) => outcome,
            () = cx.time_is_up() => Outcome::OverLimit,
        };
        match outcome {
            Outcome::Answered(result) => {
                let mut state = self.state.lock().await;
                state.crashes = 0;
                state.crashed = None;
                drop(state);
                match content::schema_violation(&result, now.output.as_deref()) {
                    None => Ok(content::reply(&result)),
                    Some(reason) => Err(self.failed(format!(
                        "returned a result of {} that does not match its output schema: {reason}",
                        tool_list::shown(&tool.own_name)
                    ))),
                }
            }
            Outcome::Refused(text) => Err(self.failed(format!("refused the call: {text}"))),
            Outcome::SignIn(challenge) => {
                if let Some(sign_in) = &self.sign_in {
                    sign_in.store_challenge(&challenge);
                }
                Err(self.connect_error(ConnectError::SignIn(Some(challenge))))
            }
            Outcome::NotSent(text) => {
                self.drop_connection(&connection).await;
                Err(self.failed(format!(
                    "is not reachable: {text}; the next call reconnects"
                )))
            }
            Outcome::ConnectionLost => Err(self.connection_lost(&connection).await),
            Outcome::TimedOut => {
                self.check_alive(&connection);
                Err(self.timeout_error(cx.limit()))
            }
            Outcome::OverLimit => {
                self.check_alive(&connection);
                Err(Error::session_limit(cx.limit().unwrap_or_default()))
            }
            Outcome::Cancelled => {
                self.check_alive(&connection);
                Err(Error::Cancelled)
            }
        }
    }

    /// Returns the error for a call without a sign of life, considering the session's own
    /// time limit.
    fn timeout_error(&self, session: Option<Duration>) -> Error {
        let after = self.remote.timeout;
        match session.filter(|limit| *limit <= after) {
            Some(limit) => Error::session_limit(limit),
            None => Error::Failed {
                text: Error::TimedOut { after }.to_string(),
                hint: Some(format!(
                    "to allow more time without a reply or progress, set `timeout` (in seconds) in the entry of the MCP server {}",
                    self.remote.name
                )),
            },
        }
    }

    /// Drops a connection; the next call reconnects.
    async fn drop_connection(&self, connection: &Arc<Connection>) {
        let mut state = self.state.lock().await;
        if state.is_current(connection) {
            state.connection = None;
            state.record_crash();
        }
        drop(state);
        connection.end().await;
    }

    /// Returns the error for a connection that was lost during a call.
    async fn connection_lost(&self, connection: &Arc<Connection>) -> Error {
        let how = connection.describe_loss().await;
        let mut state = self.state.lock().await;
        // Several calls may lose the same connection; only the first counts it as a crash.
        if state.is_current(connection) {
            state.connection = None;
            state.record_crash();
        }
        drop(state);
        self.failed(how)
    }

    /// Pings a server that did not answer a call. If it does not respond, ends it, and the
    /// next call starts a new one.
    fn check_alive(&self, connection: &Arc<Connection>) {
        let (Some(server), connection) = (self.weak.upgrade(), Arc::clone(connection)) else {
            return;
        };
        tokio::spawn(async move {
            let ping = ClientRequest::PingRequest(PingRequest::default());
            let answer =
                tokio::time::timeout(PING_TIMEOUT, connection.peer.send_request(ping)).await;
            if answer.is_ok() && !connection.has_ended() {
                return;
            }
            let mut state = server.state.lock().await;
            if state.is_current(&connection) {
                state.connection = None;
            }
            drop(state);
            connection.end().await;
        });
    }
}
