//! Runs Python and Bash for agents, with nothing to install and no access to the machine:
//! as an MCP server on standard input and output, or as the interpreter of a haft session.

mod builtins;
mod host;
mod modules;
mod packages;
mod reply;
mod run;
mod sandbox;
mod session;
mod tools;
mod tree;

use clap::Parser;
use haft::guest::Guest;
use haft::{Backing, Runtime};
use haft_mcp::{Server, ServerName};
use haft_web::PackageIndex;
use haft_web::client::{Client, Url};
use run::Limits;
use sandbox::Sandbox;
use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The Bash interpreter recurses on the thread's stack.
const STACK: usize = 32 << 20;

/// Python and Bash without access to the machine, over MCP on standard input and output.
#[derive(Parser)]
#[command(name = "haft-sandbox", version, about)]
struct Cli {
    /// Address of the package index (Python's simple API).
    #[arg(long, value_name = "URL", default_value = "https://pypi.org/simple")]
    index: Url,
    /// Time limit of a call in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    timeout: f64,
    /// Memory limit of a Python call in MiB (64 to 1024).
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(64..=1024))]
    memory: u32,
    /// Serve a session of haft, which holds the files.
    #[arg(long, hide = true)]
    session: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("give a number of seconds from 0.1 to 3600".to_owned()),
    }
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match serve(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&*error);
            ExitCode::FAILURE
        }
    }
}

fn report(error: &dyn Error) {
    // If stderr is closed, the error cannot be reported at all.
    let _ = writeln!(std::io::stderr(), "haft-sandbox: {error}");
}

fn serve(cli: Cli) -> Result<(), Box<dyn Error>> {
    let limits = Limits {
        time: Duration::from_secs_f64(cli.timeout),
        memory: cli.memory as usize * (1 << 20),
    };
    let sandbox = Arc::new(Sandbox::new(limits, cli.index.to_string()));
    let threads = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .thread_stack_size(STACK)
        .enable_all()
        .build()?;
    // Loading the interpreter takes a while, so it starts before the first call.
    drop(threads.spawn_blocking(bashkit::warm_up));
    let done = if cli.session {
        threads
            .block_on(session::serve(sandbox))
            .map_err(Into::into)
    } else {
        threads.block_on(over_mcp(sandbox, cli.index))
    };
    // A stuck run must not keep the process alive.
    threads.shutdown_timeout(Duration::from_millis(50));
    done
}

async fn over_mcp(sandbox: Arc<Sandbox>, index: Url) -> Result<(), Box<dyn Error>> {
    let client = Client::new(haft_web::Settings::default())?;
    let guest = Guest {
        index: Some(Arc::new(PackageIndex::new(client, index))),
    };
    let mut builder = Runtime::builder()
        .dir("/")
        .toolset("deepagents")
        .preset("none")
        .backend(Backing::state());
    for tool in tools::all(&sandbox, &guest) {
        builder = builder.any_tool(tool);
    }
    let name = ServerName::new("haft-sandbox", env!("CARGO_PKG_VERSION"));
    Server::new(builder.build()?, name)
        .serve_stdio(CancellationToken::new())
        .await?;
    Ok(())
}
