//! Partial results of a running call.

use crate::Content;
use std::sync::Arc;

/// Partial result of a running call.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Update<'a> {
    /// Partial result; empty if only the progress changed.
    pub content: &'a [Content],
    /// Share of the work that is done, if the tool knows it.
    pub progress: Option<Progress>,
}

/// Share of the work that is done, in any unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Work done so far.
    pub done: f64,
    /// All of the work.
    pub total: f64,
}

/// Receives the updates of a running call.
pub(crate) type UpdateSink = Arc<dyn Fn(Update<'_>) + Send + Sync>;
