//! What tools remember between calls: JSON by name, kept with the session.

use serde_json::{Map, Value};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The memory of a session. Tools share it: give a value a name that says whose
/// it is. A session within another one, as sub-agents have it, has its own.
#[derive(Debug, Default)]
pub struct State {
    values: Mutex<Map<String, Value>>,
    changes: AtomicU64,
    /// Memory of the enclosing session.
    outer: Option<Arc<State>>,
}

impl From<Map<String, Value>> for State {
    fn from(values: Map<String, Value>) -> Self {
        Self {
            values: Mutex::new(values),
            ..Self::default()
        }
    }
}

impl State {
    fn values(&self) -> MutexGuard<'_, Map<String, Value>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns empty memory for a session within the one that `outer` belongs to.
    pub(crate) fn within(outer: &Arc<Self>) -> Self {
        Self {
            outer: Some(Arc::clone(outer)),
            ..Self::default()
        }
    }

    /// Returns the memory of the outermost session, which is itself unless the session
    /// runs within another one.
    #[must_use]
    pub fn outermost(&self) -> &Self {
        let mut state = self;
        while let Some(outer) = &state.outer {
            state = outer;
        }
        state
    }

    /// Loads recorded values, unless tools have stored something already.
    pub fn restore(&self, recorded: Map<String, Value>) {
        let mut values = self.values();
        if values.is_empty() {
            *values = recorded;
        }
    }

    /// The value of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value> {
        self.values().get(name).cloned()
    }

    /// How often something may have changed so far.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Puts a value there, and gives back what was there before.
    pub fn set(&self, name: &str, value: impl Into<Value>) -> Option<Value> {
        let before = self.values().insert(name.to_owned(), value.into());
        self.changed();
        before
    }

    /// Takes a value away.
    pub fn remove(&self, name: &str) -> Option<Value> {
        let before = self.values().remove(name);
        self.changed();
        before
    }

    /// Changes a value in one step: no other call sees it halfway. What is not
    /// there yet is `null`.
    pub fn update<T>(&self, name: &str, change: impl FnOnce(&mut Value) -> T) -> T {
        let outcome = change(self.values().entry(name).or_insert(Value::Null));
        self.changed();
        outcome
    }

    /// All of it, as it is now.
    #[must_use]
    pub fn snapshot(&self) -> Map<String, Value> {
        self.values().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_is_kept_changed_and_taken_away() {
        let state = State::default();
        assert_eq!(state.get("count"), None);
        for expected in 1..=3 {
            let now = state.update("count", |count| {
                *count = json!(count.as_u64().unwrap_or(0) + 1);
                count.as_u64()
            });
            assert_eq!(now, Some(expected));
        }
        assert_eq!(state.set("count", "many"), Some(json!(3)));
        assert_eq!(state.snapshot().len(), 1);
        assert_eq!(state.remove("count"), Some(json!("many")));
        assert_eq!(state.get("count"), None);
    }

    #[test]
    fn an_inner_session_has_its_own_memory_and_reaches_the_outermost() {
        let outer = Arc::new(State::default());
        outer.set("todos", "outer");
        let inner = Arc::new(State::within(&outer));
        let innermost = State::within(&inner);
        assert_eq!(innermost.get("todos"), None);
        innermost.set("todos", "innermost");
        innermost.outermost().set("tasks", 1);
        assert_eq!(inner.snapshot().len(), 0);
        assert_eq!(outer.get("todos"), Some(json!("outer")));
        assert_eq!(outer.get("tasks"), Some(json!(1)));
        let recorded = |text: &str| Map::from_iter([("todos".to_owned(), json!(text))]);
        inner.restore(recorded("recorded"));
        innermost.restore(recorded("recorded"));
        assert_eq!(inner.get("todos"), Some(json!("recorded")));
        assert_eq!(innermost.get("todos"), Some(json!("innermost")));
    }
}
