//! Commands on another machine, by the person's own `ssh`.
//!
//! ssh runs below a supervisor of [`Local`], so what is kept of the output, and
//! the death of everything on this side, are its. A small script on the host does
//! what a supervisor does here, as far as a shell can: see `ssh/there.sh`.
//! Standard input of ssh is the lifeline. haft holds its other end, so the end of
//! haft, of ssh or of the connection is the end of the tree on the host.

mod line;
mod order;

use super::job::{cannot, named};
use super::lookup;
use super::{
    Ended, Executor, Exit, Finished, GRACE, Input, Launch, Local, Program, Prompts, Refusal,
    Running, Watch,
};
use crate::{Error, Result};
use async_trait::async_trait;
use line::{Line, State};
use order::Names;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long after a tree should be dead the host's word is awaited; then ssh is
/// ended, which the host notices.
const PATIENCE: Duration = Duration::from_millis(600);

/// What holds whatever the person's configuration says: nothing asks, nothing is
/// forwarded, nothing stays.
const ALWAYS: [&str; 8] = [
    "BatchMode=yes",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "ControlMaster=no",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "EscapeChar=none",
];

/// What holds unless the target says otherwise.
const USUALLY: [&str; 4] = [
    "ConnectTimeout=10",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=3",
    "LogLevel=ERROR",
];

/// Where commands run.
#[derive(Debug, Clone)]
pub struct Target {
    /// Whatever `ssh` takes: a name, `user@name`, or an alias of its configuration.
    pub host: String,
    /// The port, if it is not the one ssh would take.
    pub port: Option<u16>,
    /// Options as after `-o`, such as `ConnectTimeout=3`.
    pub options: Vec<String>,
    /// The environment of ssh itself: `HOME`, `PATH`, `SSH_AUTH_SOCK` and what else
    /// a person has. None of it reaches the command.
    pub environment: Vec<(OsString, OsString)>,
    /// A folder of haft's own, for pipes that have names while ssh starts.
    pub folder: PathBuf,
}

/// Runs commands on a host. Dropping it ends what it started there.
#[derive(Debug)]
pub struct Ssh {
    local: Arc<Local>,
    target: Target,
    over: CancellationToken,
}

impl Ssh {
    /// Commands for `target`, by an ssh that `local` starts.
    ///
    /// # Errors
    /// When the host or an option is nothing ssh could be given.
    pub fn new(local: Arc<Local>, target: Target) -> Result<Self> {
        let odd = |text: &str| {
            text.is_empty()
                || text.starts_with('-')
                || text.contains("@-")
                || text.chars().any(|c| c.is_control() || c.is_whitespace())
        };
        let unfit = |what: &str, text: &str| {
            cannot("ssh", Refusal::Other, format!("{text:?} is no {what}"))
        };
        if odd(&target.host) {
            return Err(unfit("host", &target.host));
        }
        let wrong = |option: &&String| {
            option.starts_with('-') || !option.contains('=') || option.contains(char::is_control)
        };
        if let Some(option) = target.options.iter().find(wrong) {
            return Err(unfit("option of ssh, which is Name=value", option));
        }
        Ok(Self {
            local,
            target,
            over: CancellationToken::new(),
        })
    }

    /// The line to the host, and what `local` is to start for it.
    fn open(&self, launch: &Launch) -> Result<(Line, Launch)> {
        let program = named(&launch.program);
        if launch.confinement.is_some() {
            let detail = format!("there is no sandbox on {}", self.target.host);
            return Err(cannot(&program, Refusal::Unconfined, detail));
        }
        if launch.input != Input::Nothing {
            let detail = format!("nothing can be given to read on {}", self.target.host);
            return Err(cannot(&program, Refusal::Other, detail));
        }
        let names = Names::random();
        let order = order::bytes(launch, &names)
            .map_err(|(refusal, detail)| cannot(&program, refusal, detail))?;
        let line = Line::open(
            &self.target.folder,
            launch.streams,
            order,
            &names,
            &self.target.host,
            self.over.child_token(),
        )
        .map_err(|error| {
            let detail = format!("no pipe to ssh could be made: {error}");
            cannot(&program, Refusal::Other, detail)
        })?;
        let here = Launch {
            program: Program::Direct(self.words(&line)),
            dir: "/".into(),
            environment: self.target.environment.clone(),
            streams: launch.streams,
            // Ended from here, so that the host can still say how it went.
            limit: None,
            keep: launch.keep.clone(),
            // What the tree over there does cannot be seen from here.
            prompts: Prompts::Wait,
            input: Input::Nothing,
            confinement: None,
        };
        Ok((line, here))
    }

