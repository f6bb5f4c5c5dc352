//! Making the calls of one answer: every call has exactly one result, and nobody is
//! told that one has ended before its result is on the disk.

use super::handle::{Open, Waiting};
use super::record::NotRecorded;
use super::run::{Run, Unsaid, fell_over};
use crate::{ToolCall, ToolResult, shape};
use futures::{FutureExt, StreamExt};
use haft::{Answer, Call, Content, EventKind, Reply};
use haft_store::sessions::{Batch, Decision, Outcome};
use serde_json::Value;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

/// How long what is to be recorded waits for more, so that they share a transaction.
const TOGETHER: Duration = Duration::from_millis(5);

/// A call that is about to be made.
pub(super) struct Prepared {
    pub(super) call: ToolCall,
    /// What stands for it; it is not made then.
    pub(super) instead: Option<Reply>,
    /// What a person said about it before, and whether it had begun then.
    pub(super) answer: Option<(Answer, bool)>,
    /// A question about it is in the record without an answer. A yes is recorded before
    /// it is made: whoever finds the question later would make it once more.
    pub(super) is_asked: bool,
}

impl Prepared {
    pub(super) fn new(call: ToolCall) -> Self {
        Self {
            call,
            instead: None,
            answer: None,
            is_asked: false,
        }
    }
}

/// What came of the calls.
pub(super) struct Made {
    /// The answer that they are in, if it is still to be recorded.
    pub(super) unsaid: Option<Unsaid>,
    /// In the order of the calls; those that wait for an answer have none.
    pub(super) results: Vec<Option<ToolResult>>,
    /// What the last transaction has to record of them.
    pub(super) unrecorded: Vec<Outcome>,
    /// What is told after it.
    pub(super) untold: Vec<EventKind>,
    /// Calls that nobody could say yes to yet.
    pub(super) waiting: Vec<Waiting>,
    /// A tool has given the final answer.
    pub(super) last_word: Option<String>,
    /// Something could not be recorded; calls that ran were stopped for it.
    pub(super) broken: Option<NotRecorded>,
}

/// Events of calls that have ended, until they may be told.
type Held = Arc<Mutex<HashMap<String, EventKind>>>;

