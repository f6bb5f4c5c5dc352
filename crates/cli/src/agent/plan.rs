//! The plan of a session in plan mode: a file that the user can edit.
#![expect(clippy::disallowed_methods, reason = "a file of haft's own")]

use crate::text::on_one_line;
use haft::ops::private;
use haft_agent::{AgentEvent, EventKind};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Folder in the state folder.
const FOLDER: &str = "plans";

/// The file with a session's plan.
#[derive(Debug, Clone)]
pub(crate) struct PlanFile {
    path: PathBuf,
    /// Content as the model knows it.
    known: Arc<Mutex<String>>,
}

fn path(state: &Path, session: &str) -> PathBuf {
    state.join(FOLDER).join(format!("{session}.md"))
}

impl PlanFile {
    pub(crate) fn new(state: &Path, session: &str) -> Self {
        let path = path(state, session);
        let known = std::fs::read_to_string(&path).unwrap_or_default();
        Self {
            path,
            known: Arc::new(Mutex::new(known)),
        }
    }

    /// Removes the plan of a deleted session, if it has one.
    pub(crate) fn remove(state: &Path, session: &str) {
        let _ = std::fs::remove_file(path(state, session));
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn read(&self) -> Result<String, String> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) if !text.trim().is_empty() => Ok(text),
            Ok(_) => Err("the plan is empty".to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err("there is no plan yet: say what to plan".to_owned())
            }
            Err(error) => Err(format!("cannot read {}: {error}", self.path.display())),
        }
    }

    /// Returns the notes for the model before a prompt.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = vec![haft_agent::PLAN_NOTE.to_owned()];
        let text = self.read().unwrap_or_default();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !text.is_empty() && text != *known {
            notes.push(format!(
                "[haft: the user has edited the plan. It is now:]\n\n{text}"
            ));
            *known = text;
        }
        notes
    }

    /// Keeps the answer of a run as the plan.
    pub(super) fn observe(&self, event: &EventKind) {
        if let EventKind::Agent(AgentEvent::AgentEnd {
            reason: "done",
            text,
            ..
        }) = event
            && !text.trim().is_empty()
        {
            let text = format!("{}\n", text.trim());
            if let Err(error) = self.write(&text) {
                crate::output::note(&format!(
                    "warning: cannot write {}: {error}",
                    self.path.display()
                ));
            }
        }
    }

    fn write(&self, text: &str) -> std::io::Result<()> {
        if let Some(folder) = self.path.parent() {
            private::folder(folder)?;
        }
        let new = self.path.with_extension("new");
        let options = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .clone();
        private::file(&options, &new)?.write_all(text.as_bytes())?;
        std::fs::rename(&new, &self.path)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        text.clone_into(&mut known);
        Ok(())
    }

    /// Returns one line for the user after a run.
    pub(super) fn line(&self) -> Option<String> {
        self.read().ok()?;
        let path = on_one_line(&self.path.display().to_string());
        Some(format!("plan: {path} · /plan edit · /plan go · /plan off"))
    }
}
