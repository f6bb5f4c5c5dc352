//! One turn: an answer, its calls and their results.

use super::ask::{ModelQuery, NoAnswer};
use super::calls::{CallResults, PreparedCall};
use super::handle::{OpenCalls, PendingCall};
use super::limits::LoopVerdict;
use super::pictures::PictureTrial;
use super::record::{NotRecorded, not_recorded, recorded};
use super::run::{End, Next, Run, panic_message};
use crate::format::MAX_CORRECTIONS;
use crate::{
    AgentEvent, Limit, Message, ModelAnswer, Origin, Part, Stop, ToolCall, ToolResult, Usage,
};
use futures::FutureExt;
use haft::Reply;
use haft_store::record::{Approval, Batch, REDACTED};
use serde_json::json;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::SystemTime;

/// Reply to a call whose arguments contain the mark of a redacted secret.
const MARKED: &str = "[not run: its arguments contain the mark `[redacted]`. It replaces a secret \
that is not in this session's record, and is not the original text. Leave that part of the file \
unchanged, read the value from a variable or a file, or ask the user for it. To write the mark \
itself, start a new session.]";

impl Run {
    pub(super) async fn turn(&mut self) -> Result<Next, NotRecorded> {
        self.turns += 1;
        self.is_in_turn = true;
        self.emit(AgentEvent::TurnStart { turn: self.turns });
        let answer = match self.answer().await {
            Ok(answer) => answer,
            Err(end) => return Ok(Next::End(end)),
        };
        let usage = answer.usage;
        self.count(&usage);
        self.text = answer.text();
        let calls: Vec<_> = answer.calls().cloned().collect();
        if calls.is_empty() {
            return self.last_answer(answer).await;
        }
        let prepared = match reason_not_to_run(answer.stop) {
            None => self.prepare(calls).await,
            Some(why) => calls.into_iter().map(|call| skipped(call, why)).collect(),
        };
        let sent = prepared.iter().map(|one| ToolCall::clone(&one.call));
        let answer = (Message::Assistant(answer), sent.collect());
        let made = self.run_calls(&prepared, Some(answer)).await?;
        let calls = prepared
            .into_iter()
            .map(|one| Arc::unwrap_or_clone(one.call));
        let calls: Vec<_> = calls.collect();
        self.results(&calls, made, &usage).await
    }

    /// Asks the model. Retries with fewer pictures if the provider may have rejected one, and
    /// once with a compacted conversation if it was too long.
    async fn answer(&mut self) -> Result<ModelAnswer, End> {
        let mut is_compacted = false;
        let mut trial = PictureTrial::default();
        let settings = Arc::clone(&self.settings);
        let system = settings.system_prompt();
        loop {
            let full = Arc::clone(&self.shared.lock().history);
            let is_short = is_compacted || full.len() < 3;
            let history = trial.apply(Arc::clone(&full));
            let changed = self.settings.hooks.transform_context(&history).await;
            let history = changed.map_or(history, Arc::new);
            let tools = self.shared.runtime.definitions();
            let query = ModelQuery {
                system: &system,
                tools: &tools,
                history: &history,
                is_trial: trial.has_begun(),
            };
            match self.ask(&query).await {
                Ok(answer) => {
                    if let Some(answer) = self.accept_answer(&mut trial, &full, answer) {
                        return Ok(self.with_unique_ids(answer));
                    }
                }
                Err(NoAnswer::Failed(error) | NoAnswer::TooLong(error))
                    if (PictureTrial::is_for(&error)
                        || is_short && PictureTrial::is_for_short(&error))
                        && self.retry_with_fewer_pictures(&mut trial, &full, &error) => {}
                Err(NoAnswer::Failed(error)) => {
                    return Err(End::Failed(trial.error(error).message));
                }
                Err(NoAnswer::Stopped(partial)) => {
                    self.keep_partial(partial).await?;
                    return Err(End::Interrupted);
                }
                Err(NoAnswer::TooLong(error)) => {
                    if is_short {
                        return Err(End::Failed(trial.error(error).message));
                    }
                    is_compacted = true;
                    self.compact().await?;
                    trial.start_over();
                }
            }
        }
    }

