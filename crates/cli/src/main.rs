//! `haft` on the command line: flags and files become a session, and its
//! replies become text and an exit code. The only crate that reads the
//! environment and prints.

mod args;
mod ask;
mod commands;
mod config;
mod env;
mod exit;
mod log;
mod output;
mod session;
mod signals;
mod text;

use args::{Cli, Command};
use exit::{Exit, Failure};
use std::process::ExitCode;

/// The command that no person types: haft starts itself with it, to watch over
/// a command it runs.
#[cfg(target_os = "linux")]
const SUPERVISE: &str = "__supervise";

fn main() -> ExitCode {
    // Before anything else: every command that is run waits for this.
    #[cfg(target_os = "linux")]
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == SUPERVISE)
    {
        return haft_ops::executor::supervise(unconfined);
    }
    let cli = match args::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return output::usage(&error).into(),
    };
    match run(cli) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output::failure(&failure);
            failure.exit.into()
        }
    }
}

/// No confinement is known to this build, so an order that asks for one is not
/// carried out.
#[cfg(target_os = "linux")]
fn unconfined(_plan: &[u8]) -> Result<(), String> {
    Err("this build cannot confine commands".to_owned())
}

fn run(cli: Cli) -> Result<Exit, Failure> {
    let shared = &cli.shared;
    match cli.command {
        None => Ok(commands::start::run()),
        Some(Command::Call(call)) => commands::call::run(shared, &call),
        Some(Command::Why(why)) => commands::why::run(shared, &why),
        Some(Command::Tools(tools)) => commands::tools::run(shared, &tools),
        Some(Command::Mcp) => commands::mcp::run(shared),
        Some(Command::Init) => commands::init::run(shared),
        Some(Command::Config { command }) => commands::config::run(shared, &command),
        Some(Command::Completions { shell }) => commands::completions::run(shell),
        Some(Command::Demo) => commands::demo::run(shared),
        Some(Command::Help { command }) => commands::help::run(&command),
    }
}