    fn words(&self, line: &Line) -> Vec<OsString> {
        let mut words: Vec<OsString> = ["/bin/sh", "-c", include_str!("ssh/here.sh"), "haft"]
            .map(Into::into)
            .to_vec();
        words.push(line.folder.clone().into_os_string());
        // Not one that lies nearer in `PATH` than the system's.
        let path = lookup::path_of(&self.target.environment);
        let ssh = match lookup::find("ssh".as_ref(), path, &[], lookup::Order::SystemFirst) {
            lookup::Found::Program(ssh) => ssh.into_os_string(),
            _ => "ssh".into(),
        };
        words.push(ssh);
        words.extend(["-T", "-a", "-x"].map(Into::into));
        let options = ALWAYS
            .into_iter()
            .chain(self.target.options.iter().map(String::as_str))
            .chain(USUALLY);
        // Of several values ssh takes the first.
        for option in options {
            words.extend(["-o", option].map(Into::into));
        }
        if let Some(port) = self.target.port {
            words.extend(["-p".to_owned(), port.to_string()].map(Into::into));
        }
        words.extend(["--", &self.target.host, order::SENTENCE].map(Into::into));
        words
    }

    /// Why nothing was started, when the host never said that it was.
    fn refused(&self, program: &str, state: &State) -> Error {
        let host = &self.target.host;
        if let Some(refusal) = state.failed {
            let detail = match refusal {
                Refusal::NoDirectory => format!("there is no such working directory on {host}"),
                Refusal::Missing => format!("there is no such program on {host}"),
                _ => format!("it is there on {host} and cannot be executed"),
            };
            return cannot(program, refusal, detail);
        }
        let said = String::from_utf8_lossy(&state.noise);
        let said = said.trim();
        let why = REASONS
            .iter()
            .find(|(sign, _)| said.contains(sign))
            .map_or("ssh did not start it", |(_, why)| why);
        // The last line is the one that says why it was given up.
        let last = said.lines().last().unwrap_or("it said nothing");
        let detail = format!("{host}: {why} (ssh: {})", last.trim());
        cannot(program, Refusal::Other, detail)
    }
}

/// What ssh says, and what it means.
const REASONS: [(&str, &str); 10] = [
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key is not the known one; check why, then mend known_hosts",
    ),
    (
        "Host key verification failed",
        "its host key is not known; connect once by hand and check it",
    ),
    (
        "Permission denied",
        "it accepted none of your keys, and no password is asked for here",
    ),
    (
        "Too many authentication failures",
        "it accepted none of your keys",
    ),
    ("Could not resolve", "there is no host of that name"),
    ("Connection refused", "nothing answers ssh on its port"),
    ("timed out", "it did not answer in time"),
    ("timeout", "it did not answer in time"),
    ("No route to host", "it cannot be reached"),
    ("unreachable", "it cannot be reached"),
];

impl Drop for Ssh {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

/// A run that is being watched: who ended it, and until when the host has time.
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

