//! Runs one command for a session: confines it, and checks afterwards what it left behind.
//!
//! `sandboxed` builds the confinement. `touched` checks what no kernel mechanism can prevent,
//! and `moving` removes what must not stay. Each command has a `Watching`. If it is dropped
//! before the check, or if the command leaves processes behind, the session's [`Vigil`] takes
//! over: it checks before each command and once more when `Runtime::close` has ended
//! everything. While something runs, the list of watched paths is also kept in a locked file
//! (`open`). A file that is not locked belongs to a haft that was killed, and the next session
//! starts by checking it.

mod closed;
pub mod environment;
mod moving;
mod open;
mod sandboxed;
mod state;
#[cfg(test)]
mod tests;
mod tidy;
mod touched;
mod vigil;

pub use sandboxed::Sandbox;
pub use touched::Touched;
pub use vigil::Vigil;

use crate::blocking::{self, Weight};
use crate::executor::sandbox::{Confinement, Enforcement, Execution};
use crate::executor::{Executor, Finished, Input, Keep, Launch, Program, Prompts, Streams, Watch};
use crate::scope::Closing;
use crate::{Error, Result};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use vigil::Watching;

/// Where and how the commands of a session run.
#[derive(Clone)]
pub struct Surroundings {
    /// What starts them.
    pub executor: Arc<dyn Executor>,
    /// All that they see of the environment.
    pub environment: Vec<(OsString, OsString)>,
    /// What confines them; nothing where the person switched it off.
    pub sandbox: Option<Arc<Sandbox>>,
    /// Where they run instead of here, when the executor is elsewhere.
    pub elsewhere: Option<Elsewhere>,
    /// What is hidden from them beside that, where they are confined.
    pub closing: Option<Arc<dyn Closing>>,
    /// What sets a program apart from the commands of the session, where it is confined.
    pub apart: Option<Apart>,
}

/// What sets a program apart from the commands of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Apart {
    /// A temp folder that only this program has. It need not be there yet.
    pub temp: PathBuf,
    /// Where it may start programs from.
    pub execution: Execution,
}

impl Surroundings {
    /// The same for another session, whose commands end with it.
    #[must_use]
    pub fn part(&self) -> Self {
        let executor = self.executor.part();
        Self {
            executor: executor.unwrap_or_else(|| Arc::clone(&self.executor)),
            ..self.clone()
        }
    }
}

/// A folder of another machine that stands for one of this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// The folder here.
    pub here: PathBuf,
    /// The folder there.
    pub there: PathBuf,
}

impl std::fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The environment is nobody's business.
        f.debug_struct("Surroundings")
            .field("sandbox", &self.sandbox)
            .finish_non_exhaustive()
    }
}

/// A command to run.
#[derive(Debug, Clone)]
pub struct Exec {
    /// What to run.
    pub program: Program,
    /// Where: a folder that a scope has admitted.
    pub dir: PathBuf,
    /// Whether its two streams are one.
    pub streams: Streams,
    /// How long it may take.
    pub limit: Option<Duration>,
    /// What is kept of its output.
    pub keep: Keep,
    /// What happens when it waits for a person.
    pub prompts: Prompts,
    /// What it reads.
    pub input: Input,
}

/// A command that ended, and what else is to be said of it.
#[derive(Debug, Clone)]
pub struct Done {
    /// How it ended and what it said.
    pub finished: Finished,
    /// What confined it.
    pub confined: Confined,
    /// What it did to places that it had better not.
    pub touched: Vec<Touched>,
}

/// What confined a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confined {
    /// Nothing: the person said so.
    Off,
    /// This.
    By(Enforcement),
}

/// Runs a command to its end.
///
/// # Errors
/// [`Error::CannotStart`] when it did not begin, which includes that it could
/// not be confined.
pub async fn run(
    surroundings: &Surroundings,
    request: Exec,
    watch: &Watch<'_>,
    cancel: &CancellationToken,
) -> Result<Done> {
    let Some(sandbox) = &surroundings.sandbox else {
        let launch = surroundings.launch(request, None);
        return Ok(Done {
            finished: surroundings.executor.run(launch, watch, cancel).await?,
            confined: Confined::Off,
            touched: Vec::new(),
        });
    };
    sandbox.recall().await;
    // What processes of earlier commands did since is told now, and taken away
    // before it would count as having been there.
    let mut touched = sandbox.since_last();
    let ran = confined(surroundings, sandbox, request, watch, cancel, &mut touched).await;
    if ran.is_err() {
        // There is no reply that could tell it.
        sandbox.vigil().tell(std::mem::take(&mut touched));
    }
    let (finished, enforcement) = ran?;
    Ok(Done {
        finished,
        confined: Confined::By(enforcement),
        touched,
    })
}

