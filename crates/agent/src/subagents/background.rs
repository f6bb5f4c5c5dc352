//! Sub-agents in the background: the call that starts one returns immediately, and the model
//! learns of its end before its next turn. They stop when the agent is dropped.

use super::dispatcher::Dispatcher;
use super::observe::RunOutcome;
use super::tasks::{self, Task};
use crate::AgentEvent;
use haft::{ApprovalAnswer, Runtime};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Maximum number of running and queued tasks.
pub(super) const MAX_LIVE: usize = 16;

/// Number of ended tasks whose results are kept in memory.
const MAX_ENDED: usize = 32;

/// Progress of a background task.
#[derive(Clone)]
pub(super) enum Progress {
    /// Waits until another task ends.
    Queued,
    /// Running, with a line of status.
    Running(String),
    Ended(RunOutcome),
}

/// A background task of this process.
pub(super) struct Job {
    pub(super) task: Arc<Task>,
    pub(super) stop: CancellationToken,
    pub(super) begun: Instant,
    progress: Mutex<Progress>,
    /// Status to report if the task is stopped from outside.
    stopped: Mutex<&'static str>,
}

impl Job {
    pub(super) fn id(&self) -> &str {
        self.task.agent.session()
    }

    pub(super) fn progress(&self) -> Progress {
        lock(&self.progress).clone()
    }

    pub(super) fn is_live(&self) -> bool {
        !matches!(*lock(&self.progress), Progress::Ended(_))
    }

    pub(super) fn set(&self, progress: Progress) {
        *lock(&self.progress) = progress;
    }

    /// Stops the task, which then has this status.
    pub(super) fn cancel(&self, status: &'static str) {
        *lock(&self.stopped) = status;
        self.stop.cancel();
    }

    /// Returns the status for an outcome.
    pub(super) fn status_of(&self, outcome: &RunOutcome) -> &'static str {
        match outcome {
            RunOutcome::Done { .. } => "done",
            RunOutcome::Stopped { .. } => "stopped",
            RunOutcome::Failed { .. } => "failed",
            RunOutcome::Waits { .. } => "waiting",
            RunOutcome::Cancelled => *lock(&self.stopped),
        }
    }
}

/// The background tasks of an agent. Dropping this stops them.
pub(crate) struct Background {
    jobs: Mutex<Vec<Arc<Job>>>,
    changes: watch::Sender<u64>,
    /// Restores tasks that another process started.
    dispatcher: Mutex<Weak<Dispatcher>>,
}

impl Default for Background {
    fn default() -> Self {
        Self {
            jobs: Mutex::default(),
            changes: watch::Sender::new(0),
            dispatcher: Mutex::default(),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        for job in self.jobs().iter() {
            job.cancel("interrupted");
        }
    }
}

/// A change of a background task that the model does not know yet.
pub(crate) struct TaskUpdate {
    task_id: String,
    agent: String,
    description: String,
    status: &'static str,
}

impl TaskUpdate {
    /// Returns the note for the model. It does not contain text of the sub-agent, which is only
    /// returned as the result of a call, like other untrusted text.
    pub(crate) fn note(&self) -> String {
        let task_id = &self.task_id;
        let agent = tasks::label(&self.agent, &self.description);
        let what = match self.status {
            "done" => "is done; check_task has its answer",
            "stopped" => "was stopped by a limit; check_task has its text so far",
            "failed" => "has failed; check_task says why",
            "cancelled" => "was cancelled",
            "waiting" => "waits until the user approves one of its calls",
            _ => {
                "was interrupted: haft ended while it was working. What it did before that is \
                 done; task or message_task with its task_id continues it"
            }
        };
        format!("[haft: background task {task_id} ({agent}) {what}.]")
    }

    pub(crate) fn event(&self) -> AgentEvent {
        AgentEvent::BackgroundTask {
            task_id: self.task_id.clone(),
            agent: self.agent.clone(),
            description: self.description.clone(),
            status: self.status,
        }
    }
}

impl Background {
    fn jobs(&self) -> MutexGuard<'_, Vec<Arc<Job>>> {
        lock(&self.jobs)
    }

    /// Sets the dispatcher, which restores tasks that another process started.
    pub(super) fn set_dispatcher(&self, dispatcher: &Arc<Dispatcher>) {
        *lock(&self.dispatcher) = Arc::downgrade(dispatcher);
    }

    /// Returns the running and queued tasks.
    pub(super) fn live(&self) -> Vec<Arc<Job>> {
        let jobs = self.jobs();
        jobs.iter().filter(|job| job.is_live()).cloned().collect()
    }

    /// Returns the ids of the running and queued tasks.
    pub(crate) fn live_ids(&self) -> Vec<String> {
        self.live().iter().map(|job| job.id().to_owned()).collect()
    }

    /// Returns the newest task with this id.
    pub(super) fn job(&self, id: &str) -> Option<Arc<Job>> {
        let jobs = self.jobs();
        jobs.iter().rev().find(|job| job.id() == id).cloned()
    }

