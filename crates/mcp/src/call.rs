//! One `tools/call`, from its turn to its result.

use crate::elicit::{self, Asking, Later, Person, Waiting};
use crate::link::Link;
use crate::progress::Updates;
use crate::turn::{Admission, OddArguments};
use crate::wire;
use haft::{Call, Runtime};
use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, CallToolResponse, ProtocolVersion};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

/// What a call has around it.
pub(crate) struct Around<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) link: &'a Link,
    pub(crate) waiting: &'a Waiting,
}

/// Makes the call. Exactly one result, unless the connection is over.
pub(crate) async fn run(
    around: Around<'_>,
    request: CallToolRequestParams,
    mut context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let Around {
        runtime,
        link,
        waiting,
    } = around;
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
    let answers = match &request.request_state {
        Some(state) => {
            let said = elicit::answered(request.input_responses.as_ref());
            waiting.back(state, &name, &arguments, said)?
        }
        None => elicit::Answers::default(),
    };
    let asking = asking(&context);

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
    // Only a call that may have to be made again is remembered.
    let again = matches!(asking, Asking::Again(_)).then(|| arguments.clone());
    let mut call = answers.given_to(Call::new(&name, arguments).cancel(cancel.clone()));
    // Where several clients share a session, its records and outputs tell them apart by
    // ids that it gives itself.
    if !link.is_shared {
        call = call.id(context.id.to_string());
    }
    if let Some(approver) = asking.approver() {
        call = call.approver(approver);
    }
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
    if let (Asking::Again(later), Some(arguments)) = (&asking, again)
        && let Some(question) = later.question()
    {
        let is_within = question.confirm.is_some();
        let state = waiting.wait(&name, arguments, answers, is_within, elicit::PATIENCE);
        if let Some(round) = state.and_then(|state| elicit::round(&question, state)) {
            return Ok(round.into());
        }
    }
    Ok(wire::result(reply).into())
}

/// Who can be asked about a call.
fn asking(context: &RequestContext<RoleServer>) -> Asking {
    if !elicit::shows_forms(context.client_capabilities().as_ref()) {
        return Asking::Nobody;
    }
    let is_newer = context
        .protocol_version()
        .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    if is_newer {
        return Asking::Again(Arc::new(Later::default()));
    }
    let person = Person::new(context.peer.clone(), context.id.clone());
    Asking::Now(Arc::new(person))
}

fn over() -> ErrorData {
    ErrorData::internal_error("cancelled: the connection is closing", None)
}
