//! The requests that the server answers.

use crate::call_order::Admission;
use crate::elicit::PendingCalls;
use crate::link::Link;
use crate::server::{ServerName, ToolsChanged};
use crate::{call, elicit, wire};
use haft::Runtime;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ConstString, CustomRequest, CustomResult, ErrorCode,
    Implementation, InitializeRequestParams, InitializeResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, SubscriptionFilter,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServerHandler};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Time that a list of tools waits for servers and plugins that are still starting. Some
/// clients never ask again, and some wait only 10 seconds for everything together.
const LIST_WAIT: Duration = Duration::from_secs(5);

/// Time that a call of an unknown tool waits for them.
const CALL_WAIT: Duration = Duration::from_secs(60);

/// Number of characters of an unknown method's name that an error repeats.
const LONGEST_NAME: usize = 100;

/// Methods that rmcp reports as unknown when their parameters are invalid.
const KNOWN: &[&str] = &[
    "initialize",
    "ping",
    "server/discover",
    "subscriptions/listen",
    "tools/list",
];

/// Answers the requests of one connection.
pub(crate) struct Handler {
    runtime: Runtime,
    info: ServerConfig,
    /// Whether all tools are loaded.
    is_ready: watch::Receiver<bool>,
    changed: ToolsChanged,
    link: Arc<Link>,
    pending: Arc<PendingCalls>,
}

impl Handler {
    pub(crate) fn new(
        runtime: Runtime,
        name: &ServerName,
        is_ready: watch::Receiver<bool>,
        changed: ToolsChanged,
        link: Arc<Link>,
        pending: Arc<PendingCalls>,
    ) -> Self {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new(&name.name, &name.version);
        info.instructions = Some(instructions(&runtime));
        Self {
            runtime,
            info,
            is_ready,
            changed,
            link,
            pending,
        }
    }

    /// Waits until all tools are loaded, within a time limit.
    async fn ready(&self, limit: Duration) {
        let mut is_ready = self.is_ready.clone();
        let _ = tokio::time::timeout(limit, is_ready.wait_for(|is_ready| *is_ready)).await;
    }

    /// Subscribes to changes of the tools from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.watch()
    }
}

/// Says which folder is served, and how to use the tools.
fn instructions(runtime: &Runtime) -> String {
    let folder = runtime.work_dir();
    let folder = haft::ops::text::decode::visible(&folder.to_string_lossy()).replace('\n', "\\n");
    let guidance = runtime.guidance();
    format!("Work folder: {folder}\n\n{guidance}")
        .trim_end()
        .to_owned()
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        self.info.clone()
    }

    async fn initialize(
        &self,
        mut request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let result = self.negotiate_initialize(&request)?;
        // From now on the negotiated version counts, not the requested one.
        request.protocol_version = result.protocol_version.clone();
        self.link
            .set_batches(result.protocol_version == ProtocolVersion::V_2025_03_26);
        context.peer.set_peer_info(request);
        Ok(result)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.ready(LIST_WAIT).await;
        let asks = elicit::shows_forms(context.client_capabilities().as_ref());
        let tools = wire::tools(&self.runtime, asks);
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.runtime.tools().get(&request.name).is_none() {
            tokio::select! {
                () = self.ready(CALL_WAIT) => {}
                () = context.ct.cancelled() => {}
                () = self.link.cancel_calls.cancelled() => {}
            }
        }
        let environment = call::CallEnvironment {
            runtime: &self.runtime,
            link: &self.link,
            pending: &self.pending,
        };
        call::run(environment, request, context).await
    }

    fn accepted_subscription_filter(
        &self,
        _requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        // A subscription lasts as long as the client likes. It must not use up room that
        // calls need, and a shutdown does not wait for it.
        let carried = &context.request_context().extensions;
        drop(carried.get::<Admission>().and_then(Admission::take));
        let mut changes = carried
            .get::<watch::Receiver<()>>()
            .cloned()
            .unwrap_or_else(|| self.changes());
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.link.closing.cancelled() => return Ok(()),
                changed = changes.changed() => {
                    if changed.is_err() || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        Err(if KNOWN.contains(&method.as_str()) {
            ErrorData::invalid_params(format!("invalid parameters for {method}"), None)
        } else {
            ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                format!(
                    "unknown method: {}",
                    haft::ops::text::brief(&method, LONGEST_NAME)
                ),
                None,
            )
        })
    }

    async fn complete(
        &self,
        _request: rmcp::model::CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<rmcp::model::CompleteResult, ErrorData> {
        // rmcp's default is an empty result, but we do not offer completion.
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            format!(
                "unknown method: {}",
                rmcp::model::CompleteRequestMethod::VALUE
            ),
            None,
        ))
    }
}
