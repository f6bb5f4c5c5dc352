//! `execute`: one command to its end, and what it said.

use super::{MOST, reply};
use crate::prelude::*;
use crate::toolsets::line;
use crate::{commands, limit::Beginning};
use haft_ops::exec::{Done, Exec};
use haft_ops::executor::{Ended, Input, Program, Prompts, Streams};
use std::time::Duration;

/// Time limit of a command that asks for none.
const DEFAULT: Duration = Duration::from_secs(120);

/// The longest time limit, in seconds: a day.
const LONGEST: u32 = 86_400;

/// What is kept of the end of a long output, for what is said of it.
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
        // Its own is an argument.
        Some(Duration::from_secs(LONGEST.into()) + DEFAULT)
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        line::check(&args.command)?;
        let asked = args.timeout.filter(|asked| *asked > 0.0);
        let own = asked.map_or(DEFAULT, |asked| {
            // The reply gives tenths of a second, and 0.0 would not be true.
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
            keep: cx.keep_ends(MOST, END),
            prompts: Prompts::End,
            input: Input::Nothing,
        };
        let done = cx.run(request).await?;
        let said = cx.beginning(&done.finished.output, MOST, "output");
        Ok(answer(&done, said, limit, cx))
    }
}

fn answer(done: &Done, said: Beginning, limit: Duration, cx: &Context) -> Reply {
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
    let output = match stopped {
        None => said.text,
        Some(sentence) if said.text.is_empty() => sentence,
        Some(sentence) => format!("{sentence}\n{}", said.text),
    };
    let mut answer = json!({
        "status": if code == 0 { "success" } else { "error" },
        "output": output, "exit_code": code, "truncated": said.is_cut,
    });
    if let Some(path) = said.path {
        reply::add_output(&mut answer, &path, cx);
    }
    let notes = commands::notes(done, cx);
    let notes = notes.iter().map(|note| reply::plain(note).to_owned());
    let hints: Vec<String> = said.trouble.into_iter().chain(notes).collect();
    if !hints.is_empty() {
        reply::add(&mut answer, "hint", hints.join("\n"));
    }
    let mut reply = Reply::json(&answer);
    reply.is_error = code != 0;
    commands::details(reply, done).detail("truncated", said.is_cut)
}

/// Seconds, as many as there were at least.
fn tenths(limit: Duration) -> f64 {
    (limit.as_secs_f64() * 10.0).ceil() / 10.0
}
