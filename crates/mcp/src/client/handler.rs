//! Answers a server's requests: ping, roots and questions to the user. Sampling is refused.

#![expect(
    deprecated,
    reason = "current servers still ask for roots, which the next protocol version removes"
)]

use super::dispatcher::{Dispatcher, Report};
use haft::Progress;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, Implementation,
    ListRootsResult, ProgressNotificationParam, ProtocolVersion, Root,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use rmcp::{ClientHandler, ErrorData};
use std::path::Path;
use std::sync::Arc;
use url::Url;

/// Maximum length of a progress text in characters.
const MAX_PROGRESS: usize = 500;

pub(super) struct Handler {
    pub(super) dispatcher: Arc<Dispatcher>,
    /// The work folder as a URL.
    pub(super) root: Option<String>,
    /// Called when the server reports that its tools changed.
    pub(super) changed: Arc<dyn Fn() + Send + Sync>,
}

impl Handler {
    pub(super) fn new(
        dispatcher: Arc<Dispatcher>,
        dir: Option<&Path>,
        changed: Arc<dyn Fn() + Send + Sync>,
    ) -> Self {
        let root = dir.and_then(|dir| Url::from_directory_path(dir).ok());
        Self {
            dispatcher,
            root: root.map(|root| root.as_str().trim_end_matches('/').to_owned()),
            changed,
        }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(rmcp::model::ElicitationCapability::default());
        capabilities.roots = self.root.as_ref().map(|_| Default::default());
        let name = Implementation::new("haft", env!("CARGO_PKG_VERSION"));
        let mut info = ClientConfig::new(capabilities, name);
        info.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        info
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let roots = self.root.iter().map(Root::new).collect();
        Ok(ListRootsResult::new(roots))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.dispatcher.ask(request).await)
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let text = match (&params.message, params.total) {
            (Some(message), _) => Some(message.chars().take(MAX_PROGRESS).collect()),
            (None, Some(total)) => Some(format!("{} of {total}", params.progress)),
            (None, None) => None,
        };
        let done = params.progress;
        let is_share = |total: &f64| done.is_finite() && total.is_finite();
        let total = params.total.filter(is_share);
        let report = Report {
            text,
            share: total.map(|total| Progress { done, total }),
        };
        self.dispatcher.progress(&params.progress_token, report);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        (self.changed)();
    }
}
