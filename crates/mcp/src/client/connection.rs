//! An established connection to a server.

use super::connect::{ConversationStart, innermost_message};
use super::dispatcher::{Dispatcher, StreamEnd};
use super::handler::Handler;
use super::tool_list::{MAX_BYTES, MAX_TOOLS};
use haft::ops::executor::{Exit, Running, Stream};
use rmcp::model::{
    ClientCapabilities, ClientRequest, ListToolsRequest, PaginatedRequestParams, ProtocolVersion,
    RequestMetaObject, ServerPeerInfo, ServerResult, SubscriptionFilter,
};
use rmcp::service::{Peer, RoleClient, RunningService, ServiceError};
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;

/// Time between asking a program to end and killing it.
const GRACE: Duration = Duration::from_millis(300);

/// Time that a program has to exit after it closed its output.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// Maximum number of bytes of a program's log that an error quotes.
const MAX_LOG: usize = 2_000;

/// Time that a server has for the answer to `discover` after it has listed its tools, which
/// it was asked for at the same time.
const DISCOVER_TIMEOUT: Duration = Duration::from_millis(20);

/// Maximum number of pages of a tool list.
const MAX_PAGES: usize = 200;

/// A connection to a server. Dropping it ends the conversation, and the program with all
/// its children.
pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) dispatcher: Arc<Dispatcher>,
    _service: RunningService<RoleClient, Handler>,
    running: Option<Running>,
    stream_end: Arc<OnceLock<StreamEnd>>,
    /// When the handshake was complete.
    pub(super) started: Instant,
    _subscription: Option<Subscription>,
}

impl Connection {
    pub(super) fn new(
        dispatcher: Arc<Dispatcher>,
        service: RunningService<RoleClient, Handler>,
        running: Option<Running>,
        stream_end: Arc<OnceLock<StreamEnd>>,
    ) -> Self {
        let peer = service.peer().clone();
        let subscription = Subscription::begin(&peer, &service.service().changed);
        Self {
            peer,
            dispatcher,
            _service: service,
            running,
            stream_end,
            started: Instant::now(),
            _subscription: subscription,
        }
    }

    /// Whether the connection has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.stream_end.get().is_some() || self.peer.is_transport_closed()
    }

    /// Returns the server's description of itself.
    pub(super) fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// Returns how the conversation was started.
    pub(super) fn start_mode(&self) -> ConversationStart {
        match self.info() {
            Some(info) if info.protocol_version.has_initialize() => ConversationStart::Handshake,
            Some(_) => ConversationStart::Stateless,
            None => ConversationStart::Unknown,
        }
    }

    /// Kills the program, and describes how the connection was lost.
    pub(super) async fn describe_loss(&self) -> String {
        let Some(running) = &self.running else {
            return "closed the connection".to_owned();
        };
        let stream_end = self.stream_end.get().copied().unwrap_or(StreamEnd::Ended);
        let (status, last) = exit_and_log(running, Some(stream_end)).await;
        let how = match (stream_end, status) {
            (StreamEnd::Garbage, _) => {
                "was stopped: it wrote more than 16 MB or 10,000 lines that are not a valid message"
                    .to_owned()
            }
            (StreamEnd::Ended, Some(exit)) => format!("exited ({})", describe_exit(exit)),
            (StreamEnd::Ended, None) => "closed its output".to_owned(),
        };
        format!("{how}{last}")
    }

    /// Kills the program and all its children.
    pub(super) async fn end(&self) {
        if let Some(running) = &self.running {
            running.kill(GRACE).await;
        }
    }

    /// Lists the tools, and if `is_asked`, finds out how the server is best started the next
    /// time: a server that has `initialize` may offer the newer way too. Only a server of the
    /// last version with `initialize` is asked, because older ones may end at an unknown
    /// request.
    pub(super) async fn explore(
        &self,
        is_asked: bool,
    ) -> Result<(Vec<Value>, ConversationStart), String> {
        let is_last = is_asked
            && self.info().is_some_and(|info| {
                info.protocol_version == ProtocolVersion::LATEST_WITH_INITIALIZE
            });
        let offers = is_last.then(|| {
            let peer = self.peer.clone();
            tokio::spawn(async move {
                let info = rmcp::model::Implementation::new("haft", env!("CARGO_PKG_VERSION"));
                let meta = RequestMetaObject::with_client_context(
                    ProtocolVersion::LATEST,
                    info,
                    ClientCapabilities::default(),
                );
                let found = peer.discover(meta).await;
                found.is_ok_and(|found| found.supported_versions.contains(&ProtocolVersion::LATEST))
            })
        });
        let tools = self.list().await?;
        let offers = match offers {
            Some(offers) => tokio::time::timeout(DISCOVER_TIMEOUT, offers).await,
            None => return Ok((tools, self.start_mode())),
        };
        Ok((
            tools,
            match offers {
                Ok(Ok(true)) => ConversationStart::Stateless,
                _ => self.start_mode(),
            },
        ))
    }

    /// Lists the tools, up to the limit.
    pub(super) async fn list(&self) -> Result<Vec<Value>, String> {
        let mut all = Vec::new();
        let mut bytes = 0;
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
            let result = match self.peer.send_request(request).await {
                Ok(ServerResult::ListToolsResult(list)) => serde_json::to_value(list),
                // rmcp cannot parse the list if one tool is invalid; the others are still
                // usable.
                Ok(ServerResult::CustomResult(result)) => Ok(result.0),
                Ok(_) => return Err("did not return a valid list of tools".to_owned()),
                Err(error) => {
                    return Err(format!("cannot list its tools: {}", describe_error(&error)));
                }
            };
            let result = result.unwrap_or_default();
            let Some(tools) = result["tools"].as_array() else {
                return Err("did not return a valid list of tools".to_owned());
            };
            for tool in tools {
                bytes += tool.to_string().len();
                all.push(tool.clone());
            }
            let next = result["nextCursor"].as_str().map(str::to_owned);
            // One tool beyond the limit, so that the excess is reported.
            if all.len() > MAX_TOOLS || bytes > MAX_BYTES || next.is_none() {
                break;
            }
            cursor = next;
        }
        Ok(all)
    }
}

