//! Driving a sub-agent in the background, from its beginning to its end.

use super::background::{Background, Job, Progress};
use super::follow::{Followed, follow};
use super::start::bounded;
use super::tasks;
use super::within::Ask;
use crate::agent::{Handle, Settings, WeakHandle};
use crate::{AgentEvent, Resumed};
use std::sync::{Arc, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What it begins with.
pub(super) enum Begin {
    Prompt(String),
    Resume(Resumed),
}

/// A sub-agent in the background at work. It keeps nothing of the agent alive that started
/// it: that one's end stops it.
pub(super) struct Drive {
    pub(super) job: Arc<Job>,
    pub(super) background: Weak<Background>,
    /// Who may work at once.
    pub(super) places: Arc<Semaphore>,
    pub(super) parent: WeakHandle,
    pub(super) session: String,
    pub(super) settings: Settings,
}

impl Drive {
    /// Remembers how far it is, in the memory of the session.
    pub(super) fn mark(&self, status: &'static str, asks: Vec<Ask>) {
        if let Some(parent) = self.parent.upgrade() {
            let state = parent.runtime().state().outermost();
            let (id, what) = (self.job.id(), self.job.task.what());
            tasks::mark(state, &self.session, id, what, status, asks);
        }
    }

    /// Tells whoever watches those in the background.
    pub(super) fn tell(&self, status: &'static str) {
        if let Some(parent) = self.parent.upgrade() {
            parent.tell_of_background(AgentEvent::BackgroundTask {
                task_id: self.job.id().to_owned(),
                agent: self.job.task.kind.clone(),
                description: self.job.task.description.clone(),
                status,
            });
        }
    }

    /// Says that it works.
    pub(super) fn begins(&self) {
        self.job.set(Progress::Running("begins".to_owned()));
    }

    /// Works, at once if it has a place, and says what came of it.
    pub(super) async fn run(self, begin: Begin, place: Option<OwnedSemaphorePermit>) {
        let followed = tokio::select! {
            biased;
            () = self.job.stop.cancelled() => Followed::Cancelled,
            place = self.place(place) => {
                let followed = self.work(begin).await;
                drop(place);
                followed
            }
        };
        let asks = match followed {
            Followed::Waits { .. } => self.job.task.agent.waiting(),
            _ => Vec::new(),
        };
        let asks = asks.into_iter().map(Into::into).collect();
        // First what became of it, then that it has ended: nobody finds it gone without
        // knowing why.
        let status = self.job.status_of(&followed);
        self.mark(status, asks);
        self.job.set(Progress::Ended(followed));
        self.tell(status);
        if let Some(background) = self.background.upgrade() {
            background.changed();
        }
    }

    /// Waits until there is a place to work.
    async fn place(&self, place: Option<OwnedSemaphorePermit>) -> Option<OwnedSemaphorePermit> {
        if place.is_some() {
            return place;
        }
        let place = Arc::clone(&self.places).acquire_owned().await;
        self.begins();
        self.mark("running", Vec::new());
        self.tell("running");
        place.ok()
    }

    async fn work(&self, mut begin: Begin) -> Followed {
        let agent = &self.job.task.agent;
        let show = |status| self.job.set(Progress::Running(status));
        loop {
            let bounded = bounded(agent, &self.parent, &self.settings);
            let events = match begin {
                Begin::Prompt(prompt) => bounded.prompt(prompt).await,
                Begin::Resume(resumed) => bounded.resume(resumed).await,
            };
            let events = match events {
                Ok(events) => events,
                Err(busy) => {
                    return Followed::Failed {
                        text: String::new(),
                        why: busy.to_string(),
                    };
                }
            };
            let (parent, stop) = (&self.parent, &self.job.stop);
            let followed = follow(
                agent,
                events,
                (parent, Handle::pass_on_background),
                &self.settings,
                stop,
                &show,
            );
            let followed = followed.await;
            // What was said to it as it ended is not lost.
            let unheard = match followed {
                Followed::Done { .. } => agent.handle().unsay(),
                _ => Vec::new(),
            };
            if unheard.is_empty() {
                return followed;
            }
            begin = Begin::Prompt(unheard.join("\n\n"));
        }
    }
}
