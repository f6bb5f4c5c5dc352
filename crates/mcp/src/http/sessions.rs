//! The registry of sessions.

use super::session::Session;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// When the server is full, a session that was unused for this long is ended for a new one.
const EVICT_AFTER: Duration = Duration::from_secs(60);

/// All sessions of a server by id.
pub(super) struct Sessions {
    all: Mutex<HashMap<String, Arc<Session>>>,
    max: usize,
}

impl Sessions {
    pub(super) fn new(max: usize) -> Self {
        Self {
            all: Mutex::default(),
            max,
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the session with this id, unless it is about to end.
    pub(super) fn get(&self, id: &str) -> Option<Arc<Session>> {
        let session = self.all().get(id).cloned();
        session.filter(|session| !session.is_closing())
    }

    /// Whether another session fits. If necessary, ends the one that was unused the
    /// longest.
    pub(super) fn have_room(&self) -> bool {
        let mut all = self.all();
        if all.len() < self.max {
            return true;
        }
        let now = Instant::now();
        let idle = all.values().filter_map(|session| {
            let streams = session.streams();
            let unused = now.saturating_duration_since(streams.used());
            (streams.is_idle() && unused > EVICT_AFTER).then(|| (unused, session.id.clone()))
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

    /// Ends unused sessions, and drops streams that no client came back for.
    pub(super) fn sweep(&self, idle: Duration, resume: Duration) {
        let all: Vec<_> = self.all().values().map(Arc::clone).collect();
        for session in all {
            let mut streams = session.streams();
            streams.sweep(resume);
            let is_over = streams.is_idle() && streams.used().elapsed() > idle;
            drop(streams);
            if is_over {
                tracing::debug!(session = session.id, "an idle session is ended");
                session.close();
                self.remove(&session.id);
            }
        }
    }
}
