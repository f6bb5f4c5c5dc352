//! Commands on another machine, through the user's own `ssh`.
//!
//! ssh runs below a supervisor of [`Local`], which captures the output and ends everything
//! on this side. A small script on the host does what a supervisor does here, as far as a
//! shell can: see `ssh/there.sh`. Standard input of ssh is the lifeline. haft owns its
//! other end, so if haft, ssh or the connection ends, the tree on the host ends too.

mod connection;
mod order;

use super::job::{cannot, program_name};
use super::lookup;
use super::{
    Ended, Executor, Exit, Finished, GRACE, Input, Launch, Local, Program, Prompts, Refusal,
    Running, Watch,
};
use crate::effects::{Incomplete, Recording};
use crate::{Error, Result};
use async_trait::async_trait;
use connection::{Connection, State};
use order::Names;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Time to wait for the host's report after a tree should have been killed. Then ssh is
/// ended, which the host notices.
const PATIENCE: Duration = Duration::from_millis(600);

/// Options that override the user's configuration: no prompts, no forwarding, no connection
/// that stays open.
const FORCED_OPTIONS: [&str; 8] = [
    "BatchMode=yes",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "ControlMaster=no",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "EscapeChar=none",
];

/// Options that the target can override.
const DEFAULT_OPTIONS: [&str; 4] = [
    "ConnectTimeout=10",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=3",
    "LogLevel=ERROR",
];

/// The host on which commands run.
#[derive(Debug, Clone)]
pub struct Target {
    /// Destination as `ssh` accepts it: a name, `user@name`, or an alias from its
    /// configuration.
    pub host: String,
    /// Port, if it differs from ssh's default.
    pub port: Option<u16>,
    /// Options as after `-o`, such as `ConnectTimeout=3`.
    pub options: Vec<String>,
    /// Environment of ssh itself: `HOME`, `PATH`, `SSH_AUTH_SOCK` and so on. The command
    /// does not receive it.
    pub environment: Vec<(OsString, OsString)>,
    /// Folder of haft for named pipes, which exist only while ssh starts.
    pub folder: PathBuf,
}

/// Runs commands on a host. Dropping it ends everything it started there.
#[derive(Debug)]
pub struct Ssh {
    local: Arc<Local>,
    target: Target,
    shutdown: CancellationToken,
}

impl Ssh {
    /// Creates an executor for `target` that starts ssh through `local`.
    ///
    /// # Errors
    /// If the host or an option cannot be passed to ssh.
    pub fn new(local: Arc<Local>, target: Target) -> Result<Self> {
        let odd = |text: &str| {
            text.is_empty()
                || text.starts_with('-')
                || text.contains("@-")
                || text.chars().any(|c| c.is_control() || c.is_whitespace())
        };
        let unfit = |what: &str, text: &str| {
            cannot(
                "ssh",
                Refusal::Other,
                format!("{text:?} is not a valid {what}"),
            )
        };
        if odd(&target.host) {
            return Err(unfit("host", &target.host));
        }
        let wrong = |option: &&String| {
            option.starts_with('-') || !option.contains('=') || option.contains(char::is_control)
        };
        if let Some(option) = target.options.iter().find(wrong) {
            return Err(unfit("ssh option; write Name=value", option));
        }
        Ok(Self {
            local,
            target,
            shutdown: CancellationToken::new(),
        })
    }

    /// Opens the connection to the host, and returns what `local` must start for it.
    fn open(&self, launch: &Launch) -> Result<(Connection, Launch)> {
        let program = program_name(&launch.program);
        if launch.confinement.is_some() {
            let detail = format!("there is no sandbox on {}", self.target.host);
            return Err(cannot(&program, Refusal::Unconfined, detail));
        }
        if launch.input != Input::Nothing {
            let detail = format!("standard input is not supported on {}", self.target.host);
            return Err(cannot(&program, Refusal::Other, detail));
        }
        launch.recording.unrecorded(Incomplete::OtherMachine);
        let names = Names::random();
        let order = order::bytes(launch, &names)
            .map_err(|(refusal, detail)| cannot(&program, refusal, detail))?;
        let connection = Connection::open(
            &self.target.folder,
            launch.streams,
            order,
            &names,
            &self.target.host,
            self.shutdown.child_token(),
        )
        .map_err(|error| {
            let detail = format!("cannot create a pipe to ssh: {error}");
            cannot(&program, Refusal::Other, detail)
        })?;
        let here = Launch {
            program: Program::Direct(self.words(&connection)),
            dir: "/".into(),
            environment: self.target.environment.clone(),
            streams: launch.streams,
            // The limit is applied here, so that the host can still report the end.
            limit: None,
            keep: launch.keep.clone(),
            // The process tree on the host is not visible from here.
            prompts: Prompts::Wait,
            input: Input::Nothing,
            confinement: None,
            network: None,
            layers: None,
            recording: Recording::Off,
            config_gate: None,
        };
        Ok((connection, here))
    }

