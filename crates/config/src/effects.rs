//! Settings for recording what calls change. Only the user can set them: a project must
//! not be able to make its own changes permanent, or to fill the user's disk.

use super::Notes;
use super::setting::{Bytes, Setting, Whole};
use super::sources::Sources;
use super::{Origin, joined};
use crate::failure::Failure;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::time::Duration;

/// Settings for recording what calls change.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EffectsEntry {
    /// Whether changes are recorded, so that they can be undone.
    pub(crate) record: Option<Setting<bool>>,
    /// Largest file whose earlier content is kept, such as 64MiB.
    pub(crate) max_file: Option<Setting<Bytes>>,
    /// Most that is kept of one session, such as 2GiB.
    pub(crate) max_session: Option<Setting<Bytes>>,
    /// Days for which a session's changes are kept.
    pub(crate) keep_days: Option<Setting<Whole<1, 36500>>>,
    /// Globs of paths whose content is not kept.
    pub(crate) skip: Option<Setting<Vec<String>>>,
}

/// Effective settings for recording changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effects {
    /// Whether changes are recorded.
    pub record: bool,
    /// Largest file whose earlier content is kept, in bytes.
    pub max_file: u64,
    /// Most that is kept of one session, in bytes.
    pub max_session: u64,
    /// Age at which a session's changes are removed.
    pub keep: Duration,
    /// Globs of paths whose content is not kept.
    pub skip: Vec<String>,
}

impl Default for Effects {
    fn default() -> Self {
        Self {
            record: true,
            max_file: 64 << 20,
            max_session: 2 << 30,
            keep: days(30),
            skip: Vec::new(),
        }
    }
}

fn days(days: u64) -> Duration {
    Duration::from_secs(days.saturating_mul(24 * 60 * 60))
}

/// Reads the settings.
pub(crate) fn load(sources: &Sources, notes: &mut Notes) -> Result<Effects, Failure> {
    let mut effects = Effects::default();
    let mut shown = Map::new();
    let mut from: Vec<Origin> = Vec::new();
    let mut show = |name: &str, value: Value, origin: Origin| {
        shown.insert(name.to_owned(), value);
        if !from.contains(&origin) {
            from.push(origin);
        }
    };
    if let Some(given) = sources.first(|file| &file.effects.record)? {
        effects.record = given.value;
        show("record", given.written, given.from);
    }
    if let Some(given) = sources.first(|file| &file.effects.max_file)? {
        effects.max_file = given.value.0;
        show("max_file", given.written, given.from);
    }
    if let Some(given) = sources.first(|file| &file.effects.max_session)? {
        effects.max_session = given.value.0;
        show("max_session", given.written, given.from);
    }
    if let Some(given) = sources.first(|file| &file.effects.keep_days)? {
        effects.keep = days(given.value.0);
        show("keep_days", given.written, given.from);
    }
    if let Some(given) = sources.first(|file| &file.effects.skip)? {
        if let Err(error) = haft::ops::effects::Skip::new(&given.value) {
            let message = format!("{}: effects.skip: {error}", given.from);
            return Err(Failure::usage(message));
        }
        effects.skip.clone_from(&given.value);
        show("skip", given.written, given.from);
    }
    notes.show_value("effects", shown.into(), joined(&from));
    Ok(effects)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sizes_have_units() {
        let size = |value: Value| {
            serde_json::from_value::<Bytes>(value)
                .ok()
                .map(|size| size.0)
        };
        for (text, bytes) in [
            ("64MiB", Some(64 << 20)),
            ("2 GiB", Some(2 << 30)),
            ("1k", Some(1024)),
            ("500MB", Some(500_000_000)),
            ("7", Some(7)),
            ("7b", Some(7)),
            ("1TiB", Some(1 << 40)),
            ("MiB", None),
            ("-1", None),
            ("1.5GiB", None),
            ("1 stone", None),
            ("99999999999999TiB", None),
        ] {
            assert_eq!(size(json!(text)), bytes, "{text}");
        }
        assert_eq!(size(json!(12)), Some(12));
        assert_eq!(size(json!(-12)), None);
    }
}
