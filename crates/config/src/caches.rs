//! Settings for the caches of commands. Only the user can set them: a project must not be
//! able to fill the user's disk.

use super::Notes;
use super::setting::{Bytes, Setting};
use super::sources::Sources;
use super::{Origin, joined};
use crate::failure::Failure;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Settings for the caches of commands.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CachesEntry {
    /// Whether sandboxed commands can fill caches in the home.
    pub(crate) enabled: Option<Setting<bool>>,
    /// Most that is kept for one work folder, such as 10GiB.
    pub(crate) max: Option<Setting<Bytes>>,
}

/// Effective settings for the caches of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caches {
    /// Whether commands can fill caches.
    pub enabled: bool,
    /// Most that is kept for one work folder, in bytes.
    pub max: u64,
}

impl Default for Caches {
    fn default() -> Self {
        Self {
            enabled: true,
            max: 10 << 30,
        }
    }
}

/// Reads the settings.
pub(crate) fn load(sources: &Sources, notes: &mut Notes) -> Result<Caches, Failure> {
    let mut caches = Caches::default();
    let mut shown = Map::new();
    let mut from: Vec<Origin> = Vec::new();
    let mut show = |name: &str, value: Value, origin: Origin| {
        shown.insert(name.to_owned(), value);
        if !from.contains(&origin) {
            from.push(origin);
        }
    };
    if let Some(given) = sources.first(|file| &file.tools.caches.enabled)? {
        caches.enabled = given.value;
        show("enabled", given.written, given.from);
    }
    if let Some(given) = sources.first(|file| &file.tools.caches.max)? {
        caches.max = given.value.0;
        show("max", given.written, given.from);
    }
    notes.show_value("tools.caches", shown.into(), joined(&from));
    Ok(caches)
}
