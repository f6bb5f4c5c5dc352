//! Sub-agents in the background: what they do is shown, and a cancellation ends them.

use super::Session;
use crate::asker::Asker;
use crate::changes;
use crate::client::Client;
use crate::translate::Stream;
use futures::StreamExt;
use haft::{ApprovalAnswer, Call};
use haft_agent::Agent;
use serde_json::json;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// The tool that ends a sub-agent in the background.
const CANCEL_TASK: &str = "cancel_task";

/// Shows what sub-agents in the background do, until the task is aborted.
pub(super) fn show(
    agent: &Agent,
    asker: Arc<Asker>,
    client: Arc<Client>,
    session: String,
) -> JoinHandle<()> {
    let mut events = agent.watch_background();
    // The task must not keep the agent: the session could not be opened again.
    let recorded = agent.runtime().effects().cloned();
    tokio::spawn(async move {
        loop {
            let updates = tokio::select! {
                biased;
                event = events.next() => {
                    let Some(event) = event else {
                        return;
                    };
                    asker.observe(&event, Stream::Background);
                    let changes = changes::of_event(recorded.as_ref(), &event).await;
                    asker.translate(|translator| {
                        translator.event(&event, Stream::Background, changes).0
                    })
                }
                () = asker.flush_due() => asker.translate(|translator| translator.flush()),
            };
            for update in updates {
                client.update(&session, update);
            }
            client.outbox.wait_for_room().await;
        }
    })
}

impl Session {
    /// Ends the sub-agents in the background. The model learns of it with the next prompt.
    pub(super) fn stop_background(&self) {
        let mut state = self.lock();
        let Some(seat) = state.seat.clone() else {
            return;
        };
        let stopped = seat.agent().background_tasks();
        for id in &stopped {
            if !state.stopped.contains(id) {
                state.stopped.push(id.clone());
            }
        }
        drop(state);
        for id in stopped {
            // Approved: this is what the user has asked for.
            let call =
                Call::new(CANCEL_TASK, json!({ "task_id": id })).answered(ApprovalAnswer::Approve);
            let runtime = seat.agent().runtime().clone();
            tokio::spawn(async move {
                let ended = runtime.run(call).await;
                if ended.is_error() {
                    tracing::warn!(task = id, "cannot end a sub-agent in the background");
                }
            });
        }
    }

    /// Returns the note that tells the model which sub-agents the user has ended, once.
    pub(super) fn note_of_stopped(&self) -> Option<String> {
        let stopped = std::mem::take(&mut self.lock().stopped);
        (!stopped.is_empty()).then(|| {
            format!(
                "[haft: the user cancelled, which ended these background tasks: {}. What they \
                 did before is done.]",
                stopped.join(", ")
            )
        })
    }
}
