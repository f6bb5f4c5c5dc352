//! A custom executor: it runs commands on this machine with a low priority, and prints
//! what it runs. One that runs them in a container or on another machine has the same two
//! methods.
//!
//! `cargo run -p haft --example custom_executor`
#![expect(clippy::print_stdout, reason = "an example shows its result")]
#![expect(
    clippy::disallowed_methods,
    reason = "a program reads its own arguments and environment"
)]

use async_trait::async_trait;
use haft::commands::CommandLocation;
use haft::ops::exec::environment;
use haft::ops::executor::{Executor, Finished, Itself, Launch, Program, Running, Watch, hidden};
use haft::{Commands, Folders, Mode, Runtime};
use serde_json::json;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Runs commands with a low priority.
struct Nice {
    inner: Arc<dyn Executor>,
}

impl Nice {
    /// Returns the same command, run by `nice`.
    fn lowered(mut launch: Launch) -> Launch {
        if let Program::Shell {
            shell,
            arguments,
            script,
        } = launch.program
        {
            println!("nice: {script}");
            let mut words: Vec<std::ffi::OsString> = vec!["nice".into(), "-n".into(), "5".into()];
            words.push(shell.into());
            words.extend(arguments.into_iter().map(Into::into));
            words.push(script.into());
            launch.program = Program::Direct(words);
        }
        launch
    }
}

#[async_trait]
impl Executor for Nice {
    async fn run(
        &self,
        launch: Launch,
        watch: &Watch<'_>,
        cancel: &CancellationToken,
    ) -> haft::ops::Result<Finished> {
        self.inner.run(Self::lowered(launch), watch, cancel).await
    }

    async fn start(&self, launch: Launch) -> haft::ops::Result<Running> {
        self.inner.start(Self::lowered(launch)).await
    }
}

fn main() -> ExitCode {
    // This program is also the supervisor of every command it runs.
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
    let inner = Arc::new(Itself::new().executor());
    let runtime = Runtime::builder()
        .dir(dir.path())
        .folders(Folders {
            state: Some(state.path().to_owned()),
            ..Folders::default()
        })
        // This machine's kernel cannot confine commands that run elsewhere.
        .rules(Mode::Off.rules())
        .commands(Commands {
            executor: Arc::new(Nice { inner }),
            environment: environment::for_commands(std::env::vars_os(), &[]),
            place: CommandLocation::Elsewhere { dir: None },
            gateway: None,
            caches: None,
        })
        .build()?;
    let reply = runtime.call("bash", json!({ "command": "nice" })).await;
    println!("{}", reply.text());

    // A session that cannot run commands lists the tools it lacks.
    let without = Runtime::builder()
        .dir(dir.path())
        .preset("coding")
        .build()?;
    println!("left out: {}", without.tools().left_out().join(", "));
    Ok(())
}
