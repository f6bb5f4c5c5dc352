//! `haft acp`: haft's agent in an editor.

mod host;
mod offers;
mod seat;

use crate::args::Shared;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::signals::{self, Signals};
use host::EditorHost;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Shown to a user who starts it by hand.
const EXPLANATION: &str = "\
haft acp is the agent for editors that speak the Agent Client Protocol. The editor starts it
and writes JSON to its stdin. Zed, in settings.json:

  { \"agent_servers\": { \"haft\": { \"type\": \"custom\", \"command\": \"haft\", \"args\": [\"acp\"] } } }

Other editors: docs/editors.md. Ctrl-D ends this one.
";

/// Serves until the editor disconnects or a signal comes.
pub(crate) fn run(shared: &Shared) -> Result<Exit, Failure> {
    output::serve();
    if output::can_ask() && !shared.quiet {
        output::note(EXPLANATION);
    }
    let host = Arc::new(EditorHost::new(shared.clone()));
    signals::block_on(async {
        let mut signals = Signals::listen()?;
        let shutdown = CancellationToken::new();
        let serving = haft_acp::serve(host, shutdown.clone());
        tokio::pin!(serving);
        let failed = |error: haft_acp::ServeError| Failure::failed(error.to_string());
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
    })
}
