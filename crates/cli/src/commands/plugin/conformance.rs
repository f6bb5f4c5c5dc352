//! `haft plugin test`: talks to a plugin, shows each line, and explains problems to a
//! first-time author.

mod advice;
mod arguments;
mod calls;
mod closing;
mod connection;
mod handshake;
mod processes;
mod program;
mod report;
mod screen;
mod shape;
mod trial;

use crate::args::Shared;
use crate::args::plugin::Test;
use crate::exit::{Exit, Failure};
use crate::output::{self, Paint};
use crate::signals::{self, Signals};
use crate::{config, env};
use calls::Given;
use haft::Protocol;
use haft::ops::text::spelling::closest;
use haft::plugin_protocol::Question;
use program::Program;
use report::Report;
use screen::Screen;
use serde_json::Value;
use std::time::Duration;
use trial::{Stop, Trial};

/// Part of the test to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TestPart {
    All,
    Describe,
    Calls,
}

/// Runs the test and prints the report.
pub(crate) fn run(shared: &Shared, args: &Test) -> Result<Exit, Failure> {
    let given = given(&args.call)?;
    let part = match args.only.as_deref() {
        Some("describe") => TestPart::Describe,
        Some("calls") => TestPart::Calls,
        _ => TestPart::All,
    };
    let screen = Screen::new(!shared.quiet && !args.json);
    let words: Vec<String> = args
        .command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let current = env::current_folder()?;
    let report = match Program::find(&args.command, &current, config::folder(shared)?, &args.env) {
        Err(reason) => Report {
            checks: vec![reason.check()],
            ..Report::default()
        },
        Ok(program) => {
            processes::adopt_orphans();
            let protocol = match args.protocol.as_deref() {
                Some("describe") => Protocol::Describe,
                Some("init") => Protocol::Init,
                _ => Protocol::Auto,
            };
            let patience = Duration::from_secs(args.timeout);
            let trial = Trial::new(program, Question::of(protocol), patience, screen);
            let ended = signals::block_on(async {
                let mut signals = Signals::listen()?;
                tokio::select! {
                    report = run_all(trial, part, &given) => Ok(report.map_err(Stopped::Usage)),
                    exit = signals.next() => Ok(Err(Stopped::Signal(exit))),
                }
            })?;
            match ended {
                Ok(report) => report,
                Err(Stopped::Usage(failure)) => return Err(failure),
                Err(Stopped::Signal(exit)) => return Ok(exit),
            }
        }
    };
    conclude(shared, args, &words, &report)
}

/// Reason why the test stopped without a report.
enum Stopped {
    /// `--call` names a tool that the plugin does not have.
    Usage(Failure),
    Signal(Exit),
}

fn conclude(
    shared: &Shared,
    args: &Test,
    words: &[String],
    report: &Report,
) -> Result<Exit, Failure> {
    if args.json {
        output::json(&report.as_json(words))?;
    } else {
        let conclusion = report.conclusion(Paint::for_stdout(), screen::width(), !shared.quiet);
        output::raw(&if shared.quiet {
            conclusion
        } else {
            format!("\n{conclusion}")
        })?;
    }
    Ok(if report.is_good() {
        Exit::Done
    } else {
        Exit::Failed
    })
}

/// Parses `--call`: pairs of a tool and a JSON object.
fn given(words: &[String]) -> Result<Given, Failure> {
    let mut given = Vec::new();
    for pair in words.chunks(2) {
        let [tool, arguments] = pair else {
            return Err(Failure::usage("--call needs a tool and its arguments"));
        };
        match serde_json::from_str::<Value>(arguments) {
            Ok(value @ Value::Object(_)) => given.push((tool.clone(), value)),
            Ok(_) => {
                return Err(Failure::usage(format!(
                    "--call {tool}: the arguments must be a JSON object, such as '{{\"text\": \"hello\"}}'"
                )));
            }
            Err(error) => {
                return Err(
                    Failure::usage(format!("--call {tool}: not valid JSON: {error}"))
                        .hint("quote it for the shell: --call NAME '{\"text\": \"hello\"}'"),
                );
            }
        }
    }
    Ok(given)
}

/// Runs all checks in order.
async fn run_all(mut trial: Trial, part: TestPart, given: &Given) -> Result<Report, Failure> {
    let greeted = handshake::run(&mut trial).await;
    if greeted.is_ok() {
        check_tools_exist(&trial, given)?;
    }
    if greeted.is_ok() && run_calls(&mut trial, part, given).await.is_ok() {
        // The report lists what could not be tried.
        let _ = closing::end(&mut trial).await;
    }
    trial.connection = None;
    closing::summarize(&mut trial);
    Ok(std::mem::take(&mut trial.report))
}

async fn run_calls(trial: &mut Trial, part: TestPart, given: &Given) -> Result<(), Stop> {
    if part == TestPart::Describe {
        return Ok(());
    }
    let answered = calls::valid_arguments(trial, given).await?;
    if part == TestPart::Calls {
        return Ok(());
    }
    // The fastest call checks whether answers still match requests; the slowest is worth
    // cancelling.
    let (Some(probe), Some(slow)) = (answered.first(), answered.last()) else {
        trial.report.given_up = Some("the plugin answered no call".to_owned());
        return Err(Stop);
    };
    calls::texts(trial, probe).await?;
    // Messages that haft never sends. Failures here end only these checks.
    trial.hypothetically(true);
    let _ = calls::wrong_arguments(trial, given).await;
    trial.hypothetically(true);
    let _ = calls::odd_lines(trial, probe).await;
    trial.hypothetically(false);
    if trial.report.given_up.is_some() {
        return Err(Stop);
    }
    if trial.report.is_second {
        calls::protocol_2(trial, probe, slow).await?;
    }
    Ok(())
}

/// Rejects `--call` for a tool that the plugin does not have.
fn check_tools_exist(trial: &Trial, given: &Given) -> Result<(), Failure> {
    let names = &trial.report.tools;
    let Some((tool, _)) = given.iter().find(|(tool, _)| !names.contains(tool)) else {
        return Ok(());
    };
    let near = closest(tool, names.iter().cloned(), 1);
    let suggestion = near
        .first()
        .map(|near| format!("; did you mean \"{near}\"?"))
        .unwrap_or_default();
    Err(Failure::usage(format!(
        "--call {tool}: the plugin has no such tool{suggestion}"
    ))
    .hint(format!("its tools: {}", names.join(", "))))
}
