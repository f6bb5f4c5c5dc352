//! A server's tool in the registry.

use super::server::RemoteServer;
use super::tool_list::ListedTool;
use futures::future::BoxFuture;
use haft::{AnyTool, Context, Definition, Effect, Error, Reply, Resource, Standing};
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

    fn resources(&self, _arguments: &Value) -> Vec<Resource> {
        self.server.host().map(Resource::Host).into_iter().collect()
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

    fn standing(&self) -> Option<Standing> {
        self.server.standing()
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<Reply, Error>> {
        Box::pin(self.server.call(&self.listed, arguments, cx))
    }
}
