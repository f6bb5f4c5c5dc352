//! `haft plugin test`: speaks the plugin protocol to a program, shows each line, and
//! judges it in words for somebody who writes a first plugin.

mod advice;
mod arguments;
mod calls;
mod closing;
mod family;
mod meet;
mod program;
mod report;
mod screen;
mod shape;
mod talk;
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

/// Which part is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    All,
    Describe,
    Calls,
}

/// Tests the program and says what was found.
pub(crate) fn run(shared: &Shared, args: &Test) -> Result<Exit, Failure> {
    let given = given(&args.call)?;
    let part = match args.only.as_deref() {
        Some("describe") => Part::Describe,
        Some("calls") => Part::Calls,
        _ => Part::All,
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
            family::adopt();
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
                    report = all(trial, part, &given) => Ok(report.map_err(Ended::Mistaken)),
                    exit = signals.next() => Ok(Err(Ended::By(exit))),
                }
            })?;
            match ended {
                Ok(report) => report,
                Err(Ended::Mistaken(failure)) => return Err(failure),
                Err(Ended::By(exit)) => return Ok(exit),
            }
        }
    };
    conclude(shared, args, &words, &report)
}

/// Why there is no report.
enum Ended {
    Mistaken(Failure),
    By(Exit),
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

/// The calls that the person wants, which come as a name and an object each.
fn given(words: &[String]) -> Result<Given, Failure> {
    let mut given = Vec::new();
    for pair in words.chunks(2) {
        let [tool, arguments] = pair else {
            return Err(Failure::usage("--call takes a tool and its arguments"));
        };
        match serde_json::from_str::<Value>(arguments) {
            Ok(value @ Value::Object(_)) => given.push((tool.clone(), value)),
            Ok(_) => {
                return Err(Failure::usage(format!(
                    "--call {tool}: the arguments must be a JSON object, as in '{{\"text\": \"hello\"}}'"
                )));
            }
            Err(error) => {
                return Err(Failure::usage(format!("--call {tool}: no JSON: {error}"))
                    .hint("quote it for the shell: --call NAME '{\"text\": \"hello\"}'"));
            }
        }
    }
    Ok(given)
}

/// Goes through the checks in their order.
async fn all(mut trial: Trial, part: Part, given: &Given) -> Result<Report, Failure> {
    let met = meet::meet(&mut trial).await;
    if met.is_ok() {
        known(&trial, given)?;
    }
    if met.is_ok() && talk(&mut trial, part, given).await.is_ok() {
        // What could not be tried is in the report.
        let _ = closing::end(&mut trial).await;
    }
    trial.talk = None;
    closing::look_back(&mut trial);
    Ok(std::mem::take(&mut trial.report))
}

async fn talk(trial: &mut Trial, part: Part, given: &Given) -> Result<(), Stop> {
    if part == Part::Describe {
        return Ok(());
    }
    let answered = calls::right(trial, given).await?;
    if part == Part::Calls {
        return Ok(());
    }
    // The fastest shows whether it is in step, the slowest is worth cancelling.
    let (Some(probe), Some(slow)) = (answered.first(), answered.last()) else {
        trial.report.given_up = Some("no call was answered".to_owned());
        return Err(Stop);
    };
    calls::texts(trial, probe).await?;
    // What haft never sends: it may stop these, and nothing else.
    trial.hypothetically(true);
    let _ = calls::wrong_arguments(trial, given).await;
    trial.hypothetically(true);
    let _ = calls::odd_lines(trial, probe).await;
    trial.hypothetically(false);
    if trial.report.given_up.is_some() {
        return Err(Stop);
    }
    if trial.report.is_second {
        calls::second(trial, probe, slow).await?;
    }
    Ok(())
}

/// A call of a tool that it does not have is a mistake of who typed it.
fn known(trial: &Trial, given: &Given) -> Result<(), Failure> {
    let names = &trial.report.tools;
    let Some((tool, _)) = given.iter().find(|(tool, _)| !names.contains(tool)) else {
        return Ok(());
    };
    let near = closest(tool, names.iter().cloned(), 1);
    let meant = near
        .first()
        .map(|near| format!("; did you mean \"{near}\"?"))
        .unwrap_or_default();
    Err(
        Failure::usage(format!("--call {tool}: it has no such tool{meant}"))
            .hint(format!("it has: {}", names.join(", "))),
    )
}
