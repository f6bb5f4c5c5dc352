//! `haft mcp --http`: serves the tools over HTTP to clients that know the token.

use super::{address, note_enforcement, server_name, token, wait};
use crate::args::Shared;
use crate::args::mcp::Mcp;
use crate::exit::{Exit, Failure};
use crate::record::Records;
use crate::session::{self, Offer};
use crate::signals::{self, Signals};
use crate::{log, output};
use haft::Sibling;
use haft_mcp::{BindError, HttpServer, HttpSettings};
use haft_store::sessions::SessionKind;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// Limit of open files; each connection needs one, and there may be thousands.
const MAX_OPEN_FILES: u64 = 16_384;

/// Serves until a signal comes.
pub(super) fn run(shared: &Shared, given: &str, arguments: &Mcp) -> Result<Exit, Failure> {
    let no_token = arguments.no_token;
    let address = address::parse(given)?;
    let is_local = address.ip().is_loopback();
    if no_token && !is_local {
        return Err(Failure::usage(format!(
            "--no-token: {address} is reachable from other machines, so a token is required"
        ))
        .hint("remove --no-token, or listen on loopback (--http 127.0.0.1:PORT)"));
    }
    let mut settings = session::settings(shared)?;
    settings.paths.open_to_tools()?;
    let token = match no_token {
        true => None,
        false => Some(token::find(settings.folders.state.as_deref())?),
    };
    if let Some(token) = &token {
        let token = token.reveal().to_owned();
        log::redact(&token);
        settings.secrets.push(token);
    }
    let first = session::build_with(&settings, Offer::Preset, None, None)?;
    let records = Records::new(&settings, SessionKind::Mcp);
    allow_connections();
    signals::block_on_many_threads(async {
        let mut signals = Signals::listen()?;
        note_enforcement(&first);
        session::ready_and_note_later(&settings, &first);
        let template = first.clone();
        let sessions = move || {
            let record = records.as_ref().map(Records::begin);
            let sibling = record.map_or_else(Sibling::default, |record| Sibling {
                id: Some(record.session),
                journal: Some(record.journal),
            });
            template.sibling(sibling).map_err(|error| error.to_string())
        };
        let http = HttpSettings {
            token: token.clone(),
            hosts: arguments.allow_host.clone(),
            ..HttpSettings::default()
        };
        let server = HttpServer::bind(address, http, server_name(), sessions)
            .await
            .map_err(|error| bind_failure(&error))?;
        output::json(&json!({
            "url": server.url(),
            "token": token.as_ref().map(haft_mcp::Token::reveal),
        }))?;
        drop(token);
        let shutdown = CancellationToken::new();
        let exit = wait(server.serve(shutdown.clone()), shutdown, &mut signals).await;
        let stopped = session::close_unless(&first, &mut signals).await;
        stopped.map_or(exit, Ok)
    })
}

fn bind_failure(error: &BindError) -> Failure {
    let failure = Failure::failed(error.to_string());
    match error {
        BindError::Address(_, reason) if reason.kind() == std::io::ErrorKind::AddrInUse => failure
            .hint("another program uses this port: choose another one, or 0 for any free port"),
        _ => failure,
    }
}

/// Raises the limit of open files as far as the system permits.
fn allow_connections() {
    let now = getrlimit(Resource::Nofile);
    let most = now
        .maximum
        .map_or(MAX_OPEN_FILES, |most| most.min(MAX_OPEN_FILES));
    if now.current.is_some_and(|now| now < most) {
        let raised = Rlimit {
            current: Some(most),
            maximum: now.maximum,
        };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::debug!(%error, "cannot raise the limit of open files");
        }
    }
}
