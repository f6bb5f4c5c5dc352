//! `haft mcp`: the tools for an MCP client.

use crate::args::Shared;
use crate::exit::{Exit, Failure};
use crate::session::{self, Offer};
use crate::signals::{self, Signals};
use haft::Runtime;
use tokio_util::sync::CancellationToken;

/// Serves until the client is gone or a signal comes.
pub(crate) fn run(shared: &Shared) -> Result<Exit, Failure> {
    let settings = session::settings(shared)?;
    let runtime = session::build(&settings, Offer::Preset)?;
    signals::block_on(async {
        let mut signals = Signals::listen()?;
        let shutdown = CancellationToken::new();
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

/// The one call into the MCP crate.
async fn serve(_runtime: Runtime, _shutdown: CancellationToken) -> Result<(), Failure> {
    Err(Failure::failed("haft mcp is not part of this build"))
}
