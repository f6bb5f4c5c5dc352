//! Where a program that uses the agent may have its say. What may run is decided by
//! the runtime's rules and its [`haft::Approver`]; this is for everything else.

use crate::{Said, ToolCall};
use async_trait::async_trait;
use haft::Reply;
use std::sync::Arc;

/// A say in what an agent does. Every method has a default that changes nothing.
#[async_trait]
pub trait Hooks: Send + Sync {
    /// Before it begins to work on a prompt, which may be changed.
    async fn before_agent(&self, _prompt: &mut String) {}

    /// Before a call is made. Its arguments may be changed; they are checked and
    /// judged afterwards like any others. A reply stands for the call, which is then
    /// not made.
    async fn before_tool(&self, _call: &mut ToolCall) -> Option<Reply> {
        None
    }

    /// After a call, with what the model will get.
    async fn after_tool(&self, _call: &ToolCall, _reply: &mut Reply) {}

    /// What is sent instead of the conversation; the record stays as it is.
    async fn transform_context(&self, _history: &[Arc<Said>]) -> Option<Vec<Arc<Said>>> {
        None
    }
}

/// No say.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}
