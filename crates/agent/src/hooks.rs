//! Hooks for programs that embed the agent. The runtime's rules and its [`haft::Approver`]
//! decide what may run; hooks are for everything else.

use crate::{Message, ToolCall};
use async_trait::async_trait;
use haft::Reply;
use std::sync::Arc;

/// Callbacks at certain points of a run. By default they change nothing.
#[async_trait]
pub trait Hooks: Send + Sync {
    /// Called before a run starts. May change the prompt.
    async fn before_agent(&self, _prompt: &mut String) {}

    /// Called before a tool call. May change the arguments, which are validated and checked
    /// against the rules afterwards. If it returns a reply, the model receives that and the
    /// call does not run.
    async fn before_tool(&self, _call: &mut ToolCall) -> Option<Reply> {
        None
    }

    /// Called after a tool call. May change the reply that the model will receive.
    async fn after_tool(&self, _call: &ToolCall, _reply: &mut Reply) {}

    /// Returns the messages to send instead of the conversation. The record does not change.
    async fn transform_context(&self, _history: &[Arc<Message>]) -> Option<Vec<Arc<Message>>> {
        None
    }
}

/// Hooks that change nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}