    /// Asks the host to end it. A command that has not begun has nobody there who
    /// could be asked.
    fn ask(&mut self, ended: Ended, line: &Line, grace: Duration) {
        self.ended = ended;
        let begun = line.state.borrow().pid != 0;
        let wait = if begun {
            grace + PATIENCE
        } else {
            Duration::ZERO
        };
        let _ = line.end.send(grace);
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
    /// What became of it: the output is as this side kept it, the end is as the
    /// host told it.
    fn finish(
        &self,
        program: &str,
        mut finished: Finished,
        ended: Ended,
        line: Line,
    ) -> Result<Finished> {
        let state = line.state.borrow().clone();
        if !state.started && ended == Ended::Itself || state.failed.is_some() {
            return Err(self.refused(program, &state));
        }
        finished.status = state.ended.unwrap_or(Exit::Unknown);
        finished.ended = ended;
        finished.survivors = Vec::new();
        if ended == Ended::Itself && !state.left.is_empty() {
            finished.survivors = state.left;
            if !state.over {
                line.release();
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
        let (line, here) = self.open(&launch)?;
        let mut ending = Ending::new(launch.limit);
        let cut = CancellationToken::new();
        let mut run = self.local.run(here, watch, &cut);
        let finished = loop {
            tokio::select! {
                finished = &mut run => break finished?,
                () = cancel.cancelled(), if ending.running() => {
                    ending.ask(Ended::Cancelled, &line, GRACE);
                }
                () = until(ending.limit), if ending.running() => {
                    ending.ask(Ended::TimedOut, &line, GRACE);
                }
                () = until(ending.hard) => {
                    ending.hard = None;
                    cut.cancel();
                }
            }
        };
        drop(run);
        self.finish(&named(&launch.program), finished, ending.ended, line)
    }

    async fn start(&self, launch: Launch) -> Result<Running> {
        let (line, here) = self.open(&launch)?;
        let program = named(&launch.program);
        let mut ending = Ending::new(launch.limit);
        let inner = self.local.start(here).await?;
        let mut state = line.state.clone();
        let known = |state: &State| state.started && state.pid != 0 || state.failed.is_some();
        // The task that tells it ends when ssh does.
        let begun = tokio::select! {
            state = state.wait_for(|state| known(state) || state.over) => {
                state.is_ok_and(|state| state.started)
            }
            () = until(ending.limit) => return Err(Error::TimedOut {
                after: launch.limit.unwrap_or_default(),
            }),
        };
        let now = line.state.borrow().clone();
        if !begun || now.failed.is_some() {
            return Err(self.refused(&program, &now));
        }
        let finished = watch::Sender::new(None);
        let (stop, mut stopped) = mpsc::unbounded_channel();
        let running = Running {
            pid: now.pid,
            supervisor: None,
            held: inner.held.clone(),
            output: inner.output.clone(),
            error: inner.error.clone(),
            pulse: inner.pulse.clone(),
            finished: finished.subscribe(),
            stop,
        };
        // A second handle on the same executor, which the task may outlive.
        let this = Self {
            local: Arc::clone(&self.local),
            target: self.target.clone(),
            over: self.over.child_token(),
        };
        tokio::spawn(async move {
            let mut end = inner.end();
            let over = inner.held.over().clone();
            let ended = loop {
                tokio::select! {
                    ended = end.wait_for(Option::is_some) => break ended.ok().and_then(|end| end.clone()),
                    () = over.cancelled(), if ending.running() => ending.ended = Ended::Cancelled,
                    grace = stopped.recv(), if ending.running() => {
                        ending.ask(Ended::Cancelled, &line, grace.unwrap_or(GRACE));
                    }
                    () = until(ending.limit), if ending.running() => {
                        ending.ask(Ended::TimedOut, &line, GRACE);
                    }
                    () = until(ending.hard) => {
                        ending.hard = None;
                        let _ = inner.stop.send(Duration::ZERO);
                    }
                }
            };
            let result = match ended.as_deref() {
                Some(Ok(local)) => this.finish(&program, local.clone(), ending.ended, line),
                Some(Err(error)) => Err(Error::Fault(error.to_string())),
                None => Err(Error::Fault("the run on this side was lost".to_owned())),
            };
            drop(stopped);
            finished.send_replace(Some(Arc::new(result)));
            // ssh goes on for what the command left, until somebody ends that.
            over.cancelled().await;
            drop(inner);
        });
        Ok(running)
    }
}