/// Describes why a request failed.
pub(super) fn describe_error(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => {
            let text = haft::ops::text::decode::visible(&error.message);
            text.chars().take(2_000).collect()
        }
        // The transport's context is a detail of rmcp.
        ServiceError::TransportSend(sent) => innermost_message(sent.error.as_ref()),
        error => innermost_message(error),
    }
}

/// Subscribes to changes, in protocol versions that require it.
struct Subscription(tokio::task::JoinHandle<()>);

impl Subscription {
    fn begin(peer: &Peer<RoleClient>, changed: &Arc<dyn Fn() + Send + Sync>) -> Option<Self> {
        let info = peer.peer_info()?;
        let has_notifications = info
            .capabilities
            .tools
            .as_ref()
            .is_some_and(|tools| tools.list_changed == Some(true));
        if info.protocol_version.has_initialize() || !has_notifications {
            return None;
        }
        let (peer, changed) = (peer.clone(), Arc::clone(changed));
        Some(Self(tokio::spawn(async move {
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            let Ok(mut news) = peer.listen(filter).await else {
                return;
            };
            while let Ok(Some(_)) = news.next().await {
                changed();
            }
        })))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(super) fn describe_exit(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        _ => "unknown status".to_owned(),
    }
}

/// Returns how a program exited, if it exited on its own, and the end of its log. Kills it
/// and all its children in any case.
pub(super) async fn exit_and_log(
    running: &Running,
    stream_end: Option<StreamEnd>,
) -> (Option<Exit>, String) {
    let mut status = None;
    if stream_end == Some(StreamEnd::Ended) {
        let mut end = running.end();
        let ended = tokio::time::timeout(EXIT_TIMEOUT, end.wait_for(Option::is_some)).await;
        if let Ok(Ok(ended)) = ended {
            let ended = ended
                .as_ref()
                .and_then(|ended| ended.as_ref().as_ref().ok());
            status = ended.map(|finished| finished.status);
        }
    }
    running.kill(GRACE).await;
    let log = running.log(Stream::Error);
    let message = log
        .and_then(|log| log.tail(MAX_LOG).ok())
        .unwrap_or_default();
    let message = String::from_utf8_lossy(&message).into_owned();
    let plain = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let message: String = message.chars().filter(plain).collect();
    let message = message.trim();
    let told = if message.is_empty() {
        String::new()
    } else {
        format!("; the end of its stderr:\n{message}")
    };
    (status, told)
}
