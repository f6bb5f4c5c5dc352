//! `execute`: runs one command to its end and returns its output.

use super::{MAX_BYTES, reply};
use crate::prelude::*;
use crate::toolsets::line;
use crate::{commands, limit::Beginning};
use haft_ops::exec::{Done, Exec};
use haft_ops::executor::{Ended, Input, Program, Prompts, Streams};
use std::time::Duration;

/// Default time limit.
const DEFAULT: Duration = Duration::from_secs(120);

/// Maximum time limit in seconds: a day.
const MAX_SECONDS: u32 = 86_400;

/// Size of the end of a long output that is kept for notes, in bytes.
const END: usize = 64 << 10;

/// Execute a shell command (`bash -c`) in the work folder and return its output,
/// stdout and stderr together, and its exit code. There is no terminal and no input.
/// It may take 120 seconds unless `timeout` says otherwise.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Shell command to execute.
    command: String,
    /// Seconds it may take; 120 if not given.
    #[schemars(range(max = 86_400))]
    timeout: Option<f64>,
}

pub(super) struct Execute;

impl Tool for Execute {
    const NAME: &'static str = "execute";
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
            // The reply shows tenths of a second, and 0.0 would be wrong.
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
            keep: cx.keep_ends(MAX_BYTES, END),
            prompts: Prompts::End,
            input: Input::Nothing,
        };
        let done = cx.run(request).await?;
        let output = cx.beginning(&done.finished.output, MAX_BYTES, "output");
        Ok(answer(&done, output, limit, cx))
    }
}

fn answer(done: &Done, output: Beginning, limit: Duration, cx: &Context) -> Reply {
    let stopped = match done.finished.ended {
        Ended::TimedOut => Some(format!("Command timed out after {:.1}s", tenths(limit))),
        Ended::Cancelled => Some("Command cancelled".to_owned()),
        Ended::Waiting => Some("Command stopped: it waits for input".to_owned()),
        Ended::Itself => None,
    };
    let code = if stopped.is_some() {
        -1
    } else {
        reply::exit_code(done.finished.status)
    };
    let text = match stopped {
        None => output.text,
        Some(sentence) if output.text.is_empty() => sentence,
        Some(sentence) => format!("{sentence}\n{}", output.text),
    };
    let mut answer = json!({
        "status": if code == 0 { "success" } else { "error" },
        "output": text, "exit_code": code, "truncated": output.is_cut,
    });
    if let Some(path) = output.path {
        reply::add_output(&mut answer, &path, cx);
    }
    let notes = commands::notes(done, cx);
    let notes = notes.iter().map(|note| reply::plain(note).to_owned());
    let hints: Vec<String> = output.trouble.into_iter().chain(notes).collect();
    if !hints.is_empty() {
        reply::add(&mut answer, "hint", hints.join("\n"));
    }
    let mut reply = Reply::json(answer);
    reply.is_error = code != 0;
    commands::details(reply, done).detail("truncated", output.is_cut)
}

/// Rounds seconds up to tenths.
fn tenths(limit: Duration) -> f64 {
    (limit.as_secs_f64() * 10.0).ceil() / 10.0
}