    fn words(&self, connection: &Connection) -> Vec<OsString> {
        let mut words: Vec<OsString> = ["/bin/sh", "-c", include_str!("ssh/here.sh"), "haft"]
            .map(Into::into)
            .to_vec();
        words.push(connection.folder.clone().into_os_string());
        // The system's ssh is preferred to one that comes earlier in `PATH`.
        let path = lookup::path_of(&self.target.environment);
        let ssh = match lookup::find("ssh".as_ref(), path, &[], lookup::SearchOrder::SystemFirst) {
            lookup::Found::Program(ssh) => ssh.into_os_string(),
            _ => "ssh".into(),
        };
        words.push(ssh);
        words.extend(["-T", "-a", "-x"].map(Into::into));
        let options = FORCED_OPTIONS
            .into_iter()
            .chain(self.target.options.iter().map(String::as_str))
            .chain(DEFAULT_OPTIONS);
        // ssh uses the first of several values.
        for option in options {
            words.extend(["-o", option].map(Into::into));
        }
        if let Some(port) = self.target.port {
            words.extend(["-p".to_owned(), port.to_string()].map(Into::into));
        }
        words.extend(["--", &self.target.host, order::REMOTE_COMMAND].map(Into::into));
        words
    }

    /// Returns the error for a command that the host never reported as started.
    fn refused(&self, program: &str, state: &State) -> Error {
        let host = &self.target.host;
        if let Some(refusal) = state.failed {
            let detail = match refusal {
                Refusal::NoDirectory => format!("there is no such working directory on {host}"),
                Refusal::Missing => format!("there is no such program on {host}"),
                _ => format!("the program on {host} is not executable"),
            };
            return cannot(program, refusal, detail);
        }
        let messages = String::from_utf8_lossy(&state.messages);
        let messages = messages.trim();
        let why = REASONS
            .iter()
            .find(|(sign, _)| messages.contains(sign))
            .map_or("ssh did not start it", |(_, why)| why);
        // The last line has the reason.
        let last = messages.lines().last().unwrap_or("no output");
        let detail = format!("{host}: {why} (ssh: {})", last.trim());
        cannot(program, Refusal::Other, detail)
    }
}

/// Messages of ssh, and explanations for the user.
const REASONS: [(&str, &str); 10] = [
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key has changed; find out why, then update known_hosts",
    ),
    (
        "Host key verification failed",
        "its host key is not known; connect once by hand and verify it",
    ),
    (
        "Permission denied",
        "it accepted none of your keys, and haft cannot ask for a password",
    ),
    (
        "Too many authentication failures",
        "it accepted none of your keys",
    ),
    ("Could not resolve", "host not found"),
    ("Connection refused", "no SSH server listens on that port"),
    ("timed out", "it did not answer in time"),
    ("timeout", "it did not answer in time"),
    ("No route to host", "it cannot be reached"),
    ("unreachable", "it cannot be reached"),
];

impl Drop for Ssh {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// The end of a run: what ended it, and how long the host has to report it.
struct Ending {
    limit: Option<Instant>,
    ended: Ended,
    hard: Option<Instant>,
}

impl Ending {
    fn new(limit: Option<Duration>) -> Self {
        Self {
            limit: limit.and_then(|limit| Instant::now().checked_add(limit)),
            ended: Ended::Itself,
            hard: None,
        }
    }

    fn running(&self) -> bool {
        self.ended == Ended::Itself
    }

