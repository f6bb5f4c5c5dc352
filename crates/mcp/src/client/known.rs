//! Facts about a server that outlive a session: its tools, and the handshake that works.

use super::connect::ConversationStart;
use super::server::RemoteServer;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time for which a stored tool list is valid.
const LIST_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Version of the format; other versions are ignored.
const FORMAT: u64 = 1;

impl RemoteServer {
    /// Stores the server's tools, and the handshake that worked.
    pub(super) fn store_known(&self, start_mode: ConversationStart, raw: &[Value]) {
        if let Some(memory) = &self.remote.memory {
            let handshake = start_mode == ConversationStart::Handshake;
            memory.store(&json!({
                "form": FORMAT, "at": now(), "handshake": handshake, "tools": raw,
            }));
        }
    }

    fn load_known(&self) -> Option<Value> {
        let known = self.remote.memory.as_ref()?.load()?;
        (known["form"] == FORMAT).then_some(known)
    }

    /// Returns the handshake that worked the last time, however long ago.
    pub(super) fn known_start(&self) -> ConversationStart {
        let known = self.load_known();
        match known.and_then(|known| known["handshake"].as_bool()) {
            Some(true) => ConversationStart::Handshake,
            Some(false) => ConversationStart::Stateless,
            None => ConversationStart::Unknown,
        }
    }

    /// Returns the stored tools, unless they are too old.
    pub(super) fn known_tools(&self) -> Option<Vec<Value>> {
        let mut known = self.load_known()?;
        let is_fresh = |at: u64| {
            now()
                .checked_sub(at)
                .is_some_and(|age| age < LIST_TIME.as_secs())
        };
        known["at"].as_u64().filter(|at| is_fresh(*at))?;
        match known["tools"].take() {
            Value::Array(tools) => Some(tools),
            _ => None,
        }
    }
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}
