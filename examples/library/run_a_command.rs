//! Lets a model run commands, confined by the kernel.
//!
//! `cargo run -p haft --example run_a_command`
#![expect(clippy::print_stdout, reason = "an example shows its result")]
#![expect(
    clippy::disallowed_methods,
    reason = "a program reads its own arguments and environment"
)]

use haft::commands::CommandLocation;
use haft::ops::exec::environment;
use haft::ops::executor::sandbox::Network;
use haft::ops::executor::{Itself, hidden};
use haft::{Commands, Folders, Runtime};
use serde_json::json;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    // This program is also the supervisor of every command it runs. This comes first:
    // there must be no other thread yet.
    if let Some(code) = hidden(std::env::args_os()) {
        return code;
    }
    match tokio::runtime::Runtime::new().map(|tokio| tokio.block_on(run())) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        failed => {
            println!("{failed:?}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let state = tempfile::tempdir()?;
    let itself = Itself::new();
    let runtime = Runtime::builder()
        .dir(dir.path())
        .folders(Folders {
            state: Some(state.path().to_owned()),
            ..Folders::default()
        })
        .commands(Commands {
            executor: Arc::new(itself.executor()),
            environment: environment::for_commands(std::env::vars_os(), &[]),
            place: CommandLocation::Here {
                helper: itself.helper(),
                network: Network::Off,
                sockets: Vec::new(),
                readable: Vec::new(),
            },
            gateway: None,
            caches: None,
        })
        .build()?;

    for command in [
        "echo hello; exit 3",
        "touch /usr/nothing",
        "echo $OPENAI_API_KEY",
    ] {
        let reply = runtime.call("bash", json!({ "command": command })).await;
        println!("$ {command}\n{}\n", reply.text());
    }
    Ok(())
}
