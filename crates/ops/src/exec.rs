//! Runs one command for a session: confines it, and afterwards checks what it left behind.
//!
//! `sandbox` builds the confinement. `findings` detects changes that no kernel mechanism
//! can prevent, and `move_out` removes files that must not stay. Each command has a
//! `CommandMonitor`. If it is dropped before the check, or if the command leaves processes
//! behind, the session's [`Monitor`] takes over: it checks before each command and once
//! more when `Runtime::close` has ended everything. While something runs, the list of
//! watched paths is also kept in a locked file (`watch_file`). A file that is not locked
//! belongs to a haft that was killed, and the next session starts by checking it.

pub mod caches;
mod denied_paths;
pub mod environment;
mod findings;
mod monitor;
mod move_out;
pub mod network;
mod sandbox;
mod state;
mod survey;
#[cfg(test)]
mod tests;
mod tidy;
mod watch_file;

pub use crate::git::{ConfigGate, Objection, RefusedConfig};
pub use findings::Finding;
pub use monitor::Monitor;
pub use sandbox::Sandbox;

use crate::blocking::{self, Weight};
use crate::effects::Recording;
use crate::executor::sandbox::{Enforcement, Execution};
use crate::executor::{Executor, Finished, Input, Keep, Launch, Program, Prompts, Streams, Watch};
use crate::scope::PathFilter;
use crate::{Error, Result};
use caches::Caches;
use monitor::CommandMonitor;
use network::{Pass, SharedNetwork};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Settings for running the commands of a session.
#[derive(Clone)]
pub struct ExecContext {
    /// Starts the commands.
    pub executor: Arc<dyn Executor>,
    /// The complete environment of the commands.
    pub environment: Vec<(OsString, OsString)>,
    /// Confinement of the commands; `None` if the user switched it off.
    pub sandbox: Option<Arc<Sandbox>>,
    /// Folder on another machine, if the executor runs commands there.
    pub remote_folder: Option<RemoteFolder>,
    /// Additional paths to hide from confined commands.
    pub filter: Option<Arc<dyn PathFilter>>,
    /// Settings that separate a confined program from the session's commands.
    pub isolation: Option<Isolation>,
    /// Recording of the files that the commands change.
    pub recording: Recording,
    /// The network that the commands share, if their confinement says so.
    pub network: SharedNetwork,
    /// Admission of the commands to the way out of that network.
    pub pass: Option<Pass>,
    /// Caches of the commands. Isolated programs get none.
    pub caches: Option<Arc<Caches>>,
}

/// Settings that separate a program from the commands of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolation {
    /// Temp folder for this program only. Need not exist yet.
    pub temp: PathBuf,
    /// Folders from which it may start programs.
    pub execution: Execution,
}

impl ExecContext {
    /// Returns the same settings for another session, whose commands end with it.
    #[must_use]
    pub fn part(&self) -> Self {
        let executor = self.executor.part();
        Self {
            executor: executor.unwrap_or_else(|| Arc::clone(&self.executor)),
            network: self.network.for_new_session(),
            ..self.clone()
        }
    }
}

/// A folder on another machine that corresponds to a local one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFolder {
    /// The local folder.
    pub local: PathBuf,
    /// The folder on the other machine.
    pub remote: PathBuf,
}

impl std::fmt::Debug for ExecContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The environment may contain secrets, so it is omitted.
        f.debug_struct("ExecContext")
            .field("sandbox", &self.sandbox)
            .finish_non_exhaustive()
    }
}

/// Request to run a command.
#[derive(Debug, Clone)]
pub struct Exec {
    /// The program to run.
    pub program: Program,
    /// Working directory, already checked by a scope.
    pub dir: PathBuf,
    /// Whether both streams are merged.
    pub streams: Streams,
    /// Maximum run time.
    pub limit: Option<Duration>,
    /// Amount of output to keep.
    pub keep: Keep,
    /// What to do if the command waits for user input.
    pub prompts: Prompts,
    /// Content of standard input.
    pub input: Input,
}

/// Result of a command that has ended.
#[derive(Debug, Clone)]
pub struct Done {
    /// Exit status and output.
    pub finished: Finished,
    /// The confinement that was applied.
    pub confined: Confined,
    /// Changes it made to protected paths.
    pub findings: Vec<Finding>,
}

