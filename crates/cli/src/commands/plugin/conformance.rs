//! `haft plugin test`: runs a session with one plugin, shows each line that it exchanges with
//! the plugin, and explains problems to a first-time author.

mod advice;
mod calls;
mod closing;
mod handshake;
mod observed;
mod program;
mod report;
mod screen;

use super::log;
use crate::args::Shared;
use crate::args::plugin::Test;
use crate::env;
use crate::exit::{Exit, Failure};
use crate::output::{self, Paint};
use crate::session::local_commands;
use crate::signals::{self, Signals};
use calls::{Given, Stop, Trial};
use haft::ops::executor::sandbox::Network;
use haft::{Mode, Overrides, Plugin, Protocol, Reply, Runtime, Trace};
use observed::Observed;
use report::{Check, Report};
use screen::Screen;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs the test and prints the report.
pub(crate) fn run(shared: &Shared, args: &Test) -> Result<Exit, Failure> {
    let given = given(&args.call)?;
    let first = args.command.first().cloned().unwrap_or_default();
    let report = match program::locate(&first, &env::read().current_folder()?) {
        Err(reason) => unstartable(reason),
        Ok(program) => {
            let folder = haft_config::folder(&shared.flags(), crate::env::read())?;
            let ended = signals::block_on(async {
                let mut signals = Signals::listen()?;
                let trial = trial(shared, args, &folder, program)?;
                let runtime = trial.runtime.clone();
                let ended = tokio::select! {
                    report = run_all(trial, args, &given) => report.map(Ok),
                    exit = signals.next() => Ok(Err(exit)),
                };
                runtime.close().await;
                ended
            })?;
            match ended {
                Ok(report) => report,
                Err(exit) => return Ok(exit),
            }
        }
    };
    conclude(shared, args, &report)
}

fn unstartable(reason: Check) -> Report {
    Report {
        checks: vec![reason],
        ..Report::default()
    }
}

/// Returns the words of the command line.
fn words(args: &Test) -> Vec<String> {
    let words = args.command.iter();
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

fn protocol(args: &Test) -> Protocol {
    match args.protocol.as_deref() {
        Some("describe") => Protocol::Describe,
        Some("init") => Protocol::Init,
        _ => Protocol::Auto,
    }
}

/// Creates a session with the plugin as its only source of tools, and without a sandbox.
fn trial(shared: &Shared, args: &Test, folder: &Path, program: PathBuf) -> Result<Trial, Failure> {
    let observed = Observed::new(Screen::new(!shared.quiet && !args.json));
    let trace = Trace::new({
        let observed = observed.clone();
        move |event| observed.observe(event)
    });
    let arguments = args.command.iter().skip(1).cloned().collect();
    let mut plugin = Plugin::new(program, arguments);
    let label = log::label(&words(args).join(" "));
    plugin.label = label.chars().take(100).collect();
    plugin.log = log::folder().map(|folder| folder.join(format!("{}.log", plugin.label)));
    plugin.environment = Some(env::read().for_programs(&args.env));
    plugin.protocol = protocol(args);
    plugin.timeout = Some(Duration::from_secs(args.timeout));
    plugin.overrides = Overrides::Any;
    plugin.trace = trace.clone();
    let mut toolset = haft::toolsets::standard::toolset();
    toolset.tools.clear();
    toolset.failure = |error, _| Reply::error(error.to_string());
    let runtime = Runtime::builder()
        .dir(folder)
        .with_toolset(toolset)
        .rules(Mode::Off.rules())
        .programs_run(local_commands(Network::On, &[]))
        .add_plugin(plugin)
        .build()
        .map_err(|error| Failure::failed(error.to_string()))?;
    Ok(Trial {
        runtime,
        trace,
        observed,
        timeout: Duration::from_secs(args.timeout),
        report: Report::default(),
        tools: Vec::new(),
        calls: 0,
        unanswered: 0,
    })
}

fn conclude(shared: &Shared, args: &Test, report: &Report) -> Result<Exit, Failure> {
    if args.json {
        output::json(&report.as_json(&words(args)))?;
    } else {
        let conclusion = report.conclusion(Paint::for_stdout(), screen::width(), !shared.quiet);
        let blank = if shared.quiet { "" } else { "\n" };
        output::raw(&format!("{blank}{conclusion}"))?;
    }
    Ok(match report.is_good() {
        true => Exit::Done,
        false => Exit::Failed,
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
async fn run_all(mut trial: Trial, args: &Test, given: &Given) -> Result<Report, Failure> {
    let shown = words(args).into_iter().next().unwrap_or_default();
    let greeted = handshake::run(&mut trial, &shown, protocol(args)).await;
    if trial.observed.facts().not_started.is_some() {
        return Ok(trial.report);
    }
    if greeted.is_ok() {
        check_tools_exist(&trial.report.tools, given)?;
        // The report lists what could not be tried.
        let _ = run_calls(&mut trial, args.only.as_deref(), given).await;
    }
    closing::summarize(&mut trial);
    Ok(trial.report)
}

async fn run_calls(trial: &mut Trial, only: Option<&str>, given: &Given) -> Result<(), Stop> {
    if only == Some("describe") {
        closing::end(trial, None).await;
        return Ok(());
    }
    let answered = trial.valid_arguments(given).await?;
    // The fastest call is repeated, and the slowest is worth cancelling.
    let (Some(probe), Some(slow)) = (answered.first(), answered.last()) else {
        trial.report.given_up = Some("the plugin answered no call".to_owned());
        return Err(Stop);
    };
    if only.is_none() {
        trial.texts(probe).await?;
        if trial.report.is_second {
            trial.concurrent(probe).await;
            trial.cancelled(slow).await?;
        }
    }
    closing::end(trial, Some(probe)).await;
    Ok(())
}

/// Rejects `--call` for a tool that the plugin does not have.
fn check_tools_exist(names: &[String], given: &Given) -> Result<(), Failure> {
    let Some((tool, _)) = given.iter().find(|(tool, _)| !names.contains(tool)) else {
        return Ok(());
    };
    let suggestion = haft::ops::text::spelling::hint(tool, names);
    Err(Failure::usage(format!(
        "--call {tool}: the plugin has no such tool{suggestion}"
    ))
    .hint(format!("its tools: {}", names.join(", "))))
}
