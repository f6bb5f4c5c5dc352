//! Values that tools store between calls: JSON by name, saved with the session.

use serde_json::{Map, Value};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Values that the tools of a session store between calls. All tools share the names, so
/// use one that includes the tool's name. A sub-agent's session has its own state.
#[derive(Debug, Default)]
pub struct State {
    values: Mutex<Map<String, Value>>,
    changes: AtomicU64,
    /// State of the enclosing session.
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

    /// Creates empty state for a session inside the one that `outer` belongs to.
    pub(crate) fn within(outer: &Arc<Self>) -> Self {
        Self {
            outer: Some(Arc::clone(outer)),
            ..Self::default()
        }
    }

    /// Returns the state of the outermost session, which is `self` unless the session is
    /// inside another one.
    #[must_use]
    pub fn outermost(&self) -> &Self {
        let mut state = self;
        while let Some(outer) = &state.outer {
            state = outer;
        }
        state
    }

    /// Loads recorded values, unless tools have already stored some.
    pub fn restore(&self, recorded: Map<String, Value>) {
        let mut values = self.values();
        if values.is_empty() {
            *values = recorded;
        }
    }

    /// Returns the value with the given name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value> {
        self.values().get(name).cloned()
    }

    /// Returns a counter that increases with every possible change.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Stores a value and returns the previous one.
    pub fn set(&self, name: &str, value: impl Into<Value>) -> Option<Value> {
        let before = self.values().insert(name.to_owned(), value.into());
        self.changed();
        before
    }

    /// Removes a value and returns it.
    pub fn remove(&self, name: &str) -> Option<Value> {
        let before = self.values().remove(name);
        self.changed();
        before
    }

    /// Changes a value atomically. A value that does not exist yet is `null`.
    pub fn update<T>(&self, name: &str, change: impl FnOnce(&mut Value) -> T) -> T {
        let outcome = change(self.values().entry(name).or_insert(Value::Null));
        self.changed();
        outcome
    }

    /// Returns a copy of all values.
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
    fn values_can_be_stored_updated_and_removed() {
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
    fn an_inner_session_has_its_own_state_and_can_reach_the_outermost() {
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