/// Confinement of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confined {
    /// None, because the user switched it off.
    Off,
    /// The confinement that the machine enforced.
    By(Enforcement),
}

/// Runs a command until it ends.
///
/// # Errors
/// [`Error::CannotStart`] if it could not be started or confined.
pub async fn run(
    context: &ExecContext,
    request: Exec,
    watch: &Watch<'_>,
    cancel: &CancellationToken,
) -> Result<Done> {
    let Some(sandbox) = &context.sandbox else {
        let launch = context.launch(request, None);
        return Ok(Done {
            finished: context.executor.run(launch, watch, cancel).await?,
            confined: Confined::Off,
            findings: Vec::new(),
        });
    };
    sandbox.recall().await;
    // Changes by processes of earlier commands are reported now, and undone before they
    // would count as the state before this command.
    let mut findings = sandbox.since_last();
    let ran = confined(context, sandbox, request, watch, cancel, &mut findings).await;
    if ran.is_err() {
        // The call fails, so no reply can report it.
        sandbox.monitor().save(std::mem::take(&mut findings));
    }
    let (finished, enforcement) = ran?;
    Ok(Done {
        finished,
        confined: Confined::By(enforcement),
        findings,
    })
}

/// Runs a command in a sandbox, and adds its changes to `findings`.
async fn confined(
    context: &ExecContext,
    sandbox: &Arc<Sandbox>,
    request: Exec,
    watch: &Watch<'_>,
    cancel: &CancellationToken,
    findings: &mut Vec<Finding>,
) -> Result<(Finished, Enforcement)> {
    let confined = sandbox.confine(&request.program, context).await?;
    findings.extend(confined.noticed.iter().cloned());
    let enforcement = confined.enforcement.clone();
    let command_monitor = CommandMonitor::new(sandbox, &confined);
    let launch = context.launch(request.clone(), Some(confined));
    let (finished, enforcement, mut command_monitor) =
        match context.executor.run(launch, watch, cancel).await {
            // The machine no longer enforces what it did: check again, once.
            Err(refused) if is_unconfined(&refused) => {
                command_monitor.done();
                let anew = sandbox.confine_anew(&request.program, context, &enforcement);
                let Some(anew) = anew.await? else {
                    return Err(refused);
                };
                let command_monitor = CommandMonitor::new(sandbox, &anew);
                let enforcement = anew.enforcement.clone();
                let launch = context.launch(request, Some(anew));
                let finished = context.executor.run(launch, watch, cancel).await?;
                (finished, enforcement, command_monitor)
            }
            other => (other?, enforcement, command_monitor),
        };
    let (command_monitor, seen) = blocking::run(Weight::Heavy, move || {
        let seen = command_monitor.compare();
        Ok((command_monitor, seen))
    })
    .await?;
    findings.extend(seen);
    // Reported once: the watch of an earlier command has seen it, too.
    for one in sandbox.since_last() {
        if !findings.contains(&one) {
            findings.push(one);
        }
    }
    if finished.survivors.is_empty() {
        command_monitor.done();
    }
    Ok((finished, enforcement))
}

/// Prepares a command to be started, confined as the session requires, and the check to
/// make after it has ended.
///
/// # Errors
/// [`Error::CannotStart`] if it cannot be confined.
pub async fn launch(context: &ExecContext, request: Exec) -> Result<(Launch, After)> {
    let Some(sandbox) = &context.sandbox else {
        return Ok((context.launch(request, None), After::nothing()));
    };
    // Determines the enforcement first, because unlike `run` this does not retry.
    sandbox.enforcement().await;
    let confined = sandbox.confine(&request.program, context).await?;
    let after = After {
        command_monitor: Some(CommandMonitor::new(sandbox, &confined)),
        noticed: confined.noticed.clone(),
        _pass: context.pass.clone(),
    };
    let launch = context.launch(request, Some(confined));
    Ok((launch, after))
}

/// The check to make after a command has ended. If it is dropped, the session makes the
/// check, before each command and at its end.
#[derive(Debug)]
pub struct After {
    command_monitor: Option<CommandMonitor>,
    noticed: Vec<Finding>,
    /// Admits the command to the way out of its network until it has ended.
    _pass: Option<Pass>,
}

impl After {
    /// Creates an empty check, for a command that was not confined.
    #[must_use]
    pub fn nothing() -> Self {
        Self {
            command_monitor: None,
            noticed: Vec::new(),
            _pass: None,
        }
    }

