//! A server's tool in the registry.

use super::server::RemoteServer;
use super::tool_list::ListedTool;
use haft::{
    AnyTool, Definition, Effect, Error, ForeignParts, Installer, PreparedCall, Resource, prepared,
};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

pub(super) struct RemoteTool {
    pub(super) listed: ListedTool,
    pub(super) server: Arc<RemoteServer>,
}

impl AnyTool for RemoteTool {
    fn definition(&self) -> &Definition {
        &self.listed.definition
    }

    /// A server's claims about effects are not trusted, so the strongest effect is assumed.
    fn effect(&self) -> Effect {
        Effect::Execute
    }

    fn prepare(self: Arc<Self>, arguments: Arc<Value>) -> Result<Box<dyn PreparedCall>, Error> {
        let host = self.server.host().map(Resource::Host);
        Ok(prepared(host.into_iter().collect(), move |cx| async move {
            let arguments = Arc::unwrap_or_clone(arguments);
            self.server.call(&self.listed, arguments, &cx).await
        }))
    }

    /// The call has its own time limit, which progress extends.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    fn only_waits(&self) -> bool {
        true
    }

    fn outlives_calls(&self) -> bool {
        true
    }

    fn foreign_parts(&self) -> Option<&ForeignParts> {
        Some(&self.listed.extra)
    }

    fn installer(&self) -> Option<Installer> {
        self.server.installer()
    }
}
