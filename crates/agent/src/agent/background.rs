//! Waits for sub-agents in the background at the end of a run, and stops them.

use super::run::Run;
use crate::AgentEvent;
use std::time::Duration;

/// Time that stopped sub-agents have to record the outcome of their calls.
const GRACE: Duration = Duration::from_secs(3);

impl Run {
    /// Waits until there is an update about a sub-agent in the background. Returns whether
    /// there was anything to wait for.
    pub(super) async fn wait_for_tasks(&self) -> bool {
        let (background, runtime) = (&self.shared.background, &self.shared.runtime);
        if !self.settings.waits_for_background || !background.is_busy(runtime) {
            return false;
        }
        let tasks = background.live_ids();
        if !tasks.is_empty() {
            self.emit(AgentEvent::BackgroundWait { tasks });
        }
        tokio::select! {
            () = self.cancel.cancelled() => {}
            () = background.settled(runtime) => {}
        }
        true
    }

    /// Whether a sub-agent in the background waits for approval, in a run that cannot ask.
    pub(super) fn has_questions(&self) -> bool {
        self.settings.waits_for_background
            && self.shared.background.has_questions(&self.shared.runtime)
    }

    /// If background work must not outlive the run, waits for the sub-agents (if `wait` is
    /// set) or stops them.
    pub(super) async fn end_tasks(&self, wait: bool) {
        let background = &self.shared.background;
        if !self.settings.waits_for_background || background.live_ids().is_empty() {
            return;
        }
        if wait {
            let tasks = background.live_ids();
            self.emit(AgentEvent::BackgroundWait { tasks });
            tokio::select! {
                () = self.cancel.cancelled() => {}
                () = background.all_ended() => return,
            }
        }
        let stopped = background.interrupt();
        let _ = tokio::time::timeout(GRACE, background.all_ended()).await;
        for event in stopped {
            self.emit(event);
        }
    }
}
