//! What tools remember between calls: JSON by name, kept with the session.

use serde_json::{Map, Value};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The memory of a session. Tools share it: give a value a name that says whose
/// it is.
#[derive(Debug, Default)]
pub struct State {
    values: Mutex<Map<String, Value>>,
    changes: AtomicU64,
}

impl From<Map<String, Value>> for State {
    fn from(values: Map<String, Value>) -> Self {
        Self {
            values: Mutex::new(values),
            changes: AtomicU64::new(0),
        }
    }
}

impl State {
    fn values(&self) -> MutexGuard<'_, Map<String, Value>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
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
}
