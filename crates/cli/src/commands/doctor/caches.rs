//! Reports the caches of commands.

use crate::commands::clean::described_caches;
use haft::Runtime;
use haft::ops::exec::caches::{Size, kept};
use haft_config::Settings;
use serde_json::{Value, json};

pub(super) struct Caches {
    is_on: bool,
    /// Size for this work folder and for all.
    sizes: Option<(Size, Size)>,
    problems: Vec<String>,
}

/// Examines the caches, after a command has run.
pub(super) fn examine(settings: &Settings, runtime: &Runtime) -> Caches {
    let exec_context = runtime.exec_context();
    let caches = exec_context.and_then(|exec_context| exec_context.caches.as_ref());
    let folder = settings.folders.state.as_ref();
    let folder = folder.map(|state| state.join(super::super::clean::CACHES));
    Caches {
        is_on: caches.is_some(),
        sizes: caches
            .zip(folder)
            .map(|(caches, all)| (kept(caches.folder()), kept(&all))),
        problems: caches.map(|caches| caches.problems()).unwrap_or_default(),
    }
}

impl Caches {
    /// Formats the findings as lines.
    pub(super) fn lines(&self) -> Vec<String> {
        let Some((here, all)) = self.sizes.filter(|_| self.is_on) else {
            return vec!["caches: commands cannot fill caches in your home".to_owned()];
        };
        let mut lines = vec![format!(
            "caches: {} for this work folder, {} in all (`haft clean --caches` removes them)",
            described_caches(here),
            described_caches(all)
        )];
        let problems = self.problems.iter();
        lines.extend(problems.map(|problem| format!("  without a layer: {problem}")));
        lines
    }

    /// Returns the findings as JSON.
    pub(super) fn json(&self) -> Value {
        json!({
            "enabled": self.is_on,
            "bytes": self.sizes.map(|(here, _)| here.bytes),
            "bytes_in_all": self.sizes.map(|(_, all)| all.bytes),
            "without_layer": self.problems,
        })
    }
}
