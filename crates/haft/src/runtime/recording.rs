//! Recording what a call changes, from its start to the end of everything it started.

use super::second_look::{is_by_default, needs_review};
use super::session::SharedSettings;
use super::{Call, Runtime, Session};
use crate::commands::CommandLocation;
use crate::registry::{Entry, ToolOrigin};
use crate::{Effect, Judgement, Reply, effects};
use haft_ops::effects::{Counts, End, Incomplete, Recorder};
use haft_ops::exec::ExecContext;
use haft_ops::executor::{Ended, Finished};
use haft_ops::processes::Processes;
use haft_ops::{Access, FilePath, Scope};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The recording of one call and of the calls that it makes. Clones share it.
#[derive(Clone)]
pub(crate) struct Recording {
    shared: Arc<Shared>,
    /// Whether the call that has this was made by another one, whose recording it is.
    is_inner: bool,
}

struct Shared {
    recorder: Recorder,
    /// The rules that put the call under review, if any.
    review: Option<Judgement>,
    /// Whether a command ended by a timeout or was cancelled.
    is_interrupted: AtomicBool,
    /// Ids of the background processes that the call started.
    started: Mutex<Vec<String>>,
    /// Settings for the commands of a call under review, which end together.
    part: Mutex<Option<ExecContext>>,
}

/// Creates the session that records changes, if they are recorded.
pub(super) fn session(
    shared: &SharedSettings,
    id: &str,
    scope: &Scope,
) -> Option<haft_ops::effects::Session> {
    let store = shared.effects.as_ref()?;
    let config = &shared.origin.setup.scope_config;
    let real = |path: &PathBuf| haft_ops::scope::real(path).unwrap_or_else(|| path.clone());
    let work_dir = real(&config.work_dir);
    let mut roots: Vec<PathBuf> = config.roots.iter().map(real).collect();
    if scope.is_on_disk() {
        roots.extend(scope.roots());
    }
    roots.extend(
        scope
            .mounted_folders()
            .iter()
            .map(|(_, folder)| real(folder)),
    );
    roots.retain(|root| *root != work_dir);
    roots.dedup();
    Some(store.session(id, &work_dir, &roots))
}

impl Recording {
    /// Returns the recording for a call that this one makes.
    pub(crate) fn of_inner_call(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            is_inner: true,
        }
    }

    /// Returns the recorder of the call.
    pub(crate) fn recorder(&self) -> &Recorder {
        &self.shared.recorder
    }

    /// Whether the user decides about the changes after the call.
    pub(crate) fn is_reviewed(&self) -> bool {
        self.shared.review.is_some()
    }

    /// Whether the commands of the call have no network, because a rule puts it under review.
    /// For dangerous commands that no rule is about, the network stays as it is: installing
    /// again what was deleted needs it.
    pub(crate) fn is_offline(&self) -> bool {
        let review = self.shared.review.as_ref();
        review.is_some_and(|judgement| !is_by_default(judgement))
    }

    /// Notes how a command of the call ended.
    pub(crate) fn command_ended(&self, finished: &Finished) {
        if matches!(finished.ended, Ended::TimedOut | Ended::Cancelled) {
            self.interrupt();
        }
    }

    /// Notes that the call did not come to its own end. The call that made an inner one may
    /// still do so.
    pub(crate) fn interrupt(&self) {
        if !self.is_inner {
            self.shared.is_interrupted.store(true, Ordering::Relaxed);
        }
    }

    /// Notes a background process of the call.
    pub(crate) fn process_started(&self, id: &str) {
        lock(&self.shared.started).push(id.to_owned());
    }

    /// Returns how the commands of this call run. Those of a call under review end with the
    /// call, and have no network if a rule says so.
    pub(crate) fn exec_context(&self, session: &Session, mut usual: ExecContext) -> ExecContext {
        usual.recording = haft_ops::effects::Recording::Call(self.shared.recorder.clone());
        if usual.sandbox.is_none() {
            self.shared.recorder.incomplete(match session.is_remote() {
                true => Incomplete::OtherMachine,
                false => Incomplete::SandboxOff,
            });
        }
        if !self.is_reviewed() {
            return usual;
        }
        let mut part = lock(&self.shared.part);
        let part = part.get_or_insert_with(|| usual.part());
        let sandbox = match self.is_offline() {
            true => usual
                .sandbox
                .as_ref()
                .map(|sandbox| session.offline(sandbox)),
            false => usual.sandbox.clone(),
        };
        ExecContext {
            executor: Arc::clone(&part.executor),
            sandbox,
            ..usual
        }
    }

    /// Ends everything that a call under review started.
    async fn end_processes(&self, processes: Option<&Processes>) {
        let started = std::mem::take(&mut *lock(&self.shared.started));
        for id in started {
            if let Some(processes) = processes {
                // It may have been forgotten, which means that it has ended.
                let _ = processes.kill(&id).await;
            }
        }
        let part = lock(&self.shared.part).take();
        if let Some(part) = part {
            part.executor.close().await;
        }
    }
}

