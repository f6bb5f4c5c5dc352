//! Attribution of a program's changes: to one call or, for a program that serves many calls,
//! to the call in progress.

use super::{End, Hold, Incomplete, Recorder, Session};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Recording of the changes that a program makes.
#[derive(Debug, Clone)]
pub enum Recording {
    /// Changes are not recorded.
    Off,
    /// Everything belongs to one call.
    Call(Recorder),
    /// The program serves many calls.
    Program(Switch),
}

impl Recording {
    /// Whether anything is recorded.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Returns the recorder for a change that is about to happen.
    #[must_use]
    pub(crate) fn current(&self) -> Option<Cow<'_, Recorder>> {
        match self {
            Self::Off => None,
            Self::Call(recorder) => Some(Cow::Borrowed(recorder)),
            Self::Program(switch) => Some(Cow::Owned(switch.current())),
        }
    }

    /// Announces that changes are recorded from now on, also those of a program that could
    /// not be recorded before it was restarted.
    pub(crate) fn begin(&self) {
        if let Self::Program(switch) = self {
            switch.lock().trouble = None;
        }
    }

    /// Keeps the set of a call open while its processes are running.
    pub(crate) fn hold(&self) -> Option<Hold> {
        match self {
            Self::Call(recorder) => Some(recorder.hold()),
            // Its calls end before it does.
            Self::Program(_) | Self::Off => None,
        }
    }

    /// Announces the end of the program. A call ends its recorder itself.
    pub(crate) fn end(&self) {
        if let Self::Program(switch) = self {
            switch.end();
        }
    }

    /// Marks the current set as incomplete.
    pub(crate) fn incomplete(&self, reason: Incomplete) {
        match self {
            Self::Off => {}
            Self::Call(recorder) => recorder.incomplete(reason),
            Self::Program(switch) => switch.incomplete(reason),
        }
    }

    /// Marks the current set and all later ones of the program as incomplete.
    pub(crate) fn unrecorded(&self, reason: Incomplete) {
        if let Self::Program(switch) = self {
            switch.lock().trouble = Some(reason.clone());
        }
        self.incomplete(reason);
    }
}

/// Attributes the changes of a program that serves many calls, such as a plugin or an MCP
/// server, to the most recently begun call in progress. Changes between calls go to a set of
/// the program's own.
#[derive(Debug, Clone)]
pub struct Switch(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    session: Session,
    program: String,
    /// Calls in progress, the latest last, each with the number of its attribution.
    calls: Vec<(u64, Recorder)>,
    next: u64,
    /// The set for changes between calls, from the first such change to the next call.
    own: Option<Recorder>,
    /// Number of such sets so far.
    gaps: u64,
    /// Reason why changes can no longer be recorded, for the calls to come.
    trouble: Option<Incomplete>,
}

/// A call to which changes are attributed, until this is dropped.
#[derive(Debug)]
#[must_use = "changes are attributed to the call until this is dropped"]
pub struct Attribution {
    switch: Switch,
    number: u64,
}

impl Switch {
    /// Creates a switch for one program. `program` names its own sets.
    #[must_use]
    pub fn new(session: Session, program: &str) -> Self {
        Self(Arc::new(Mutex::new(State {
            session,
            program: program.to_owned(),
            calls: Vec::new(),
            next: 0,
            own: None,
            gaps: 0,
            trouble: None,
        })))
    }

    /// Attributes changes to a call from now on.
    pub fn begin(&self, recorder: &Recorder) -> Attribution {
        let (number, own) = {
            let mut state = self.lock();
            let number = state.next;
            state.next += 1;
            if let Some(trouble) = &state.trouble {
                recorder.incomplete(trouble.clone());
            }
            state.calls.push((number, recorder.clone()));
            (number, state.own.take())
        };
        // Sets are ordered by time, so what happened before the call is closed.
        finish(own);
        Attribution {
            switch: self.clone(),
            number,
        }
    }

    /// Closes the program's own set.
    fn end(&self) {
        let own = self.lock().own.take();
        finish(own);
    }

    /// Returns the recorder for a change that is about to happen.
    fn current(&self) -> Recorder {
        let mut state = self.lock();
        if let Some((_, recorder)) = state.calls.last() {
            return recorder.clone();
        }
        if let Some(own) = &state.own {
            return own.clone();
        }
        state.gaps += 1;
        let name = format!("{}-{}", state.program, state.gaps);
        let own = state.session.begin(&name, &state.program);
        if let Some(trouble) = &state.trouble {
            own.incomplete(trouble.clone());
        }
        state.own = Some(own.clone());
        own
    }

    fn incomplete(&self, reason: Incomplete) {
        let state = self.lock();
        let current = state.calls.last().map(|(_, recorder)| recorder.clone());
        if let Some(recorder) = current.or_else(|| state.own.clone()) {
            recorder.incomplete(reason);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Attribution {
    fn drop(&mut self) {
        let mut state = self.switch.lock();
        state.calls.retain(|(number, _)| *number != self.number);
    }
}

fn finish(own: Option<Recorder>) {
    if let Some(own) = own {
        own.finish(End::Done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::{Bounds, Skip, Store};
    use std::time::Duration;

    fn session(folder: &std::path::Path) -> Session {
        let bounds = Bounds {
            max_file: 1 << 20,
            max_session: 1 << 20,
            keep: Duration::from_secs(60),
            skip: Skip::default(),
        };
        Store::new(folder.join("state"), bounds).session("s", &folder.join("work"), &[])
    }

    fn why(recorder: &Recorder) -> Option<String> {
        recorder.counts_now().why
    }

    #[test]
    fn changes_belong_to_the_latest_call_in_progress() {
        let folder = tempfile::tempdir().unwrap();
        let session = session(folder.path());
        let switch = Switch::new(session.clone(), "plugin");
        let recording = Recording::Program(switch.clone());
        let (one, two) = (session.begin("1", "t"), session.begin("2", "t"));
        let reason = |text: &str| Incomplete::Other(text.to_owned());
        let first = switch.begin(&one);
        let second = switch.begin(&two);
        recording.incomplete(reason("during both"));
        drop(second);
        recording.incomplete(reason("during the first"));
        drop(first);
        recording.incomplete(reason("between calls"));
        assert_eq!(why(&two).unwrap(), "during both");
        assert_eq!(why(&one).unwrap(), "during the first");
    }

    #[test]
    fn a_program_that_is_not_recorded_makes_later_calls_incomplete_until_it_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let session = session(folder.path());
        let switch = Switch::new(session.clone(), "plugin");
        let recording = Recording::Program(switch.clone());
        recording.unrecorded(Incomplete::SandboxOff);
        let one = session.begin("1", "t");
        drop(switch.begin(&one));
        assert!(why(&one).is_some());
        recording.begin();
        let two = session.begin("2", "t");
        drop(switch.begin(&two));
        assert_eq!(why(&two), None);
    }
}
