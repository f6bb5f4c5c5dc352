//! Runs the calls of one answer. Every call gets exactly one result, which is recorded before
//! an event reports it.

use super::handle::{OpenCalls, PendingCall};
use super::record::NotRecorded;
use super::run::{Run, UnrecordedAnswer, panic_message};
use crate::{ToolCall, ToolResult, tool_reply};
use futures::{FutureExt, StreamExt};
use haft::{Admitted, ApprovalAnswer, Call, Content, EventKind, Reply, ReplyForm};
use haft_store::sessions::{Batch, Decision, Outcome};
use serde_json::Value;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

/// Time that a result waits for others, so that they share a transaction.
const BATCH_DELAY: Duration = Duration::from_millis(5);

/// A call that is ready to run.
pub(super) struct PreparedCall {
    pub(super) call: ToolCall,
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
            call,
            instead: None,
            answer: None,
            is_asked: false,
        }
    }
}

/// The admitted calls of one answer.
pub(super) struct AdmittedCalls {
    admitted: Vec<Admitted>,
    /// The index of each admitted call among all calls.
    numbers: Vec<usize>,
    held: HeldEvents,
    /// Stops the calls.
    stop: CancellationToken,
}

impl AdmittedCalls {
    /// Returns the repaired arguments of a call, if it was admitted.
    pub(super) fn arguments(&self, number: usize) -> Option<&Value> {
        let index = self.numbers.iter().position(|known| *known == number)?;
        self.admitted.get(index)?.arguments()
    }
}

/// Results of the calls of one answer.
pub(super) struct CallResults {
    /// The answer with the calls, if it is not recorded yet.
    pub(super) unrecorded_answer: Option<UnrecordedAnswer>,
    /// One per call, in order; `None` if the call waits for approval.
    pub(super) results: Vec<Option<ToolResult>>,
    /// Outcomes that the next transaction records.
    pub(super) unrecorded: Vec<Outcome>,
    /// Events to emit after that transaction.
    pub(super) unsent: Vec<EventKind>,
    /// Calls that wait for approval.
    pub(super) pending: Vec<PendingCall>,
    /// Text of the first reply that ends the run.
    pub(super) final_text: Option<String>,
    /// Set if recording failed, which also stops the calls that are still running.
    pub(super) broken: Option<NotRecorded>,
}

/// The last event of each call that has ended, by call id. Held back until its outcome is
/// recorded.
type HeldEvents = Arc<Mutex<HashMap<String, EventKind>>>;

impl Run {
    /// Admits calls, so that their repaired arguments are known before they are recorded.
    /// Calls that a reply replaces are left out.
    pub(super) async fn admit_calls(&self, prepared: &[PreparedCall]) -> AdmittedCalls {
        let held = HeldEvents::default();
        let stop = self.cancel.child_token();
        let running = prepared.iter().enumerate();
        let running = running.filter(|(_, one)| one.instead.is_none());
        let (numbers, calls) = running
            .map(|(number, one)| (number, self.call(one, &held, &stop)))
            .unzip();
        AdmittedCalls {
            admitted: self.shared.runtime.admit_all(calls).await,
            numbers,
            held,
            stop,
        }
    }

    /// Runs admitted calls, as many in parallel as the runtime allows.
    pub(super) async fn run_calls(
        &self,
        prepared: &[PreparedCall],
        calls: AdmittedCalls,
        unrecorded_answer: Option<UnrecordedAnswer>,
    ) -> CallResults {
        let AdmittedCalls {
            admitted,
            numbers,
            held,
            stop,
        } = calls;
        let mut made = CallResults {
            unrecorded_answer,
            results: prepared.iter().map(|_| None).collect(),
            unrecorded: Vec::new(),
            unsent: Vec::new(),
            pending: Vec::new(),
            final_text: None,
            broken: None,
        };
        for (number, one) in prepared.iter().enumerate() {
            if let Some(reply) = &one.instead {
                self.add_reply(&mut made, number, &one.call, reply.clone(), None)
                    .await;
            }
        }
        let stream = self.shared.runtime.finish_each(admitted);
        let mut stream = std::pin::pin!(stream);
        loop {
            let is_recorded = made.unrecorded.is_empty() && made.unrecorded_answer.is_none();
            let next = if is_recorded || made.broken.is_some() {
                stream.next().await
            } else {
                match tokio::time::timeout(BATCH_DELAY, stream.next()).await {
                    Ok(next) => next,
                    Err(_) => {
                        let had_answer = made.unrecorded_answer.is_some();
                        made.broken = self.record_partial(&mut made).await.err();
                        if had_answer && made.broken.is_none() {
                            self.mark_started(prepared);
                        }
                        if made.broken.is_some() {
                            stop.cancel();
                        }
                        continue;
                    }
                }
            };
            let Some((number, reply)) = next else {
                return made;
            };
            let Some((number, one)) = numbers
                .get(number)
                .and_then(|number| Some((*number, prepared.get(*number)?)))
            else {
                continue;
            };
            let event = lock(&held).remove(&one.call.id);
            self.add_reply(&mut made, number, &one.call, reply, event)
                .await;
        }
    }