impl Runtime {
    /// Starts recording a call that may change something.
    pub(super) fn begin_recording(
        &self,
        call: &Call,
        entry: &Entry,
        review: Option<Judgement>,
    ) -> Option<Recording> {
        // Programs that other people wrote may do more than they declare.
        if !entry.tool.effect().may_change() && entry.origin == ToolOrigin::Toolset {
            return None;
        }
        let outer = call.outer.as_ref();
        if let Some(outer) = outer.and_then(|outer| outer.recording.as_ref())
            && (review.is_none() || outer.is_reviewed())
        {
            return Some(outer.clone());
        }
        let id = self.recorded_id(call);
        let recorder = self.session.effects.as_ref()?.begin(&id, &call.tool);
        let shared = Shared {
            recorder,
            review,
            is_interrupted: AtomicBool::new(false),
            started: Mutex::default(),
            part: Mutex::default(),
        };
        Some(Recording {
            shared: Arc::new(shared),
            is_inner: false,
        })
    }

    /// Ends the recording of a call and reports its changes. If the call is under review, the
    /// user decides about them.
    pub(super) async fn end_recording(
        &self,
        call: &Call,
        recording: Option<Recording>,
        mut reply: Reply,
    ) -> Reply {
        let Some(recording) = recording.filter(|recording| !recording.is_inner) else {
            return reply;
        };
        let session = &self.session;
        let shared = &recording.shared;
        if recording.is_reviewed() {
            recording.end_processes(session.processes.get()).await;
        }
        let end = match shared.is_interrupted.load(Ordering::Relaxed) || call.cancel.is_cancelled()
        {
            true => End::Interrupted,
            false => End::Done,
        };
        let recorder = shared.recorder.clone();
        // Comparing reads the changed files. Processes that the call left running keep the
        // set open.
        let counts = haft_ops::blocking::on_a_thread(move || recorder.finish(end)).await;
        let counts = counts.unwrap_or_else(|error| Counts {
            why: Some(error),
            ..Counts::default()
        });
        if let Some(json) = effects::counts_json(&counts) {
            reply.details.insert("effects".to_owned(), json);
        }
        let Some(judgement) = &shared.review else {
            return reply;
        };
        let id = self.recorded_id(call);
        match needs_review(judgement, &counts, session.effects.as_ref(), &id).await {
            true => self.review(call, judgement.clone(), counts, reply).await,
            false => reply,
        }
    }

    /// Whether the changes of a call can be recorded completely, so that a review can revert
    /// them.
    pub(super) fn can_review(&self, entry: &Entry, paths: &[(FilePath, Access)]) -> bool {
        let session = &self.session;
        let (tool, is_own) = (&entry.tool, entry.origin == ToolOrigin::Toolset);
        // Other programs have their own network and processes.
        if session.effects.is_none() || !(is_own || tool.is_reviewable()) {
            return false;
        }
        let exec_context = match (tool.installer(), &session.programs) {
            (Some(installer), Some(programs)) => Some(&**programs.of(installer)),
            _ => session.exec_context.as_ref(),
        };
        let is_sandboxed = exec_context.is_some_and(|context| context.sandbox.is_some());
        let is_on_disk = |path: &FilePath| session.backend.on_disk(path).is_some();
        match tool.effect() {
            Effect::Write if paths.is_empty() => session.scope.is_on_disk(),
            Effect::Write => paths.iter().all(|(path, _)| is_on_disk(path)),
            Effect::Execute => is_sandboxed && !session.is_remote(),
            _ => false,
        }
    }
}

impl Session {
    /// Whether commands run on another machine.
    fn is_remote(&self) -> bool {
        let commands = self.shared.origin.setup.commands.as_ref();
        commands.is_some_and(|commands| matches!(commands.place, CommandLocation::Elsewhere { .. }))
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