    /// Keeps the part of an answer that was received before the run was stopped.
    async fn keep_partial(&mut self, partial: String) -> Result<(), End> {
        if partial.trim().is_empty() {
            return Ok(());
        }
        self.text.clone_from(&partial);
        let answer = ModelAnswer {
            parts: vec![Part::Text { text: partial }],
            stop: Stop::Interrupted,
            model: self.shared.model().id().model,
            ..ModelAnswer::default()
        };
        self.append(vec![Message::Assistant(answer)]).await?;
        Ok(())
    }

    /// Renames calls whose ids were used before, so that each call has its own result.
    fn with_unique_ids(&self, mut answer: ModelAnswer) -> ModelAnswer {
        let ids = &mut self.shared.lock().call_ids;
        let mut is_renamed = false;
        for part in &mut answer.parts {
            let Part::Call(call) = part else { continue };
            if call.id.is_empty() || ids.contains(&call.id) {
                let stem = if call.id.is_empty() { "call" } else { &call.id };
                let fresh = (2_u64..)
                    .map(|number| format!("{stem}_{number}"))
                    .find(|id| !ids.contains(id));
                call.id = fresh.unwrap_or_default();
                is_renamed = true;
            }
            ids.insert(call.id.clone());
        }
        if is_renamed {
            // The provider's own form has the old ids.
            answer.native = None;
        }
        answer
    }

    async fn last_answer(&mut self, answer: ModelAnswer) -> Result<Next, NotRecorded> {
        let usage = answer.usage;
        let stopped_short = answer.stop == Stop::Length;
        let refused = answer.stop == Stop::Refusal && answer.text().trim().is_empty();
        let event = self.turn_end(&usage);
        let has_tasks = self.settings.waits_for_background
            && self.shared.background.is_busy(&self.shared.runtime);
        let is_complete = !stopped_short && !refused;
        let continues = self.shared.has_steering() || has_tasks && is_complete;
        let format_problem = match continues || !is_complete {
            true => None,
            false => self.format_problem(&answer.text()),
        };
        let questions = self.has_questions();
        let message = Message::Assistant(answer);
        let batch = Batch {
            messages: vec![recorded(&message)],
            ..self.recorder.batch()
        };
        if continues || !is_complete || format_problem.is_some() || questions {
            let ids = self
                .recorder
                .commit_or_emit(None, batch, std::slice::from_ref(&event))
                .await?;
            self.recorder.extend_history(vec![message], ids);
            self.emitter.send(event);
            if let Some(note) = format_problem {
                if self.corrections == MAX_CORRECTIONS {
                    return Ok(Next::End(self.format_failure(&self.text)));
                }
                self.corrections += 1;
                self.append(vec![note]).await?;
                return Ok(Next::Turn);
            }
            if has_tasks && is_complete {
                self.wait_for_tasks().await;
            }
            return Ok(match (continues, refused) {
                (true, _) => Next::Turn,
                _ if is_complete => Next::End(End::Approval),
                (_, true) => Next::End(End::Failed(
                    "the model declined to answer; rephrase the prompt, or try another model"
                        .to_owned(),
                )),
                _ => Next::End(End::Failed(
                    "the answer was truncated: it reached the maximum number of tokens; ask for less at once".to_owned(),
                )),
            });
        }
        // The last answer and the end of the run share a transaction.
        let end = self.emitter.prepare(self.agent_end("done"));
        let batch = Batch {
            events: batch
                .events
                .into_iter()
                .chain(self.emitter.take_unrecorded())
                .collect(),
            ..batch
        };
        let ids = self
            .recorder
            .commit_or_emit(None, batch, std::slice::from_ref(&event))
            .await?;
        self.recorder.extend_history(vec![message], ids);
        self.emitter.send(event);
        self.emitter.send(end);
        Ok(Next::End(End::Emitted))
    }

    /// Runs the hooks before the calls are recorded.
    async fn prepare(&self, calls: Vec<ToolCall>) -> Vec<PreparedCall> {
        let mut prepared = Vec::new();
        for mut call in calls {
            let id = call.id.clone();
            let hook = self.settings.hooks.before_tool(&mut call);
            let instead = AssertUnwindSafe(hook).catch_unwind().await;
            // The hook might have rejected the call, so it must not run.
            let instead = instead.unwrap_or_else(|panic| {
                let text = panic_message("a hook", &*panic);
                Some(Reply::error(format!("the call did not run: {text}")))
            });
            call.id = id;
            let instead = instead.or_else(|| self.refuse_mark(&call));
            prepared.push(PreparedCall {
                instead,
                ..PreparedCall::new(call)
            });
        }
        prepared
    }

