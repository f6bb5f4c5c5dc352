//! What a server may ask of us: whether we are there, where the work folder is, and
//! something of the person. To speak to a model is refused.

#![expect(
    deprecated,
    reason = "servers of today ask for roots; the next protocol has none"
)]

use super::desk::Desk;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, Implementation,
    ListRootsResult, ProgressNotificationParam, ProtocolVersion, Root,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use rmcp::{ClientHandler, ErrorData};
use std::path::Path;
use std::sync::Arc;
use url::Url;

/// How long a line of progress is at most, in characters.
const PROGRESS: usize = 500;

pub(super) struct Handler {
    pub(super) desk: Arc<Desk>,
    /// The work folder, as an address.
    pub(super) root: Option<String>,
    /// The server has other tools.
    pub(super) changed: Arc<dyn Fn() + Send + Sync>,
}

impl Handler {
    pub(super) fn new(
        desk: Arc<Desk>,
        dir: Option<&Path>,
        changed: Arc<dyn Fn() + Send + Sync>,
    ) -> Self {
        let root = dir.and_then(|dir| Url::from_directory_path(dir).ok());
        Self {
            desk,
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
        Ok(self.desk.ask(request).await)
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let words = match (&params.message, params.total) {
            (Some(message), _) => Some(message.chars().take(PROGRESS).collect()),
            (None, Some(total)) => Some(format!("{} of {total}", params.progress)),
            (None, None) => None,
        };
        self.desk.progress(&params.progress_token, words);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        (self.changed)();
    }
}