impl Run {
    /// Makes calls, as many at once as the session allows.
    pub(super) async fn make(&self, prepared: &[Prepared], unsaid: Option<Unsaid>) -> Made {
        let held = Held::default();
        let stop = self.cancel.child_token();
        let mut made = Made {
            unsaid,
            results: prepared.iter().map(|_| None).collect(),
            unrecorded: Vec::new(),
            untold: Vec::new(),
            waiting: Vec::new(),
            last_word: None,
            broken: None,
        };
        let mut numbers = Vec::new();
        let mut calls = Vec::new();
        for (number, one) in prepared.iter().enumerate() {
            match &one.instead {
                Some(reply) => {
                    self.take(&mut made, number, &one.call, reply.clone(), None)
                        .await
                }
                None => {
                    numbers.push(number);
                    calls.push(self.call(one, &held, &stop));
                }
            }
        }
        let stream = self.shared.runtime.run_each(calls).await;
        let mut stream = std::pin::pin!(stream);
        loop {
            let is_recorded = made.unrecorded.is_empty() && made.unsaid.is_none();
            let next = if is_recorded || made.broken.is_some() {
                stream.next().await
            } else {
                match tokio::time::timeout(TOGETHER, stream.next()).await {
                    Ok(next) => next,
                    Err(_) => {
                        let was_unsaid = made.unsaid.is_some();
                        made.broken = self.record_some(&mut made).await.err();
                        if was_unsaid && made.broken.is_none() {
                            self.begun(prepared);
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
            self.take(&mut made, number, &one.call, reply, event).await;
        }
    }

    /// The calls are part of the conversation: however this ends, it is known which of
    /// them lack a result.
    pub(super) fn begun(&self, prepared: &[Prepared]) {
        self.shared.lock().open = Some(Open {
            calls: prepared.iter().map(|one| one.call.clone()).collect(),
            done: Vec::new(),
            waiting: Vec::new(),
            since: SystemTime::now(),
        });
    }

    fn call(&self, one: &Prepared, held: &Held, stop: &CancellationToken) -> Call {
        let (teller, held, id) = (self.teller.clone(), Arc::clone(held), one.call.id.clone());
        let call = Call::new(&one.call.name, one.call.arguments.clone())
            .id(&one.call.id)
            .cancel(stop.clone())
            .on_event(move |event| match event {
                EventKind::ToolEnd { call_id, .. } | EventKind::ToolDenied { call_id, .. }
                    if *call_id == id =>
                {
                    lock(&held).insert(call_id.clone(), event.clone());
                }
                event => teller.tell_tool(event.clone()),
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

    /// Takes in what came of one call.
    async fn take(
        &self,
        made: &mut Made,
        number: usize,
        call: &ToolCall,
        mut reply: Reply,
        event: Option<EventKind>,
    ) {
        if reply.is_pending() {
            made.waiting.push(Waiting {
                call_id: call.id.clone(),
                question: reply.text(),
                // One that did not begin has no end either.
                has_begun: event.is_some(),
            });
            made.untold.extend(event);
            return;
        }
        let hook = self.settings.hooks.after_tool(call, &mut reply);
        if let Err(panic) = AssertUnwindSafe(hook).catch_unwind().await {
            // What it would have changed or left out is not known.
            let text = fell_over("a hook", &*panic);
            reply = Reply::error(format!("the call was made, but its result is lost: {text}"));
        }
        if reply.is_final() && made.last_word.is_none() {
            made.last_word = Some(reply.text());
        }
        // A call that was not made took no time, however long a person thought about it.
        let took = match &event {
            Some(EventKind::ToolEnd { duration_ms, .. }) => *duration_ms,
            _ => 0,
        };
        made.unrecorded.push(Outcome {
            call_id: call.id.clone(),
            reply: reply.to_json().to_string(),
            is_error: reply.is_error(),
            duration_ms: took,
            output: output_of(&reply),
        });
        made.untold.extend(event);
        if let Some(slot) = made.results.get_mut(number) {
            *slot = Some(result(call, reply, self.shared.runtime.toolset()));
        }
    }

    /// Records what was said and has ended while other calls go on.
    async fn record_some(&self, made: &mut Made) -> Result<(), NotRecorded> {
        // Other calls go on, and their events come after these.
        let _holding = self.teller.hold();
        let untold = std::mem::take(&mut made.untold);
        let events: Vec<_> = untold
            .into_iter()
            .map(|kind| self.teller.prepared_tool(kind))
            .collect();
        let batch = Batch {
            outcomes: std::mem::take(&mut made.unrecorded),
            events: self.teller.take(),
            ..Batch::default()
        };
        self.commit_or_tell(made.unsaid.take(), batch, &events)
            .await?;
        for event in events {
            self.teller.send(event);
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file with the whole of what a reply has a part of.
fn output_of(reply: &Reply) -> Option<String> {
    let file = reply.details().get("output_path")?;
    file.as_str().map(str::to_owned)
}

/// What the model gets.
pub(super) fn result(call: &ToolCall, reply: Reply, toolset: &str) -> ToolResult {
    let changed = reply.details().get("changed_arguments").cloned();
    let is_error = reply.is_error();
    heard(call, reply.into_content(), is_error, changed, toolset)
}

/// The same of what was recorded.
pub(super) fn heard(
    call: &ToolCall,
    mut content: Vec<Content>,
    is_error: bool,
    changed: Option<Value>,
    toolset: &str,
) -> ToolResult {
    for block in &mut content {
        // It stays for as long as the conversation, so it takes no more than it needs.
        match block {
            Content::Text { text } => text.shrink_to_fit(),
            Content::Image { data, .. } | Content::Audio { data, .. } => data.shrink_to_fit(),
            _ => {}
        }
    }
    if let Some(arguments) = changed {
        let note = format!("The person approved this call with changed arguments: {arguments}");
        shape::add_note(toolset, &mut content, &note);
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
