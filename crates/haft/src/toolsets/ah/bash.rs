//! `bash`: runs one command line, which stops at its first failure.

use super::OUTPUT;
use crate::commands;
use crate::limit::ShownOutput;
use crate::prelude::*;
use crate::toolsets::line;
use haft_ops::exec::{Done, Exec};
use haft_ops::executor::{Ended, Exit, Input, Program, Prompts, Streams};
use haft_ops::text::short;
use std::time::Duration;

/// Default time limit.
const DEFAULT: Duration = Duration::from_secs(120);

/// Maximum time limit in milliseconds: a day.
const MAX_MILLIS: u64 = 86_400_000;

/// Execute a shell command with `/bin/bash -o pipefail -ec` in the working directory and
/// return stdout and stderr combined: it ends at the first command that fails. A non-zero
/// exit code is the last line. If the output has more than 30000 bytes or 256 lines, its
/// middle is left out, and the full output is in a file that the reply names.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Shell command to execute.
    command: String,
    /// Milliseconds it may take; 120000 if not given.
    #[schemars(range(max = 86_400_000))]
    timeout: Option<i64>,
}

pub(super) struct Bash;

impl Tool for Bash {
    const NAME: &'static str = "bash";
    const EFFECT: Effect = Effect::Execute;
    const MENTIONS: &'static [Mention] = &[Mention {
        text: "For everything that read, write and edit do not do: list, search, build, test, run.",
        tools: &["read", "write", "edit"],
        otherwise: "To list, search, build, test and run.",
    }];
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        vec![Resource::Command(args.command.clone())]
    }

    fn timeout(&self) -> Option<Duration> {
        // The real limit is an argument.
        Some(Duration::from_millis(MAX_MILLIS) + DEFAULT)
    }

    fn guidance(&self) -> Option<&str> {
        Some(
            "For everything that read, write and edit do not do: list, search, build, test, run. \
             A failing command ends the line, also within a pipe; add `|| true` where failure is \
             fine, as for a grep that may find nothing. There is no terminal and no input, so use \
             options that do not ask. Every command starts in the working directory. The timeout \
             is in milliseconds.",
        )
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        line::check(&args.command)?;
        let requested = args
            .timeout
            .and_then(|requested| u64::try_from(requested).ok());
        let own = match requested {
            None | Some(0) => DEFAULT,
            Some(requested) => Duration::from_millis(requested.min(MAX_MILLIS)),
        };
        let limit = cx.time_left(own);
        let request = Exec {
            program: Program::Shell {
                shell: "/bin/bash".into(),
                arguments: ["-o", "pipefail", "-ec"].map(str::to_owned).into(),
                script: args.command,
            },
            dir: cx.scope().work_dir().to_owned(),
            streams: Streams::Merged,
            limit: Some(limit),
            keep: cx.keep(&OUTPUT),
            prompts: Prompts::End,
            input: Input::Nothing,
        };
        let done = cx.run(request).await?;
        let output = cx.shown_output(&done.finished.output, &OUTPUT);
        // The remaining time of the session is rarely a round number.
        let shown = if limit < own {
            commands::up_to_tenths(limit)
        } else {
            own
        };
        Ok(reply(&done, output, shown, cx))
    }
}

/// Formats the output, notes, the path of the full output, and how the command ended.
fn reply(done: &Done, output: ShownOutput, limit: Duration, cx: &Context) -> Reply {
    let mut below: Vec<String> = commands::notes(done, cx);
    let truncated = output.note.is_some();
    below.extend(output.note);
    let end = match (done.finished.ended, done.finished.status) {
        (Ended::TimedOut, _) => Some(format!("error: command timed out after {}", short(limit))),
        (Ended::Cancelled, _) => Some("error: command cancelled".to_owned()),
        (Ended::Waiting, _) => Some("error: command stopped: it waits for input".to_owned()),
        (Ended::Itself, Exit::Code(0)) => None,
        (Ended::Itself, Exit::Code(code)) => Some(format!("exit code: {code}")),
        (Ended::Itself, Exit::Signal(signal)) => Some(format!("exit code: {}", 128 + signal)),
        (Ended::Itself, Exit::Unknown) => Some("exit code: unknown".to_owned()),
    };
    let is_error = end.is_some();
    below.extend(end);
    let mut text = output.text;
    if text.is_empty() && !is_error {
        text = "(no output)".to_owned();
    }
    if !below.is_empty() {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&below.join("\n"));
    }
    let mut reply = if is_error {
        Reply::error(text)
    } else {
        Reply::from(text)
    };
    if let Some(path) = output.path {
        reply = reply.detail("output_path", path);
    }
    commands::details(reply.limited(OUTPUT).already_cut(), done).detail("truncated", truncated)
}
