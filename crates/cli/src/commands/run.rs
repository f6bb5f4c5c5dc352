//! `haft run`: runs one task non-interactively.

use super::resume;
use crate::agent::{self, DeferApprovals, OutputMode, Past, Task, work};
use crate::args::Shared;
use crate::args::agent::{Resume, Run};
use crate::exit::{Exit, Failure};
use crate::signals::{self, Signals};
use crate::{ask, output, session};
use std::io::{IsTerminal, Read};
use std::sync::Arc;
use std::time::Duration;

/// Maximum bytes read from stdin.
const MAX_STDIN: u64 = 16 << 20;

/// Runs the command.
pub(crate) fn run(shared: &Shared, args: &Run) -> Result<Exit, Failure> {
    if args.continue_latest || args.resume.is_some() {
        let prompt = prompt(args.prompt.as_deref())?;
        let resume = Resume {
            session: args.resume.clone(),
            prompt: (!prompt.is_empty()).then_some(prompt),
            answer: Vec::new(),
            json: args.json,
            response_format: args.response_format.clone(),
        };
        return resume::run_task(shared, &resume);
    }
    let settings = session::settings_of_agent(shared)?;
    settings.paths.open_to_tools()?;
    let format = agent::response_format(&settings, args.response_format.as_deref())?;
    let model = agent::model(&settings)?.ok_or_else(agent::no_model)?;
    let prompt = prompt(args.prompt.as_deref())?;
    if prompt.trim().is_empty() {
        return Err(Failure::usage("the prompt is empty")
            .hint("describe the task, such as `haft run \"Fix the failing test\"`"));
    }
    let past = match &args.files {
        None => Past::New,
        Some(folder) => Past::Files(agent::seed::read(folder)?),
    };
    let sessions = agent::sessions(&settings)?;
    let mode = OutputMode {
        json: args.json,
        quiet: settings.quiet,
        is_recorded: sessions.is_some(),
    };
    signals::block_on(async {
        let mut signals = Signals::listen()?;
        let approver = ask::terminal_approver(&settings);
        let approver = approver.unwrap_or_else(|| Arc::new(DeferApprovals));
        let sessions = sessions.as_ref();
        let wait = agent::ToolsWait::All;
        let agent = agent::agent(&settings, model, past, sessions, approver, wait).await?;
        let agent = agent.response_format(format).waits_for_background(true);
        let exit = work(&agent, Task::Prompt(prompt), mode, &mut signals).await;
        let stopped = agent::close(&agent, &mut signals).await;
        stopped.map_or(exit, Ok)
    })
}

/// Returns the prompt: the argument, followed by the text on stdin.
pub(crate) fn prompt(words: Option<&str>) -> Result<String, Failure> {
    let mut prompt = words.unwrap_or_default().to_owned();
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(prompt);
    }
    let (done, waits) = std::sync::mpsc::channel::<()>();
    // Without a thread there is just no hint.
    let hint = std::thread::Builder::new().spawn(move || {
        if waits.recv_timeout(Duration::from_secs(3))
            == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
        {
            output::note("reading the rest of the prompt from stdin (Ctrl-D ends it)");
        }
    });
    let mut bytes = Vec::new();
    let read = stdin.lock().take(MAX_STDIN + 1).read_to_end(&mut bytes);
    drop(done);
    let _ = hint.map(std::thread::JoinHandle::join);
    read.map_err(|error| Failure::failed(format!("cannot read stdin: {error}")))?;
    if bytes.len() as u64 > MAX_STDIN {
        return Err(Failure::usage(
            "stdin has more than 16 MB; put the text into a file and name the file in the prompt",
        ));
    }
    let text = String::from_utf8_lossy(&bytes);
    if !text.trim().is_empty() {
        if !prompt.is_empty() {
            prompt.push_str("\n\n");
        }
        prompt.push_str(&text);
    }
    Ok(prompt)
}
