//! The program `haft`: turns flags and configuration files into a session, and replies
//! into text and an exit code. This is the only crate that parses flags or reads the
//! environment, and only it and the chat print.

mod agent;
mod args;
mod ask;
mod commands;
mod confinement;
mod effects;
mod env;
mod exit;
mod file_backend;
mod git_ssh;
mod haft_sandbox;
mod log;
mod output;
mod record;
mod saved_prompts;
mod session;
mod signals;
mod stderr;
mod text;

use args::{Cli, Command};
use exit::{Exit, Failure};
use std::process::ExitCode;

fn main() -> ExitCode {
    // First, because haft starts itself again as the supervisor of every command it runs,
    // and the command waits for this.
    if let Some(code) = haft::ops::executor::hidden(std::env::args_os()) {
        return code;
    }
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == "__lua")
    {
        return haft_script::serve();
    }
    if let Some(code) = git_ssh::connect::hidden(std::env::args_os()) {
        return code;
    }
    haft::ops::address_space::reserve_less();
    // Commands run as the same user; this keeps them from reading API keys out of this
    // process's memory. If the kernel refuses, haft works as before.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
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

fn run(cli: Cli) -> Result<Exit, Failure> {
    let shared = &cli.shared;
    if cli.command.is_some() && (cli.chat.continue_latest || cli.chat.resume.is_some()) {
        return Err(
            Failure::usage("--resume and --continue cannot be used before a command")
                .hint("use `haft run \"PROMPT\" --continue` or `haft resume SESSION \"PROMPT\"`"),
        );
    }
    match cli.command {
        None => commands::start::run(shared, &cli.chat),
        Some(Command::Run(run)) => commands::run::run(shared, &run),
        Some(Command::Resume(resume)) => commands::resume::run(shared, &resume),
        Some(Command::Call(call)) => commands::call::run(shared, &call),
        Some(Command::Changes(changes)) => commands::changes::run(shared, &changes),
        Some(Command::Undo(undo)) => commands::undo::run(shared, &undo),
        Some(Command::Redo(redo)) => commands::undo::redo(shared, &redo),
        Some(Command::Clean(clean)) => commands::clean::run(shared, &clean),
        Some(Command::Why(why)) => commands::why::run(shared, &why),
        Some(Command::Tools(tools)) => commands::tools::run(shared, &tools),
        Some(Command::Mcp(mcp)) => match &mcp.servers {
            None => commands::mcp::run(shared, &mcp),
            Some(servers) => commands::mcp_servers::run(shared, servers),
        },
        Some(Command::Acp) => commands::acp::run(shared),
        Some(Command::Plugin { command }) => commands::plugin::run(shared, &command),
        Some(Command::Sessions { command }) => commands::sessions::run(shared, &command),
        Some(Command::Store { command }) => commands::store::run(shared, &command),
        Some(Command::Init(init)) => commands::init::run(shared, &init),
        Some(Command::Config { command }) => commands::config::run(shared, &command),
        Some(Command::Trust(trust)) => commands::trust::run(shared, &trust),
        Some(Command::Doctor(doctor)) => commands::doctor::run(shared, &doctor),
        Some(Command::Completions { shell }) => commands::completions::run(shell),
        Some(Command::Demo) => commands::demo::run(shared),
        Some(Command::Help { command }) => commands::help::run(&command),
    }
}
