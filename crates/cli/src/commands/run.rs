//! `haft run`: one task, with nobody there.

use super::resume;
use crate::agent::{self, Away, Manner, Past, Task, work};
use crate::args::Shared;
use crate::args::agent::{Resume, Run};
use crate::exit::{Exit, Failure};
use crate::signals::{self, Signals};
use crate::{ask, output, session};
use std::io::{IsTerminal, Read};
use std::sync::Arc;
use std::time::Duration;

/// How much stdin may hold.
const MOST: u64 = 16 << 20;

/// Works on it.
pub(crate) fn run(shared: &Shared, args: &Run) -> Result<Exit, Failure> {
    if args.goes_on || args.resume.is_some() {
        let prompt = prompt(args.prompt.as_deref())?;
        let resume = Resume {
            session: args.resume.clone(),
            prompt: (!prompt.is_empty()).then_some(prompt),
            answer: Vec::new(),
            json: args.json,
            response_format: args.response_format.clone(),
        };
        return resume::go_on(shared, &resume);
    }
    let settings = session::settings_of_agent(shared)?;
    settings.open_to_tools()?;
    let format = agent::response_format(&settings, args.response_format.as_deref())?;
    let model = agent::model(&settings)?.ok_or_else(agent::no_model)?;
    let prompt = prompt(args.prompt.as_deref())?;
    if prompt.trim().is_empty() {
        return Err(
            Failure::usage("there is nothing to do: the prompt is empty")
                .hint("haft run \"Fix the failing test\""),
        );
    }
    let past = match &args.files {
        None => Past::New,
        Some(folder) => Past::Files(agent::seed::read(folder)?),
    };
    let sessions = agent::sessions(&settings)?;
    let manner = Manner {
        json: args.json,
        quiet: settings.quiet,
        is_recorded: sessions.is_some(),
    };
    signals::block_on(async {
        let mut signals = Signals::listen()?;
        let approver = ask::here(&settings).unwrap_or_else(|| Arc::new(Away));
        let sessions = sessions.as_ref();
        let agent = agent::agent(&settings, model, past, sessions, approver).await?;
        let agent = agent.response_format(format).waits_for_background(true);
        let exit = work(&agent, Task::Prompt(prompt), manner, &mut signals).await;
        let stopped = agent::close(&agent, &mut signals).await;
        stopped.map_or(exit, Ok)
    })
}

/// What is asked: the words of the command line, and what stdin holds.
pub(crate) fn prompt(words: Option<&str>) -> Result<String, Failure> {
    let mut prompt = words.unwrap_or_default().to_owned();
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(prompt);
    }
    let (done, waits) = std::sync::mpsc::channel::<()>();
    // It only tells; where no thread is to be had nothing is told.
    let hint = std::thread::Builder::new().spawn(move || {
        if waits.recv_timeout(Duration::from_secs(3))
            == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
        {
            output::note("reading the rest of the prompt from stdin, up to its end");
        }
    });
    let mut bytes = Vec::new();
    let read = stdin.lock().take(MOST + 1).read_to_end(&mut bytes);
    drop(done);
    let _ = hint.map(std::thread::JoinHandle::join);
    read.map_err(|error| Failure::failed(format!("cannot read stdin: {error}")))?;
    if bytes.len() as u64 > MOST {
        return Err(Failure::usage(
            "stdin holds more than 16 MB; put it into a file and name that",
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