    /// Leaves the check to the session, for a program that keeps running between calls: see
    /// [`ExecContext::noticed`].
    pub fn stay(self, context: &ExecContext) {
        if let Some(sandbox) = &context.sandbox {
            sandbox.monitor().save(self.noticed);
        }
    }

    /// Returns the changes that the command made to protected paths. Processes it left
    /// running are still watched.
    #[must_use]
    pub fn look(self, finished: Option<&Finished>) -> Vec<Finding> {
        let mut findings = self.noticed;
        if let Some(mut command_monitor) = self.command_monitor {
            findings.extend(command_monitor.compare());
            if finished.is_some_and(|finished| finished.survivors.is_empty()) {
                command_monitor.done();
            }
        }
        findings
    }
}

fn is_unconfined(error: &Error) -> bool {
    matches!(
        error,
        Error::CannotStart {
            refusal: crate::executor::Refusal::Unconfined,
            ..
        }
    )
}

impl ExecContext {
    /// Returns the changes to protected paths since the last check, by programs that run
    /// between calls and by processes that commands left running.
    pub async fn noticed(&self) -> Vec<Finding> {
        let Some(sandbox) = self.sandbox.clone() else {
            return Vec::new();
        };
        let looked = blocking::run(Weight::Heavy, move || Ok(sandbox.since_last())).await;
        looked.unwrap_or_default()
    }

    /// Checks the changes made by sessions that were killed in this work folder, once. Must
    /// complete before anything is done there.
    pub async fn recall(&self) {
        if let Some(sandbox) = &self.sandbox {
            sandbox.recall().await;
        }
    }

    /// Ends everything that was started with these settings if its changes will be checked.
    /// Returns once it has ended.
    pub async fn close(&self) {
        let sandbox = self.sandbox.as_ref();
        if sandbox.is_some_and(|sandbox| sandbox.monitor().is_needed()) {
            self.executor.close().await;
        }
    }

    /// Makes the final check for changes to protected paths, after everything in the
    /// session has ended.
    pub async fn end(&self) -> Vec<Finding> {
        let Some(sandbox) = self.sandbox.clone() else {
            return Vec::new();
        };
        sandbox.recall().await;
        sandbox.monitor().settled().await;
        let look = move || Ok(sandbox.monitor().end(sandbox.moved_out()));
        let looked = blocking::run(Weight::Heavy, look).await;
        if let Some(caches) = &self.caches {
            caches.end().await;
        }
        looked.unwrap_or_default()
    }

    fn launch(&self, request: Exec, confined: Option<sandbox::Confined>) -> Launch {
        let (mut confinement, mut network, mut config_gate) = (None, None, None);
        let mut caches = None;
        if let Some(confined) = confined {
            confinement = Some(confined.confinement);
            network = confined.network;
            caches = confined.caches;
            config_gate = Some(confined.gate);
        }
        let mut environment = self.environment.clone();
        if let (Some(network), Some(pass)) = (&network, &self.pass) {
            for (name, value) in network.variables(pass) {
                environment::set(&mut environment, name, &value);
            }
        }
        for (name, folder) in caches.iter().flat_map(|caches| &caches.variables) {
            environment::set(&mut environment, name, folder.as_os_str());
        }
        if let Some(confinement) = &confinement {
            let temp = confinement
                .plan
                .temp_seen(confinement.strength.level)
                .as_os_str();
            environment::set(&mut environment, "TMPDIR", temp);
            for name in ["TMP", "TEMP"] {
                environment.retain(|(known, _)| known != name);
            }
        }
        let dir = match &self.remote_folder {
            None => request.dir,
            Some(RemoteFolder { local, remote }) => {
                let below = request.dir.strip_prefix(local).unwrap_or(Path::new(""));
                // Without a trailing slash, because that would be a different spelling of
                // the folder.
                remote.components().chain(below.components()).collect()
            }
        };
        Launch {
            program: request.program,
            dir,
            environment,
            streams: request.streams,
            limit: request.limit,
            keep: request.keep,
            prompts: request.prompts,
            input: request.input,
            confinement,
            network: network.map(|network| Arc::clone(&network.namespaces)),
            layers: caches.and_then(|caches| caches.layers.clone()),
            recording: self.recording.clone(),
            config_gate,
        }
    }
}
