//! Checks that a request is allowed at this point of the connection: before a handshake,
//! only requests that state their protocol version themselves are.
//!
//! Up to 2025-11-25 a connection starts with `initialize`. From 2026-07-28 on there is no
//! handshake, and each request carries its version and capabilities. Both kinds may arrive
//! over the same connection.

use crate::handler::Handler;
use rmcp::ErrorData;
use rmcp::model::{ClientNotification, ClientRequest, ProtocolVersion, ServerConfig, ServerResult};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, Service};
use std::borrow::Cow;

/// The handler behind the check.
pub(crate) struct Gate {
    handler: Handler,
}

impl Gate {
    pub(crate) fn new(handler: Handler) -> Self {
        Self { handler }
    }
}

impl Service<RoleServer> for Gate {
    async fn handle_request(
        &self,
        request: ClientRequest,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        if !needs_no_handshake(&request) && context.peer.peer_info().is_none() {
            let missing = context
                .meta
                .missing_required_keys(&ProtocolVersion::V_2026_07_28);
            if !missing.is_empty() {
                return Err(ErrorData::invalid_params(
                    format!(
                        "not initialized: send initialize first, or set in _meta: {}",
                        missing.join(", ")
                    ),
                    None,
                ));
            }
        }
        if matches!(request, ClientRequest::SubscriptionsListenRequest(_)) {
            // Subscribe before the acknowledgment is sent, so that no change is missed.
            context.extensions.insert(self.handler.changes());
        }
        self.handler.handle_request(request, context).await
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.handler
            .handle_notification(notification, context)
            .await
    }

    fn get_info(&self) -> ServerConfig {
        Service::get_info(&self.handler)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Service::supported_protocol_versions(&self.handler)
    }
}

fn needs_no_handshake(request: &ClientRequest) -> bool {
    matches!(
        request,
        ClientRequest::InitializeRequest(_)
            | ClientRequest::DiscoverRequest(_)
            | ClientRequest::PingRequest(_)
    )
}
