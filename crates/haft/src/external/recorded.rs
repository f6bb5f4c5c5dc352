//! Recording what programs change that run between calls.

use super::plugin::Programs;
use crate::Context;
use haft_ops::effects::{Attribution, Recording, Session, Switch};
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Attributes the changes of programs to the calls that they serve.
#[derive(Default)]
pub(crate) struct ProgramChanges {
    /// The session that records them, unless recording is off.
    session: OnceLock<Session>,
    /// One per program, by its name.
    switches: Mutex<HashMap<String, Switch>>,
}

impl ProgramChanges {
    /// Sets where changes are recorded, unless that is known.
    pub(crate) fn record(&self, session: &Session) {
        let _ = self.session.set(session.clone());
    }

    /// Returns the switch of a program, if changes are recorded.
    fn switch(&self, program: &str) -> Option<Switch> {
        let session = self.session.get()?;
        let mut switches = self.switches.lock().unwrap_or_else(PoisonError::into_inner);
        let switch = switches
            .entry(program.to_owned())
            .or_insert_with(|| Switch::new(session.clone(), program));
        Some(switch.clone())
    }
}

impl Programs {
    /// Returns how to record a program that runs between calls.
    pub(super) fn recording(&self, program: &str) -> Recording {
        match self.changes.switch(program) {
            Some(switch) => Recording::Program(switch),
            None => Recording::Off,
        }
    }

    /// Attributes what a program changes to a call, until the result is dropped. `program`
    /// is the name with which it was started.
    #[must_use]
    pub fn attributed(&self, program: &str, cx: &Context) -> Option<Attribution> {
        let recording = cx.recording.as_ref()?;
        let switch = self.changes.switch(program)?;
        Some(switch.begin(recording.recorder()))
    }
}
