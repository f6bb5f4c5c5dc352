//! A tool of a server, as the registry holds it.

use super::host::RemoteServer;
use super::listed::Listed;
use futures::future::BoxFuture;
use haft::{AnyTool, Context, Definition, Effect, Error, Reply, Resource, Standing};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

pub(super) struct RemoteTool {
    pub(super) listed: Listed,
    pub(super) server: Arc<RemoteServer>,
}

impl AnyTool for RemoteTool {
    fn definition(&self) -> &Definition {
        &self.listed.definition
    }

    /// What a server says of its tools' effects is its own word, so the most is assumed.
    fn effect(&self) -> Effect {
        Effect::Execute
    }

    fn resources(&self, _arguments: &Value) -> Vec<Resource> {
        self.server.host().map(Resource::Host).into_iter().collect()
    }

    /// Its own: progress moves it.
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
