//! `process`: starts and manages background processes.

use super::command::{self, Command};
use super::until::{self, Until};
use super::{exec, log, reply, status};
use crate::prelude::*;
use haft_ops::exec::Exec;
use haft_ops::executor::{Input, Prompts, Streams};
use haft_ops::processes;
use serde_json::Value;
use std::time::Duration;

/// Default and maximum size of a log in the reply, in bytes.
const TAIL: usize = 4096;
const MAX_TAIL: usize = 1 << 20;

const WAIT: Duration = Duration::from_secs(30);

/// Manage background processes. start: run `command` in the background. status, log,
/// kill: about the process `process_id`. list: all of them. wait: until the process
/// ends (`until`: exit), listens on `port` (port), prints a line that matches `pattern`
/// (log) or has printed nothing for `idle` seconds (idle). At most 16 run at a time;
/// all end with this session.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// What to do.
    action: Action,
    /// start: command line for a shell, or an array: the program and its arguments.
    command: Option<Command>,
    /// start: directory to run in (default: the workspace).
    working_dir: Option<String>,
    /// status, log, kill, wait: which process, as start named it.
    process_id: Option<String>,
    /// log: how many bytes of the end of each stream; 4096 if not given.
    #[schemars(range(min = 0, max = 1_048_576))]
    tail: Option<usize>,
    /// wait: for what; exit if not given.
    until: Option<Until>,
    /// wait until port: which one.
    port: Option<i64>,
    /// wait until log: regular expression.
    pattern: Option<String>,
    /// wait until idle: seconds of silence.
    idle: Option<f64>,
    /// wait: seconds at most; 30 if not given.
    #[schemars(range(max = 600))]
    timeout: Option<f64>,
}

#[derive(Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Action {
    Start,
    Status,
    Log,
    Kill,
    List,
    Wait,
}

pub(super) struct Process;

impl Tool for Process {
    const NAME: &'static str = "process";
    const EFFECT: Effect = Effect::Execute;
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        match (args.action, &args.command) {
            (Action::Start, Some(command)) => {
                command::resources(command, args.working_dir.as_deref())
            }
            _ => Vec::new(),
        }
    }

    fn timeout(&self) -> Option<Duration> {
        Some(exec::MAX_TIME + WAIT)
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let table = cx.processes()?;
        let mut answer = match args.action {
            Action::Start => start(args, cx).await?,
            Action::List => status::all(&table.list(), cx),
            Action::Status => status::described(&table.status(&args.id()?)?, cx),
            Action::Log => {
                let id = args.id()?;
                let tail = args.tail.filter(|tail| *tail > 0).unwrap_or(TAIL);
                let tail = tail.min(MAX_TAIL);
                let mut answer = status::described(&table.status(&id)?, cx);
                log::add(&mut answer, &table.log(&id, tail).await?, tail);
                answer
            }
            Action::Kill => {
                let id = args.id()?;
                let was_running = table.status(&id)?.is_active();
                let mut answer = status::described(&table.kill(&id).await?, cx);
                reply::add(&mut answer, "killed", was_running);
                answer
            }
            Action::Wait => {
                let (id, until) = (args.id()?, args.until()?);
                let limit = cx.time_left(command::limit(args.timeout, WAIT, exec::MAX_TIME));
                let waited = table.wait(&id, &until, limit, cx.cancel()).await?;
                let mut answer = status::described(&waited.status, cx);
                until::add(&mut answer, &until, &waited, cx);
                answer
            }
        };
        reply::add_hints(&mut answer, &cx.network.notes());
        Ok(Reply::json(answer))
    }
}

async fn start(args: Args, cx: &Context) -> Result<Value, Error> {
    let command = args.command.ok_or_else(|| reply::missing("command"))?;
    let shown = command.shown();
    let request = Exec {
        program: command.program()?,
        dir: command::folder(args.working_dir.as_deref(), cx).await?,
        streams: Streams::Separate,
        limit: None,
        keep: cx.keep_ends(0, 0),
        // The model sees the prompt in the log.
        prompts: Prompts::Wait,
        input: Input::Nothing,
    };
    let started = status::described(&cx.start(shown, request).await?, cx);
    let mut answer = json!({ "success": true });
    for (name, value) in started.as_object().into_iter().flatten() {
        reply::add(&mut answer, name, value.clone());
    }
    Ok(answer)
}

impl Args {
    fn id(&self) -> Result<String, Error> {
        self.process_id
            .clone()
            .ok_or_else(|| reply::missing("process_id"))
    }

    fn until(&self) -> Result<processes::Until, Error> {
        let until = self.until.unwrap_or(Until::Exit);
        until.with(self.port, self.pattern.as_deref(), self.idle)
    }
}