    /// Refuses a call that would write the mark of a redacted secret instead of the secret.
    fn refuse_mark(&self, call: &ToolCall) -> Option<Reply> {
        let has_mark = call.arguments.to_string().contains(REDACTED);
        let is_refused = has_mark && self.shared.lock().has_marks && self.may_change(call);
        is_refused.then(|| Reply::error(MARKED))
    }

    /// Records the results of calls and emits their events. Returns the next step.
    pub(super) async fn results(
        &mut self,
        calls: &[ToolCall],
        made: CallResults,
        usage: &Usage,
    ) -> Result<Next, NotRecorded> {
        let unsent = made.unrecorded.events.into_iter();
        let mut events: Vec<_> = unsent.map(|kind| self.emitter.prepare_tool(kind)).collect();
        events.push(self.turn_end(usage));
        if let Some(error) = made.broken {
            for event in events {
                self.emitter.send(not_recorded(event, &error));
            }
            return Err(error);
        }
        let mut messages = Vec::new();
        let mut open = None;
        let mut next = Next::Turn;
        let results: Vec<ToolResult> = made.results.into_iter().flatten().collect();
        if made.pending.is_empty() {
            match self.loop_detector.turn(calls, &results) {
                LoopVerdict::Fine => {}
                LoopVerdict::Warn(times) => {
                    messages.push(Message::user(loop_warning(times), Origin::Note))
                }
                LoopVerdict::Stop => next = Next::End(End::Limit(Limit::Loop)),
            }
            messages.insert(0, Message::Tool { results });
        } else {
            open = Some(OpenCalls {
                calls: calls.to_vec(),
                done: results,
                pending: made.pending.clone(),
                since: SystemTime::now(),
            });
            next = Next::End(End::Approval);
        }
        // A run with pending calls is not done.
        if let (Some(text), true) = (made.final_text, made.pending.is_empty()) {
            next = match self.format_problem(&text) {
                None => Next::End(End::Done),
                Some(_) if self.corrections == MAX_CORRECTIONS => {
                    Next::End(self.format_failure(&text))
                }
                Some(note) => {
                    self.corrections += 1;
                    messages.push(note);
                    Next::Turn
                }
            };
            self.text = text;
        }
        if self.cancel.is_cancelled() {
            next = Next::End(End::Interrupted);
        }
        let batch = Batch {
            messages: messages.iter().map(recorded).collect(),
            outcomes: made.unrecorded.outcomes,
            approvals: made
                .pending
                .iter()
                .map(|one| approval(calls, one))
                .collect(),
            ..self.recorder.batch()
        };
        let ids = self
            .recorder
            .commit_or_emit(made.unrecorded.answer, batch, &events)
            .await?;
        self.recorder.extend_history(messages, ids);
        self.shared.lock().open = open;
        for event in events {
            self.emitter.send(event);
        }
        Ok(next)
    }
}

/// Returns why the calls of an answer must not run: the answer is incomplete, and the rest of
/// it might have changed their meaning.
fn reason_not_to_run(stop: Stop) -> Option<&'static str> {
    match stop {
        Stop::End | Stop::Calls => None,
        Stop::Length => Some(
            "the answer reached the maximum number of tokens and was truncated; repeat the call with less at once",
        ),
        Stop::Refusal => Some("the provider withheld the rest of the answer"),
        Stop::Interrupted => Some("the answer was interrupted"),
    }
}

fn skipped(call: ToolCall, why: &str) -> PreparedCall {
    PreparedCall {
        instead: Some(Reply::error(format!("the call did not run: {why}"))),
        ..PreparedCall::new(call)
    }
}

/// Converts a pending call for the record.
fn approval(calls: &[ToolCall], one: &PendingCall) -> Approval {
    let call = calls.iter().find(|call| call.id == one.call_id);
    let question = json!({
        "tool": call.map(|call| &call.name),
        "arguments": call.map(|call| &call.arguments),
        "question": one.question,
        "has_begun": one.has_begun,
        "held": one.held,
    });
    Approval {
        call_id: one.call_id.clone(),
        question: question.to_string(),
    }
}

fn loop_warning(times: u32) -> String {
    format!(
        "[haft: the last {times} turns were the same calls with the same results. Repeating them \
         will not help: try something else, or explain what blocks you.]"
    )
}
