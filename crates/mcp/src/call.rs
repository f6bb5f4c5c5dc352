//! Handles one `tools/call`, from the wait in the queue to the result.

use crate::call_order::{Admission, NonObjectArguments};
use crate::elicit::{self, ApprovalRoute, ClientApprover, DeferredApprover, PendingCalls};
use crate::link::Link;
use crate::progress::Updates;
use crate::wire;
use haft::{ApprovalAnswer, Call, Runtime};
use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, CallToolResponse, ProtocolVersion};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use std::pin::pin;
use std::sync::Arc;

/// Everything a call needs from its connection.
pub(crate) struct CallEnvironment<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) link: &'a Link,
    pub(crate) pending: &'a PendingCalls,
}

/// Runs the call. Produces exactly one result, unless the connection ends first.
pub(crate) async fn run(
    environment: CallEnvironment<'_>,
    request: CallToolRequestParams,
    mut context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let CallEnvironment {
        runtime,
        link,
        pending,
    } = environment;
    let mut admitted = context
        .extensions
        .get::<Admission>()
        .and_then(Admission::take);
    let mut ticket = admitted
        .as_mut()
        .and_then(|admitted| admitted.ticket.take());
    let name = request.name;
    if runtime.tools().get(&name).is_none() {
        return Err(wire::unknown_tool(runtime, &name));
    }
    let arguments = match context.extensions.remove::<NonObjectArguments>() {
        Some(NonObjectArguments(arguments)) => arguments,
        None => Value::Object(request.arguments.unwrap_or_default()),
    };
    let answers = match &request.request_state {
        Some(state) => {
            let answer = elicit::parse_answer(request.input_responses.as_ref());
            pending.resume(state, &name, &arguments, answer)?
        }
        None => elicit::Repeated::default(),
    };
    let elicit::Repeated { answers, held } = answers;
    let route = approval_route(&context);

    // Calls start in the order in which they arrived, and only a limited number run at a
    // time.
    let start = async {
        if let Some(ticket) = &mut ticket {
            ticket.wait().await;
        }
        link.running.acquire().await.ok()
    };
    let _slot = tokio::select! {
        slot = start => slot,
        () = context.ct.cancelled() => return Err(closing_error()),
        () = link.cancel_calls.cancelled() => return Err(closing_error()),
    };

    let cancel = context.ct.child_token();
    // Only a call that the client may have to repeat needs its arguments again.
    let repeatable = matches!(route, ApprovalRoute::BetweenCalls(_)).then(|| arguments.clone());
    if let Some((id, held)) = held {
        // The call has run; only its changes are decided about.
        let answer = answers.of_review().cloned();
        let answer = answer.unwrap_or(ApprovalAnswer::Reject { reason: None });
        let call = Call::new(&name, Value::Null).id(id).answered(answer);
        return Ok(wire::result(runtime.settle(call, held).await).into());
    }
    let mut call = answers.apply(Call::new(&name, arguments).cancel(cancel.clone()));
    // Clients that share a session would clash with their own request ids, so the session
    // assigns ids to its records and outputs itself.
    if !link.is_shared {
        call = call.id(context.id.to_string());
    }
    if let Some(approver) = route.approver() {
        call = call.approver(approver);
    }
    let updates = context
        .meta
        .get_progress_token()
        .map(|token| Arc::new(Updates::new(token)));
    if let Some(updates) = &updates {
        let updates = Arc::clone(updates);
        call = call.on_update(move |update| updates.push(update));
    }
    let forwarding = async {
        match &updates {
            Some(updates) => updates.forward(&context.peer).await,
            None => std::future::pending().await,
        }
    };
    let (mut forwarding, mut is_forwarded) = (pin!(forwarding), false);
    let admitted = tokio::select! {
        admitted = runtime.admit(call) => admitted,
        () = link.drop_calls.cancelled() => return Err(closing_error()),
    };
    // The call has its position in the queue for files, so the next one may start.
    drop(ticket);
    let mut run = pin!(runtime.finish(admitted));
    let reply = loop {
        tokio::select! {
            biased;
            reply = &mut run => break reply,
            () = &mut forwarding, if !is_forwarded => is_forwarded = true,
            () = link.cancel_calls.cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
            () = link.drop_calls.cancelled() => return Err(closing_error()),
        }
    };
    if let Some(updates) = &updates
        && !is_forwarded
    {
        // No progress notification may follow the result.
        updates.close();
        tokio::select! {
            () = forwarding => {}
            () = cancel.cancelled() => {}
            () = link.drop_calls.cancelled() => {}
        }
    }
    if let (ApprovalRoute::BetweenCalls(deferred), Some(arguments)) = (&route, repeatable)
        && let Some(question) = deferred.question()
    {
        let is_within = question.confirm.is_some() || question.review.is_some();
        let held = reply.held().cloned();
        let held = held.map(|held| (question.call_id.clone(), held));
        let is_held = held.is_some();
        let timeout = elicit::ANSWER_TIMEOUT;
        let state = pending.remember(&name, arguments, answers, is_within, held, timeout);
        if let (Some(state), true) = (&state, is_held) {
            revert_unless_answered(runtime, pending, &name, state);
        }
        if let Some(response) = state.and_then(|state| elicit::input_required(&question, state)) {
            return Ok(response.into());
        }
    }
    Ok(wire::result(reply).into())
}

/// Reverts the changes of a call if the user does not answer in time.
fn revert_unless_answered(runtime: &Runtime, pending: &PendingCalls, tool: &str, state: &str) {
    let (runtime, pending) = (runtime.clone(), pending.clone());
    let (tool, state) = (tool.to_owned(), state.to_owned());
    tokio::spawn(async move {
        tokio::time::sleep(elicit::ANSWER_TIMEOUT).await;
        if let Some((id, held)) = pending.give_up(&state) {
            let reason = Some("the user did not answer in time".to_owned());
            let call = Call::new(&tool, Value::Null).id(id);
            let call = call.answered(ApprovalAnswer::Reject { reason });
            runtime.settle(call, held).await;
        }
    });
}

/// Decides how the user can be asked about a call.
fn approval_route(context: &RequestContext<RoleServer>) -> ApprovalRoute {
    if !elicit::shows_forms(context.client_capabilities().as_ref()) {
        return ApprovalRoute::Unavailable;
    }
    let is_newer = context
        .protocol_version()
        .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    if is_newer {
        return ApprovalRoute::BetweenCalls(Arc::new(DeferredApprover::default()));
    }
    let approver = ClientApprover::new(context.peer.clone(), context.id.clone());
    ApprovalRoute::DuringCall(Arc::new(approver))
}

fn closing_error() -> ErrorData {
    ErrorData::internal_error("cancelled: the connection is closing", None)
}
