//! Sub-agents that work in the background: the call that starts one returns at once, and
//! the agent hears of its end at its next turn. They end with the agent.

use super::follow::Followed;
use super::start::Desk;
use super::tasks::{self, Task};
use crate::AgentEvent;
use haft::{Answer, Runtime};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How many may work or wait for their turn.
pub(super) const MOST: usize = 16;

/// How many that have ended are kept with what they said.
const KEPT: usize = 32;

/// How far a sub-agent in the background is.
#[derive(Clone)]
pub(super) enum Progress {
    /// It waits until another one is done.
    Queued,
    /// It works: a line of status.
    Running(String),
    Ended(Followed),
}

/// A sub-agent in the background.
pub(super) struct Job {
    pub(super) task: Arc<Task>,
    pub(super) stop: CancellationToken,
    pub(super) begun: Instant,
    progress: Mutex<Progress>,
    /// Its status once it was stopped from outside.
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

    /// Stops it; `status` is what is said of it afterwards.
    pub(super) fn cancel(&self, status: &'static str) {
        *lock(&self.stopped) = status;
        self.stop.cancel();
    }

    /// What became of it, in a word.
    pub(super) fn status_of(&self, followed: &Followed) -> &'static str {
        match followed {
            Followed::Done { .. } => "done",
            Followed::Stopped { .. } => "stopped",
            Followed::Failed { .. } => "failed",
            Followed::Waits { .. } => "waiting",
            Followed::Cancelled => *lock(&self.stopped),
        }
    }
}

/// The sub-agents that an agent has in the background. Dropping it stops them.
pub(crate) struct Background {
    jobs: Mutex<Vec<Arc<Job>>>,
    changes: watch::Sender<u64>,
    /// Restores those that another process started.
    desk: Mutex<Weak<Desk>>,
}

impl Default for Background {
    fn default() -> Self {
        Self {
            jobs: Mutex::default(),
            changes: watch::Sender::new(0),
            desk: Mutex::default(),
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

/// Something that the model is told about a sub-agent in the background.
pub(crate) struct News {
    task_id: String,
    agent: String,
    description: String,
    status: &'static str,
}

impl News {
    /// The words for the model. What the sub-agent said is not among them: it comes as the
    /// result of a call, like everything else that others say.
    pub(crate) fn note(&self) -> String {
        let task_id = &self.task_id;
        let agent = tasks::label(&self.agent, &self.description);
        let what = match self.status {
            "done" => "is done; check_task has its answer",
            "stopped" => "was stopped by a limit; check_task has what it said so far",
            "failed" => "has failed; check_task says why",
            "cancelled" => "was cancelled",
            "waiting" => "waits until a person has approved one of its calls",
            _ => {
                "was interrupted: haft ended while it worked. What it did before that is done; \
                 task or message_task with its task_id goes on with it"
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

    /// Says who restores those that another process started.
    pub(super) fn belongs_to(&self, desk: &Arc<Desk>) {
        *lock(&self.desk) = Arc::downgrade(desk);
    }

    /// Those that work or wait for their turn.
    pub(super) fn live(&self) -> Vec<Arc<Job>> {
        let jobs = self.jobs();
        jobs.iter().filter(|job| job.is_live()).cloned().collect()
    }

    /// The ids of those.
    pub(crate) fn live_ids(&self) -> Vec<String> {
        self.live().iter().map(|job| job.id().to_owned()).collect()
    }

    /// The newest of this id.
    pub(super) fn job(&self, id: &str) -> Option<Arc<Job>> {
        let jobs = self.jobs();
        jobs.iter().rev().find(|job| job.id() == id).cloned()
    }

    /// Adds one that is about to work.
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
        let excess = jobs.len().saturating_sub(KEPT + MOST);
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

    /// Waits until something holds.
    pub(super) async fn until(&self, holds: impl Fn() -> bool) {
        let mut changes = self.changes.subscribe();
        while !holds() {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits until all have ended.
    pub(crate) async fn all_ended(&self) {
        self.until(|| self.live().is_empty()).await;
    }

    /// Waits until the model can be told something, or nothing is under way.
    pub(crate) async fn settled(&self, runtime: &Runtime) {
        self.until(|| self.live().is_empty() || self.has_news(runtime))
            .await;
    }

    /// Stops all of them; what those who watch are told about it.
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

    /// Whether some are under way, or have ended without the model knowing.
    pub(crate) fn is_busy(&self, runtime: &Runtime) -> bool {
        !self.live().is_empty() || self.has_news(runtime)
    }

    /// Whether one waits for a person.
    pub(crate) fn has_questions(&self, runtime: &Runtime) -> bool {
        let listed = tasks::background(runtime.state().outermost(), runtime.session());
        listed.iter().any(|one| one.status == "waiting")
    }

    /// Whether the model does not know yet what became of one.
    pub(crate) fn has_news(&self, runtime: &Runtime) -> bool {
        let listed = tasks::background(runtime.state().outermost(), runtime.session());
        listed.iter().any(|one| self.is_news(one))
    }

    /// Whether this is something that the model does not know. One that works, by its record, and is not here was ended with the process that it was in.
    fn is_news(&self, one: &tasks::Listed) -> bool {
        let is_lost = || self.job(&one.id).is_none_or(|job| !job.is_live());
        !one.is_told && (!matches!(one.status, "queued" | "running") || is_lost())
    }

    /// What the model is to be told now, once.
    pub(crate) fn news(&self, runtime: &Runtime) -> Vec<News> {
        let state = runtime.state().outermost();
        let mut news = Vec::new();
        for one in tasks::background(state, runtime.session()) {
            if self.is_news(&one) {
                let status = match one.status {
                    "queued" | "running" => "interrupted",
                    status => status,
                };
                tasks::tell(state, &one.id, status);
                news.push(News {
                    task_id: one.id,
                    agent: one.kind,
                    description: one.description,
                    status,
                });
            }
        }
        news
    }

    fn desk(&self) -> Option<Arc<Desk>> {
        lock(&self.desk).upgrade()
    }

    /// Finds the tasks that waited for a person when haft was killed. The record of such a
    /// task says so at once; that of the session may still have it as running.
    pub(crate) fn find_waiting(&self, runtime: &Runtime) {
        let Some(desk) = self.desk() else { return };
        let (state, session) = (runtime.state().outermost(), runtime.session());
        for one in tasks::background(state, session) {
            let is_live = self.job(&one.id).is_some_and(|job| job.is_live());
            if is_live || !matches!(one.status, "queued" | "running") {
                continue;
            }
            let found = tasks::remembered(state, session, &one.id);
            if let Some(asks) = found.and_then(|found| desk.asks(&found)) {
                tasks::mark(state, session, &one.id, one.what(), "waiting", asks);
            }
        }
    }

    /// Starts those again that wait for a person, with the answers that there are.
    pub(crate) fn resume_waiting(&self, runtime: &Runtime, answers: &[(String, Answer)]) {
        let Some(desk) = self.desk() else { return };
        let (state, session) = (runtime.state().outermost(), runtime.session());
        for one in tasks::background(state, session) {
            if one.status != "waiting" {
                continue;
            }
            let Some(found) = tasks::remembered(state, session, &one.id) else {
                continue;
            };
            // Each takes what is for it, or for those that it has in the background itself.
            if let Err(reason) = desk.restart(&found, answers.to_vec()) {
                tracing::warn!(task = one.id, %reason, "a background task cannot go on");
                tasks::mark(state, session, &one.id, one.what(), "failed", Vec::new());
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
