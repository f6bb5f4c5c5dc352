//! `bash`: one command line, its output as it came, and how it ended.

use crate::commands;
use crate::limit::Said;
use crate::prelude::*;
use crate::toolsets::line;
use crate::truncate::{Keep, Limit};
use haft_ops::exec::{Done, Exec};
use haft_ops::executor::{Ended, Exit, Input, Program, Prompts, Streams};
use haft_ops::text::seconds;
use std::time::Duration;

/// How long a command may take that says nothing about it.
const DEFAULT: Duration = Duration::from_secs(120);

/// The longest that may be asked for: a day.
const LONGEST: u32 = 86_400;

/// What a model gets of the output: its end.
const SHOWN: Limit = Limit {
    keep: Keep::Tail,
    ..super::LIMIT
};

/// Run a command with `bash -c` in the working directory and return its output,
/// stdout and stderr merged. A non-zero exit code is the last line. At most the
/// last 2000 lines or 50KB are returned; the whole output is then kept in a file
/// that the reply names. There is no terminal and no input: use options that do
/// not ask. Each command starts in the working directory anew. Unless the person
/// allowed more, only the working directory and `$TMPDIR` can be written and there
/// is no network.
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
        // Its own is an argument.
        Some(Duration::from_secs(LONGEST.into()) + DEFAULT)
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        line::check(&args.command)?;
        let asked = args.timeout.filter(|asked| *asked > 0.0);
        let own = asked.map_or(DEFAULT, |asked| {
            // What rounds to nothing would read as if there had been no time at all.
            Duration::from_secs_f64(asked.clamp(0.1, LONGEST.into()))
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
        let said = cx.said(&done.finished.output, &SHOWN);
        Ok(reply(&done, said, limit, cx))
    }
}

/// The output, then what ended it, then notes, then the note of a cut; nothing
/// but the exit code follows that.
fn reply(done: &Done, said: Said, limit: Duration, cx: &Context) -> Reply {
    let mut below: Vec<String> = Vec::new();
    match done.finished.ended {
        Ended::TimedOut => below.push(format!("Command timed out after {}", seconds(limit))),
        Ended::Cancelled => below.push("Command cancelled".to_owned()),
        Ended::Itself | Ended::Waiting => {}
    }
    below.extend(commands::notes(done, cx));
    let truncated = said.note.is_some();
    below.extend(said.note);
    let ended_itself = done.finished.ended == Ended::Itself;
    match done.finished.status {
        Exit::Code(0) => {}
        _ if !ended_itself => {}
        Exit::Code(code) => below.push(format!("Exit code: {code}")),
        Exit::Signal(signal) => below.push(format!("Exit code: {}", 128 + signal)),
        Exit::Unknown => below.push("Exit code: unknown".to_owned()),
    }
    let mut text = said.text;
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
    if let Some(path) = said.path {
        reply = reply.detail("output_path", path);
    }
    commands::details(reply.already_cut(), done)
        .detail("timeout", limit.as_secs_f64())
        .detail("truncated", truncated)
}
