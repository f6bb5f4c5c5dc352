//! Runs the calls of one answer. Every call gets exactly one result, which is recorded before
//! an event reports it.

use super::handle::PendingCall;
use super::journal::{CallJournal, Unrecorded};
use super::record::NotRecorded;
use super::run::{Run, panic_message};
use crate::{Hooks, Message, ToolCall, ToolResult};
use futures::{FutureExt, StreamExt};
use haft::{ApprovalAnswer, Call, Content, EventKind, Journal, Reply, ReplyForm};
use haft_store::record::{Batch, Decision};
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Time that a result waits for others, so that they share a transaction.
const BATCH_DELAY: Duration = Duration::from_millis(5);

/// A call that is ready to run.
pub(super) struct PreparedCall {
    pub(super) call: Arc<ToolCall>,
    /// A reply that replaces the call, which then does not run.
    pub(super) instead: Option<Reply>,
    /// The user's answer, and whether the call had started before it asked.
    pub(super) answer: Option<(ApprovalAnswer, bool)>,
    /// Whether the record has an open question about the call. Approval is recorded before
    /// the call runs; otherwise, resuming the session again would repeat the call.
    pub(super) is_asked: bool,
}

impl PreparedCall {
    pub(super) fn new(call: ToolCall) -> Self {
        Self {
            call: Arc::new(call),
            instead: None,
            answer: None,
            is_asked: false,
        }
    }
}

/// Results of the calls of one answer.
pub(super) struct CallResults {
    /// One per call, in order; `None` if the call waits for approval.
    pub(super) results: Vec<Option<ToolResult>>,
    /// Facts that the next transaction records.
    pub(super) unrecorded: Unrecorded,
    /// Calls that wait for approval.
    pub(super) pending: Vec<PendingCall>,
    /// Text of the first reply that ends the run.
    pub(super) final_text: Option<String>,
    /// Set if recording failed, which also stops the calls that are still running.
    pub(super) broken: Option<NotRecorded>,
}

impl Run {
    /// Records the intents of calls and runs the calls, as many in parallel as the runtime
    /// allows. `answer` is the answer that they belong to, unless it is in the record.
    pub(super) async fn run_calls(
        &self,
        prepared: &[PreparedCall],
        answer: Option<(Message, Vec<ToolCall>)>,
    ) -> Result<CallResults, NotRecorded> {
        let runtime = &self.shared.runtime;
        let stop = self.cancel.child_token();
        let calls = prepared.iter().map(|one| self.call(one, &stop));
        let mut admitted = runtime.admit_all(calls.collect()).await;
        let journal = Arc::new(self.journal(answer));
        let port = Arc::clone(&journal) as Arc<dyn Journal>;
        runtime.record_intents(&mut admitted, &port).await?;
        let mut made = CallResults {
            results: prepared.iter().map(|_| None).collect(),
            unrecorded: Unrecorded::default(),
            pending: Vec::new(),
            final_text: None,
            broken: None,
        };
        let stream = runtime.finish_each(admitted);
        let mut stream = std::pin::pin!(stream);
        loop {
            let next = if made.broken.is_some() || !journal.has_unrecorded() {
                stream.next().await
            } else {
                match tokio::time::timeout(BATCH_DELAY, stream.next()).await {
                    Ok(next) => next,
                    Err(_) => {
                        made.broken = journal.flush().await.err();
                        if made.broken.is_some() {
                            stop.cancel();
                        }
                        continue;
                    }
                }
            };
            let Some((number, reply)) = next else {
                made.unrecorded = journal.take();
                return Ok(made);
            };
            if let Some(one) = prepared.get(number) {
                let has_begun = journal.has_begun(&one.call.id);
                self.add_reply(&mut made, number, &one.call, reply, has_begun);
            }
        }
    }

    /// Creates the journal for the calls of an answer.
    pub(super) fn journal(&self, answer: Option<(Message, Vec<ToolCall>)>) -> CallJournal {
        CallJournal::new(&self.recorder, self.shared.runtime.journal(), answer)
    }

    /// Settles the review of a call that has run before.
    pub(super) async fn settle(&self, one: &PreparedCall, held: &Value) -> Reply {
        let Some(held) = Reply::from_json(held) else {
            return Reply::error("the recorded result of the call cannot be read");
        };
        let emitter = self.emitter.clone();
        let call = Call::new(&one.call.name, one.call.arguments.clone())
            .id(&one.call.id)
            .cancel(self.cancel.child_token())
            .on_event(move |event| emitter.emit_tool(event.clone()));
        let call = match &one.answer {
            Some((answer, _)) => call.answered(answer.clone()),
            None => call,
        };
        self.shared.runtime.settle(call, held).await
    }