    /// Remembers the calls as open, so that each of them gets a result even if the run breaks
    /// off.
    pub(super) fn mark_started(&self, prepared: &[PreparedCall]) {
        self.shared.lock().open = Some(OpenCalls {
            calls: prepared.iter().map(|one| one.call.clone()).collect(),
            done: Vec::new(),
            pending: Vec::new(),
            since: SystemTime::now(),
        });
    }

    fn call(&self, one: &PreparedCall, held: &HeldEvents, stop: &CancellationToken) -> Call {
        let (emitter, held, id) = (self.emitter.clone(), Arc::clone(held), one.call.id.clone());
        let call = Call::new(&one.call.name, one.call.arguments.clone())
            .id(&one.call.id)
            .cancel(stop.clone())
            .on_event(move |event| match event {
                EventKind::ToolEnd { call_id, .. } | EventKind::ToolDenied { call_id, .. }
                    if *call_id == id =>
                {
                    lock(&held).insert(call_id.clone(), event.clone());
                }
                event => emitter.emit_tool(event.clone()),
            });
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
    async fn add_reply(
        &self,
        made: &mut CallResults,
        number: usize,
        call: &ToolCall,
        mut reply: Reply,
        event: Option<EventKind>,
    ) {
        if reply.is_pending() {
            made.pending.push(PendingCall {
                call_id: call.id.clone(),
                question: reply.text(),
                // Only a call that started has an end event.
                has_begun: event.is_some(),
            });
            made.unsent.extend(event);
            return;
        }
        let hook = self.settings.hooks.after_tool(call, &mut reply);
        if let Err(panic) = AssertUnwindSafe(hook).catch_unwind().await {
            // The hook may have wanted to change or redact the reply, so it is dropped.
            let text = panic_message("a hook", &*panic);
            reply = Reply::error(format!("the call was made, but its result is lost: {text}"));
        }
        if reply.is_final() && made.final_text.is_none() {
            made.final_text = Some(reply.text());
        }
        // A call that did not run took no time, however long the user needed to decide.
        let duration_ms = match &event {
            Some(EventKind::ToolEnd { duration_ms, .. }) => *duration_ms,
            _ => 0,
        };
        made.unrecorded.push(Outcome {
            call_id: call.id.clone(),
            reply: reply.to_json().to_string(),
            is_error: reply.is_error(),
            duration_ms,
            output: output_of(&reply),
        });
        made.unsent.extend(event);
        if let Some(slot) = made.results.get_mut(number) {
            *slot = Some(result(call, reply, self.shared.runtime.reply_form()));
        }
    }

    /// Records the answer and the outcomes so far while other calls are still running.
    async fn record_partial(&self, made: &mut CallResults) -> Result<(), NotRecorded> {
        // Events of other calls must come after these.
        let _holding = self.emitter.hold();
        let unsent = std::mem::take(&mut made.unsent);
        let events: Vec<_> = unsent
            .into_iter()
            .map(|kind| self.emitter.prepare_tool(kind))
            .collect();
        let batch = Batch {
            outcomes: std::mem::take(&mut made.unrecorded),
            events: self.emitter.take_unrecorded(),
            ..Batch::default()
        };
        self.commit_or_emit(made.unrecorded_answer.take(), batch, &events)
            .await?;
        for event in events {
            self.emitter.send(event);
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the path of the full output, if the reply was truncated.
fn output_of(reply: &Reply) -> Option<String> {
    let file = reply.details().get("output_path")?;
    file.as_str().map(str::to_owned)
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
        tool_reply::add_note(form, &mut content, &note);
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