    /// Adds a task that is about to start.
    pub(super) fn add(&self, task: Arc<Task>) -> Arc<Job> {
        let job = Arc::new(Job {
            task,
            stop: CancellationToken::new(),
            begun: Instant::now(),
            progress: Mutex::new(Progress::Queued),
            stopped: Mutex::new("interrupted"),
        });
        let mut jobs = self.jobs();
        jobs.retain(|old| old.id() != job.id());
        jobs.push(Arc::clone(&job));
        let excess = jobs.len().saturating_sub(MAX_ENDED + MAX_LIVE);
        let mut ended = 0;
        jobs.retain(|job| {
            let is_old = !job.is_live() && ended < excess;
            ended += usize::from(is_old);
            !is_old
        });
        job
    }

    pub(super) fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Waits until a condition holds. It is checked after each change.
    pub(super) async fn until(&self, holds: impl Fn() -> bool) {
        let mut changes = self.changes.subscribe();
        while !holds() {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits until all tasks have ended.
    pub(crate) async fn all_ended(&self) {
        self.until(|| self.live().is_empty()).await;
    }

    /// Waits until there is an update for the model, or all tasks have ended.
    pub(crate) async fn settled(&self, runtime: &Runtime) {
        self.until(|| self.live().is_empty() || self.has_updates(runtime))
            .await;
    }

    /// Stops all tasks and returns the events that report it.
    pub(crate) fn interrupt(&self) -> Vec<AgentEvent> {
        let stop = |job: &Arc<Job>| {
            job.cancel("interrupted");
            AgentEvent::BackgroundTask {
                task_id: job.id().to_owned(),
                agent: job.task.kind.clone(),
                description: job.task.description.clone(),
                status: "interrupted",
            }
        };
        self.live().iter().map(stop).collect()
    }

    /// Whether tasks are running or queued, or there are updates for the model.
    pub(crate) fn is_busy(&self, runtime: &Runtime) -> bool {
        !self.live().is_empty() || self.has_updates(runtime)
    }

    /// Whether a task waits for approval.
    pub(crate) fn has_questions(&self, runtime: &Runtime) -> bool {
        let listed = tasks::background(runtime.state().outermost(), runtime.session());
        listed.iter().any(|one| one.status == "waiting")
    }

    /// Whether there are updates that the model does not know.
    pub(crate) fn has_updates(&self, runtime: &Runtime) -> bool {
        let listed = tasks::background(runtime.state().outermost(), runtime.session());
        listed.iter().any(|one| self.is_update(one))
    }

    /// Whether the model does not know the status of a task. A task that is running according
    /// to the record, but not in this process, was interrupted.
    fn is_update(&self, one: &tasks::BackgroundRecord) -> bool {
        let is_lost = || self.job(&one.id).is_none_or(|job| !job.is_live());
        !one.is_reported && (!matches!(one.status, "queued" | "running") || is_lost())
    }

    /// Takes the updates for the model. Each is returned once.
    pub(crate) fn updates(&self, runtime: &Runtime) -> Vec<TaskUpdate> {
        let state = runtime.state().outermost();
        let mut updates = Vec::new();
        for one in tasks::background(state, runtime.session()) {
            if self.is_update(&one) {
                let status = match one.status {
                    "queued" | "running" => "interrupted",
                    status => status,
                };
                tasks::mark_reported(state, &one.id, status);
                updates.push(TaskUpdate {
                    task_id: one.id,
                    agent: one.kind,
                    description: one.description,
                    status,
                });
            }
        }
        updates
    }

    fn dispatcher(&self) -> Option<Arc<Dispatcher>> {
        lock(&self.dispatcher).upgrade()
    }

    /// Finds the tasks that waited for a person when haft was killed. The record of such a
    /// task says so at once; that of the session may still have it as running.
    pub(crate) fn find_waiting(&self, runtime: &Runtime) {
        let Some(dispatcher) = self.dispatcher() else {
            return;
        };
        let (state, session) = (runtime.state().outermost(), runtime.session());
        for one in tasks::background(state, session) {
            let is_live = self.job(&one.id).is_some_and(|job| job.is_live());
            if is_live || !matches!(one.status, "queued" | "running") {
                continue;
            }
            let found = tasks::by_id(state, session, &one.id);
            if let Some(asks) = found.and_then(|found| dispatcher.asks(&found)) {
                tasks::mark(state, session, &one.id, one.what(), "waiting", asks);
            }
        }
    }

    /// Restarts tasks that wait for approval, with the user's answers so far.
    pub(crate) fn resume_waiting(&self, runtime: &Runtime, answers: &[(String, ApprovalAnswer)]) {
        let Some(dispatcher) = self.dispatcher() else {
            return;
        };
        let (state, session) = (runtime.state().outermost(), runtime.session());
        for one in tasks::background(state, session) {
            if one.status != "waiting" {
                continue;
            }
            let Some(found) = tasks::by_id(state, session, &one.id) else {
                continue;
            };
            // Each task picks the answers for its own calls and for its own background tasks.
            if let Err(reason) = dispatcher.restart(&found, answers.to_vec()) {
                tracing::warn!(task = one.id, %reason, "cannot continue a background task");
                tasks::mark(state, session, &one.id, one.what(), "failed", Vec::new());
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
