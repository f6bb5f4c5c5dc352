//! Processes that commands left running.

use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Maximum time to end everything, including the usual time between TERM and KILL.
const LONGEST_END: Duration = Duration::from_secs(3);

/// Processes that commands left running, and the means to end them.
#[derive(Debug, Clone)]
pub(super) struct SurvivorRegistry {
    pub(super) shutdown: CancellationToken,
    /// Tasks that wait for them.
    pub(super) tasks: TaskTracker,
    /// Everything that runs here, and in the executors that this is a part of.
    pub(super) all: Vec<TaskTracker>,
}

impl SurvivorRegistry {
    pub(super) fn new() -> Self {
        Self {
            shutdown: CancellationToken::new(),
            tasks: TaskTracker::new(),
            all: vec![TaskTracker::new()],
        }
    }

    /// Returns a part that can be ended separately.
    pub(super) fn part(&self) -> Self {
        Self {
            shutdown: self.shutdown.child_token(),
            tasks: TaskTracker::new(),
            all: self
                .all
                .iter()
                .cloned()
                .chain([TaskTracker::new()])
                .collect(),
        }
    }

    pub(super) fn shutdown(&self) -> &CancellationToken {
        &self.shutdown
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Waits until all processes that were left running have ended.
    pub(super) async fn wait_gone(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Ends everything, and waits until it has ended or cannot be ended.
    pub(super) async fn end_all(&self) {
        self.shutdown.cancel();
        if let Some(all) = self.all.last() {
            all.close();
            let _ = tokio::time::timeout(LONGEST_END, all.wait()).await;
        }
    }
}
