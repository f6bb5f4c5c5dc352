//! Runs a sub-agent in the background.

use super::background::{Background, Job, Progress};
use super::dispatcher::bounded;
use super::observe::{RunOutcome, observe};
use super::pending::PendingQuestion;
use super::tasks;
use crate::agent::{Handle, Settings, WeakHandle};
use crate::{AgentEvent, Resumed};
use std::sync::{Arc, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Input that starts a background run.
pub(super) enum RunInput {
    Prompt(String),
    Resume(Resumed),
}

/// The run of a sub-agent in the background. It does not keep the parent alive, and stops when
/// the parent is dropped.
pub(super) struct BackgroundRun {
    pub(super) job: Arc<Job>,
    pub(super) background: Weak<Background>,
    /// Limits how many tasks run in parallel.
    pub(super) permits: Arc<Semaphore>,
    pub(super) parent: WeakHandle,
    pub(super) session: String,
    pub(super) settings: Settings,
}

impl BackgroundRun {
    /// Stores the status in the state of the session.
    pub(super) fn mark(&self, status: &'static str, asks: Vec<PendingQuestion>) {
        if let Some(parent) = self.parent.upgrade() {
            let state = parent.runtime().state().outermost();
            let (id, what) = (self.job.id(), self.job.task.what());
            tasks::mark(state, &self.session, id, what, status, asks);
        }
    }

    /// Emits the status to the stream of background events.
    pub(super) fn emit(&self, status: &'static str) {
        if let Some(parent) = self.parent.upgrade() {
            parent.emit_background(AgentEvent::BackgroundTask {
                task_id: self.job.id().to_owned(),
                agent: self.job.task.kind.clone(),
                description: self.job.task.description.clone(),
                status,
            });
        }
    }

    /// Marks the task as running.
    pub(super) fn set_running(&self) {
        self.job.set(Progress::Running("starting".to_owned()));
    }

    /// Runs the task, immediately if it has a permit, and reports the outcome.
    pub(super) async fn run(self, input: RunInput, permit: Option<OwnedSemaphorePermit>) {
        let outcome = tokio::select! {
            biased;
            () = self.job.stop.cancelled() => RunOutcome::Cancelled,
            permit = self.acquire(permit) => {
                let outcome = self.work(input).await;
                drop(permit);
                outcome
            }
        };
        let asks = match outcome {
            RunOutcome::Waits { .. } => self.job.task.agent.pending_calls(),
            _ => Vec::new(),
        };
        let asks = asks.into_iter().map(Into::into).collect();
        // The outcome is stored before the task counts as ended, so that no caller sees an ended
        // task without an outcome.
        let status = self.job.status_of(&outcome);
        self.mark(status, asks);
        self.job.set(Progress::Ended(outcome));
        self.emit(status);
        if let Some(background) = self.background.upgrade() {
            background.changed();
        }
    }

    /// Waits for a permit, unless the task has one.
    async fn acquire(&self, permit: Option<OwnedSemaphorePermit>) -> Option<OwnedSemaphorePermit> {
        if permit.is_some() {
            return permit;
        }
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        self.set_running();
        self.mark("running", Vec::new());
        self.emit("running");
        permit.ok()
    }

    async fn work(&self, mut input: RunInput) -> RunOutcome {
        let agent = &self.job.task.agent;
        let show = |status| self.job.set(Progress::Running(status));
        loop {
            let bounded = bounded(agent, &self.parent, &self.settings);
            let events = match input {
                RunInput::Prompt(prompt) => bounded.prompt(prompt).await,
                RunInput::Resume(resumed) => bounded.resume(resumed).await,
            };
            let events = match events {
                Ok(events) => events,
                Err(busy) => {
                    return RunOutcome::Failed {
                        text: String::new(),
                        why: busy.to_string(),
                    };
                }
            };
            let (parent, stop) = (&self.parent, &self.job.stop);
            let outcome = observe(
                agent,
                events,
                (parent, Handle::forward_background),
                &self.settings,
                stop,
                &show,
            );
            let outcome = outcome.await;
            // Messages that arrived while the run ended start another one.
            let unread = match outcome {
                RunOutcome::Done { .. } => agent.handle().take_steering(),
                _ => Vec::new(),
            };
            if unread.is_empty() {
                return outcome;
            }
            input = RunInput::Prompt(unread.join("\n\n"));
        }
    }
}
