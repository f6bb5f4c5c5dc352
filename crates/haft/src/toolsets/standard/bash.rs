//! `bash`: runs one command line and returns its output and exit code.

use crate::commands;
use crate::limit::ShownOutput;
use crate::prelude::*;
use crate::toolsets::line;
use crate::truncate::{Keep, Limit};
use haft_ops::exec::{Done, Exec};
use haft_ops::executor::{Ended, Exit, Input, Program, Prompts, Streams};
use haft_ops::text::seconds;
use std::time::Duration;

/// Default time limit.
const DEFAULT: Duration = Duration::from_secs(120);

/// Maximum time limit in seconds: a day.
const MAX_SECONDS: u32 = 86_400;

/// The part of the output that the model gets: its end.
const SHOWN: Limit = Limit {
    keep: Keep::Tail,
    ..super::LIMIT
};

/// Run a command with `bash -c` in the working directory and return its output, stdout and
/// stderr merged. A non-zero exit code is the last line. At most the last 2000 lines or
/// 50KB are returned; the full output is then saved to a file that the reply names. There
/// is no terminal and no input: use options that do not prompt. Each command starts in the
/// working directory again. Unless the user allowed more, only the working directory and
/// `$TMPDIR` can be written and there is no network.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The command line.
    command: String,
    /// Seconds it may take; 120 if not given.
    #[schemars(range(max = 86_400))]
    timeout: Option<f64>,
}

pub(super) struct Bash;

impl Tool for Bash {
    const NAME: &'static str = "bash";
    const EFFECT: Effect = Effect::Execute;
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        vec![Resource::Command(args.command.clone())]
    }

    fn timeout(&self) -> Option<Duration> {
        // The real limit is an argument.
        Some(Duration::from_secs(MAX_SECONDS.into()) + DEFAULT)
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        line::check(&args.command)?;
        let requested = args.timeout.filter(|requested| *requested > 0.0);
        let own = requested.map_or(DEFAULT, |requested| {
            // A limit that rounds to 0 would read as if there had been no time at all.
            Duration::from_secs_f64(requested.clamp(0.1, MAX_SECONDS.into()))
        });
        let limit = cx.time_left(own);
        let request = Exec {
            program: Program::Shell {
                shell: "bash".into(),
                arguments: vec!["-c".to_owned()],
                script: args.command,
            },
            dir: cx.scope().work_dir().to_owned(),
            streams: Streams::Merged,
            limit: Some(limit),
            keep: cx.keep(&SHOWN),
            prompts: Prompts::End,
            input: Input::Nothing,
        };
        let done = cx.run(request).await?;
        let output = cx.shown_output(&done.finished.output, &SHOWN);
        Ok(reply(&done, output, limit, cx))
    }
}

/// Formats the output, how the command ended, notes, the note about truncation, and last
/// the exit code.
fn reply(done: &Done, output: ShownOutput, limit: Duration, cx: &Context) -> Reply {
    let mut below: Vec<String> = Vec::new();
    match done.finished.ended {
        Ended::TimedOut => below.push(format!("Command timed out after {}", seconds(limit))),
        Ended::Cancelled => below.push("Command cancelled".to_owned()),
        Ended::Itself | Ended::Waiting => {}
    }
    below.extend(commands::notes(done, cx));
    let truncated = output.note.is_some();
    below.extend(output.note);
    let ended_itself = done.finished.ended == Ended::Itself;
    match done.finished.status {
        Exit::Code(0) => {}
        _ if !ended_itself => {}
        Exit::Code(code) => below.push(format!("Exit code: {code}")),
        Exit::Signal(signal) => below.push(format!("Exit code: {}", 128 + signal)),
        Exit::Unknown => below.push("Exit code: unknown".to_owned()),
    }
    let mut text = output.text;
    if text.is_empty() {
        text = "(no output)".to_owned();
    }
    if !below.is_empty() {
        text = format!("{}\n\n{}", text.trim_end_matches('\n'), below.join("\n"));
    }
    let is_error = !ended_itself || done.finished.status == Exit::Unknown;
    let mut reply = if is_error {
        Reply::error(text)
    } else {
        Reply::from(text)
    };
    if let Some(path) = output.path {
        reply = reply.detail("output_path", path);
    }
    commands::details(reply.already_cut(), done)
        .detail("timeout", limit.as_secs_f64())
        .detail("truncated", truncated)
}
