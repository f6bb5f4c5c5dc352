//! A tool in another language: the Python plugin in `examples/tools`, called like any
//! other.
//!
//! `cargo run -p haft --example use_a_plugin`
#![expect(clippy::print_stdout, reason = "an example shows its result")]
#![expect(
    clippy::disallowed_methods,
    reason = "a program reads its own arguments and environment"
)]

use haft::commands::CommandLocation;
use haft::ops::exec::environment;
use haft::ops::executor::Itself;
use haft::ops::executor::sandbox::Network;
use haft::{Commands, Folders, Plugin, Runtime};
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    // Programs run below a supervisor, which is this program started again.
    if let Some(code) = haft::ops::executor::hidden(std::env::args_os()) {
        return code;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR"))?;
    let itself = Itself::new();
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/tools/python/tool.py"
    );
    let runtime = Runtime::builder()
        .dir(folder.path())
        .folders(Folders {
            state: Some(folder.path().join("state")),
            ..Folders::default()
        })
        .programs_run(Commands {
            executor: Arc::new(itself.executor()),
            // Plugins see the usual variables of these, such as PATH and HOME.
            environment: environment::for_commands(std::env::vars_os(), &[]),
            place: CommandLocation::Here {
                helper: itself.helper(),
                network: Network::On,
                sockets: Vec::new(),
                readable: Vec::new(),
            },
            gateway: None,
            caches: None,
        })
        .plugin("python3", [script])
        .build()?;
    for problem in runtime.ready().await {
        println!("{problem}");
    }
    let reply = runtime.call("stats", json!({ "numbers": [1, 2, 3] })).await;
    println!("{}", reply.text());

    // Another plugin, added during the session.
    let bash = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/tools/bash/tool.sh"
    );
    let plugin = Plugin::new("bash", vec![bash.into()]);
    let added = runtime.tools().add_plugin(plugin).await?;
    println!("added: {}", added.join(", "));
    Ok(())
}