    /// Requests the end from the host. If the command has not started, the host cannot be
    /// asked.
    fn ask(&mut self, ended: Ended, connection: &Connection, grace: Duration) {
        self.ended = ended;
        let begun = connection.state.borrow().pid != 0;
        let wait = if begun {
            grace + PATIENCE
        } else {
            Duration::ZERO
        };
        let _ = connection.end.send(grace);
        self.hard = Some(Instant::now() + wait);
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

impl Ssh {
    /// Combines the output captured on this side with the exit status that the host
    /// reported.
    fn finish(
        &self,
        program: &str,
        mut finished: Finished,
        ended: Ended,
        connection: Connection,
    ) -> Result<Finished> {
        let state = connection.state.borrow().clone();
        if !state.started && ended == Ended::Itself || state.failed.is_some() {
            return Err(self.refused(program, &state));
        }
        finished.status = state.ended.unwrap_or(Exit::Unknown);
        finished.ended = ended;
        finished.survivors = Vec::new();
        if ended == Ended::Itself && !state.left.is_empty() {
            finished.survivors = state.left;
            if !state.is_closed {
                connection.release();
            }
        }
        Ok(finished)
    }
}

#[async_trait]
impl Executor for Ssh {
    async fn run(
        &self,
        launch: Launch,
        watch: &Watch<'_>,
        cancel: &CancellationToken,
    ) -> Result<Finished> {
        let (connection, here) = self.open(&launch)?;
        let mut ending = Ending::new(launch.limit);
        let cut = CancellationToken::new();
        let mut run = self.local.run(here, watch, &cut);
        let finished = loop {
            tokio::select! {
                finished = &mut run => break finished?,
                () = cancel.cancelled(), if ending.running() => {
                    ending.ask(Ended::Cancelled, &connection, GRACE);
                }
                () = until(ending.limit), if ending.running() => {
                    ending.ask(Ended::TimedOut, &connection, GRACE);
                }
                () = until(ending.hard) => {
                    ending.hard = None;
                    cut.cancel();
                }
            }
        };
        drop(run);
        self.finish(
            &program_name(&launch.program),
            finished,
            ending.ended,
            connection,
        )
    }

    async fn start(&self, launch: Launch) -> Result<Running> {
        let (connection, here) = self.open(&launch)?;
        let program = program_name(&launch.program);
        let mut ending = Ending::new(launch.limit);
        let inner = self.local.start(here).await?;
        let mut state = connection.state.clone();
        let known = |state: &State| state.started && state.pid != 0 || state.failed.is_some();
        // The task that sends it ends with ssh.
        let begun = tokio::select! {
            state = state.wait_for(|state| known(state) || state.is_closed) => {
                state.is_ok_and(|state| state.started)
            }
            () = until(ending.limit) => return Err(Error::TimedOut {
                after: launch.limit.unwrap_or_default(),
            }),
        };
        let now = connection.state.borrow().clone();
        if !begun || now.failed.is_some() {
            return Err(self.refused(&program, &now));
        }
        let finished = watch::Sender::new(None);
        let (stop, mut stopped) = mpsc::unbounded_channel();
        let running = Running {
            pid: now.pid,
            supervisor: None,
            registry: inner.registry.clone(),
            output: inner.output.clone(),
            error: inner.error.clone(),
            pulse: inner.pulse.clone(),
            finished: finished.subscribe(),
            stop,
        };
        // A second handle for the same executor, which the task may outlive.
        let this = Self {
            local: Arc::clone(&self.local),
            target: self.target.clone(),
            shutdown: self.shutdown.child_token(),
        };
        tokio::spawn(async move {
            let mut end = inner.end();
            let shutdown = inner.registry.shutdown().clone();
            let ended = loop {
                tokio::select! {
                    ended = end.wait_for(Option::is_some) => break ended.ok().and_then(|end| end.clone()),
                    () = shutdown.cancelled(), if ending.running() => ending.ended = Ended::Cancelled,
                    grace = stopped.recv(), if ending.running() => {
                        ending.ask(Ended::Cancelled, &connection, grace.unwrap_or(GRACE));
                    }
                    () = until(ending.limit), if ending.running() => {
                        ending.ask(Ended::TimedOut, &connection, GRACE);
                    }
                    () = until(ending.hard) => {
                        ending.hard = None;
                        let _ = inner.stop.send(Duration::ZERO);
                    }
                }
            };
            let result = match ended.as_deref() {
                Some(Ok(local)) => this.finish(&program, local.clone(), ending.ended, connection),
                Some(Err(error)) => Err(Error::Fault(error.to_string())),
                None => Err(Error::Fault("the local run was lost".to_owned())),
            };
            drop(stopped);
            finished.send_replace(Some(Arc::new(result)));
            // ssh continues for the processes that the command left, until they are ended.
            shutdown.cancelled().await;
            drop(inner);
        });
        Ok(running)
    }
}
