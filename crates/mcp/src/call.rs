//! One `tools/call`, from its turn to its result.

use crate::link::Link;
use crate::progress::Updates;
use crate::turn::{Admission, OddArguments};
use crate::wire;
use haft::{Call, Runtime};
use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

/// Makes the call. Exactly one result, unless the connection is over.
pub(crate) async fn run(
    runtime: &Runtime,
    link: &Link,
    request: CallToolRequestParams,
    mut context: RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let mut admitted = context
        .extensions
        .get::<Admission>()
        .and_then(Admission::take);
    let mut turn = admitted.as_mut().and_then(|admitted| admitted.turn.take());
    let name = request.name;
    if runtime.tools().get(&name).is_none() {
        return Err(wire::unknown_tool(runtime, &name));
    }
    let arguments = match context.extensions.remove::<OddArguments>() {
        Some(OddArguments(arguments)) => arguments,
        None => Value::Object(request.arguments.unwrap_or_default()),
    };

    // Calls begin in the order they came in, and so many at a time.
    let begin = async {
        if let Some(turn) = &mut turn {
            turn.come().await;
        }
        link.running.acquire().await.ok()
    };
    let _slot = tokio::select! {
        slot = begin => slot,
        () = context.ct.cancelled() => return Err(over()),
        () = link.calls.cancelled() => return Err(over()),
    };

    let cancel = context.ct.child_token();
    let mut call = Call::new(&name, arguments)
        .id(context.id.to_string())
        .cancel(cancel.clone());
    let updates = context
        .meta
        .get_progress_token()
        .map(|token| Arc::new(Updates::new(token)));
    if let Some(updates) = &updates {
        let updates = Arc::clone(updates);
        call = call.on_update(move |content| updates.push(content));
    }
    let told = async {
        match &updates {
            Some(updates) => updates.forward(&context.peer).await,
            None => std::future::pending().await,
        }
    };
    let (mut told, mut silent) = (pin!(told), false);
    let mut run = pin!(runtime.run(call));

    // Its first step takes its place in the runtime's queue; then the next may.
    let first = poll_fn(|cx| Poll::Ready(run.as_mut().poll(cx))).await;
    drop(turn);
    let reply = match first {
        Poll::Ready(reply) => reply,
        Poll::Pending => loop {
            tokio::select! {
                reply = &mut run => break reply,
                () = &mut told, if !silent => silent = true,
                () = link.calls.cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
                () = link.stop.cancelled() => return Err(over()),
            }
        },
    };
    if let Some(updates) = &updates
        && !silent
    {
        // No progress may be told after the result.
        updates.close();
        tokio::select! {
            () = told => {}
            () = cancel.cancelled() => {}
            () = link.stop.cancelled() => {}
        }
    }
    Ok(wire::result(reply))
}

fn over() -> ErrorData {
    ErrorData::internal_error("cancelled: the connection is closing", None)
}
