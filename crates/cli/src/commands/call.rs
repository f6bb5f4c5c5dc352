//! `haft call`: calls one tool and prints its reply.

pub(crate) mod arguments;

use crate::args::{Call, Shared};
use crate::exit::{Exit, Failure};
use crate::session::{self, Offer};
use crate::signals::{self, Signals};
use crate::{ask, output, record};
use arguments::Arguments;
use haft::{Reply, Runtime};
use haft_store::sessions::SessionKind;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Makes the call and prints the reply.
pub(crate) fn run(shared: &Shared, args: &Call) -> Result<Exit, Failure> {
    let settings = session::settings(&without_preset(shared))?;
    let record = record::calls(&settings, SessionKind::Call);
    let runtime = session::build_with(
        &settings,
        Offer::Every,
        ask::terminal_approver(&settings),
        record,
    )?;
    let given = arguments::parse(&args.arguments)?;
    signals::block_on(async {
        let mut signals = Signals::listen()?;
        // A built-in tool need not wait for plugins and servers to start.
        if runtime.tools().get(&args.tool).is_none() {
            session::ready(&runtime, settings.quiet).await;
        }
        let exit = match runtime.tools().get(&args.tool) {
            Some(_) => call_and_print(&runtime, args, given, &mut signals).await,
            None => Err(session::unknown_tool(&runtime, &args.tool)),
        };
        let stopped = session::close_unless(&runtime, &mut signals).await;
        stopped.map_or(exit, Ok)
    })
}

/// Ignores the preset in the configuration, because any tool can be called. That preset
/// may not even exist in the toolset named on the command line.
fn without_preset(shared: &Shared) -> Shared {
    let mut shared = shared.clone();
    if let (Some(toolset), None) = (&shared.toolset, &shared.preset) {
        let own = haft::toolsets::by_name(toolset).and_then(|toolset| toolset.presets.first());
        shared.preset = own.map(|preset| preset.name.to_owned());
    }
    shared
}

/// Makes the call and prints the reply.
async fn call_and_print(
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
    let code = reply.as_ref().and_then(exit_code);
    Ok(match (ended, reply) {
        (Some(exit), _) => exit,
        (None, _) if args.exit_code && code.is_some() => code.map_or(Exit::Failed, Exit::Of),
        (None, Some(reply)) if reply.is_error() => Exit::Failed,
        (None, _) => Exit::Done,
    })
}

/// Returns the exit code of the command that the tool ran.
fn exit_code(reply: &Reply) -> Option<u8> {
    let code = reply.details().get("exit_code")?.as_i64()?;
    u8::try_from(code).ok()
}

/// Waits for the reply. A signal cancels the call, which may still return partial output;
/// a second signal does not wait for that.
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

/// Formats a reply as text. An image becomes a line that describes it.
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
    fn an_image_is_described_with_its_size() {
        let reply = Reply::from("before").and_image(&[0; 1537], "image/png");
        assert_eq!(shown(&reply), "before\n[image image/png, 1.5KB]");
    }
}
