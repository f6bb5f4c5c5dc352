//! `haft mcp`: serves the tools to MCP clients.

mod address;
mod http;
mod token;

use crate::args::Shared;
use crate::args::mcp::Mcp;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::record;
use crate::session::{self, Offer};
use crate::signals::{self, Signals};
use haft::Runtime;
use haft_mcp::ServerName;
use haft_store::sessions::SessionKind;
use tokio_util::sync::CancellationToken;

/// Shown to a user who starts the server by hand.
const EXPLANATION: &str = "\
haft mcp serves haft's tools to an MCP client, which starts it and writes JSON to its stdin.
One of these adds it to a client, or the line of JSON in the client's settings:

  haft mcp install claude
  haft mcp install codex
  { \"mcpServers\": { \"haft\": { \"command\": \"haft\", \"args\": [\"mcp\", \"--preset\", \"all\"] } } }

`haft mcp --http 8080` serves over HTTP instead. Ctrl-D ends this one.
";

/// Serves until the client disconnects or a signal comes.
pub(crate) fn run(shared: &Shared, arguments: &Mcp) -> Result<Exit, Failure> {
    output::serve();
    if let Some(address) = &arguments.http {
        return http::run(shared, address, arguments);
    }
    let settings = session::settings(shared)?;
    if output::can_ask() && !settings.quiet {
        output::note(EXPLANATION);
    }
    let record = record::calls(&settings, SessionKind::Mcp);
    let runtime = session::build_with(&settings, Offer::Preset, None, record)?;
    signals::block_on(async {
        let mut signals = Signals::listen()?;
        note_enforcement(&runtime);
        session::ready_and_note_later(&settings, &runtime);
        let shutdown = CancellationToken::new();
        let serving = haft_mcp::serve_stdio(runtime.clone(), server_name(), shutdown.clone());
        let exit = wait(serving, shutdown, &mut signals).await;
        let stopped = session::close_unless(&runtime, &mut signals).await;
        stopped.map_or(exit, Ok)
    })
}

/// Name and version that the server reports.
fn server_name() -> ServerName {
    ServerName::new("haft", env!("CARGO_PKG_VERSION"))
}

/// Waits until serving ends, by itself or by a signal.
async fn wait(
    serving: impl Future<Output = Result<(), haft_mcp::ServeError>>,
    shutdown: CancellationToken,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    tokio::pin!(serving);
    let failed = |error| Failure::failed(format!("the MCP server failed: {error}"));
    let exit = tokio::select! {
        served = &mut serving => return served.map(|()| Exit::Done).map_err(failed),
        exit = signals.next() => exit,
    };
    shutdown.cancel();
    // It first ends what it started; a second signal does not wait for that.
    tokio::select! {
        _ = serving => {}
        _ = signals.next() => {}
    }
    Ok(exit)
}

/// Probes the sandbox before the first command; anything less than full confinement is
/// logged.
fn note_enforcement(runtime: &Runtime) {
    let runs_commands = runtime.tools().any_executes();
    let sandbox = runtime
        .exec_context()
        .and_then(|exec_context| exec_context.sandbox.clone());
    if let (true, Some(sandbox)) = (runs_commands, sandbox) {
        tokio::spawn(async move { sandbox.enforcement().await });
    }
}
