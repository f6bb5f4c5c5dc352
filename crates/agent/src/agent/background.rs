//! What a run does about sub-agents in the background.

use super::run::Run;
use crate::AgentEvent;
use std::time::Duration;

/// How long those that were stopped have to say what became of their calls.
const GRACE: Duration = Duration::from_secs(3);

impl Run {
    /// Waits until the model can be told something about a sub-agent in the background.
    /// Returns whether there was one to wait for.
    pub(super) async fn waits_for_tasks(&self) -> bool {
        let (background, runtime) = (&self.shared.background, &self.shared.runtime);
        if !self.settings.waits_for_background || !background.is_busy(runtime) {
            return false;
        }
        let tasks = background.live_ids();
        if !tasks.is_empty() {
            self.tell(AgentEvent::BackgroundWait { tasks });
        }
        tokio::select! {
            () = self.cancel.cancelled() => {}
            () = background.settled(runtime) => {}
        }
        true
    }

    /// Whether a sub-agent in the background waits for a person who is not here.
    pub(super) fn has_questions(&self) -> bool {
        self.settings.waits_for_background
            && self.shared.background.has_questions(&self.shared.runtime)
    }

    /// Where nothing goes on after this run, waits for sub-agents in the background, or
    /// stops them.
    pub(super) async fn end_tasks(&self, is_patient: bool) {
        let background = &self.shared.background;
        if !self.settings.waits_for_background || background.live_ids().is_empty() {
            return;
        }
        if is_patient {
            let tasks = background.live_ids();
            self.tell(AgentEvent::BackgroundWait { tasks });
            tokio::select! {
                () = self.cancel.cancelled() => {}
                () = background.all_ended() => return,
            }
        }
        let stopped = background.interrupt();
        let _ = tokio::time::timeout(GRACE, background.all_ended()).await;
        for event in stopped {
            self.tell(event);
        }
    }
}
