//! Order of the requests about one session: opening and closing one takes a while, and what a
//! client sends meanwhile waits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// The newest ticket of each session: its number, and its end.
type Last = HashMap<String, (u64, oneshot::Receiver<()>)>;

/// Queues of requests, one for each session.
#[derive(Clone, Default)]
pub(super) struct Queues {
    last: Arc<Mutex<(u64, Last)>>,
}

/// A place in a queue. Dropping it lets the next request begin.
pub(super) struct Ticket {
    before: Option<oneshot::Receiver<()>>,
    _leave: Option<Leave>,
}

struct Leave {
    session: String,
    number: u64,
    queues: Queues,
    _end: oneshot::Sender<()>,
}

impl Drop for Leave {
    fn drop(&mut self) {
        let mut last = self.queues.lock();
        let is_last = last
            .1
            .get(&self.session)
            .is_some_and(|(number, _)| *number == self.number);
        if is_last {
            last.1.remove(&self.session);
        }
    }
}

impl Ticket {
    /// A place that nothing waits for.
    pub(super) fn free() -> Self {
        Self {
            before: None,
            _leave: None,
        }
    }

    /// Whether the request can begin at once.
    pub(super) fn is_first(&self) -> bool {
        self.before.is_none()
    }

    /// Waits for the requests before this one.
    pub(super) async fn wait(&mut self) {
        if let Some(before) = self.before.take() {
            // An error: it was dropped, which is its end.
            let _ = before.await;
        }
    }
}

impl Queues {
    fn lock(&self) -> std::sync::MutexGuard<'_, (u64, Last)> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a place at the end of a session's queue.
    pub(super) fn enter(&self, session: &str) -> Ticket {
        let (end, ended) = oneshot::channel();
        let mut guard = self.lock();
        let (count, last) = &mut *guard;
        *count += 1;
        let before = last.insert(session.to_owned(), (*count, ended));
        Ticket {
            before: before.map(|(_, ended)| ended),
            _leave: Some(Leave {
                session: session.to_owned(),
                number: *count,
                queues: self.clone(),
                _end: end,
            }),
        }
    }

    /// Returns a place at the end of a session's queue, if there is a queue.
    pub(super) fn enter_if_busy(&self, session: &str) -> Ticket {
        let is_busy = self.lock().1.contains_key(session);
        match is_busy {
            true => self.enter(session),
            false => Ticket::free(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_about_a_session_begin_in_order() {
        let queues = Queues::default();
        assert!(queues.enter_if_busy("a").is_first());
        let first = queues.enter("a");
        let mut second = queues.enter("a");
        let mut third = queues.enter_if_busy("a");
        assert!(first.is_first() && queues.enter("b").is_first());
        assert!(!second.is_first() && !third.is_first());
        drop(first);
        second.wait().await;
        assert!(
            third
                .before
                .as_mut()
                .is_some_and(|before| before.try_recv().is_err())
        );
        drop(second);
        third.wait().await;
        drop(third);
        assert!(queues.lock().1.is_empty());
    }
}
