//! `haft mcp`: the tools for an MCP client.

use crate::args::Shared;
use crate::exit::{Exit, Failure};
use crate::record;
use crate::session::{self, Offer};
use crate::signals::{self, Signals};
use haft::Runtime;
use haft_store::sessions::Kind;
use tokio_util::sync::CancellationToken;

/// Serves until the client is gone or a signal comes.
pub(crate) fn run(shared: &Shared) -> Result<Exit, Failure> {
    let settings = session::settings(shared)?;
    let record = record::calls(&settings, Kind::Mcp);
    let runtime = session::build_with(&settings, Offer::Preset, None, record)?;
    signals::block_on(async {
        let mut signals = Signals::listen()?;
        let shutdown = CancellationToken::new();
        note_enforcement(&runtime);
        session::ready(&runtime, settings.quiet).await;
        let serving = serve(runtime, shutdown.clone());
        tokio::pin!(serving);
        let exit = tokio::select! {
            served = &mut serving => return served.map(|()| Exit::Done),
            exit = signals.next() => exit,
        };
        shutdown.cancel();
        // It ends what it started; a second signal does not wait for that.
        tokio::select! {
            _ = serving => {}
            _ = signals.next() => {}
        }
        Ok(exit)
    })
}

/// Finds out what confines commands before the first one comes; what is less
/// than full is logged.
fn note_enforcement(runtime: &Runtime) {
    let runs_commands = runtime.tools().any_executes();
    let sandbox = runtime
        .surroundings()
        .and_then(|surroundings| surroundings.sandbox.clone());
    if let (true, Some(sandbox)) = (runs_commands, sandbox) {
        tokio::spawn(async move { sandbox.enforcement().await });
    }
}

/// The one call into the MCP crate.
async fn serve(runtime: Runtime, shutdown: CancellationToken) -> Result<(), Failure> {
    let name = haft_mcp::ServerName::new("haft", env!("CARGO_PKG_VERSION"));
    haft_mcp::serve_stdio(runtime, name, shutdown)
        .await
        .map_err(|error| Failure::failed(format!("the MCP server ended: {error}")))
}