/// Runs a command in a sandbox, and adds what it touched.
async fn confined(
    surroundings: &Surroundings,
    sandbox: &Arc<Sandbox>,
    request: Exec,
    watch: &Watch<'_>,
    cancel: &CancellationToken,
    touched: &mut Vec<Touched>,
) -> Result<(Finished, Enforcement)> {
    let confined = sandbox.confine(&request.program, surroundings).await?;
    touched.extend(confined.noticed);
    let (confinement, enforcement) = (confined.confinement, confined.enforcement);
    let watching = Watching::new(sandbox, &confinement);
    let launch = surroundings.launch(request.clone(), Some(confinement));
    let (finished, enforcement, mut watching) =
        match surroundings.executor.run(launch, watch, cancel).await {
            // What was known of this machine no longer holds: look again, once.
            Err(refused) if is_unconfined(&refused) => {
                watching.done();
                let anew = sandbox.confine_anew(&request.program, surroundings, &enforcement);
                let Some(anew) = anew.await? else {
                    return Err(refused);
                };
                let watching = Watching::new(sandbox, &anew.confinement);
                let launch = surroundings.launch(request, Some(anew.confinement));
                let finished = surroundings.executor.run(launch, watch, cancel).await?;
                (finished, anew.enforcement, watching)
            }
            other => (other?, enforcement, watching),
        };
    let (watching, seen) = blocking::run(Weight::Heavy, move || {
        let seen = watching.compare();
        Ok((watching, seen))
    })
    .await?;
    touched.extend(seen);
    // Told once: whoever still watches for an earlier command has seen it as well.
    for one in sandbox.since_last() {
        if !touched.contains(&one) {
            touched.push(one);
        }
    }
    if finished.survivors.is_empty() {
        watching.done();
    }
    Ok((finished, enforcement))
}

/// A command ready to be started, confined as the session says, and what is to be
/// looked at when it has ended.
///
/// # Errors
/// [`Error::CannotStart`] when it cannot be confined.
pub async fn launch(surroundings: &Surroundings, request: Exec) -> Result<(Launch, After)> {
    let Some(sandbox) = &surroundings.sandbox else {
        return Ok((surroundings.launch(request, None), After::nothing()));
    };
    // Known for certain: nobody tries again for whoever starts it.
    sandbox.enforcement().await;
    let confined = sandbox.confine(&request.program, surroundings).await?;
    let after = After {
        watching: Some(Watching::new(sandbox, &confined.confinement)),
        noticed: confined.noticed,
    };
    let launch = surroundings.launch(request, Some(confined.confinement));
    Ok((launch, after))
}

/// What is to be looked at when a command has ended. Dropped, it is left to the session,
/// which looks before each command and when it is over.
#[derive(Debug)]
pub struct After {
    watching: Option<Watching>,
    noticed: Vec<Touched>,
}

impl After {
    /// Nothing, for a command that nothing confined.
    #[must_use]
    pub fn nothing() -> Self {
        Self {
            watching: None,
            noticed: Vec::new(),
        }
    }

    /// Leaves the looking to the session, for a program that goes on between calls:
    /// see [`Surroundings::noticed`].
    pub fn stay(self, surroundings: &Surroundings) {
        if let Some(sandbox) = &surroundings.sandbox {
            sandbox.vigil().tell(self.noticed);
        }
    }

    /// Looks: what the command did to places that it had better not. What it left
    /// running is watched on.
    #[must_use]
    pub fn look(self, finished: Option<&Finished>) -> Vec<Touched> {
        let mut touched = self.noticed;
        if let Some(mut watching) = self.watching {
            touched.extend(watching.compare());
            if finished.is_some_and(|finished| finished.survivors.is_empty()) {
                watching.done();
            }
        }
        touched
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

impl Surroundings {
    /// What programs that go on between calls, and what commands left running, did to
    /// places that they had better not, since somebody last looked.
    pub async fn noticed(&self) -> Vec<Touched> {
        let Some(sandbox) = self.sandbox.clone() else {
            return Vec::new();
        };
        let looked = blocking::run(Weight::Heavy, move || Ok(sandbox.since_last())).await;
        looked.unwrap_or_default()
    }

    /// Looks at what sessions left that were killed in this work folder, once. To be
    /// waited for before anything is done there.
    pub async fn recall(&self) {
        if let Some(sandbox) = &self.sandbox {
            sandbox.recall().await;
        }
    }

    /// Ends what runs in these surroundings, where somebody will look at what it did, and
    /// returns when it is gone.
    pub async fn close(&self) {
        let sandbox = self.sandbox.as_ref();
        if sandbox.is_some_and(|sandbox| sandbox.vigil().is_needed()) {
            self.executor.close().await;
        }
    }

    /// Looks for the last time at what was not to be touched, once everything was closed
    /// that runs in the session.
    pub async fn end(&self) -> Vec<Touched> {
        let Some(sandbox) = self.sandbox.clone() else {
            return Vec::new();
        };
        sandbox.recall().await;
        sandbox.vigil().settled().await;
        let look = move || Ok(sandbox.vigil().end(sandbox.moved_out()));
        let looked = blocking::run(Weight::Heavy, look).await;
        looked.unwrap_or_default()
    }

    fn launch(&self, request: Exec, confinement: Option<Confinement>) -> Launch {
        let mut environment = self.environment.clone();
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
        let dir = match &self.elsewhere {
            None => request.dir,
            Some(Elsewhere { here, there }) => {
                let below = request.dir.strip_prefix(here).unwrap_or(Path::new(""));
                // A path that ends in a slash would be another name for it.
                there.components().chain(below.components()).collect()
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
        }
    }
}
