//! `haft mcp --http`: the tools for whoever knows the token.

use super::{address, ended, name, note_enforcement, token};
use crate::args::Shared;
use crate::exit::{Exit, Failure};
use crate::record::Records;
use crate::session::{self, Offer};
use crate::signals::{self, Signals};
use crate::{log, output};
use haft::Sibling;
use haft_mcp::{BindError, HttpServer, HttpSettings};
use haft_store::sessions::Kind;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// How many files may be open: a connection is one, and there may be some thousand.
const FILES: u64 = 16_384;

/// Serves until a signal comes.
pub(super) fn run(shared: &Shared, given: &str, no_token: bool) -> Result<Exit, Failure> {
    let address = address::parse(given)?;
    let is_local = address.ip().is_loopback();
    if no_token && !is_local {
        return Err(Failure::usage(format!(
            "--no-token: {address} can be reached from other machines, which have to know a token"
        ))
        .hint("leave --no-token out, or listen on loopback (--http 127.0.0.1:PORT)"));
    }
    let mut settings = session::settings(shared)?;
    settings.open_to_tools()?;
    let token = match no_token {
        true => None,
        false => Some(token::find(settings.folders.state.as_deref())?),
    };
    if let Some(token) = &token {
        let token = token.reveal().to_owned();
        log::keep_out(&token);
        settings.secrets.push(token);
    }
    let elder = session::build_with(&settings, Offer::Preset, None, None)?;
    let records = Records::new(&settings, Kind::Mcp);
    allow_connections();
    signals::block_on_for_many(async {
        let mut signals = Signals::listen()?;
        note_enforcement(&elder);
        session::ready(&elder, settings.quiet).await;
        session::note_interrupts(&settings, &elder);
        let older = elder.clone();
        let sessions = move || {
            let record = records.as_ref().map(Records::begin);
            let sibling = record.map_or_else(Sibling::default, |record| Sibling {
                id: Some(record.session),
                journal: Some(record.journal),
            });
            older.sibling(sibling).map_err(|error| error.to_string())
        };
        let http = HttpSettings {
            token: token.clone(),
            ..HttpSettings::default()
        };
        let server = HttpServer::bind(address, http, name(), sessions)
            .await
            .map_err(|error| unbound(&error))?;
        output::json(&json!({
            "url": server.url(),
            "token": token.as_ref().map(haft_mcp::Token::reveal),
        }))?;
        drop(token);
        let shutdown = CancellationToken::new();
        let exit = ended(server.serve(shutdown.clone()), shutdown, &mut signals).await;
        let stopped = session::close_unless(&elder, &mut signals).await;
        stopped.map_or(exit, Ok)
    })
}

fn unbound(error: &BindError) -> Failure {
    let failure = Failure::failed(error.to_string());
    match error {
        BindError::Address(_, reason) if reason.kind() == std::io::ErrorKind::AddrInUse => failure
            .hint("another program listens there: choose another port, or 0 for one that is free"),
        _ => failure,
    }
}

/// Raises the number of open files as far as the system lets us without asking.
fn allow_connections() {
    let now = getrlimit(Resource::Nofile);
    let most = now.maximum.map_or(FILES, |most| most.min(FILES));
    if now.current.is_some_and(|now| now < most) {
        let raised = Rlimit {
            current: Some(most),
            maximum: now.maximum,
        };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::debug!(%error, "the number of open files stays as it is");
        }
    }
}
