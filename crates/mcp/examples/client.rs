//! Gives a session the tools of another MCP server, lists them and calls one.
//!
//! ```sh
//! cargo run -p haft-mcp --example client -- npx -y @modelcontextprotocol/server-everything
//! cargo run -p haft-mcp --example client -- https://example.com/mcp
//! ```
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use haft::commands::CommandLocation;
use haft::ops::executor::Itself;
use haft::ops::executor::sandbox::Network;
use haft::{Commands, Folders, Runtime};
use haft_mcp::client::{Endpoint, Remote, RemoteServer};
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    // The supervisor of programs is this program, started again.
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
    let mut words = std::env::args().skip(1);
    let first = words.next().ok_or("which server?")?;
    let mut remote = if first.starts_with("http") {
        Remote::at("other", &first)?
    } else {
        Remote::program("other", first, words)
    };
    if let Endpoint::Program { environment, .. } = &mut remote.endpoint {
        // The complete environment of the server: nothing else is passed on.
        environment.push(("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()));
    }
    let folder = tempfile::tempdir()?;
    let itself = Itself::new();
    let runtime = Runtime::builder()
        .dir(folder.path())
        .folders(Folders {
            state: Some(folder.path().join("state")),
            ..Folders::default()
        })
        .preset("none")
        .programs_run(Commands {
            executor: Arc::new(itself.executor()),
            environment: Vec::new(),
            place: CommandLocation::Here {
                helper: itself.helper(),
                network: Network::On,
                sockets: Vec::new(),
                readable: Vec::new(),
            },
            gateway: None,
            caches: None,
        })
        .source(RemoteServer::new(remote)?)
        .build()?;
    for problem in runtime.ready().await {
        println!("{problem}");
    }
    for tool in runtime.definitions() {
        println!("{}: {}", tool.name, tool.description);
    }
    if runtime.tools().get("other_echo").is_some() {
        let reply = runtime
            .call("other_echo", json!({ "message": "hello" }))
            .await;
        println!("{}", reply.text());
    }
    Ok(())
}
