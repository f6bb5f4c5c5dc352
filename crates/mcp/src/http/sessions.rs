//! The sessions there are.

use super::session::Session;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A session that was not used for so long makes room for a new one, when there is none.
const SPARE: Duration = Duration::from_secs(60);

/// All sessions of a server, by their ids.
pub(super) struct Sessions {
    all: Mutex<HashMap<String, Arc<Session>>>,
    most: usize,
}

impl Sessions {
    pub(super) fn new(most: usize) -> Self {
        Self {
            all: Mutex::default(),
            most,
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of that id.
    pub(super) fn get(&self, id: &str) -> Option<Arc<Session>> {
        let session = self.all().get(id).cloned();
        session.filter(|session| !session.is_closing())
    }

    /// Whether one more fits. The one that was left longest ago gives way to it.
    pub(super) fn have_room(&self) -> bool {
        let mut all = self.all();
        if all.len() < self.most {
            return true;
        }
        let now = Instant::now();
        let idle = all.values().filter_map(|session| {
            let streams = session.streams();
            let unused = now.saturating_duration_since(streams.used());
            (streams.is_idle() && unused > SPARE).then(|| (unused, session.id.clone()))
        });
        let Some((_, oldest)) = idle.max() else {
            return false;
        };
        if let Some(session) = all.remove(&oldest) {
            session.close();
        }
        true
    }

    pub(super) fn add(&self, session: Arc<Session>) {
        self.all().insert(session.id.clone(), session);
    }

    pub(super) fn remove(&self, id: &str) -> Option<Arc<Session>> {
        self.all().remove(id)
    }

    /// Ends sessions that nobody uses, and lets go of what was kept for those who went.
    pub(super) fn sweep(&self, idle: Duration, resume: Duration) {
        let all: Vec<_> = self.all().values().map(Arc::clone).collect();
        for session in all {
            let mut streams = session.streams();
            streams.sweep(resume);
            let is_over = streams.is_idle() && streams.used().elapsed() > idle;
            drop(streams);
            if is_over {
                tracing::debug!(session = session.id, "a session was not used for too long");
                session.close();
                self.remove(&session.id);
            }
        }
    }
}
