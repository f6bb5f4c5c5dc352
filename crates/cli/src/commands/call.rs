//! `haft call`: one tool, its reply, an exit code.

pub(crate) mod arguments;

use crate::args::{Call, Shared};
use crate::exit::{Exit, Failure};
use crate::session::{self, Offer};
use crate::signals::{self, Signals};
use crate::{ask, output, record};
use arguments::Arguments;
use haft::{Reply, Runtime};
use haft_store::sessions::Kind;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Makes the call and prints the reply.
pub(crate) fn run(shared: &Shared, args: &Call) -> Result<Exit, Failure> {
    let settings = session::settings(&without_preset(shared))?;
    let record = record::calls(&settings, Kind::Call);
    let runtime = session::build_with(&settings, Offer::Every, ask::here(&settings), record)?;
    let given = arguments::parse(&args.arguments)?;
    signals::block_on(async {
        let mut signals = Signals::listen()?;
        // A tool that is built in does not wait for programs that bring others.
        if runtime.tools().get(&args.tool).is_none() {
            session::ready(&runtime, settings.quiet).await;
        }
        let exit = match runtime.tools().get(&args.tool) {
            Some(_) => made(&runtime, args, given, &mut signals).await,
            None => Err(session::unknown_tool(&runtime, &args.tool)),
        };
        let stopped = session::close_unless(&runtime, &mut signals).await;
        stopped.map_or(exit, Ok)
    })
}

/// A call may be of any tool, so the preset of a file does not matter; it may be one that the
/// toolset of the command line does not have.
fn without_preset(shared: &Shared) -> Shared {
    let mut shared = shared.clone();
    if let (Some(toolset), None) = (&shared.toolset, &shared.preset) {
        let own = haft::toolsets::by_name(toolset).and_then(|toolset| toolset.presets.first());
        shared.preset = own.map(|preset| preset.name.to_owned());
    }
    shared
}

/// Makes the call, and prints what came of it.
async fn made(
    runtime: &Runtime,
    args: &Call,
    given: Arguments,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let arguments = match given {
        Arguments::Given(arguments) => arguments,
        Arguments::Stdin => tokio::select! {
            arguments = arguments::from_stdin() => arguments?,
            exit = signals.next() => return Ok(exit),
        },
    };
    let (reply, ended) = call(runtime, &args.tool, arguments, signals).await;
    if let Some(reply) = &reply {
        if args.json {
            output::json(&reply.to_json())?;
        } else {
            output::text(&shown(reply))?;
        }
    }
    Ok(match (ended, reply) {
        (Some(exit), _) => exit,
        (None, Some(reply)) if reply.is_error() => Exit::Failed,
        (None, _) => Exit::Done,
    })
}

/// Waits for the reply. A signal cancels the call, which may still say what it
/// has; the next one does not wait for that.
async fn call(
    runtime: &Runtime,
    tool: &str,
    arguments: Value,
    signals: &mut Signals,
) -> (Option<Reply>, Option<Exit>) {
    let cancel = CancellationToken::new();
    let running = runtime.run(haft::Call::new(tool, arguments).cancel(cancel.clone()));
    tokio::pin!(running);
    let exit = tokio::select! {
        reply = &mut running => return (Some(reply), None),
        exit = signals.next() => exit,
    };
    cancel.cancel();
    tokio::select! {
        reply = &mut running => (Some(reply), Some(exit)),
        exit = signals.next() => (None, Some(exit)),
    }
}

/// A reply as text; a picture is a line that names it.
pub(crate) fn shown(reply: &Reply) -> String {
    let mut out = String::new();
    for block in reply.content() {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(&block.in_words());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_named_with_its_size() {
        let reply = Reply::from("before").and_image(&[0; 1537], "image/png");
        assert_eq!(shown(&reply), "before\n[image image/png, 1.5KB]");
    }
}