    fn call(&self, one: &PreparedCall, stop: &CancellationToken) -> Call {
        let (emitter, id) = (self.emitter.clone(), one.call.id.clone());
        let (hooks, ended) = (Arc::clone(&self.settings.hooks), Arc::clone(&one.call));
        let call = Call::new(&one.call.name, one.call.arguments.clone())
            .id(&one.call.id)
            .cancel(stop.clone())
            .on_event(move |event| match event {
                // The journal emits it after the transaction with the outcome.
                EventKind::ToolEnd { call_id, .. } | EventKind::ToolDenied { call_id, .. }
                    if *call_id == id => {}
                event => emitter.emit_tool(event.clone()),
            })
            .on_end(move |reply| {
                let (hooks, call) = (Arc::clone(&hooks), Arc::clone(&ended));
                Box::pin(async move { after_tool(&*hooks, &call, reply).await })
            });
        let call = match &one.instead {
            Some(reply) => call.instead(reply.clone()),
            None => call,
        };
        let call = if one.is_asked && one.answer.is_none() {
            let (record, id) = (self.shared.lock().record.clone(), one.call.id.clone());
            call.on_begin(move || {
                let decision = Decision {
                    call_id: id.clone(),
                    answer: "approve".to_owned(),
                };
                let batch = Batch {
                    decisions: vec![decision],
                    ..Batch::default()
                };
                let record = record.clone();
                async move {
                    let recorded = record.commit(vec![batch]).await;
                    recorded.map(drop).map_err(|error| error.to_string())
                }
            })
        } else {
            call
        };
        match &one.answer {
            Some((answer, true)) => call.answered_within(answer.clone()),
            Some((answer, false)) => call.answered(answer.clone()),
            None => call,
        }
    }

    /// Adds the reply to a call.
    fn add_reply(
        &self,
        made: &mut CallResults,
        number: usize,
        call: &ToolCall,
        reply: Reply,
        has_begun: bool,
    ) {
        if reply.is_pending() {
            made.pending.push(PendingCall {
                call_id: call.id.clone(),
                question: reply.text(),
                has_begun: has_begun || reply.held().is_some(),
                held: reply.held().map(Reply::to_json),
            });
            return;
        }
        if reply.is_final() && made.final_text.is_none() {
            made.final_text = Some(reply.text());
        }
        if let Some(slot) = made.results.get_mut(number) {
            *slot = Some(result(call, reply, self.shared.runtime.reply_form()));
        }
    }
}

/// Runs the hook, which may change the reply.
async fn after_tool(hooks: &dyn Hooks, call: &ToolCall, reply: &mut Reply) {
    let hook = hooks.after_tool(call, reply);
    if let Err(panic) = AssertUnwindSafe(hook).catch_unwind().await {
        // The hook may have wanted to change or redact the reply, so it is dropped.
        let text = panic_message("a hook", &*panic);
        *reply = Reply::error(format!("the call was made, but its result is lost: {text}"));
    }
}

/// Converts a reply to the result that the model receives.
pub(super) fn result(call: &ToolCall, reply: Reply, form: ReplyForm) -> ToolResult {
    let changed = reply.details().get("changed_arguments").cloned();
    let is_error = reply.is_error();
    result_from(call, reply.into_content(), is_error, changed, form)
}

/// Creates the result that the model receives from the parts of a reply, which may come from
/// the record.
pub(super) fn result_from(
    call: &ToolCall,
    mut content: Vec<Content>,
    is_error: bool,
    changed: Option<Value>,
    form: ReplyForm,
) -> ToolResult {
    for block in &mut content {
        // The conversation keeps the content, so spare capacity is returned.
        match block {
            Content::Text { text } => text.shrink_to_fit(),
            Content::Image { data, .. } | Content::Audio { data, .. } => data.shrink_to_fit(),
            _ => {}
        }
    }
    if let Some(arguments) = changed {
        let note = format!("The user approved this call with changed arguments: {arguments}");
        form.add_note(&mut content, &note);
    }
    if content.is_empty() {
        let text = "[no output]".to_owned();
        content.push(Content::Text { text });
    }
    ToolResult {
        call_id: call.id.clone(),
        tool: call.name.clone(),
        content,
        is_error,
    }
}
