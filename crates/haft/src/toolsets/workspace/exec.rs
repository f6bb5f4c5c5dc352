//! `exec`: runs one command to its end and returns both streams and the exit code.

use super::command::{self, Command};
use super::reply;
use crate::limit::Beginning;
use crate::prelude::*;
use crate::{commands, reply::Reply};
use haft_ops::exec::{self, Done};
use haft_ops::executor::{Captured, Ended, Exit, Finished, Input, Prompts, Streams};
use std::path::Path;
use std::time::Duration;

/// Default time limit.
const DEFAULT: Duration = Duration::from_secs(60);

/// Maximum time limit.
pub(super) const MAX_TIME: Duration = Duration::from_secs(600);

/// Maximum size of each stream in the reply, in bytes.
const STREAM: usize = 1 << 20;

/// Size of the end of a longer stream that is kept for notes, in bytes.
const END: usize = 64 << 10;

/// Run a short command to its end and return its exit code, stdout and stderr. A string is
/// run by a shell (`bash -c`), an array of strings without one. A non-zero exit code is not
/// an error. There is no terminal and no input. Use `process` for long-running programs.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Command line for a shell, or an array: the program and its arguments.
    command: Command,
    /// Directory to run in (default: the workspace).
    working_dir: Option<String>,
    /// Seconds it may take; 60 if not given.
    #[schemars(range(max = 600))]
    timeout: Option<f64>,
}

pub(super) struct Exec;

impl Tool for Exec {
    const NAME: &'static str = "exec";
    const EFFECT: Effect = Effect::Execute;
    const MENTIONS: &'static [Mention] = &[Mention {
        text: " Use `process` for long-running programs.",
        tools: &["process"],
        otherwise: "",
    }];
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        command::resources(&args.command, args.working_dir.as_deref())
    }

    fn timeout(&self) -> Option<Duration> {
        // The real limit is an argument.
        Some(MAX_TIME + DEFAULT)
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let shown = args.command.shown();
        let program = args.command.program()?;
        let dir = command::folder(args.working_dir.as_deref(), cx).await?;
        let limit = cx.time_left(command::limit(args.timeout, DEFAULT, MAX_TIME));
        let request = exec::Exec {
            program,
            dir: dir.clone(),
            streams: Streams::Separate,
            limit: Some(limit),
            keep: cx.keep_ends(STREAM, END),
            prompts: Prompts::End,
            input: Input::Nothing,
        };
        let done = cx.run(request).await?;
        Ok(answer(&shown, &dir, &done, limit, cx))
    }
}

fn answer(command: &str, dir: &Path, done: &Done, limit: Duration, cx: &Context) -> Reply {
    let output = cx.beginning(&done.finished.output, STREAM, "stdout");
    let error = cx.beginning(&done.finished.error, STREAM, "stderr");
    let failed = match (done.finished.ended, done.finished.status) {
        (Ended::TimedOut, _) => Some(format!("command timeout after {}", command::brief(limit))),
        (Ended::Cancelled, _) => Some("command cancelled".to_owned()),
        (Ended::Waiting, _) => Some("command waits for input".to_owned()),
        (Ended::Itself, Exit::Unknown) => {
            Some("the exit status of the command is unknown".to_owned())
        }
        (Ended::Itself, _) => None,
    };
    let code = reply::exit_code(done.finished.status);
    let mut answer = json!({ "success": failed.is_none() && code == 0 });
    if let Some(failed) = &failed {
        reply::add(&mut answer, "error", failed.as_str());
    }
    reply::add(&mut answer, "command", command);
    if failed.is_none() {
        reply::add(&mut answer, "exit_code", code);
    }
    reply::add(&mut answer, "stdout", output.text.as_str());
    reply::add(&mut answer, "stderr", error.text.as_str());
    reply::add(&mut answer, "working_dir", dir.to_string_lossy());
    if output.is_cut || error.is_cut {
        reply::add(&mut answer, "truncated", true);
    }
    let mut hints = Vec::new();
    let Finished {
        output: whole_output,
        error: whole_error,
        ..
    } = &done.finished;
    stream(&mut answer, &mut hints, "stdout", output, whole_output);
    stream(&mut answer, &mut hints, "stderr", error, whole_error);
    let notes = commands::notes(done, cx);
    hints.extend(notes.iter().map(|note| reply::plain(note).to_owned()));
    if !hints.is_empty() {
        reply::add(&mut answer, "hint", hints.join("\n"));
    }
    let mut reply = Reply::json(answer);
    reply.is_error = failed.is_some();
    commands::details(reply, done)
}

/// Adds the size of a truncated stream, the path of the full output, and why that is
/// incomplete.
fn stream(
    answer: &mut serde_json::Value,
    hints: &mut Vec<String>,
    name: &str,
    stream: Beginning,
    whole: &Captured,
) {
    if stream.is_cut {
        reply::add_size(answer, name, whole.total_bytes, whole.total_lines);
    }
    if let Some(path) = stream.path {
        reply::add(answer, &format!("{name}_path"), path);
    }
    hints.extend(stream.trouble);
}
